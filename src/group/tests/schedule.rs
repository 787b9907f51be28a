//! Random schedules: clients that join, work, crash, come back and are slow; writes that are late or refused; restarts. After every
//! step the rules hold: a partition has one owner in a generation, no commit of an old generation counts, nobody waits longer than a
//! rebalance may take, what was committed is there. And once everybody behaves, the group is whole.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::stage::{Stage, group, join_request, member_commit, protocol, seconds, subscription};
use crate::group::{
    Generation, GroupAnswer, GroupError, GroupRequest, GroupRules, GroupState, HeartbeatRequest,
    InstanceId, JoinRequest, Joined, LeaveRequest, LeavingMember, MemberId, SyncRequest,
    WriteRefused,
};

const CLIENTS: usize = 6;
const PARTITIONS: i32 = 7;
const REBALANCE_MS: i32 = 20_000;
/// A rebalance time-out, the initial delay, and a step of the clock.
const WAIT_MAX: Duration = Duration::from_secs(30);

enum Phase {
    Out,
    Joining(u32),
    Joined(Joined),
    Syncing(u32, Joined),
    In(Joined),
}

struct Client {
    /// Static members have one.
    instance: Option<InstanceId>,
    member: MemberId,
    topics: usize,
    phase: Phase,
}

struct Schedule {
    stage: Stage,
    random: StdRng,
    clients: Vec<Client>,
    /// Who was given a partition in which generation.
    owners: BTreeMap<(Generation, i32), usize>,
    /// The newest generation that anybody was told of.
    newest: Generation,
    /// Commits that were asked for, with whether they may succeed.
    committing: BTreeMap<u32, (i32, i64, bool)>,
    committed: BTreeMap<i32, i64>,
    /// Requests that wait for other members, with how long they have.
    waiting: BTreeMap<u32, Duration>,
    next_offset: i64,
}

impl Schedule {
    fn new(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let stage = Stage::with(GroupRules {
            initial_rebalance_delay: seconds(random.random_range(0..4)),
            offsets_retention_check_interval: seconds(1_000_000),
            ..GroupRules::default()
        });
        let clients = (0..CLIENTS).map(|number| Client {
            instance: (number % 2 == 0).then(|| InstanceId::new(&format!("i{number}"))),
            member: MemberId::new(""),
            topics: 1,
            phase: Phase::Out,
        });
        Self {
            clients: clients.collect(),
            stage,
            random,
            owners: BTreeMap::new(),
            newest: Generation::BEFORE_FIRST,
            committing: BTreeMap::new(),
            committed: BTreeMap::new(),
            waiting: BTreeMap::new(),
            next_offset: 0,
        }
    }

    fn step(&mut self) {
        match self.random.random_range(0..100) {
            0..60 => {
                let number = self.random.random_range(0..CLIENTS);
                match self.random.random_range(0..20) {
                    0 => self.crash(number),
                    1 => self.leave(number),
                    2 => self.clients[number].topics = self.random.random_range(1..3),
                    _ => self.act(number),
                }
            }
            60..85 => {
                self.stage.confirm_one();
            }
            85..87 => {
                self.stage.refuse_one(WriteRefused::Unavailable);
            }
            87..99 => {
                let ms = self.random.random_range(0..4_000);
                self.pass(Duration::from_millis(ms));
            }
            _ => self.restart(),
        }
        self.observe();
    }

    /// Time passes; whoever waits, waits for other members only while nothing is being written.
    fn pass(&mut self, duration: Duration) {
        let is_written = self.stage.writes.is_empty();
        self.stage.advance(duration);
        if is_written && self.stage.writes.is_empty() {
            for waited in self.waiting.values_mut() {
                *waited += duration;
            }
        }
    }

    /// Looks at what was answered in this step.
    fn observe(&mut self) {
        for (token, answer) in &self.stage.answers {
            self.waiting.remove(token);
            match answer {
                GroupAnswer::Join(Ok(joined)) => self.newest = self.newest.max(joined.generation),
                GroupAnswer::Commit(results) => {
                    if let Some((partition, offset, may_succeed)) = self.committing.remove(token)
                        && results[0].is_ok()
                    {
                        assert!(may_succeed, "a commit of an old generation was taken");
                        self.committed.insert(partition, offset);
                    }
                }
                _ => {}
            }
        }
        for (token, waited) in &self.waiting {
            assert!(*waited < WAIT_MAX, "{token} has waited for {waited:?}");
        }
        for partition in 0..PARTITIONS {
            let seen = self.stage.peek(partition);
            assert_eq!(seen, self.committed.get(&partition).copied());
        }
    }

    /// The client does what a client does next.
    fn act(&mut self, number: usize) {
        let phase = std::mem::replace(&mut self.clients[number].phase, Phase::Out);
        let next = match phase {
            Phase::Out => {
                self.clients[number].member = MemberId::new("");
                self.join(number)
            }
            Phase::Joining(token) => match self.stage.take(token) {
                None => Phase::Joining(token),
                Some(GroupAnswer::Join(Ok(joined))) => {
                    self.clients[number].member = joined.member.clone();
                    Phase::Joined(joined)
                }
                Some(GroupAnswer::Join(Err(refused))) => {
                    if refused.error == GroupError::MemberIdRequired {
                        self.clients[number].member = refused.member;
                        self.join(number)
                    } else {
                        Phase::Out
                    }
                }
                other => panic!("{other:?}"),
            },
            Phase::Joined(joined) => self.sync(number, joined),
            Phase::Syncing(token, joined) => match self.stage.take(token) {
                None => Phase::Syncing(token, joined),
                Some(GroupAnswer::Sync(Ok(synced))) => {
                    self.own(number, joined.generation, &synced.assignment);
                    Phase::In(joined)
                }
                Some(GroupAnswer::Sync(Err(GroupError::RebalanceInProgress))) => self.join(number),
                Some(GroupAnswer::Sync(Err(_))) => Phase::Out,
                other => panic!("{other:?}"),
            },
            Phase::In(joined) => self.work(number, joined),
        };
        self.clients[number].phase = next;
    }

    fn join(&mut self, number: usize) -> Phase {
        let client = &self.clients[number];
        let topics = &["t", "u"][..client.topics];
        let request = JoinRequest {
            member: client.member.clone(),
            instance: client.instance.clone(),
            session_timeout_ms: 10_000,
            rebalance_timeout_ms: REBALANCE_MS,
            protocols: vec![protocol("range", &subscription(topics))],
            member_id_required: number >= 3,
            can_skip_assignment: number == 2,
            ..join_request(&[])
        };
        let token = self.stage.ask(GroupRequest::Join(request));
        self.waiting.insert(token, Duration::ZERO);
        Phase::Joining(token)
    }

    fn sync(&mut self, number: usize, joined: Joined) -> Phase {
        let mut shares: Vec<Vec<u8>> = vec![Vec::new(); joined.members.len()];
        if !shares.is_empty() {
            // Any way of sharing will do, as long as it shares.
            let first = self.random.random_range(0..shares.len());
            for partition in 0..PARTITIONS {
                let to = (first + partition as usize) % joined.members.len();
                shares[to].push(partition as u8);
            }
        }
        if joined.skip_assignment {
            shares.clear();
        }
        let members = joined.members.iter().map(|member| member.member.clone());
        let token = self.stage.ask(GroupRequest::Sync(SyncRequest {
            group: group(),
            generation: joined.generation,
            member: joined.member.clone(),
            instance: self.clients[number].instance.clone(),
            protocol_type: Some("consumer".into()),
            protocol_name: Some("range".into()),
            assignments: members.zip(shares.into_iter().map(Bytes::from)).collect(),
        }));
        self.waiting.insert(token, Duration::ZERO);
        Phase::Syncing(token, joined)
    }

    fn own(&mut self, number: usize, generation: Generation, assignment: &[u8]) {
        for partition in assignment {
            let owner = (generation, i32::from(*partition));
            let before = self.owners.insert(owner, number);
            assert!(
                before.is_none_or(|before| before == number),
                "{owner:?} has two owners: {before:?} and {number}"
            );
        }
    }

    fn work(&mut self, number: usize, joined: Joined) -> Phase {
        if self.random.random_bool(0.5) {
            self.commit(&joined);
            return Phase::In(joined);
        }
        match self.heartbeat(number, &joined) {
            Ok(()) => Phase::In(joined),
            Err(GroupError::RebalanceInProgress) => self.join(number),
            Err(_) => Phase::Out,
        }
    }

    fn heartbeat(&mut self, number: usize, joined: &Joined) -> Result<(), GroupError> {
        let token = self.stage.ask(GroupRequest::Heartbeat(HeartbeatRequest {
            group: group(),
            generation: joined.generation,
            member: joined.member.clone(),
            instance: self.clients[number].instance.clone(),
        }));
        match self.stage.take(token) {
            Some(GroupAnswer::Heartbeat(result)) => result,
            other => panic!("{other:?}"),
        }
    }

    fn commit(&mut self, joined: &Joined) {
        let partition = self.random.random_range(0..PARTITIONS);
        let offset = self.next_offset;
        self.next_offset += 1;
        let request = member_commit(joined, partition, offset);
        let may_succeed = joined.generation >= self.newest;
        let token = self.stage.ask(GroupRequest::Commit(request));
        self.committing
            .insert(token, (partition, offset, may_succeed));
    }

    /// It forgets everything; what it has asked for is answered to nobody.
    fn crash(&mut self, number: usize) {
        self.clients[number].phase = Phase::Out;
    }

    fn leave(&mut self, number: usize) {
        if let Phase::In(joined) = &self.clients[number].phase {
            let member = joined.member.clone();
            let instance = self.clients[number].instance.clone();
            self.stage.ask(GroupRequest::Leave(LeaveRequest {
                group: group(),
                members: vec![LeavingMember { member, instance }],
            }));
            self.clients[number].phase = Phase::Out;
        }
    }

    /// Clients lose their connections and ask anew; members are still who they were.
    fn restart(&mut self) {
        self.stage.restart();
        self.committing.clear();
        self.waiting.clear();
        for client in &mut self.clients {
            if matches!(client.phase, Phase::Joining(_) | Phase::Syncing(..)) {
                client.phase = Phase::Out;
            }
        }
        self.stage.answers.clear();
        // A generation that did not come to be on disk was given to nobody, and its number may come again.
        self.newest = self.stage.logged_generation();
        let newest = self.newest;
        let lost = self
            .owners
            .keys()
            .find(|(generation, _)| *generation > newest);
        assert_eq!(
            lost, None,
            "a generation was handed out before it was on disk"
        );
    }

    /// Everybody behaves from now on.
    fn settle(&mut self, alive: usize) {
        for number in alive..CLIENTS {
            self.crash(number);
        }
        for _ in 0..100 {
            for number in 0..alive {
                for _ in 0..4 {
                    self.act(number);
                    self.stage.confirm_all();
                    self.observe();
                }
            }
            self.pass(seconds(1));
            self.stage.confirm_all();
            self.observe();
        }
        let in_generation: Vec<Generation> = self
            .clients
            .iter()
            .filter_map(|client| match &client.phase {
                Phase::In(joined) => Some(joined.generation),
                _ => None,
            })
            .collect();
        assert_eq!(in_generation.len(), alive, "somebody was forgotten");
        assert!(in_generation.iter().all(|it| *it == in_generation[0]));
        for partition in 0..PARTITIONS {
            let owner = self.owners.get(&(in_generation[0], partition));
            assert!(
                owner.is_some_and(|owner| *owner < alive),
                "{partition} has no owner"
            );
        }
        assert_eq!(self.stage.state(), GroupState::Stable);
    }
}

impl Stage {
    /// What a fetch sees now, without writing anything first.
    fn peek(&mut self, partition: i32) -> Option<i64> {
        let writes = std::mem::take(&mut self.writes);
        let seen = self.fetch(partition);
        self.writes = writes;
        seen
    }

    /// The group's generation on disk.
    fn logged_generation(&self) -> Generation {
        let is_group = |key: &[u8]| key.starts_with(b"\0\x02");
        let mut records = self.log.iter().rev();
        let last = records.find(|record| is_group(&record.key));
        let value = last.and_then(|record| record.value.clone());
        value.map_or(Generation::BEFORE_FIRST, |value| {
            let decoded = crate::group::record::GroupValue::decode(&value);
            decoded.expect("what was written can be read").generation
        })
    }
}

fn run(seed: u64) {
    println!("seed {seed}");
    let mut schedule = Schedule::new(seed);
    for _ in 0..600 {
        schedule.step();
    }
    let alive = schedule.random.random_range(1..=CLIENTS);
    schedule.settle(alive);
    let committed = schedule.committed.clone();
    schedule.restart();
    schedule.observe();
    assert_eq!(schedule.committed, committed);
    schedule.stage.stop();
}

#[test]
fn whatever_happens_the_groups_rules_hold() {
    let one = std::env::var("CORELOG_SEED").ok();
    if let Some(seed) = one.and_then(|seed| seed.parse().ok()) {
        return run(seed);
    }
    for _ in 0..20 {
        run(rand::random());
    }
}
