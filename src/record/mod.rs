//! Kafka's record batch, version 2: its bytes, its checks, its codecs.
//!
//! Owns: the 61-byte header, CRC-32C, validation of what a producer sent, walking the records of a batch, compression,
//! building batches, and making a batch anew with some of its records. Must never know: files, sockets, requests, versions of the protocol, error codes.
//! Runs on: whichever core has the bytes; plain functions over slices, no state, no clock of its own.
//! After a crash: batches survive in segment files; nothing here does.

pub mod compression;
pub mod crc;
pub mod encode;
pub mod header;
mod inflate_bounds;
mod inflated_walk;
pub mod inflater;
mod invalid_batch;
pub mod kept_records;
mod members;
mod metered;
mod record_checks;
pub mod records;
mod snappy;
pub mod validate;
pub mod varint;

pub use compression::Codec;
pub use header::{Attributes, HeaderError, RecordBatchHeader, TimestampType};
pub use inflate_bounds::InflateBounds;
pub use invalid_batch::InvalidBatch;
pub use validate::{RecordValidation, ValidBatch, Validation, ValidationRules, validate};
