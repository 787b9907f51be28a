use bytes::Bytes;

use super::bad_record::{BadRecord, RecordPart};
use super::field_reader::FieldReader;
use super::field_writer::FieldWriter;
use crate::group::id::GroupId;
use crate::model::{PartitionIndex, TopicName};

/// ```text
/// an offset   version i16 = 1 (0 from long ago)   group string   topic string   partition i32
/// a group     version i16 = 2                     group string
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordKey {
    Offset {
        group: GroupId,
        topic: TopicName,
        partition: PartitionIndex,
    },
    Group(GroupId),
    /// Of a kind that has another owner, by its version.
    Other(i16),
}

const OLD_OFFSET: i16 = 0;
const OFFSET: i16 = 1;
const GROUP: i16 = 2;

impl RecordKey {
    pub fn decode(bytes: &[u8]) -> Result<Self, BadRecord> {
        let mut reader = FieldReader::new(RecordPart::Key, bytes);
        let key = match reader.i16("version")? {
            OLD_OFFSET | OFFSET => Self::Offset {
                group: GroupId::new(reader.string("group")?),
                topic: TopicName::new(reader.string("topic")?)
                    .map_err(|_| reader.illegal("topic"))?,
                partition: match reader.i32("partition")? {
                    partition @ 0.. => PartitionIndex(partition),
                    _ => return Err(reader.illegal("partition")),
                },
            },
            GROUP => Self::Group(GroupId::new(reader.string("group")?)),
            other => return Ok(Self::Other(other)),
        };
        reader.end()?;
        Ok(key)
    }
}

pub fn encode_offset_key(group: &GroupId, topic: &TopicName, partition: PartitionIndex) -> Bytes {
    let (group, topic) = (group.as_str(), topic.as_str());
    let mut writer = FieldWriter::new(OFFSET, 8 + group.len() + topic.len());
    writer.string(group);
    writer.string(topic);
    writer.i32(partition.0);
    writer.finish()
}

pub fn encode_group_key(group: &GroupId) -> Bytes {
    let mut writer = FieldWriter::new(GROUP, 2 + group.as_str().len());
    writer.string(group.as_str());
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_kafkas_bytes() {
        let group = GroupId::new("g1");
        let topic = TopicName::new("orders").unwrap();
        let offset = encode_offset_key(&group, &topic, PartitionIndex(7));
        assert_eq!(&offset[..], b"\0\x01\0\x02g1\0\x06orders\0\0\0\x07");
        let key = RecordKey::Offset {
            group: group.clone(),
            topic,
            partition: PartitionIndex(7),
        };
        assert_eq!(RecordKey::decode(&offset), Ok(key.clone()));
        assert_eq!(
            RecordKey::decode(b"\0\0\0\x02g1\0\x06orders\0\0\0\x07"),
            Ok(key)
        );

        let bytes = encode_group_key(&group);
        assert_eq!(&bytes[..], b"\0\x02\0\x02g1");
        assert_eq!(RecordKey::decode(&bytes), Ok(RecordKey::Group(group)));
    }

    #[test]
    fn a_key_of_another_kind_is_not_a_bad_one() {
        for version in [3, 5, 16, 100, -1] {
            let bytes = [&i16::to_be_bytes(version)[..], b"whatever"].concat();
            assert_eq!(RecordKey::decode(&bytes), Ok(RecordKey::Other(version)));
        }
    }

    #[test]
    fn a_damaged_key_is_refused() {
        let whole = b"\0\x01\0\x02g1\0\x06orders\0\0\0\x07";
        for length in 0..whole.len() {
            assert!(
                RecordKey::decode(&whole[..length]).is_err(),
                "{length} bytes"
            );
        }
        for bad in [
            &b"\0\x02\x7f\xffg1"[..],
            b"\0\x02\xff\xff",
            b"\0\x02\x80\0g1",
            b"\0\x02\0\x02\xff\xfe",
            b"\0\x02\0\x02g1 and more",
            b"\0\x01\0\x02g1\0\x03a/b\0\0\0\x07",
            b"\0\x01\0\x02g1\0\x03a.b\xff\xff\xff\xff",
        ] {
            assert!(RecordKey::decode(bad).is_err(), "{bad:?}");
        }
    }
}
