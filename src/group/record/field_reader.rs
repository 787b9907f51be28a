use super::bad_record::{BadRecord, RecordPart};

/// Takes fields from the front of a key or value. Flexible versions have compact lengths and tagged fields.
pub struct FieldReader<'a> {
    part: RecordPart,
    whole: &'a [u8],
    at: usize,
    flexible: bool,
}

impl<'a> FieldReader<'a> {
    pub fn new(part: RecordPart, whole: &'a [u8]) -> Self {
        Self {
            part,
            whole,
            at: 0,
            flexible: false,
        }
    }

    /// What follows is coded as flexible versions are.
    pub fn flexible(&mut self) {
        self.flexible = true;
    }

    pub fn illegal(&self, field: &'static str) -> BadRecord {
        BadRecord::Illegal {
            part: self.part,
            field,
        }
    }

    fn take(&mut self, field: &'static str, length: usize) -> Result<&'a [u8], BadRecord> {
        let rest = &self.whole[self.at..];
        let Some(taken) = rest.get(..length) else {
            return Err(BadRecord::Truncated {
                part: self.part,
                field,
                at: self.whole.len(),
            });
        };
        self.at += length;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], BadRecord> {
        let taken = self.take(field, N)?;
        Ok(taken.try_into().expect("as many bytes were taken"))
    }

    pub fn i16(&mut self, field: &'static str) -> Result<i16, BadRecord> {
        self.array(field).map(i16::from_be_bytes)
    }

    pub fn i32(&mut self, field: &'static str) -> Result<i32, BadRecord> {
        self.array(field).map(i32::from_be_bytes)
    }

    pub fn i64(&mut self, field: &'static str) -> Result<i64, BadRecord> {
        self.array(field).map(i64::from_be_bytes)
    }

    pub fn uuid(&mut self, field: &'static str) -> Result<uuid::Uuid, BadRecord> {
        self.array(field).map(uuid::Uuid::from_bytes)
    }

    fn varint(&mut self, field: &'static str) -> Result<u32, BadRecord> {
        let mut value = 0u32;
        for place in 0..5 {
            let [byte] = self.array(field)?;
            if place == 4 && byte > 0x0f {
                break;
            }
            value |= u32::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.illegal(field))
    }

    /// `None` is null. Below zero otherwise is no length.
    fn checked(&self, field: &'static str, length: i64) -> Result<Option<usize>, BadRecord> {
        match usize::try_from(length) {
            Ok(length) => Ok(Some(length)),
            Err(_) if length == -1 => Ok(None),
            Err(_) => Err(BadRecord::Length {
                part: self.part,
                field,
                length,
            }),
        }
    }

    pub fn nullable_string(&mut self, field: &'static str) -> Result<Option<&'a str>, BadRecord> {
        let length = match self.flexible {
            true => i64::from(self.varint(field)?) - 1,
            false => i64::from(self.i16(field)?),
        };
        if length > i64::from(i16::MAX) {
            // A compact length could say more; no version may, so that each can be written as another.
            return Err(BadRecord::Length {
                part: self.part,
                field,
                length,
            });
        }
        let Some(length) = self.checked(field, length)? else {
            return Ok(None);
        };
        let bytes = self.take(field, length)?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(self.illegal(field)),
        }
    }

    pub fn string(&mut self, field: &'static str) -> Result<&'a str, BadRecord> {
        self.nullable_string(field)?
            .ok_or_else(|| self.illegal(field))
    }

    pub fn bytes(&mut self, field: &'static str) -> Result<&'a [u8], BadRecord> {
        let length = match self.flexible {
            true => i64::from(self.varint(field)?) - 1,
            false => i64::from(self.i32(field)?),
        };
        let length = self.checked(field, length)?;
        self.take(field, length.ok_or_else(|| self.illegal(field))?)
    }

    /// How many elements follow, each of which takes at least `element_bytes`; more than the rest can hold is refused.
    pub fn count(&mut self, field: &'static str, element_bytes: usize) -> Result<usize, BadRecord> {
        let count = match self.flexible {
            true => i64::from(self.varint(field)?) - 1,
            false => i64::from(self.i32(field)?),
        };
        match self.checked(field, count)? {
            Some(checked) if checked <= (self.whole.len() - self.at) / element_bytes => Ok(checked),
            Some(_) => Err(BadRecord::Length {
                part: self.part,
                field,
                length: count,
            }),
            None => Err(self.illegal(field)),
        }
    }

    /// At the end of a struct; `known` is given each field's tag and bytes. Versions that are not flexible have none.
    pub fn tagged_fields(
        &mut self,
        mut known: impl FnMut(u32, FieldReader<'a>) -> Result<(), BadRecord>,
    ) -> Result<(), BadRecord> {
        if !self.flexible {
            return Ok(());
        }
        for _ in 0..self.varint("tagged fields")? {
            let tag = self.varint("tag")?;
            let size = self.varint("tagged field")?;
            let bytes = self.take("tagged field", size as usize)?;
            let mut field = FieldReader::new(self.part, bytes);
            field.flexible();
            known(tag, field)?;
        }
        Ok(())
    }

    /// Whoever wrote the record wrote exactly its fields.
    pub fn end(&self) -> Result<(), BadRecord> {
        match self.at == self.whole.len() {
            true => Ok(()),
            false => Err(self.illegal("end")),
        }
    }
}
