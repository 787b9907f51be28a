//! The walk of a message before it is decoded.
//!
//! The codec makes room for as many elements as an array declares, so 23 bytes could make it ask for gigabytes. The walk follows the
//! same bytes by the table of shapes and allocates nothing: each count times the smallest element must fit into what remains.

use kafka_protocol::messages::ApiKey;

use crate::model::limits::REQUEST_ELEMENTS_MAX;

use super::request_shapes::{Field, Kind, RequestShape, shape_of};
use super::varint;

/// Why a body is not the request that its header names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    #[error("the request is not served")]
    NoShape,
    #[error("field {field} reaches past the end of the message")]
    CutShort { field: &'static str },
    #[error("field {field} may not be null")]
    Null { field: &'static str },
    #[error("field {field} declares a length of {length}")]
    Length { field: &'static str, length: i32 },
    #[error(
        "field {field} declares {count} elements, more than the {remaining_bytes} bytes behind it can hold"
    )]
    Count {
        field: &'static str,
        count: usize,
        remaining_bytes: usize,
    },
    #[error(
        "a struct declares {count} tagged fields, more than the {remaining_bytes} bytes behind it can hold"
    )]
    TagCount {
        count: usize,
        remaining_bytes: usize,
    },
    #[error("tagged field {tag} comes after tagged field {before}")]
    TagOrder { tag: u32, before: u32 },
    #[error("a tagged field reaches past the end of the message")]
    TagCutShort,
    #[error("tagged field {field} declares a size that it does not have")]
    TagSize { field: &'static str },
    #[error("the message has more elements than are taken")]
    TooManyElements,
}

/// A tag and a size.
const TAGGED_FIELD_BYTES_MIN: usize = 2;

/// Checks that `body`, what follows the header of a request, is a request of `key` and `version`. Bytes behind it are let through, as in
/// Kafka, and nobody reads them: librdkafka 2.15 leaves three behind each of its Metadata requests.
pub fn walk(key: ApiKey, version: i16, body: &[u8]) -> Result<(), ShapeError> {
    let shape = shape_of(key).ok_or(ShapeError::NoShape)?;
    let mut walk = Walk::new(shape, version, body);
    walk.fields(shape.fields)
}

/// The same for a struct that its caller has the shape of, such as a response that a client received.
pub fn walk_fields(
    fields: &'static [Field],
    version: i16,
    is_flexible: bool,
    elements_max: usize,
    body: &[u8],
) -> Result<(), ShapeError> {
    let mut walk = Walk {
        version,
        is_flexible,
        rest: body,
        elements_left: elements_max,
    };
    walk.fields(fields)
}

/// Moves past tagged fields, whatever they are.
pub fn skip_tagged_fields(rest: &mut &[u8]) -> Result<(), ShapeError> {
    let mut walk = Walk {
        version: 0,
        is_flexible: true,
        rest,
        elements_left: REQUEST_ELEMENTS_MAX,
    };
    walk.tagged_fields(&[])?;
    *rest = walk.rest;
    Ok(())
}

struct Walk<'a> {
    version: i16,
    is_flexible: bool,
    rest: &'a [u8],
    /// Structs, strings and unknown tags that may still come. In memory each is larger than on the wire.
    elements_left: usize,
}

impl<'a> Walk<'a> {
    fn new(shape: &RequestShape, version: i16, body: &'a [u8]) -> Self {
        let is_flexible = version >= shape.flexible_since;
        Self {
            version,
            is_flexible,
            rest: body,
            elements_left: REQUEST_ELEMENTS_MAX,
        }
    }

    /// The fields of a struct; as deep as the table is.
    fn fields(&mut self, fields: &'static [Field]) -> Result<(), ShapeError> {
        let version = self.version;
        for field in fields
            .iter()
            .filter(|field| field.is_in(version) && field.tag.is_none())
        {
            self.field(field)?;
        }
        if self.is_flexible {
            self.tagged_fields(fields)
        } else {
            Ok(())
        }
    }

    fn field(&mut self, field: &'static Field) -> Result<(), ShapeError> {
        let is_nullable = field.is_nullable_in(self.version);
        if is_nullable && matches!(field.kind, Kind::Struct(_)) {
            let is_null = self
                .take(1)
                .ok_or(ShapeError::CutShort { field: field.name })?[0]
                >= 0x80;
            return if is_null {
                Ok(())
            } else {
                self.value(field.name, &field.kind, false)
            };
        }
        self.value(field.name, &field.kind, is_nullable)
    }

    fn value(
        &mut self,
        field: &'static str,
        kind: &'static Kind,
        is_nullable: bool,
    ) -> Result<(), ShapeError> {
        match *kind {
            Kind::Fixed { size_bytes, .. } => self
                .take(size_bytes)
                .map(drop)
                .ok_or(ShapeError::CutShort { field }),
            Kind::String | Kind::Records | Kind::Bytes => {
                match self.length(field, kind, is_nullable)? {
                    Some(length) => self
                        .take(length)
                        .map(drop)
                        .ok_or(ShapeError::CutShort { field }),
                    None => Ok(()),
                }
            }
            Kind::Struct(fields) => self.fields(fields),
            Kind::Array(element) => self.array(field, element, is_nullable),
        }
    }

    fn array(
        &mut self,
        field: &'static str,
        element: &'static Kind,
        is_nullable: bool,
    ) -> Result<(), ShapeError> {
        let Some(count) = self.length(field, &Kind::Array(element), is_nullable)? else {
            return Ok(());
        };
        let remaining_bytes = self.rest.len();
        if count.saturating_mul(self.smallest_bytes(element)) > remaining_bytes {
            return Err(ShapeError::Count {
                field,
                count,
                remaining_bytes,
            });
        }
        if let Kind::Fixed { size_bytes, .. } = *element {
            self.rest = &self.rest[count * size_bytes..];
            return Ok(());
        }
        self.claim_elements(count)?;
        for _ in 0..count {
            self.value(field, element, false)?;
        }
        Ok(())
    }

    /// A length or a count; `None` is null.
    fn length(
        &mut self,
        field: &'static str,
        kind: &Kind,
        is_nullable: bool,
    ) -> Result<Option<usize>, ShapeError> {
        let cut_short = ShapeError::CutShort { field };
        let length = match kind {
            _ if self.is_flexible => i64::from(varint::read(&mut self.rest).ok_or(cut_short)?) - 1,
            Kind::String => self
                .take_array()
                .map(i16::from_be_bytes)
                .ok_or(cut_short)?
                .into(),
            _ => self
                .take_array()
                .map(i32::from_be_bytes)
                .ok_or(cut_short)?
                .into(),
        };
        match usize::try_from(length) {
            Ok(length) => Ok(Some(length)),
            Err(_) if length == -1 && is_nullable => Ok(None),
            Err(_) if length == -1 => Err(ShapeError::Null { field }),
            Err(_) => Err(ShapeError::Length {
                field,
                length: length as i32,
            }),
        }
    }

    /// Ends every struct of a flexible version: a count, then tag, size and bytes of each, in the ascending order of the tags (KIP-482).
    fn tagged_fields(&mut self, fields: &'static [Field]) -> Result<(), ShapeError> {
        let count = varint::read(&mut self.rest).ok_or(ShapeError::TagCutShort)? as usize;
        let remaining_bytes = self.rest.len();
        if count.saturating_mul(TAGGED_FIELD_BYTES_MIN) > remaining_bytes {
            return Err(ShapeError::TagCount {
                count,
                remaining_bytes,
            });
        }
        self.claim_elements(count)?;
        let mut last = None;
        for _ in 0..count {
            let tag = varint::read(&mut self.rest).ok_or(ShapeError::TagCutShort)?;
            if let Some(before) = last.replace(tag).filter(|before| tag <= *before) {
                return Err(ShapeError::TagOrder { tag, before });
            }
            let size = varint::read(&mut self.rest).ok_or(ShapeError::TagCutShort)?;
            let bytes = self.take(size as usize).ok_or(ShapeError::TagCutShort)?;
            if let Some(field) = fields
                .iter()
                .find(|field| field.tag == Some(tag) && field.is_in(self.version))
            {
                self.known_tag(field, bytes)?;
            }
        }
        Ok(())
    }

    /// The codec decodes a tag that it knows without looking at its size, so the size must be true.
    fn known_tag(&mut self, field: &'static Field, bytes: &'a [u8]) -> Result<(), ShapeError> {
        let behind = std::mem::replace(&mut self.rest, bytes);
        self.field(field)?;
        if !self.rest.is_empty() {
            return Err(ShapeError::TagSize { field: field.name });
        }
        self.rest = behind;
        Ok(())
    }

    /// The fewest bytes that a value takes in this version.
    fn smallest_bytes(&self, kind: &Kind) -> usize {
        match *kind {
            Kind::Fixed { size_bytes, .. } => size_bytes,
            _ if self.is_flexible && !matches!(kind, Kind::Struct(_)) => 1,
            Kind::String => 2,
            Kind::Records | Kind::Bytes | Kind::Array(_) => 4,
            Kind::Struct(fields) => {
                let in_sequence = fields
                    .iter()
                    .filter(|field| field.is_in(self.version) && field.tag.is_none());
                let fields_bytes: usize = in_sequence
                    .map(|field| match field.kind {
                        Kind::Struct(_) if field.is_nullable_in(self.version) => 1,
                        _ => self.smallest_bytes(&field.kind),
                    })
                    .sum();
                fields_bytes + usize::from(self.is_flexible)
            }
        }
    }

    fn claim_elements(&mut self, count: usize) -> Result<(), ShapeError> {
        self.elements_left = self
            .elements_left
            .checked_sub(count)
            .ok_or(ShapeError::TooManyElements)?;
        Ok(())
    }

    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        Some(taken)
    }

    fn take_array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*taken)
    }
}
