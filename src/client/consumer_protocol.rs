//! What members of a consumer group tell each other through their coordinator, which does not look inside.
//!
//! ```text
//! subscription: | version 2 | topic count 4 | { length 2 | topic } ... | user data length 4, -1: none | user data | later fields |
//! assignment:   | version 2 | topic count 4 | { length 2 | topic | partition count 4 | { partition 4 } ... } ... | user data as above |
//! ```
//!
//! Version 0 is written, which every client reads; later versions only add fields behind, which are passed over.

use super::metadata::TopicPartition;

/// The protocol type of groups whose members consume.
pub const PROTOCOL_TYPE: &str = "consumer";

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it ends where more was declared")]
pub struct CutShort;

pub fn encode_subscription(topics: &[String]) -> Vec<u8> {
    let mut out = vec![0, 0];
    put_count(&mut out, topics.len());
    for topic in topics {
        put_text(&mut out, topic);
    }
    out.extend((-1i32).to_be_bytes());
    out
}

pub fn decode_subscription(bytes: &[u8]) -> Result<Vec<String>, CutShort> {
    let mut rest = bytes;
    take::<2>(&mut rest)?;
    let count = take_count(&mut rest)?;
    // Nothing is set aside for a count that came from elsewhere.
    let mut topics = Vec::new();
    for _ in 0..count {
        topics.push(take_text(&mut rest)?);
    }
    Ok(topics)
}

/// `partitions` in their order by topic.
pub fn encode_assignment(partitions: &[TopicPartition]) -> Vec<u8> {
    let topics: Vec<&[TopicPartition]> = partitions.chunk_by(|a, b| a.topic == b.topic).collect();
    let mut out = vec![0, 0];
    put_count(&mut out, topics.len());
    for partitions in topics {
        put_text(&mut out, &partitions[0].topic);
        put_count(&mut out, partitions.len());
        for at in partitions {
            out.extend(at.partition.to_be_bytes());
        }
    }
    out.extend((-1i32).to_be_bytes());
    out
}

/// An empty text is an assignment of nothing, as a coordinator hands it to a member that the leader left out.
pub fn decode_assignment(bytes: &[u8]) -> Result<Vec<TopicPartition>, CutShort> {
    let mut partitions = Vec::new();
    if bytes.is_empty() {
        return Ok(partitions);
    }
    let mut rest = bytes;
    take::<2>(&mut rest)?;
    for _ in 0..take_count(&mut rest)? {
        let topic = take_text(&mut rest)?;
        for _ in 0..take_count(&mut rest)? {
            let partition = i32::from_be_bytes(take(&mut rest)?);
            partitions.push(TopicPartition::new(&topic, partition));
        }
    }
    Ok(partitions)
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    let count = i32::try_from(count).expect("a list that is sent has less than 2^31 elements");
    out.extend(count.to_be_bytes());
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    let length = i16::try_from(text.len()).expect("a topic's name is short");
    out.extend(length.to_be_bytes());
    out.extend(text.as_bytes());
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], CutShort> {
    let (taken, behind) = rest.split_first_chunk::<N>().ok_or(CutShort)?;
    *rest = behind;
    Ok(*taken)
}

/// Null counts as none.
fn take_count(rest: &mut &[u8]) -> Result<i32, CutShort> {
    Ok(i32::from_be_bytes(take(rest)?).max(0))
}

fn take_text(rest: &mut &[u8]) -> Result<String, CutShort> {
    let length = i16::from_be_bytes(take(rest)?).max(0) as usize;
    let (text, behind) = rest.split_at_checked(length).ok_or(CutShort)?;
    *rest = behind;
    Ok(String::from_utf8_lossy(text).into_owned())
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use kafka_protocol::messages::{ConsumerProtocolAssignment, ConsumerProtocolSubscription};
    use kafka_protocol::protocol::{Decodable, Encodable};

    use super::*;

    fn assigned() -> Vec<TopicPartition> {
        [("a", 0), ("a", 2), ("b", 1)]
            .map(|(topic, partition)| TopicPartition::new(topic, partition))
            .to_vec()
    }

    #[test]
    fn another_codec_reads_what_is_written_and_its_later_versions_are_read() {
        let topics = ["a".to_owned(), "b".to_owned()];
        let bytes = encode_subscription(&topics);
        let read = ConsumerProtocolSubscription::decode(&mut &bytes[2..], 0).unwrap();
        assert_eq!(read.topics.len(), 2);
        for version in 0..=3i16 {
            let mut bytes = BytesMut::from(&version.to_be_bytes()[..]);
            read.encode(&mut bytes, version).unwrap();
            assert_eq!(
                decode_subscription(&bytes),
                Ok(topics.to_vec()),
                "{version}"
            );
        }
        let bytes = encode_assignment(&assigned());
        let read = ConsumerProtocolAssignment::decode(&mut &bytes[2..], 0).unwrap();
        assert_eq!(read.assigned_partitions[0].partitions, [0, 2]);
        assert_eq!(decode_assignment(&bytes), Ok(assigned()));
    }

    #[test]
    fn a_blob_that_is_cut_or_lies_about_its_counts_is_an_error_and_an_empty_one_assigns_nothing() {
        let bytes = encode_assignment(&assigned());
        let user_data = 4;
        for cut in 1..bytes.len() - user_data {
            assert_eq!(decode_assignment(&bytes[..cut]), Err(CutShort), "{cut}");
        }
        let lie = [0, 0, 0x7f, 0xff, 0xff, 0xff];
        assert_eq!(decode_assignment(&lie), Err(CutShort));
        assert_eq!(decode_subscription(&lie), Err(CutShort));
        assert_eq!(decode_assignment(&[]), Ok(Vec::new()));
    }
}
