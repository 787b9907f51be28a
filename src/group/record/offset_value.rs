use bytes::Bytes;

use super::bad_record::{BadRecord, RecordPart};
use super::field_reader::FieldReader;
use super::field_writer::FieldWriter;
use crate::model::{LeaderEpoch, Offset, TimestampMs, TopicId};

/// ```text
/// 0      offset i64                      metadata string           commit time i64
/// 1      offset i64                      metadata string           commit time i64   expire time i64
/// 2      offset i64                      metadata string           commit time i64
/// 3      offset i64   leader epoch i32   metadata string           commit time i64
/// 4      offset i64   leader epoch i32   metadata compact string   commit time i64   tagged: 0 = topic id, 16 bytes
/// ```
///
/// Version 4 is written, as Kafka 4.4 does, with the topic's id where it is known; and 1 where the client wants the offset to expire at
/// a time of its own, since no other version can say that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetValue<'a> {
    pub offset: Offset,
    pub leader_epoch: LeaderEpoch,
    pub metadata: &'a str,
    pub commit_time: TimestampMs,
    /// `NONE`: as the settings say.
    pub expire_time: TimestampMs,
    pub topic_id: TopicId,
}

const WITH_EXPIRE_TIME: i16 = 1;
const WITH_LEADER_EPOCH: i16 = 3;
const FLEXIBLE: i16 = 4;
const TOPIC_ID_TAG: u32 = 0;

impl<'a> OffsetValue<'a> {
    pub fn encode(&self) -> Bytes {
        if self.expire_time != TimestampMs::NONE {
            let mut writer = FieldWriter::new(WITH_EXPIRE_TIME, 26 + self.metadata.len());
            writer.i64(self.offset.0);
            writer.string(self.metadata);
            writer.i64(self.commit_time.0);
            writer.i64(self.expire_time.0);
            return writer.finish();
        }
        let mut writer = FieldWriter::new(FLEXIBLE, 44 + self.metadata.len());
        writer.i64(self.offset.0);
        writer.i32(self.leader_epoch.0);
        writer.compact_string(self.metadata);
        writer.i64(self.commit_time.0);
        match self.topic_id {
            TopicId::ZERO => writer.no_tagged_fields(),
            TopicId(id) => writer.tagged_field(TOPIC_ID_TAG, id.as_bytes()),
        }
        writer.finish()
    }

    pub fn decode(bytes: &'a [u8]) -> Result<Self, BadRecord> {
        let mut reader = FieldReader::new(RecordPart::Value, bytes);
        let version = reader.i16("version")?;
        if !(0..=FLEXIBLE).contains(&version) {
            return Err(BadRecord::ValueVersion(version));
        }
        if version >= FLEXIBLE {
            reader.flexible();
        }
        let offset = Offset(reader.i64("offset")?);
        let leader_epoch = match version >= WITH_LEADER_EPOCH {
            true => LeaderEpoch(reader.i32("leader epoch")?),
            false => LeaderEpoch::UNKNOWN,
        };
        let metadata = reader.string("metadata")?;
        let commit_time = TimestampMs(reader.i64("commit time")?);
        let expire_time = match version == WITH_EXPIRE_TIME {
            true => TimestampMs(reader.i64("expire time")?),
            false => TimestampMs::NONE,
        };
        let mut topic_id = TopicId::ZERO;
        reader.tagged_fields(|tag, mut field| {
            if tag == TOPIC_ID_TAG {
                topic_id = TopicId(field.uuid("topic id")?);
            }
            Ok(())
        })?;
        reader.end()?;
        Ok(Self {
            offset,
            leader_epoch,
            metadata,
            commit_time,
            expire_time,
            topic_id,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value() -> OffsetValue<'static> {
        OffsetValue {
            offset: Offset(0x0102),
            leader_epoch: LeaderEpoch(9),
            metadata: "me",
            commit_time: TimestampMs(0x0304),
            expire_time: TimestampMs::NONE,
            topic_id: TopicId::ZERO,
        }
    }

    #[test]
    fn values_have_kafkas_bytes() {
        let four = value().encode();
        assert_eq!(
            &four[..],
            b"\0\x04\0\0\0\0\0\0\x01\x02\0\0\0\x09\x03me\0\0\0\0\0\0\x03\x04\0"
        );
        assert_eq!(OffsetValue::decode(&four), Ok(value()));

        let with_id = OffsetValue {
            topic_id: TopicId(uuid::Uuid::from_u128(0xabcd)),
            ..value()
        };
        let four = with_id.encode();
        let expected = b"\0\x04\0\0\0\0\0\0\x01\x02\0\0\0\x09\x03me\0\0\0\0\0\0\x03\x04\
            \x01\x00\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xab\xcd";
        assert_eq!(&four[..], expected);
        assert_eq!(OffsetValue::decode(&four), Ok(with_id));

        let expiring = OffsetValue {
            expire_time: TimestampMs(0x0506),
            leader_epoch: LeaderEpoch::UNKNOWN,
            ..value()
        };
        let one = expiring.encode();
        assert_eq!(
            &one[..],
            b"\0\x01\0\0\0\0\0\0\x01\x02\0\x02me\0\0\0\0\0\0\x03\x04\0\0\0\0\0\0\x05\x06"
        );
        assert_eq!(OffsetValue::decode(&one), Ok(expiring));
    }

    #[test]
    fn every_version_is_read_and_tagged_fields_to_come_are_skipped() {
        let old = OffsetValue {
            leader_epoch: LeaderEpoch::UNKNOWN,
            ..value()
        };
        for version in [0u8, 2] {
            let bytes = [
                &[0, version][..],
                b"\0\0\0\0\0\0\x01\x02\0\x02me\0\0\0\0\0\0\x03\x04",
            ]
            .concat();
            assert_eq!(OffsetValue::decode(&bytes), Ok(old.clone()));
        }
        let three = b"\0\x03\0\0\0\0\0\0\x01\x02\0\0\0\x09\0\x02me\0\0\0\0\0\0\x03\x04";
        assert_eq!(OffsetValue::decode(three), Ok(value()));
        let to_come =
            b"\0\x04\0\0\0\0\0\0\x01\x02\0\0\0\x09\x03me\0\0\0\0\0\0\x03\x04\x01\x07\x03abc";
        assert_eq!(OffsetValue::decode(to_come), Ok(value()));
        assert_eq!(
            OffsetValue::decode(b"\0\x05rest"),
            Err(BadRecord::ValueVersion(5))
        );
    }

    #[test]
    fn a_damaged_value_is_refused() {
        let whole = OffsetValue {
            topic_id: TopicId(uuid::Uuid::from_u128(1)),
            ..value()
        }
        .encode();
        for length in 0..whole.len() {
            assert!(
                OffsetValue::decode(&whole[..length]).is_err(),
                "{length} bytes"
            );
        }
        let longer = [&whole[..], b"x"].concat();
        assert!(OffsetValue::decode(&longer).is_err());
        let lying = b"\0\x04\0\0\0\0\0\0\x01\x02\0\0\0\x09\xff\xff\xff\xff\x0fme";
        assert!(OffsetValue::decode(lying).is_err());
        // 40000 bytes, where a string has at most 32767.
        let long = [
            &b"\0\x04\0\0\0\0\0\0\x01\x02\0\0\0\x09\xc1\xb8\x02"[..],
            &[b'x'; 40_000],
            &[0; 9],
        ]
        .concat();
        assert!(matches!(
            OffsetValue::decode(&long),
            Err(BadRecord::Length { length: 40_000, .. })
        ));
        let null = b"\0\x03\0\0\0\0\0\0\x01\x02\0\0\0\x09\xff\xff\0\0\0\0\0\0\x03\x04";
        assert!(OffsetValue::decode(null).is_err());
    }
}
