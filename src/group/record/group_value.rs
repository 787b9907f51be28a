use bytes::Bytes;

use super::bad_record::{BadRecord, RecordPart};
use super::field_reader::FieldReader;
use super::field_writer::FieldWriter;
use crate::group::id::Generation;
use crate::model::TimestampMs;

/// ```text
///        protocol type string   generation i32   protocol string?   leader string?
/// 2..    time of the last change of state i64
///        members array of
///            member id string
/// 3..        instance id string?
///            client id string   client host string
/// 1..        rebalance time-out i32
///            session time-out i32   subscription bytes   assignment bytes
/// 4      all strings, bytes and arrays compact, and tagged fields behind each member and at the end
/// ```
///
/// Version 3 is written, as Kafka does: brokers before KIP-915 cannot read 4, which has nothing more to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupValue<'a> {
    pub protocol_type: &'a str,
    pub generation: Generation,
    pub protocol: Option<&'a str>,
    pub leader: Option<&'a str>,
    /// `NONE` in versions before 2.
    pub state_time: TimestampMs,
    pub members: Vec<MemberValue<'a>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberValue<'a> {
    pub member: &'a str,
    pub instance: Option<&'a str>,
    pub client_id: &'a str,
    pub client_host: &'a str,
    /// Version 0 has none: the session time-out then.
    pub rebalance_timeout_ms: i32,
    pub session_timeout_ms: i32,
    pub subscription: &'a [u8],
    pub assignment: &'a [u8],
}

const WITH_REBALANCE_TIMEOUT: i16 = 1;
const WITH_STATE_TIME: i16 = 2;
const WITH_INSTANCE: i16 = 3;
const WRITTEN: i16 = 3;
const FLEXIBLE: i16 = 4;

/// The least that a member can take: version 4's lengths of one byte, and two numbers.
const MEMBER_BYTES_MIN: usize = 15;

impl<'a> GroupValue<'a> {
    pub fn encode(&self) -> Bytes {
        let members: usize = self.members.iter().map(MemberValue::encoded_bytes).sum();
        let mut writer = FieldWriter::new(WRITTEN, 128 + members);
        writer.string(self.protocol_type);
        writer.i32(self.generation.0);
        writer.nullable_string(self.protocol);
        writer.nullable_string(self.leader);
        writer.i64(self.state_time.0);
        writer.count(self.members.len());
        for member in &self.members {
            writer.string(member.member);
            writer.nullable_string(member.instance);
            writer.string(member.client_id);
            writer.string(member.client_host);
            writer.i32(member.rebalance_timeout_ms);
            writer.i32(member.session_timeout_ms);
            writer.bytes(member.subscription);
            writer.bytes(member.assignment);
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
        let protocol_type = reader.string("protocol type")?;
        let generation = Generation(reader.i32("generation")?);
        let protocol = reader.nullable_string("protocol")?;
        let leader = reader.nullable_string("leader")?;
        let state_time = match version >= WITH_STATE_TIME {
            true => TimestampMs(reader.i64("state time")?),
            false => TimestampMs::NONE,
        };
        let count = reader.count("members", MEMBER_BYTES_MIN)?;
        let mut members = Vec::new();
        for _ in 0..count {
            members.push(MemberValue::decode(&mut reader, version)?);
        }
        reader.tagged_fields(|_, _| Ok(()))?;
        reader.end()?;
        if protocol.is_none() && !members.is_empty() {
            return Err(reader.illegal("protocol"));
        }
        Ok(Self {
            protocol_type,
            generation,
            protocol,
            leader,
            state_time,
            members,
        })
    }
}

impl<'a> MemberValue<'a> {
    fn encoded_bytes(&self) -> usize {
        let strings = [self.member, self.client_id, self.client_host];
        let strings: usize = strings.iter().map(|text| 2 + text.len()).sum();
        strings
            + 2
            + self.instance.unwrap_or_default().len()
            + 16
            + self.subscription.len()
            + self.assignment.len()
    }

    fn decode(reader: &mut FieldReader<'a>, version: i16) -> Result<Self, BadRecord> {
        let member = reader.string("member id")?;
        let instance = match version >= WITH_INSTANCE {
            true => reader.nullable_string("instance id")?,
            false => None,
        };
        let client_id = reader.string("client id")?;
        let client_host = reader.string("client host")?;
        let rebalance_timeout_ms = match version >= WITH_REBALANCE_TIMEOUT {
            true => Some(reader.i32("rebalance time-out")?).filter(|&timeout| timeout != -1),
            false => None,
        };
        let session_timeout_ms = reader.i32("session time-out")?;
        let value = Self {
            member,
            instance,
            client_id,
            client_host,
            rebalance_timeout_ms: rebalance_timeout_ms.unwrap_or(session_timeout_ms),
            session_timeout_ms,
            subscription: reader.bytes("subscription")?,
            assignment: reader.bytes("assignment")?,
        };
        reader.tagged_fields(|_, _| Ok(()))?;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value() -> GroupValue<'static> {
        GroupValue {
            protocol_type: "consumer",
            generation: Generation(5),
            protocol: Some("range"),
            leader: Some("m-1"),
            state_time: TimestampMs(0x0102),
            members: vec![MemberValue {
                member: "m-1",
                instance: Some("i"),
                client_id: "c",
                client_host: "/h",
                rebalance_timeout_ms: 0x0304,
                session_timeout_ms: 0x0506,
                subscription: b"sub",
                assignment: b"",
            }],
        }
    }

    const THREE: &[u8] = b"\0\x03\0\x08consumer\0\0\0\x05\0\x05range\0\x03m-1\0\0\0\0\0\0\x01\x02\
        \0\0\0\x01\0\x03m-1\0\x01i\0\x01c\0\x02/h\0\0\x03\x04\0\0\x05\x06\0\0\0\x03sub\0\0\0\0";

    #[test]
    fn a_group_has_kafkas_bytes() {
        assert_eq!(&value().encode()[..], THREE);
        assert_eq!(GroupValue::decode(THREE), Ok(value()));
        let empty = GroupValue {
            protocol_type: "",
            generation: Generation(0),
            protocol: None,
            leader: None,
            state_time: TimestampMs(1),
            members: Vec::new(),
        };
        let bytes = empty.encode();
        assert_eq!(
            &bytes[..],
            b"\0\x03\0\0\0\0\0\0\xff\xff\xff\xff\0\0\0\0\0\0\0\x01\0\0\0\0"
        );
        assert_eq!(GroupValue::decode(&bytes), Ok(empty));
    }

    #[test]
    fn every_version_is_read() {
        let mut old = value();
        old.members[0].instance = None;
        let two = b"\0\x02\0\x08consumer\0\0\0\x05\0\x05range\0\x03m-1\0\0\0\0\0\0\x01\x02\
            \0\0\0\x01\0\x03m-1\0\x01c\0\x02/h\0\0\x03\x04\0\0\x05\x06\0\0\0\x03sub\0\0\0\0";
        assert_eq!(GroupValue::decode(two), Ok(old.clone()));
        old.state_time = TimestampMs::NONE;
        let one = b"\0\x01\0\x08consumer\0\0\0\x05\0\x05range\0\x03m-1\
            \0\0\0\x01\0\x03m-1\0\x01c\0\x02/h\0\0\x03\x04\0\0\x05\x06\0\0\0\x03sub\0\0\0\0";
        assert_eq!(GroupValue::decode(one), Ok(old.clone()));
        old.members[0].rebalance_timeout_ms = 0x0506;
        let zero = b"\0\0\0\x08consumer\0\0\0\x05\0\x05range\0\x03m-1\
            \0\0\0\x01\0\x03m-1\0\x01c\0\x02/h\0\0\x05\x06\0\0\0\x03sub\0\0\0\0";
        assert_eq!(GroupValue::decode(zero), Ok(old));
        let four = b"\0\x04\x09consumer\0\0\0\x05\x06range\x04m-1\0\0\0\0\0\0\x01\x02\
            \x02\x04m-1\x02i\x02c\x03/h\0\0\x03\x04\0\0\x05\x06\x04sub\x01\x01\x05\x02xy\0";
        assert_eq!(GroupValue::decode(four), Ok(value()));
        assert_eq!(
            GroupValue::decode(b"\0\x05"),
            Err(BadRecord::ValueVersion(5))
        );
    }

    #[test]
    fn a_damaged_group_is_refused_and_a_lying_count_allocates_nothing() {
        for length in 0..THREE.len() {
            assert!(
                GroupValue::decode(&THREE[..length]).is_err(),
                "{length} bytes"
            );
        }
        let counts = b"\0\x03\0\0\0\0\0\0\xff\xff\xff\xff\0\0\0\0\0\0\0\x01\x7f\xff\xff\xff";
        assert_eq!(
            GroupValue::decode(counts),
            Err(BadRecord::Length {
                part: RecordPart::Value,
                field: "members",
                length: 0x7fff_ffff
            })
        );
        let nobody_knows_the_protocol =
            b"\0\x03\0\x08consumer\0\0\0\x05\xff\xff\xff\xff\0\0\0\0\0\0\x01\x02\
            \0\0\0\x01\0\x03m-1\0\x01i\0\x01c\0\x02/h\0\0\x03\x04\0\0\x05\x06\0\0\0\x03sub\0\0\0\0";
        assert!(GroupValue::decode(nobody_knows_the_protocol).is_err());
    }
}
