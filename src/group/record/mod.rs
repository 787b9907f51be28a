//! The records of `__consumer_offsets`, byte for byte as Kafka has them, so that its tools read them and ours read its.
//!
//! ```text
//! key     version i16   0, 1: an offset   2: a group   others: not kept here
//! value   version i16, the fields of that version; none at all: a tombstone
//!
//! string  length i16, UTF-8; -1 is null          compact string  length + 1 as varint, UTF-8; 0 is null
//! bytes   length i32, bytes; -1 is null          compact bytes   length + 1 as varint, bytes; 0 is null
//! array   count i32, elements                    compact array   count + 1 as varint, elements
//!                                                tagged fields   count varint, of each: tag varint, size varint, bytes
//! ```
//!
//! The sources are the schemas of Kafka's group coordinator (OffsetCommitKey, OffsetCommitValue, GroupMetadataKey,
//! GroupMetadataValue); KIP-915 rules that a newer value may add tagged fields, which are skipped. Nothing is allocated from a
//! count or length before as many bytes are there.

mod bad_record;
mod field_reader;
mod field_writer;
mod group_value;
mod key;
mod offset_value;

pub use bad_record::{BadRecord, RecordPart};
pub use group_value::{GroupValue, MemberValue};
pub use key::{RecordKey, encode_group_key, encode_offset_key};
pub use offset_value::OffsetValue;
