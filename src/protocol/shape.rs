//! The walk of a request before it is decoded.

use kafka_protocol::messages::ApiKey;

use super::varint;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    #[error("the request is cut short")]
    CutShort,
}

pub fn walk(_key: ApiKey, _version: i16, _body: &[u8]) -> Result<(), ShapeError> {
    Ok(())
}

/// Moves past tagged fields, whatever they are.
pub fn skip_tagged_fields(rest: &mut &[u8]) -> Option<()> {
    for _ in 0..varint::read(rest)? {
        let _tag = varint::read(rest)?;
        let size = varint::read(rest)?;
        *rest = rest.get(size as usize..)?;
    }
    Some(())
}
