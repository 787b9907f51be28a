//! A broker for tests that leads every partition of one topic and coordinates groups by the classic protocol: it keeps members,
//! generations and offsets, and serves the log that the test gives it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::delete_groups_response::DeletableGroupResult;
use kafka_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use kafka_protocol::messages::join_group_response::JoinGroupResponseMember;
use kafka_protocol::messages::offset_commit_response::{
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use kafka_protocol::messages::offset_fetch_response::{
    OffsetFetchResponsePartition, OffsetFetchResponseTopic,
};
use kafka_protocol::messages::{
    ApiKey, ApiVersionsResponse, BrokerId, DeleteGroupsRequest, DeleteGroupsResponse, FetchRequest,
    FetchResponse, FindCoordinatorResponse, HeartbeatRequest, HeartbeatResponse, JoinGroupRequest,
    JoinGroupResponse, LeaveGroupRequest, LeaveGroupResponse, OffsetCommitRequest,
    OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse, RequestHeader, ResponseHeader,
    SyncGroupRequest, SyncGroupResponse,
};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};

use super::batches::whole_batches;
use super::error::ErrorCode;

/// With the versions in which a member asks at most.
const SERVED: [(ApiKey, i16); 9] = [
    (ApiKey::Fetch, 11),
    (ApiKey::FindCoordinator, 2),
    (ApiKey::JoinGroup, 5),
    (ApiKey::SyncGroup, 3),
    (ApiKey::Heartbeat, 3),
    (ApiKey::LeaveGroup, 2),
    (ApiKey::OffsetCommit, 7),
    (ApiKey::OffsetFetch, 5),
    (ApiKey::DeleteGroups, 1),
];

const NON_EMPTY_GROUP: i16 = 68;

/// How long a test's member may keep the others waiting.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// How long an empty fetch waits.
const FETCH_WAIT: Duration = Duration::from_millis(5);

#[derive(Default)]
struct Group {
    generation: i32,
    next_id: u32,
    members: BTreeSet<String>,
    /// Of the generation that is being made.
    joined: BTreeSet<String>,
    is_preparing: bool,
    assignments: Option<BTreeMap<String, Bytes>>,
    offsets: BTreeMap<i32, i64>,
}

/// One group, and the record batches of every partition.
pub struct FakeCoordinator {
    pub address: String,
    state: Arc<State>,
}

struct State {
    group: Mutex<Group>,
    changed: Condvar,
    log: Vec<u8>,
    port: i32,
}

impl FakeCoordinator {
    /// `log`: whole batches, the same in every partition.
    pub fn start(log: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let state = Arc::new(State {
            group: Mutex::new(Group::default()),
            changed: Condvar::new(),
            log,
            port: i32::from(address.port()),
        });
        let serving = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&serving);
                // A client that goes away ends its connection, not the broker.
                thread::spawn(move || drop(state.serve(stream)));
            }
        });
        Self {
            address: address.to_string(),
            state,
        }
    }

    pub fn committed(&self) -> BTreeMap<i32, i64> {
        self.state.lock().offsets.clone()
    }

    pub fn members(&self) -> usize {
        self.state.lock().members.len()
    }
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Group> {
        self.group.lock().expect("no session panics")
    }

    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        loop {
            let mut size = [0; 4];
            stream.read_exact(&mut size)?;
            let mut frame = vec![0; u32::from_be_bytes(size) as usize];
            stream.read_exact(&mut frame)?;
            let mut frame = Bytes::from(frame);
            let header = RequestHeader::decode(&mut frame, 1).expect("a request header");
            let version = header.request_api_version;
            let mut out = BytesMut::new();
            ResponseHeader::default()
                .with_correlation_id(header.correlation_id)
                .encode(&mut out, 0)
                .expect("it encodes");
            let api = ApiKey::try_from(header.request_api_key).expect("a known API");
            self.answer(api, version, frame, &mut out);
            stream.write_all(&(out.len() as u32).to_be_bytes())?;
            stream.write_all(&out)?;
        }
    }

    fn answer(&self, api: ApiKey, version: i16, frame: Bytes, out: &mut BytesMut) {
        fn request<R: Decodable>(mut frame: Bytes, version: i16) -> R {
            R::decode(&mut frame, version).expect("a request")
        }
        let encoded = match api {
            ApiKey::ApiVersions => served().encode(out, version),
            ApiKey::FindCoordinator => FindCoordinatorResponse::default()
                .with_node_id(BrokerId(0))
                .with_host(StrBytes::from_static_str("127.0.0.1"))
                .with_port(self.port)
                .encode(out, version),
            ApiKey::Fetch => self.fetch(request(frame, version)).encode(out, version),
            ApiKey::JoinGroup => self.join(request(frame, version)).encode(out, version),
            ApiKey::SyncGroup => self.sync(request(frame, version)).encode(out, version),
            ApiKey::Heartbeat => {
                let heartbeat: HeartbeatRequest = request(frame, version);
                let code = self.check(&heartbeat.member_id, heartbeat.generation_id);
                HeartbeatResponse::default()
                    .with_error_code(code)
                    .encode(out, version)
            }
            ApiKey::LeaveGroup => {
                let leave: LeaveGroupRequest = request(frame, version);
                let mut group = self.lock();
                group.members.remove(&*leave.member_id);
                group.joined.remove(&*leave.member_id);
                group.is_preparing = true;
                self.changed.notify_all();
                LeaveGroupResponse::default().encode(out, version)
            }
            ApiKey::OffsetCommit => self.commit(request(frame, version)).encode(out, version),
            ApiKey::OffsetFetch => self.committed(request(frame, version)).encode(out, version),
            ApiKey::DeleteGroups => self.delete(request(frame, version)).encode(out, version),
            other => panic!("{other:?} is not served"),
        };
        encoded.expect("it encodes");
    }

    /// A group with members stays as it is.
    fn delete(&self, delete: DeleteGroupsRequest) -> DeleteGroupsResponse {
        let mut group = self.lock();
        let code = match () {
            () if !group.members.is_empty() => ErrorCode(NON_EMPTY_GROUP),
            () if group.generation == 0 => ErrorCode::GROUP_ID_NOT_FOUND,
            () => {
                *group = Group::default();
                ErrorCode::NONE
            }
        };
        let result = |name| {
            DeletableGroupResult::default()
                .with_group_id(name)
                .with_error_code(code.0)
        };
        DeleteGroupsResponse::default()
            .with_results(delete.groups_names.into_iter().map(result).collect())
    }

    /// Every batch from the one with the asked offset on.
    fn fetch(&self, fetch: FetchRequest) -> FetchResponse {
        let topic = &fetch.topics[0];
        let part = |asked: &kafka_protocol::messages::fetch_request::FetchPartition| {
            let mut before = 0;
            for batch in whole_batches(&self.log) {
                if batch.next_offset() > asked.fetch_offset {
                    break;
                }
                before += batch.size_bytes();
            }
            PartitionData::default()
                .with_partition_index(asked.partition)
                .with_records(Some(Bytes::copy_from_slice(&self.log[before..])))
        };
        let parts: Vec<_> = topic.partitions.iter().map(part).collect();
        if parts
            .iter()
            .all(|it| it.records.as_ref().is_none_or(Bytes::is_empty))
        {
            thread::sleep(FETCH_WAIT);
        }
        FetchResponse::default().with_responses(vec![
            FetchableTopicResponse::default()
                .with_topic(topic.topic.clone())
                .with_partitions(parts),
        ])
    }

    /// Answers when all members have joined.
    fn join(&self, join: JoinGroupRequest) -> JoinGroupResponse {
        let mut group = self.lock();
        if join.member_id.is_empty() {
            group.next_id += 1;
            let id = StrBytes::from_string(format!("member-{}", group.next_id));
            return JoinGroupResponse::default()
                .with_error_code(ErrorCode::MEMBER_ID_REQUIRED.0)
                .with_member_id(id);
        }
        let id = join.member_id.to_string();
        group.members.insert(id.clone());
        group.joined.insert(id.clone());
        group.is_preparing = true;
        let of_generation = group.generation;
        let deadline = Instant::now() + WAIT_MAX;
        loop {
            if group.generation == of_generation && group.joined == group.members {
                group.generation += 1;
                group.is_preparing = false;
                group.joined.clear();
                group.assignments = None;
                self.changed.notify_all();
            }
            if group.generation > of_generation {
                break;
            }
            assert!(
                Instant::now() < deadline,
                "a member keeps the others waiting"
            );
            group = self.wait(group);
        }
        let leader = group.members.first().cloned().unwrap_or_default();
        let members = group.members.iter().map(|member| {
            JoinGroupResponseMember::default().with_member_id(StrBytes::from_string(member.clone()))
        });
        JoinGroupResponse::default()
            .with_generation_id(group.generation)
            .with_protocol_name(Some(join.protocols[0].name.clone()))
            .with_members(if leader == id {
                members.collect()
            } else {
                Vec::new()
            })
            .with_leader(StrBytes::from_string(leader))
            .with_member_id(join.member_id)
    }

    fn wait<'a>(&self, group: MutexGuard<'a, Group>) -> MutexGuard<'a, Group> {
        let tick = Duration::from_millis(50);
        self.changed
            .wait_timeout(group, tick)
            .expect("no session panics")
            .0
    }

    /// Answers when the leader has handed in what it decided.
    fn sync(&self, sync: SyncGroupRequest) -> SyncGroupResponse {
        let mut group = self.lock();
        if !sync.assignments.is_empty() && group.generation == sync.generation_id {
            let decided = sync.assignments.iter();
            let decided = decided.map(|it| (it.member_id.to_string(), it.assignment.clone()));
            group.assignments = Some(decided.collect());
            self.changed.notify_all();
        }
        loop {
            if group.is_preparing || group.generation != sync.generation_id {
                return SyncGroupResponse::default()
                    .with_error_code(ErrorCode::REBALANCE_IN_PROGRESS.0);
            }
            if let Some(assignments) = &group.assignments {
                let mine = assignments.get(&*sync.member_id).cloned();
                return SyncGroupResponse::default().with_assignment(mine.unwrap_or_default());
            }
            group = self.wait(group);
        }
    }

    fn check(&self, member: &str, generation: i32) -> i16 {
        let group = self.lock();
        match () {
            () if !group.members.contains(member) => ErrorCode::UNKNOWN_MEMBER_ID.0,
            () if group.generation != generation => ErrorCode::ILLEGAL_GENERATION.0,
            () if group.is_preparing => ErrorCode::REBALANCE_IN_PROGRESS.0,
            () => 0,
        }
    }

    /// A member may still commit while the others join again.
    fn commit(&self, commit: OffsetCommitRequest) -> OffsetCommitResponse {
        let code = self.check(&commit.member_id, commit.generation_id_or_member_epoch);
        let is_taken = code == 0 || code == ErrorCode::REBALANCE_IN_PROGRESS.0;
        let topic = &commit.topics[0];
        let part = |part: &kafka_protocol::messages::offset_commit_request::OffsetCommitRequestPartition| {
            if is_taken {
                self.lock()
                    .offsets
                    .insert(part.partition_index, part.committed_offset);
            }
            OffsetCommitResponsePartition::default()
                .with_partition_index(part.partition_index)
                .with_error_code(if is_taken { 0 } else { code })
        };
        OffsetCommitResponse::default().with_topics(vec![
            OffsetCommitResponseTopic::default()
                .with_name(topic.name.clone())
                .with_partitions(topic.partitions.iter().map(part).collect()),
        ])
    }

    fn committed(&self, fetch: OffsetFetchRequest) -> OffsetFetchResponse {
        let group = self.lock();
        let topic = &fetch.topics.as_ref().expect("topics")[0];
        let part = |partition: &i32| {
            OffsetFetchResponsePartition::default()
                .with_partition_index(*partition)
                .with_committed_offset(group.offsets.get(partition).copied().unwrap_or(-1))
        };
        OffsetFetchResponse::default().with_topics(vec![
            OffsetFetchResponseTopic::default()
                .with_name(topic.name.clone())
                .with_partitions(topic.partition_indexes.iter().map(part).collect()),
        ])
    }
}

fn served() -> ApiVersionsResponse {
    let api = |(api, max): (ApiKey, i16)| {
        ApiVersion::default()
            .with_api_key(api as i16)
            .with_min_version(0)
            .with_max_version(max)
    };
    ApiVersionsResponse::default().with_api_keys(SERVED.into_iter().map(api).collect())
}
