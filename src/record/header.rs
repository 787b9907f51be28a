use crate::model::limits::RECORD_BATCH_HEADER_BYTES;
use crate::model::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

use super::compression::{Codec, UnknownCodec};
use super::crc::{crc32c_append, crc32c_with_new_head};

/// The only version of the record format that is stored (`magic`).
pub const MAGIC: i8 = 2;

/// The bytes in front of what `batch_length` counts: base offset and `batch_length` itself.
pub const LOG_OVERHEAD_BYTES: usize = 12;

/// The CRC covers everything from the attributes on; base offset and leader epoch lie before, so that a broker may stamp them.
pub const CRC_COVERS_FROM: usize = 21;

const CRC_AT: usize = 17;
const ATTRIBUTES_AT: usize = 21;
const MAX_TIMESTAMP_AT: usize = 35;
const MAGIC_AT: usize = 16;

/// The smallest `batch_length`: a header and no record.
const BATCH_LENGTH_MIN: i32 = (RECORD_BATCH_HEADER_BYTES - LOG_OVERHEAD_BYTES) as i32;

/// Who set the timestamps of a batch (`message.timestamp.type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimestampType {
    /// The producer, for each record.
    CreateTime,
    /// The broker, when it appended: every record then counts as stamped with the batch's max timestamp.
    LogAppendTime,
}

/// The flags of a batch.
///
/// ```text
/// bit 15 ........ 7 | 6              | 5       | 4             | 3              | 2 1 0
///     unused        | delete horizon | control | transactional | log append time| codec
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Attributes(pub i16);

impl Attributes {
    const CODEC: i16 = 0b111;
    const LOG_APPEND_TIME: i16 = 1 << 3;
    const TRANSACTIONAL: i16 = 1 << 4;
    const CONTROL: i16 = 1 << 5;
    const DELETE_HORIZON: i16 = 1 << 6;

    pub fn codec(self) -> Result<Codec, UnknownCodec> {
        Codec::from_id((self.0 & Self::CODEC) as u8)
    }

    pub fn timestamp_type(self) -> TimestampType {
        if self.0 & Self::LOG_APPEND_TIME != 0 {
            TimestampType::LogAppendTime
        } else {
            TimestampType::CreateTime
        }
    }

    pub fn is_transactional(self) -> bool {
        self.0 & Self::TRANSACTIONAL != 0
    }

    /// Holds markers of the broker (commit, abort) instead of records.
    pub fn is_control(self) -> bool {
        self.0 & Self::CONTROL != 0
    }

    /// The base timestamp is the time from which compaction may drop tombstones (KIP-534).
    pub fn has_delete_horizon(self) -> bool {
        self.0 & Self::DELETE_HORIZON != 0
    }

    pub fn with_codec(self, codec: Codec) -> Self {
        Self(self.0 & !Self::CODEC | i16::from(codec.id()))
    }

    pub fn with_timestamp_type(self, timestamp_type: TimestampType) -> Self {
        match timestamp_type {
            TimestampType::CreateTime => Self(self.0 & !Self::LOG_APPEND_TIME),
            TimestampType::LogAppendTime => Self(self.0 | Self::LOG_APPEND_TIME),
        }
    }

    pub fn with_transactional(self) -> Self {
        Self(self.0 | Self::TRANSACTIONAL)
    }

    pub fn with_control(self) -> Self {
        Self(self.0 | Self::CONTROL)
    }

    pub fn with_delete_horizon(self) -> Self {
        Self(self.0 | Self::DELETE_HORIZON)
    }

    pub fn without_delete_horizon(self) -> Self {
        Self(self.0 & !Self::DELETE_HORIZON)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    #[error(
        "{have_bytes} bytes are too few for a record batch header of {RECORD_BATCH_HEADER_BYTES} bytes"
    )]
    TooShort { have_bytes: usize },
    #[error(
        "a record batch declares a length of {batch_length}; the smallest is {BATCH_LENGTH_MIN}"
    )]
    Length { batch_length: i32 },
    #[error("magic {magic}; only record batches of magic {MAGIC} are stored")]
    Magic { magic: i8 },
}

/// The fixed part of a record batch, all big-endian:
///
/// ```text
///  0        8          12        16    17   21         23            27             35            43
/// | base    | batch    | leader  |magic| CRC |attributes| last offset | base         | max          |
/// | offset 8| length 4 | epoch 4 |  1  |  4  |    2     |   delta 4   | timestamp 8  | timestamp 8  |
/// 43            51         53         57       61
/// | producer id | producer | base     | record | records ...
/// |      8      | epoch 2  | sequence4| count 4|
/// ```
///
/// `batch_length` counts from byte 12 to the end; the CRC covers byte 21 to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordBatchHeader {
    pub base_offset: Offset,
    pub batch_length: i32,
    pub leader_epoch: LeaderEpoch,
    pub crc: u32,
    pub attributes: Attributes,
    pub last_offset_delta: i32,
    pub base_timestamp: TimestampMs,
    pub max_timestamp: TimestampMs,
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub base_sequence: Sequence,
    pub record_count: i32,
}

impl RecordBatchHeader {
    /// Reads the header at the start of `bytes`. The rest of the batch need not be there; nothing but the shape of the header is
    /// checked: a length that can hold a header, and the magic.
    pub fn parse(bytes: &[u8]) -> Result<Self, HeaderError> {
        let Some((header, _)) = bytes.split_first_chunk::<RECORD_BATCH_HEADER_BYTES>() else {
            // An older format has a shorter header; its magic is at the same place, and tells the better error.
            return match bytes.get(MAGIC_AT) {
                Some(&magic) if magic as i8 != MAGIC => {
                    Err(HeaderError::Magic { magic: magic as i8 })
                }
                _ => Err(HeaderError::TooShort {
                    have_bytes: bytes.len(),
                }),
            };
        };
        Self::from_array(header)
    }

    pub fn from_array(header: &[u8; RECORD_BATCH_HEADER_BYTES]) -> Result<Self, HeaderError> {
        let magic = header[MAGIC_AT] as i8;
        if magic != MAGIC {
            return Err(HeaderError::Magic { magic });
        }
        let batch_length = i32::from_be_bytes(field(header, 8));
        if batch_length < BATCH_LENGTH_MIN {
            return Err(HeaderError::Length { batch_length });
        }
        Ok(Self {
            base_offset: Offset(i64::from_be_bytes(field(header, 0))),
            batch_length,
            leader_epoch: LeaderEpoch(i32::from_be_bytes(field(header, 12))),
            crc: u32::from_be_bytes(field(header, CRC_AT)),
            attributes: Attributes(i16::from_be_bytes(field(header, ATTRIBUTES_AT))),
            last_offset_delta: i32::from_be_bytes(field(header, 23)),
            base_timestamp: TimestampMs(i64::from_be_bytes(field(header, 27))),
            max_timestamp: TimestampMs(i64::from_be_bytes(field(header, MAX_TIMESTAMP_AT))),
            producer_id: ProducerId(i64::from_be_bytes(field(header, 43))),
            producer_epoch: ProducerEpoch(i16::from_be_bytes(field(header, 51))),
            base_sequence: Sequence(i32::from_be_bytes(field(header, 53))),
            record_count: i32::from_be_bytes(field(header, 57)),
        })
    }

    pub fn to_array(&self) -> [u8; RECORD_BATCH_HEADER_BYTES] {
        let mut header = [0; RECORD_BATCH_HEADER_BYTES];
        header[0..8].copy_from_slice(&self.base_offset.0.to_be_bytes());
        header[8..12].copy_from_slice(&self.batch_length.to_be_bytes());
        header[12..16].copy_from_slice(&self.leader_epoch.0.to_be_bytes());
        header[MAGIC_AT] = MAGIC as u8;
        header[17..21].copy_from_slice(&self.crc.to_be_bytes());
        header[21..23].copy_from_slice(&self.attributes.0.to_be_bytes());
        header[23..27].copy_from_slice(&self.last_offset_delta.to_be_bytes());
        header[27..35].copy_from_slice(&self.base_timestamp.0.to_be_bytes());
        header[35..43].copy_from_slice(&self.max_timestamp.0.to_be_bytes());
        header[43..51].copy_from_slice(&self.producer_id.0.to_be_bytes());
        header[51..53].copy_from_slice(&self.producer_epoch.0.to_be_bytes());
        header[53..57].copy_from_slice(&self.base_sequence.0.to_be_bytes());
        header[57..61].copy_from_slice(&self.record_count.to_be_bytes());
        header
    }

    /// The whole batch, header included.
    pub fn size_bytes(&self) -> usize {
        self.batch_length as usize + LOG_OVERHEAD_BYTES
    }

    pub fn last_offset(&self) -> Offset {
        Offset(
            self.base_offset
                .0
                .saturating_add(i64::from(self.last_offset_delta)),
        )
    }

    /// The offset behind the batch: the log's end once it is appended.
    pub fn next_offset(&self) -> Offset {
        Offset(self.last_offset().0.saturating_add(1))
    }

    /// From when on compaction may drop the batch's tombstones, if that was set (KIP-534). It stands where the base timestamp did.
    pub fn delete_horizon(&self) -> Option<TimestampMs> {
        self.attributes
            .has_delete_horizon()
            .then_some(self.base_timestamp)
    }

    /// The largest timestamp of its records. A batch that compaction has emptied has none, though it keeps the time that it had.
    pub fn newest_record(&self) -> TimestampMs {
        match self.record_count {
            0 => TimestampMs::NONE,
            _ => self.max_timestamp,
        }
    }

    /// Whether the counts can belong together: as many records as offsets, or fewer where compaction took some.
    pub fn counts_fit(&self) -> bool {
        self.last_offset_delta >= 0
            && (0..=i64::from(self.last_offset_delta) + 1).contains(&i64::from(self.record_count))
    }

    /// Whether the checksum fits; `batch` is the whole batch from its header on, no more and no less.
    pub fn crc_fits(&self, batch: &[u8]) -> bool {
        let mut check = CrcCheck::default();
        check.add(batch);
        check.fits(self)
    }
}

/// The checksum of a batch whose bytes are looked at piece by piece.
pub struct CrcCheck {
    not_covered_bytes: usize,
    size_bytes: usize,
    crc: u32,
}

impl Default for CrcCheck {
    fn default() -> Self {
        Self {
            not_covered_bytes: CRC_COVERS_FROM,
            size_bytes: 0,
            crc: 0,
        }
    }
}

impl CrcCheck {
    /// The bytes that follow, from the batch's header on.
    pub fn add(&mut self, piece: &[u8]) {
        self.size_bytes += piece.len();
        let skipped = self.not_covered_bytes.min(piece.len());
        self.not_covered_bytes -= skipped;
        self.crc = crc32c_append(self.crc, &piece[skipped..]);
    }

    /// Whether those were all bytes of the batch with this header, and have its checksum.
    pub fn fits(&self, header: &RecordBatchHeader) -> bool {
        self.size_bytes == header.size_bytes() && self.crc == header.crc
    }
}

fn field<const N: usize>(header: &[u8; RECORD_BATCH_HEADER_BYTES], at: usize) -> [u8; N] {
    *header[at..]
        .first_chunk()
        .expect("every field lies in the header")
}

/// Sets what only the broker knows. Both fields lie outside the CRC.
pub fn stamp(
    header: &mut [u8; RECORD_BATCH_HEADER_BYTES],
    base_offset: Offset,
    leader_epoch: LeaderEpoch,
) {
    header[0..8].copy_from_slice(&base_offset.0.to_be_bytes());
    header[12..16].copy_from_slice(&leader_epoch.0.to_be_bytes());
}

/// Sets the type of the timestamps and the largest one, and the CRC that follows from it. The records are not read.
pub fn stamp_timestamps(
    header: &mut [u8; RECORD_BATCH_HEADER_BYTES],
    timestamp_type: TimestampType,
    max_timestamp: TimestampMs,
) {
    let before = *header;
    let attributes = Attributes(i16::from_be_bytes(field(header, ATTRIBUTES_AT)))
        .with_timestamp_type(timestamp_type);
    header[ATTRIBUTES_AT..ATTRIBUTES_AT + 2].copy_from_slice(&attributes.0.to_be_bytes());
    header[MAX_TIMESTAMP_AT..MAX_TIMESTAMP_AT + 8].copy_from_slice(&max_timestamp.0.to_be_bytes());
    let batch_length = i32::from_be_bytes(field(header, 8));
    let crc = crc32c_with_new_head(
        u32::from_be_bytes(field(&before, CRC_AT)),
        &before[CRC_COVERS_FROM..],
        &header[CRC_COVERS_FROM..],
        (batch_length - BATCH_LENGTH_MIN) as usize,
    );
    header[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_be_bytes());
}
