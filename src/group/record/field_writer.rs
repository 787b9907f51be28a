use bytes::{BufMut, Bytes};

use crate::protocol::varint;

/// Builds a key or a value; see the `//!` of this folder for how each field is coded.
pub struct FieldWriter {
    out: Vec<u8>,
}

impl FieldWriter {
    /// Begins with the version, as each key and value does.
    pub fn new(version: i16, capacity_bytes: usize) -> Self {
        let mut out = Vec::with_capacity(2 + capacity_bytes);
        out.put_i16(version);
        Self { out }
    }

    pub fn i32(&mut self, value: i32) {
        self.out.put_i32(value);
    }

    pub fn i64(&mut self, value: i64) {
        self.out.put_i64(value);
    }

    /// Panics if the text is longer than 32767 bytes: what is kept here has narrower bounds.
    pub fn string(&mut self, text: &str) {
        let length = i16::try_from(text.len()).expect("a string of a record is below 32 KiB");
        self.out.put_i16(length);
        self.out.put_slice(text.as_bytes());
    }

    pub fn nullable_string(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.string(text),
            None => self.out.put_i16(-1),
        }
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        let length = i32::try_from(bytes.len()).expect("a request is below 2 GiB");
        self.out.put_i32(length);
        self.out.put_slice(bytes);
    }

    pub fn count(&mut self, count: usize) {
        self.out
            .put_i32(i32::try_from(count).expect("a group is below 2^31"));
    }

    pub fn compact_string(&mut self, text: &str) {
        varint::write(&mut self.out, text.len() as u32 + 1);
        self.out.put_slice(text.as_bytes());
    }

    pub fn no_tagged_fields(&mut self) {
        varint::write(&mut self.out, 0);
    }

    /// The tagged fields of a struct that has one.
    pub fn tagged_field(&mut self, tag: u32, bytes: &[u8]) {
        varint::write(&mut self.out, 1);
        varint::write(&mut self.out, tag);
        varint::write(&mut self.out, bytes.len() as u32);
        self.out.put_slice(bytes);
    }

    pub fn finish(self) -> Bytes {
        self.out.into()
    }
}
