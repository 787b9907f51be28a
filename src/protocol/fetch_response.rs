//! The Fetch response, versions 4 to 18, written around records that are not copied.

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::protocol::StrBytes;

use crate::model::{LeaderEpoch, NodeId, Offset, PartitionIndex, ProducerId, TopicId};

use super::frame::SIZE_PREFIX_BYTES;
use super::varint;

/// From this version on lengths are varints and structs end in tagged fields.
const FLEXIBLE_FROM: i16 = 12;

/// The answer to a fetch; `R` is a slice of log bytes that stays where it is. Fields that a version does not have are left out.
#[derive(Clone, Debug, PartialEq)]
pub struct FetchResponse<R> {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    /// 0: no fetch session (KIP-227).
    pub session_id: i32,
    pub topics: Vec<FetchedTopic<R>>,
    /// Where the leaders are that `current_leader` names.
    pub node_endpoints: Vec<NodeEndpoint>,
}

/// Named by name up to version 12, by id from 13 on.
#[derive(Clone, Debug, PartialEq)]
pub struct FetchedTopic<R> {
    pub name: StrBytes,
    pub id: TopicId,
    pub partitions: Vec<FetchedPartition<R>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FetchedPartition<R> {
    pub index: PartitionIndex,
    pub error_code: i16,
    pub high_watermark: Offset,
    pub last_stable_offset: Offset,
    pub log_start_offset: Offset,
    /// `None` is null, what a reader of uncommitted records gets.
    pub aborted_transactions: Option<Vec<AbortedTransaction>>,
    /// Where the fetcher's log parts from this one.
    pub diverging_epoch: Option<EpochEnd>,
    /// Who leads instead, with NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH.
    pub current_leader: Option<CurrentLeader>,
    /// Whole batches, one behind the other.
    pub records: Vec<R>,
}

impl<R> FetchedPartition<R> {
    /// A partition that gives nothing but an error.
    pub fn error(index: PartitionIndex, error_code: i16) -> Self {
        Self {
            index,
            error_code,
            high_watermark: Offset::UNKNOWN,
            last_stable_offset: Offset::UNKNOWN,
            log_start_offset: Offset::UNKNOWN,
            aborted_transactions: None,
            diverging_epoch: None,
            current_leader: None,
            records: Vec::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbortedTransaction {
    pub producer_id: ProducerId,
    pub first_offset: Offset,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochEnd {
    pub epoch: LeaderEpoch,
    pub end_offset: Offset,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurrentLeader {
    pub node: NodeId,
    pub epoch: LeaderEpoch,
}

#[derive(Clone, Debug, PartialEq)]
pub struct NodeEndpoint {
    pub node: NodeId,
    pub host: StrBytes,
    pub port: i32,
    pub rack: Option<StrBytes>,
}

/// A piece of the encoded response; the pieces are sent one behind the other.
#[derive(Clone, Debug, PartialEq)]
pub enum Segment<R> {
    Head(Bytes),
    Records(R),
}

impl<R: AsRef<[u8]>> AsRef<[u8]> for Segment<R> {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Head(bytes) => bytes,
            Self::Records(records) => records.as_ref(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a fetch response of {size_bytes} bytes does not fit into a frame")]
pub struct FetchResponseTooLarge {
    pub size_bytes: usize,
}

/// The whole frame, length prefix and header first, for a `version` from 4 to 18.
pub fn encode<R: AsRef<[u8]>>(
    response: FetchResponse<R>,
    version: i16,
    correlation_id: i32,
) -> Result<Vec<Segment<R>>, FetchResponseTooLarge> {
    let mut out = Encoder {
        version,
        head: BytesMut::with_capacity(head_bytes_max(
            response
                .topics
                .iter()
                .map(|topic| (topic.name.len(), topic.partitions.len())),
        )),
        records: Vec::new(),
    };
    out.head.put_i32(0);
    out.head.put_i32(correlation_id);
    out.tags(0);
    out.response(response);
    let size_bytes = out.head.len() - SIZE_PREFIX_BYTES
        + out
            .records
            .iter()
            .map(|(_, records)| records.as_ref().len())
            .sum::<usize>();
    let prefix = i32::try_from(size_bytes).map_err(|_| FetchResponseTooLarge { size_bytes })?;
    out.head[..SIZE_PREFIX_BYTES].copy_from_slice(&prefix.to_be_bytes());
    Ok(out.into_segments())
}

/// The most that everything but the records takes, of a response with these lengths of names and numbers of partitions, in which nothing
/// is optional.
pub fn head_bytes_max(topics: impl Iterator<Item = (usize, usize)>) -> usize {
    const FIXED_BYTES: usize = 32;
    const TOPIC_BYTES: usize = 24;
    const PARTITION_BYTES: usize = 48;
    let topics = topics.map(|(name_bytes, partition_count)| {
        TOPIC_BYTES + name_bytes + PARTITION_BYTES * partition_count
    });
    FIXED_BYTES + topics.sum::<usize>()
}

struct Encoder<R> {
    version: i16,
    head: BytesMut,
    /// Records, and the length of the head before which they stand.
    records: Vec<(usize, R)>,
}

impl<R: AsRef<[u8]>> Encoder<R> {
    fn is_flexible(&self) -> bool {
        self.version >= FLEXIBLE_FROM
    }

    fn response(&mut self, response: FetchResponse<R>) {
        self.head.put_i32(response.throttle_time_ms);
        if self.version >= 7 {
            self.head.put_i16(response.error_code);
            self.head.put_i32(response.session_id);
        }
        self.count(response.topics.len());
        for topic in response.topics {
            self.topic(topic);
        }
        if self.version >= 16 && !response.node_endpoints.is_empty() {
            self.tags(1);
            self.tagged(0, |out| out.node_endpoints(&response.node_endpoints));
        } else {
            self.tags(0);
        }
    }

    fn topic(&mut self, topic: FetchedTopic<R>) {
        if self.version >= 13 {
            self.head.put_slice(topic.id.0.as_bytes());
        } else {
            self.string(&topic.name);
        }
        self.count(topic.partitions.len());
        for partition in topic.partitions {
            self.partition(partition);
        }
        self.tags(0);
    }

    fn partition(&mut self, partition: FetchedPartition<R>) {
        self.head.put_i32(partition.index.0);
        self.head.put_i16(partition.error_code);
        self.head.put_i64(partition.high_watermark.0);
        self.head.put_i64(partition.last_stable_offset.0);
        if self.version >= 5 {
            self.head.put_i64(partition.log_start_offset.0);
        }
        self.aborted_transactions(partition.aborted_transactions.as_deref());
        if self.version >= 11 {
            self.head.put_i32(NO_PREFERRED_READ_REPLICA);
        }
        self.records(partition.records);
        let is_flexible = self.is_flexible();
        let diverging_epoch = partition.diverging_epoch.filter(|_| is_flexible);
        let current_leader = partition.current_leader.filter(|_| is_flexible);
        self.tags(u32::from(diverging_epoch.is_some()) + u32::from(current_leader.is_some()));
        if let Some(EpochEnd { epoch, end_offset }) = diverging_epoch {
            self.tagged(0, |out| {
                out.head.put_i32(epoch.0);
                out.head.put_i64(end_offset.0);
                out.tags(0);
            });
        }
        if let Some(CurrentLeader { node, epoch }) = current_leader {
            self.tagged(1, |out| {
                out.head.put_i32(node.0);
                out.head.put_i32(epoch.0);
                out.tags(0);
            });
        }
    }

    fn aborted_transactions(&mut self, aborted: Option<&[AbortedTransaction]>) {
        let Some(aborted) = aborted else {
            return self.null_array();
        };
        self.count(aborted.len());
        for transaction in aborted {
            self.head.put_i64(transaction.producer_id.0);
            self.head.put_i64(transaction.first_offset.0);
            self.tags(0);
        }
    }

    fn records(&mut self, records: Vec<R>) {
        let size_bytes = records.iter().map(|slice| slice.as_ref().len()).sum();
        self.count(size_bytes);
        let at = self.head.len();
        self.records.extend(
            records
                .into_iter()
                .filter(|slice| !slice.as_ref().is_empty())
                .map(|slice| (at, slice)),
        );
    }

    fn node_endpoints(&mut self, endpoints: &[NodeEndpoint]) {
        self.count(endpoints.len());
        for endpoint in endpoints {
            self.head.put_i32(endpoint.node.0);
            self.string(&endpoint.host);
            self.head.put_i32(endpoint.port);
            match &endpoint.rack {
                Some(rack) => self.string(rack),
                None => self.null_array(),
            }
            self.tags(0);
        }
    }

    /// The length of an array or of bytes. One that does not fit is caught by the length of the frame.
    fn count(&mut self, count: usize) {
        if self.is_flexible() {
            varint::write(&mut self.head, (count as u32).wrapping_add(1));
        } else {
            self.head.put_i32(count as i32);
        }
    }

    /// A null array; in a flexible version a null string is the same.
    fn null_array(&mut self) {
        if self.is_flexible() {
            varint::write(&mut self.head, 0)
        } else {
            self.head.put_i32(-1)
        }
    }

    fn string(&mut self, string: &str) {
        if self.is_flexible() {
            varint::write(&mut self.head, string.len() as u32 + 1);
        } else {
            self.head.put_i16(string.len() as i16);
        }
        self.head.put_slice(string.as_bytes());
    }

    /// How many tagged fields follow; nothing in versions that have none.
    fn tags(&mut self, count: u32) {
        if self.is_flexible() {
            varint::write(&mut self.head, count);
        }
    }

    /// A tagged field: tag, size, and what `body` writes.
    fn tagged(&mut self, tag: u32, body: impl FnOnce(&mut Self)) {
        varint::write(&mut self.head, tag);
        let outer = std::mem::take(&mut self.head);
        body(self);
        let field = std::mem::replace(&mut self.head, outer);
        varint::write(&mut self.head, field.len() as u32);
        self.head.put_slice(&field);
    }

    fn into_segments(self) -> Vec<Segment<R>> {
        let mut head = self.head.freeze();
        let mut segments = Vec::with_capacity(2 * self.records.len() + 1);
        let mut cut = 0;
        for (at, records) in self.records {
            if at > cut {
                segments.push(Segment::Head(head.split_to(at - cut)));
                cut = at;
            }
            segments.push(Segment::Records(records));
        }
        if !head.is_empty() {
            segments.push(Segment::Head(head));
        }
        segments
    }
}

/// Fetching from the closest replica (KIP-392) is not offered.
const NO_PREFERRED_READ_REPLICA: i32 = -1;

#[cfg(test)]
mod tests {
    use bytes::Buf;
    use kafka_protocol::messages::{self, ResponseHeader};
    use kafka_protocol::protocol::Decodable;
    use uuid::Uuid;

    use super::*;

    fn response() -> FetchResponse<Bytes> {
        let full = FetchedPartition {
            index: PartitionIndex(3),
            error_code: 0,
            high_watermark: Offset(100),
            last_stable_offset: Offset(90),
            log_start_offset: Offset(10),
            aborted_transactions: Some(vec![AbortedTransaction {
                producer_id: ProducerId(7),
                first_offset: Offset(80),
            }]),
            diverging_epoch: Some(EpochEnd {
                epoch: LeaderEpoch(4),
                end_offset: Offset(55),
            }),
            current_leader: Some(CurrentLeader {
                node: NodeId(2),
                epoch: LeaderEpoch(5),
            }),
            records: vec![
                Bytes::from_static(b"first slice, "),
                Bytes::new(),
                Bytes::from(vec![b'x'; 300]),
            ],
        };
        let named = |name: &'static str, partitions| FetchedTopic {
            name: StrBytes::from_static_str(name),
            id: TopicId(Uuid::from_u128(name.len() as u128)),
            partitions,
        };
        FetchResponse {
            throttle_time_ms: 11,
            error_code: 0,
            session_id: 0,
            topics: vec![
                named(
                    "first",
                    vec![full.clone(), FetchedPartition::error(PartitionIndex(4), 6)],
                ),
                named("the second topic", vec![full]),
                named("no partition", vec![]),
            ],
            node_endpoints: vec![NodeEndpoint {
                node: NodeId(2),
                host: StrBytes::from_static_str("broker-2"),
                port: 9092,
                rack: None,
            }],
        }
    }

    fn join(segments: &[Segment<Bytes>]) -> Bytes {
        segments
            .iter()
            .map(AsRef::as_ref)
            .collect::<Vec<&[u8]>>()
            .concat()
            .into()
    }

    fn decode(mut frame: Bytes, version: i16) -> messages::FetchResponse {
        assert_eq!(frame.get_i32() as usize, frame.len());
        let header =
            ResponseHeader::decode(&mut frame, if version >= FLEXIBLE_FROM { 1 } else { 0 })
                .unwrap();
        assert_eq!(header.correlation_id, 77);
        let body = messages::FetchResponse::decode(&mut frame, version).unwrap();
        assert!(frame.is_empty(), "version {version} has bytes behind it");
        body
    }

    #[test]
    fn the_codec_reads_every_version_back() {
        for version in 4..=18 {
            let decoded = decode(join(&encode(response(), version, 77).unwrap()), version);
            assert_eq!(decoded.throttle_time_ms, 11);
            assert_eq!(decoded.responses.len(), 3);
            for (ours, theirs) in response().topics.iter().zip(&decoded.responses) {
                assert_topic(ours, theirs, version);
            }
            let endpoints: Vec<_> = decoded
                .node_endpoints
                .iter()
                .map(|node| (node.node_id.0, node.host.as_str(), node.port))
                .collect();
            assert_eq!(
                endpoints,
                if version >= 16 {
                    vec![(2, "broker-2", 9092)]
                } else {
                    vec![]
                }
            );
        }
    }

    fn assert_topic(
        ours: &FetchedTopic<Bytes>,
        theirs: &messages::fetch_response::FetchableTopicResponse,
        version: i16,
    ) {
        let by_id = version >= 13;
        assert_eq!(
            theirs.topic.as_str(),
            if by_id { "" } else { ours.name.as_str() }
        );
        assert_eq!(theirs.topic_id, if by_id { ours.id.0 } else { Uuid::nil() });
        assert_eq!(theirs.partitions.len(), ours.partitions.len());
        for (ours, theirs) in ours.partitions.iter().zip(&theirs.partitions) {
            assert_eq!(theirs.partition_index, ours.index.0);
            assert_eq!(theirs.error_code, ours.error_code);
            assert_eq!(theirs.high_watermark, ours.high_watermark.0);
            assert_eq!(theirs.last_stable_offset, ours.last_stable_offset.0);
            assert_eq!(
                theirs.log_start_offset,
                if version >= 5 {
                    ours.log_start_offset.0
                } else {
                    -1
                }
            );
            assert_eq!(theirs.preferred_read_replica.0, -1);
            assert_eq!(theirs.records.as_deref(), Some(&ours.records.concat()[..]));
            let aborted = theirs.aborted_transactions.as_ref().map(|aborted| {
                let pair = |it: &messages::fetch_response::AbortedTransaction| {
                    (it.producer_id.0, it.first_offset)
                };
                aborted.iter().map(pair).collect::<Vec<_>>()
            });
            assert_eq!(
                aborted,
                ours.aborted_transactions.as_ref().map(|_| vec![(7, 80)])
            );
            let has_tags = version >= FLEXIBLE_FROM && ours.error_code == 0;
            let (diverging, leader) = (&theirs.diverging_epoch, &theirs.current_leader);
            assert_eq!(
                (diverging.epoch, diverging.end_offset),
                if has_tags { (4, 55) } else { (-1, -1) }
            );
            assert_eq!(
                (leader.leader_id.0, leader.leader_epoch),
                if has_tags { (2, 5) } else { (-1, -1) }
            );
        }
    }

    #[test]
    fn records_are_sent_from_where_they_are() {
        let response = response();
        let slices: Vec<Bytes> = response
            .topics
            .iter()
            .flat_map(|topic| &topic.partitions)
            .flat_map(|partition| partition.records.clone())
            .filter(|slice| !slice.is_empty())
            .collect();
        let sent: Vec<*const u8> = encode(response, 12, 77)
            .unwrap()
            .iter()
            .filter_map(|segment| match segment {
                Segment::Records(records) => Some(records.as_ptr()),
                Segment::Head(_) => None,
            })
            .collect();
        assert_eq!(
            sent,
            slices
                .iter()
                .map(|slice| slice.as_ptr())
                .collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_response_without_topics_is_one_segment() {
        let empty: FetchResponse<Bytes> = FetchResponse {
            throttle_time_ms: 0,
            error_code: 70,
            session_id: 0,
            topics: vec![],
            node_endpoints: vec![],
        };
        for version in 7..=18 {
            let segments = encode(empty.clone(), version, 77).unwrap();
            assert_eq!(segments.len(), 1);
            assert_eq!(decode(join(&segments), version).error_code, 70);
        }
    }
}
