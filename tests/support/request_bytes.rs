//! Random valid request bodies, written by the table of shapes, and the codec's opinion of them.

use bytes::{Bytes, BytesMut};
use corelog::protocol::request_shapes::{Field, Kind, RequestShape, shape_of};
use corelog::protocol::varint;
use corelog::protocol::versions::SERVED;
use kafka_protocol::messages::*;
use kafka_protocol::protocol::{Decodable, Encodable};
use rand::rngs::StdRng;
use rand::{Rng, RngExt};

/// Every served API with every version of it.
pub fn served_requests() -> impl Iterator<Item = (&'static RequestShape, i16)> {
    SERVED.iter().flat_map(|api| {
        let shape = shape_of(api.key).expect("every served API has a shape");
        (api.min..=api.max).map(move |version| (shape, version))
    })
}

/// A body that the codec would write the same way: tags ascending and none with its default value.
pub fn random_body(shape: &RequestShape, version: i16, rng: &mut StdRng) -> Vec<u8> {
    let mut body = Body {
        version,
        is_flexible: version >= shape.flexible_since,
        bytes: Vec::new(),
    };
    body.fields(shape.fields, rng);
    body.bytes
}

struct Body {
    version: i16,
    is_flexible: bool,
    bytes: Vec<u8>,
}

impl Body {
    fn fields(&mut self, fields: &[Field], rng: &mut StdRng) {
        let version = self.version;
        for field in fields
            .iter()
            .filter(|field| field.is_in(version) && field.tag.is_none())
        {
            let is_null = field.is_nullable_in(version) && rng.random_bool(0.25);
            match field.kind {
                Kind::Struct(_) if field.is_nullable_in(version) => {
                    self.bytes.push(if is_null { 0xff } else { 1 });
                    if !is_null {
                        self.value(&field.kind, rng);
                    }
                }
                _ if is_null => self.length(&field.kind, None),
                _ => self.value(&field.kind, rng),
            }
        }
        if self.is_flexible {
            self.tagged_fields(fields, rng);
        }
    }

    fn value(&mut self, kind: &Kind, rng: &mut StdRng) {
        match *kind {
            Kind::Fixed { name: "bool", .. } => self.bytes.push(rng.random_range(0..2)),
            Kind::Fixed { size_bytes, .. } => {
                // Never all zeros or ones, so never the default of a tagged field.
                let from = self.bytes.len();
                self.bytes.resize(from + size_bytes, 0);
                rng.fill_bytes(&mut self.bytes[from..]);
                self.bytes[from] = 0x11;
            }
            Kind::String => {
                let length = rng.random_range(0..20);
                self.length(kind, Some(length));
                self.bytes
                    .extend((0..length).map(|_| rng.random_range(b'a'..=b'z')));
            }
            Kind::Records | Kind::Bytes => {
                let length = rng.random_range(0..200);
                self.length(kind, Some(length));
                self.bytes.extend((0..length).map(|_| rng.random::<u8>()));
            }
            Kind::Struct(fields) => self.fields(fields, rng),
            Kind::Array(element) => {
                let count = rng.random_range(0..4);
                self.length(kind, Some(count));
                for _ in 0..count {
                    self.value(element, rng);
                }
            }
        }
    }

    fn length(&mut self, kind: &Kind, length: Option<usize>) {
        let declared = length.map_or(-1, |length| length as i32);
        match kind {
            _ if self.is_flexible => varint::write(&mut self.bytes, (declared + 1) as u32),
            Kind::String => self.bytes.extend((declared as i16).to_be_bytes()),
            _ => self.bytes.extend(declared.to_be_bytes()),
        }
    }

    fn tagged_fields(&mut self, fields: &[Field], rng: &mut StdRng) {
        let version = self.version;
        let mut known: Vec<_> = fields.iter().filter(|field| field.is_in(version)).collect();
        known.retain(|field| field.tag.is_some() && rng.random_bool(0.5));
        known.sort_by_key(|field| field.tag);
        let unknown = if rng.random_bool(0.1) { 1 } else { 0 };
        varint::write(&mut self.bytes, known.len() as u32 + unknown);
        for field in known {
            let outer = std::mem::take(&mut self.bytes);
            self.value(&field.kind, rng);
            let value = std::mem::replace(&mut self.bytes, outer);
            varint::write(&mut self.bytes, field.tag.expect("the field is tagged"));
            varint::write(&mut self.bytes, value.len() as u32);
            self.bytes.extend(value);
        }
        for tag in 100..100 + unknown {
            varint::write(&mut self.bytes, tag);
            varint::write(&mut self.bytes, 3);
            self.bytes.extend([1, 2, 3]);
        }
    }
}

/// Lets the codec decode a body. Gives what it encodes from that, and how many bytes it did not read.
pub fn recode(key: ApiKey, version: i16, body: &[u8]) -> Result<(Bytes, usize), String> {
    match key {
        ApiKey::Produce => through::<ProduceRequest>(version, body),
        ApiKey::Fetch => through::<FetchRequest>(version, body),
        ApiKey::ListOffsets => through::<ListOffsetsRequest>(version, body),
        ApiKey::Metadata => through::<MetadataRequest>(version, body),
        ApiKey::OffsetCommit => through::<OffsetCommitRequest>(version, body),
        ApiKey::OffsetFetch => through::<OffsetFetchRequest>(version, body),
        ApiKey::OffsetDelete => through::<OffsetDeleteRequest>(version, body),
        ApiKey::JoinGroup => through::<JoinGroupRequest>(version, body),
        ApiKey::SyncGroup => through::<SyncGroupRequest>(version, body),
        ApiKey::Heartbeat => through::<HeartbeatRequest>(version, body),
        ApiKey::LeaveGroup => through::<LeaveGroupRequest>(version, body),
        ApiKey::DescribeGroups => through::<DescribeGroupsRequest>(version, body),
        ApiKey::ListGroups => through::<ListGroupsRequest>(version, body),
        ApiKey::DeleteGroups => through::<DeleteGroupsRequest>(version, body),
        ApiKey::FindCoordinator => through::<FindCoordinatorRequest>(version, body),
        ApiKey::ApiVersions => through::<ApiVersionsRequest>(version, body),
        ApiKey::CreateTopics => through::<CreateTopicsRequest>(version, body),
        ApiKey::DeleteTopics => through::<DeleteTopicsRequest>(version, body),
        ApiKey::DeleteRecords => through::<DeleteRecordsRequest>(version, body),
        ApiKey::InitProducerId => through::<InitProducerIdRequest>(version, body),
        ApiKey::OffsetForLeaderEpoch => through::<OffsetForLeaderEpochRequest>(version, body),
        ApiKey::DescribeConfigs => through::<DescribeConfigsRequest>(version, body),
        ApiKey::AlterConfigs => through::<AlterConfigsRequest>(version, body),
        ApiKey::DescribeLogDirs => through::<DescribeLogDirsRequest>(version, body),
        ApiKey::CreatePartitions => through::<CreatePartitionsRequest>(version, body),
        ApiKey::IncrementalAlterConfigs => through::<IncrementalAlterConfigsRequest>(version, body),
        ApiKey::DescribeCluster => through::<DescribeClusterRequest>(version, body),
        ApiKey::DescribeProducers => through::<DescribeProducersRequest>(version, body),
        ApiKey::ListConfigResources => through::<ListConfigResourcesRequest>(version, body),
        ApiKey::DescribeTopicPartitions => through::<DescribeTopicPartitionsRequest>(version, body),
        key => Err(format!("{key:?} is not in this list")),
    }
}

fn through<T: Decodable + Encodable>(version: i16, body: &[u8]) -> Result<(Bytes, usize), String> {
    let mut rest = Bytes::copy_from_slice(body);
    let decoded = T::decode(&mut rest, version).map_err(|error| error.to_string())?;
    let mut encoded = BytesMut::new();
    decoded
        .encode(&mut encoded, version)
        .map_err(|error| error.to_string())?;
    Ok((encoded.freeze(), rest.len()))
}
