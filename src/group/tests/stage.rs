//! A coordinator with a clock, a log and people who wait, all in the hands of a test.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;

use crate::group::{
    CommitRequest, Coordinator, Effects, FetchOffsetsRequest, FetchPartitions, Generation,
    GroupAnswer, GroupError, GroupId, GroupRecord, GroupRequest, GroupRules, GroupState,
    GroupWrite, HeartbeatRequest, InstanceId, JoinProtocol, JoinRequest, Joined, LeaveRequest,
    LeavingMember, MemberId, OffsetToCommit, SyncRequest, Synced, WriteRefused,
};
use crate::io::clock::Monotonic;
use crate::model::{LeaderEpoch, Offset, PartitionIndex, TimestampMs, TopicId, TopicName};

pub struct Stage {
    pub coordinator: Coordinator<u32>,
    pub rules: GroupRules,
    pub now: Monotonic,
    pub wall: TimestampMs,
    /// How far it has jumped ahead, which no age follows.
    pub held_ms: i64,
    /// What is on disk.
    pub log: Vec<GroupRecord>,
    /// What is on its way there.
    pub writes: VecDeque<GroupWrite>,
    pub answers: BTreeMap<u32, GroupAnswer>,
    answered: BTreeSet<u32>,
    pub asked: u32,
    /// How many generations have begun.
    pub generation_count: u64,
}

impl Stage {
    pub fn new() -> Self {
        Self::with(GroupRules {
            initial_rebalance_delay: Duration::ZERO,
            ..GroupRules::default()
        })
    }

    pub fn with(rules: GroupRules) -> Self {
        let mut stage = Self {
            coordinator: Coordinator::new(rules.clone()),
            rules,
            now: Monotonic::ZERO + Duration::from_secs(1),
            wall: TimestampMs(1_000_000_000_000),
            held_ms: 0,
            log: Vec::new(),
            writes: VecDeque::new(),
            answers: BTreeMap::new(),
            answered: BTreeSet::new(),
            asked: 0,
            generation_count: 0,
        };
        stage.begin();
        stage
    }

    /// After everything was replayed.
    fn begin(&mut self) {
        self.coordinator.loaded(self.now);
        let groups = self.coordinator.group_ids();
        let effects = self
            .coordinator
            .begin_sessions(&groups, self.now, self.wall);
        self.absorb(effects);
    }

    fn absorb(&mut self, effects: Effects<u32>) {
        self.writes.extend(effects.writes);
        self.generation_count += effects.generation_count;
        for (token, answer) in effects.answers {
            assert!(
                self.answered.insert(token),
                "{token} was answered twice, now with {answer:?}"
            );
            self.answers.insert(token, answer);
        }
    }

    /// Asks and leaves what has to be written unwritten.
    pub fn ask(&mut self, request: GroupRequest) -> u32 {
        let token = self.asked;
        self.asked += 1;
        let effects = self
            .coordinator
            .execute(request, token, self.now, self.wall);
        self.absorb(effects);
        token
    }

    /// Asks, writes whatever there is to write, and takes the answer.
    pub fn call(&mut self, request: GroupRequest) -> GroupAnswer {
        let token = self.ask(request);
        self.confirm_all();
        self.take(token)
            .expect("the answer waits for nothing but the disk")
    }

    pub fn take(&mut self, token: u32) -> Option<GroupAnswer> {
        self.answers.remove(&token)
    }

    pub fn confirm_one(&mut self) -> bool {
        let Some(write) = self.writes.pop_front() else {
            return false;
        };
        self.log.extend(write.records);
        let effects = self.coordinator.on_confirmed(write.id, self.now, self.wall);
        self.absorb(effects);
        true
    }

    pub fn confirm_all(&mut self) {
        while self.confirm_one() {}
    }

    pub fn refuse_one(&mut self, why: WriteRefused) -> bool {
        let Some(write) = self.writes.pop_front() else {
            return false;
        };
        let effects = self
            .coordinator
            .on_refused(write.id, why, self.now, self.wall);
        self.absorb(effects);
        true
    }

    /// Time passes, and at each deadline the coordinator does what is due; writes wait.
    pub fn advance(&mut self, duration: Duration) {
        let end = self.now + duration;
        while let Some(deadline) = self.coordinator.next_deadline().filter(|it| *it <= end) {
            self.move_to(deadline.max(self.now));
            let effects = self.tick();
            self.absorb(effects);
        }
        self.move_to(end);
    }

    fn tick(&mut self) -> Effects<u32> {
        let judging = TimestampMs(self.wall.0 - self.held_ms);
        self.coordinator.tick(self.now, self.wall, judging)
    }

    fn move_to(&mut self, now: Monotonic) {
        self.wall.0 += now.since(self.now).as_millis() as i64;
        self.now = now;
    }

    /// The process is killed: what is not on disk is lost, and so is everybody who waits.
    pub fn restart(&mut self) {
        self.writes.clear();
        self.answered.extend(0..self.asked);
        self.coordinator = Coordinator::new(self.rules.clone());
        for record in &self.log {
            let replayed = self
                .coordinator
                .replay(&record.key, record.value.as_deref());
            replayed.expect("what was written can be read");
        }
        self.begin();
    }

    /// Whoever has not been answered is, and then nobody waits.
    pub fn stop(&mut self) {
        for (token, answer) in self.coordinator.stop() {
            assert!(self.answered.insert(token), "{token} was answered twice");
            self.answers.insert(token, answer);
        }
        let forgotten: Vec<u32> = (0..self.asked)
            .filter(|token| !self.answered.contains(token))
            .collect();
        assert!(forgotten.is_empty(), "nobody answered {forgotten:?}");
    }

    // ---- in few words

    pub fn joined(&mut self, token: u32) -> Joined {
        match self.take(token) {
            Some(GroupAnswer::Join(Ok(joined))) => joined,
            other => panic!("{other:?}"),
        }
    }

    pub fn join_error(&mut self, token: u32) -> GroupError {
        match self.take(token) {
            Some(GroupAnswer::Join(Err(refused))) => refused.error,
            other => panic!("{other:?}"),
        }
    }

    pub fn synced(&mut self, token: u32) -> Synced {
        match self.take(token) {
            Some(GroupAnswer::Sync(Ok(synced))) => synced,
            other => panic!("{other:?}"),
        }
    }

    pub fn sync_error(&mut self, token: u32) -> GroupError {
        match self.take(token) {
            Some(GroupAnswer::Sync(Err(error))) => error,
            other => panic!("{other:?}"),
        }
    }

    pub fn heartbeat(
        &mut self,
        member: &MemberId,
        generation: Generation,
    ) -> Result<(), GroupError> {
        let request = HeartbeatRequest {
            group: group(),
            generation,
            member: member.clone(),
            instance: None,
        };
        match self.call(GroupRequest::Heartbeat(request)) {
            GroupAnswer::Heartbeat(result) => result,
            other => panic!("{other:?}"),
        }
    }

    /// One member alone, in a stable group.
    pub fn stable(&mut self) -> Joined {
        let token = self.ask(join(&[]));
        let joined = self.joined(token);
        let token = self.ask(sync(&joined, &[(&joined.member, b"all")]));
        self.confirm_all();
        assert_eq!(&self.synced(token).assignment[..], b"all");
        joined
    }

    pub fn state(&mut self) -> GroupState {
        self.confirm_all();
        self.state_without_writing()
    }

    pub fn state_without_writing(&mut self) -> GroupState {
        let token = self.ask(GroupRequest::Describe(group()));
        match self.take(token) {
            Some(GroupAnswer::Describe(Ok(described))) => described.state,
            Some(GroupAnswer::Describe(Err(GroupError::GroupNotFound))) => GroupState::Dead,
            other => panic!("{other:?}"),
        }
    }

    /// What a fetch says once whatever there is to write is written.
    pub fn fetch(&mut self, partition: i32) -> Option<i64> {
        self.confirm_all();
        let request = FetchOffsetsRequest {
            group: group(),
            partitions: FetchPartitions::These(vec![crate::group::TopicPartitions {
                topic: topic(),
                topic_id: TopicId::ZERO,
                partitions: vec![PartitionIndex(partition)],
            }]),
        };
        match self.call(GroupRequest::FetchOffsets(request)) {
            GroupAnswer::FetchOffsets(Ok(found)) => {
                found[0].committed.as_ref().map(|it| it.offset.0)
            }
            other => panic!("{other:?}"),
        }
    }

    /// The answers of a commit of one offset.
    pub fn commit(&mut self, request: CommitRequest) -> Result<(), GroupError> {
        match self.call(GroupRequest::Commit(request)) {
            GroupAnswer::Commit(results) => results[0],
            other => panic!("{other:?}"),
        }
    }
}

pub fn group() -> GroupId {
    GroupId::new("g")
}

pub fn topic() -> TopicName {
    TopicName::new("t").expect("a legal name")
}

/// The metadata of a consumer that is subscribed to these.
pub fn subscription(topics: &[&str]) -> Bytes {
    let mut metadata = vec![0, 1];
    metadata.extend((topics.len() as i32).to_be_bytes());
    for topic in topics {
        metadata.extend((topic.len() as i16).to_be_bytes());
        metadata.extend(topic.as_bytes());
    }
    metadata.extend((-1i32).to_be_bytes());
    metadata.into()
}

pub fn protocol(name: &str, metadata: &Bytes) -> JoinProtocol {
    JoinProtocol {
        name: name.into(),
        metadata: metadata.clone(),
    }
}

/// The first join of a dynamic member, with one assignor (`range` unless others are named), which is taken in at once.
pub fn join_request(protocols: &[&str]) -> JoinRequest {
    let names = match protocols {
        [] => &["range"],
        named => named,
    };
    let metadata = subscription(&["t"]);
    JoinRequest {
        group: group(),
        member: MemberId::new(""),
        instance: None,
        client_id: "client".into(),
        client_host: "/127.0.0.1".into(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 60_000,
        protocol_type: "consumer".into(),
        protocols: names.iter().map(|name| protocol(name, &metadata)).collect(),
        member_id_required: false,
        can_skip_assignment: false,
        fresh: uuid::Uuid::new_v4(),
    }
}

pub fn join(protocols: &[&str]) -> GroupRequest {
    GroupRequest::Join(join_request(protocols))
}

pub fn rejoin(member: &MemberId) -> GroupRequest {
    GroupRequest::Join(JoinRequest {
        member: member.clone(),
        ..join_request(&[])
    })
}

pub fn join_static(instance: &str) -> JoinRequest {
    JoinRequest {
        instance: Some(InstanceId::new(instance)),
        ..join_request(&[])
    }
}

pub fn sync(joined: &Joined, assignments: &[(&MemberId, &'static [u8])]) -> GroupRequest {
    let assignments = assignments.iter();
    GroupRequest::Sync(SyncRequest {
        group: group(),
        generation: joined.generation,
        member: joined.member.clone(),
        instance: None,
        protocol_type: None,
        protocol_name: None,
        assignments: assignments
            .map(|(member, assignment)| ((*member).clone(), Bytes::from_static(assignment)))
            .collect(),
    })
}

pub fn leave(members: &[&MemberId]) -> GroupRequest {
    let members = members.iter().map(|member| LeavingMember {
        member: (*member).clone(),
        instance: None,
    });
    GroupRequest::Leave(LeaveRequest {
        group: group(),
        members: members.collect(),
    })
}

pub fn offset(partition: i32, offset: i64) -> OffsetToCommit {
    OffsetToCommit {
        topic: topic(),
        topic_id: TopicId::ZERO,
        partition: PartitionIndex(partition),
        offset: Offset(offset),
        leader_epoch: LeaderEpoch(3),
        metadata: "meta".into(),
    }
}

/// A commit of somebody who is no member.
pub fn simple_commit(partition: i32, at: i64) -> CommitRequest {
    CommitRequest {
        group: group(),
        generation: Generation::NONE,
        member: MemberId::new(""),
        instance: None,
        retention_ms: None,
        offsets: vec![offset(partition, at)],
    }
}

pub fn member_commit(joined: &Joined, partition: i32, at: i64) -> CommitRequest {
    CommitRequest {
        generation: joined.generation,
        member: joined.member.clone(),
        ..simple_commit(partition, at)
    }
}

pub fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
