//! A cursor over received bytes that cannot read beyond their end.

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the bytes end where more were declared")]
pub struct Truncated;

#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    pub fn take(&mut self, len_bytes: usize) -> Result<&'a [u8], Truncated> {
        let (taken, rest) = self.0.split_at_checked(len_bytes).ok_or(Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Truncated> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Truncated)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub fn i8(&mut self) -> Result<i8, Truncated> {
        self.array().map(i8::from_be_bytes)
    }

    pub fn i16(&mut self) -> Result<i16, Truncated> {
        self.array().map(i16::from_be_bytes)
    }

    pub fn i32(&mut self) -> Result<i32, Truncated> {
        self.array().map(i32::from_be_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, Truncated> {
        self.array().map(u32::from_be_bytes)
    }

    pub fn i64(&mut self) -> Result<i64, Truncated> {
        self.array().map(i64::from_be_bytes)
    }

    /// Bytes behind a 16-bit length; null reads as none.
    pub fn short_bytes(&mut self) -> Result<&'a [u8], Truncated> {
        let len_bytes = self.i16()?.max(0);
        self.take(len_bytes as usize)
    }

    /// Bytes behind a 32-bit length; null reads as none.
    pub fn long_bytes(&mut self) -> Result<&'a [u8], Truncated> {
        let len_bytes = self.i32()?.max(0);
        self.take(len_bytes as usize)
    }

    /// Kafka's zigzag varint of at most 64 bits.
    pub fn varint(&mut self) -> Result<i64, Truncated> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
            }
        }
        Err(Truncated)
    }
}
