//! One connection that commits offsets, and reads back at the end what is committed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::thread::sleep;
use std::time::Duration;

use kafka_protocol::messages::{ApiKey, OffsetCommitRequest};

use crate::client::connection::Connection;
use crate::client::coordinator::{
    OFFSET_COMMIT_VERSION_MAX, OFFSET_COMMIT_VERSION_MIN, commit_request, committed_offsets,
};
use crate::client::error::{ClientError, ErrorCode};
use crate::clock::Clock;
use crate::histogram::LatencyHistogram;

/// How many groups are shown that do not have what was confirmed; all are counted.
const WRONG_SHOWN_MAX: usize = 10;

/// A committer that is early looks so often whether it is over.
const NAP_MAX: Duration = Duration::from_millis(50);

/// What all committers follow and count.
#[derive(Default)]
pub struct Watch {
    phase: AtomicU8,
    pub confirmed: AtomicU64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    WarmUp,
    Measured,
    Over,
}

impl Watch {
    pub fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Relaxed);
    }

    fn phase(&self) -> Phase {
        match self.phase.load(Relaxed) {
            0 => Phase::WarmUp,
            1 => Phase::Measured,
            _ => Phase::Over,
        }
    }
}

/// What one connection does.
pub struct CommitterPlan {
    pub coordinator: String,
    pub topic: String,
    pub partitions: Vec<usize>,
    pub groups: Vec<String>,
    pub in_flight_max: usize,
    /// Between two commits; None: a closed loop.
    pub interval_ns: Option<u64>,
    /// The first commit's time, on the clock that all committers share.
    pub start_ns: u64,
}

struct Group {
    name: String,
    /// Every commit of a group has the next number as its offset.
    last_sent: i64,
    last_confirmed: i64,
}

struct UnderWay {
    correlation_id: i32,
    group: usize,
    offset: i64,
    /// When it was due; in a closed loop, when it was sent.
    intended_ns: u64,
}

pub struct Committer {
    connection: Connection,
    version: i16,
    plan: CommitterPlan,
    groups: Vec<Group>,
    clock: Clock,
}

/// What a committer measured and found.
pub struct CommitterResult {
    /// Confirmed within the measured time.
    pub commits: u64,
    pub latency: LatencyHistogram,
    /// Refused commits by Kafka's name of the error, the warm-up's included.
    pub errors: BTreeMap<String, u64>,
    pub audit: CommitsAudit,
}

/// What the groups have, against what was confirmed.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct CommitsAudit {
    pub groups: u64,
    pub offsets: u64,
    /// Offsets that are older than the last confirmed one, absent, or that nobody sent.
    pub wrong: u64,
    pub first_wrong: Vec<String>,
}

impl CommitsAudit {
    pub fn merge(&mut self, other: Self) {
        self.groups += other.groups;
        self.offsets += other.offsets;
        self.wrong += other.wrong;
        let room = WRONG_SHOWN_MAX - self.first_wrong.len();
        self.first_wrong
            .extend(other.first_wrong.into_iter().take(room));
    }

    fn check(&mut self, group: &Group, found: &[(usize, Option<i64>)]) {
        self.groups += 1;
        for (partition, offset) in found {
            self.offsets += 1;
            let right = (group.last_confirmed..=group.last_sent).contains(&offset.unwrap_or(0));
            if right {
                continue;
            }
            self.wrong += 1;
            if self.first_wrong.len() < WRONG_SHOWN_MAX {
                let offset = offset.map_or_else(|| "none".to_owned(), |it| it.to_string());
                self.first_wrong.push(format!(
                    "group {}, partition {partition}: {} was confirmed, {} sent last, and the broker has {offset}",
                    group.name, group.last_confirmed, group.last_sent
                ));
            }
        }
    }
}

impl Committer {
    pub fn connect(plan: CommitterPlan, clock: Clock) -> Result<Self, ClientError> {
        let connection = Connection::open(&plan.coordinator)?;
        let version = connection.versions().choose(
            connection.address(),
            ApiKey::OffsetCommit,
            OFFSET_COMMIT_VERSION_MIN,
            OFFSET_COMMIT_VERSION_MAX,
        )?;
        let group = |name: &String| Group {
            name: name.clone(),
            last_sent: 0,
            last_confirmed: 0,
        };
        Ok(Self {
            connection,
            version,
            groups: plan.groups.iter().map(group).collect(),
            plan,
            clock,
        })
    }

    /// Commits until it is over, waits for what is under way, and reads everything back.
    pub fn run(mut self, watch: &Watch) -> Result<CommitterResult, ClientError> {
        let mut result = CommitterResult {
            commits: 0,
            latency: LatencyHistogram::new(),
            errors: BTreeMap::new(),
            audit: CommitsAudit::default(),
        };
        let mut under_way = VecDeque::new();
        let mut sent: u64 = 0;
        loop {
            let is_over = watch.phase() == Phase::Over;
            let mut due_in_ns = 0;
            while !is_over && under_way.len() < self.plan.in_flight_max {
                let now_ns = self.clock.now_ns();
                let due_ns = self.plan.interval_ns.map_or(now_ns, |interval_ns| {
                    self.plan.start_ns + sent * interval_ns
                });
                due_in_ns = due_ns.saturating_sub(now_ns);
                if due_in_ns > 0 {
                    break;
                }
                under_way.push_back(self.send(sent, due_ns)?);
                sent += 1;
            }
            match under_way.pop_front() {
                Some(first) => self.take_answer(first, watch, &mut result)?,
                None if is_over => break,
                None => sleep(Duration::from_nanos(due_in_ns).min(NAP_MAX)),
            }
        }
        self.read_back(&mut result.audit)?;
        Ok(result)
    }

    fn send(&mut self, number: u64, intended_ns: u64) -> Result<UnderWay, ClientError> {
        let place = (number % self.groups.len() as u64) as usize;
        let group = &mut self.groups[place];
        group.last_sent += 1;
        let offset = group.last_sent;
        let offsets: Vec<_> = self
            .plan
            .partitions
            .iter()
            .map(|it| (*it, offset))
            .collect();
        let request = commit_request(&group.name, None, &self.plan.topic, &offsets);
        Ok(UnderWay {
            correlation_id: self.connection.send(&request, self.version)?,
            group: place,
            offset,
            intended_ns,
        })
    }

    fn take_answer(
        &mut self,
        first: UnderWay,
        watch: &Watch,
        result: &mut CommitterResult,
    ) -> Result<(), ClientError> {
        let answer = self
            .connection
            .answer::<OffsetCommitRequest>(first.correlation_id, self.version)?;
        let partitions = answer.topics.iter().flat_map(|topic| &topic.partitions);
        let mut codes: Vec<_> = partitions.map(|it| ErrorCode(it.error_code)).collect();
        if codes.len() != self.plan.partitions.len() {
            let reason = format!("OffsetCommit: an answer for {} partitions", codes.len());
            return Err(self.connection.protocol(reason));
        }
        codes.retain(|code| !code.is_ok());
        if let Some(code) = codes.first() {
            *result.errors.entry(code.to_string()).or_default() += 1;
            return Ok(());
        }
        let group = &mut self.groups[first.group];
        group.last_confirmed = first.offset;
        watch.confirmed.fetch_add(1, Relaxed);
        if watch.phase() == Phase::Measured {
            let latency_ns = self.clock.now_ns().saturating_sub(first.intended_ns);
            result.commits += 1;
            result.latency.record_ns(latency_ns);
        }
        Ok(())
    }

    fn read_back(&mut self, audit: &mut CommitsAudit) -> Result<(), ClientError> {
        let (topic, partitions) = (&self.plan.topic, &self.plan.partitions);
        for group in self.groups.iter().filter(|group| group.last_sent > 0) {
            let found = committed_offsets(&mut self.connection, &group.name, topic, partitions)?;
            audit.check(group, &found);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_must_have_what_was_confirmed_last_or_what_was_sent_after_it() {
        let group = Group {
            name: "g".to_owned(),
            last_sent: 7,
            last_confirmed: 5,
        };
        let wrong = |found: Option<i64>| {
            let mut audit = CommitsAudit::default();
            audit.check(&group, &[(0, found)]);
            (audit.wrong, audit.first_wrong.len())
        };
        for right in [5, 6, 7] {
            assert_eq!(wrong(Some(right)), (0, 0), "{right}");
        }
        for not in [None, Some(4), Some(8)] {
            assert_eq!(wrong(not), (1, 1), "{not:?}");
        }
    }

    #[test]
    fn a_group_whose_commits_were_all_refused_may_have_none() {
        let group = Group {
            name: "g".to_owned(),
            last_sent: 7,
            last_confirmed: 0,
        };
        let mut audit = CommitsAudit::default();
        audit.check(&group, &[(0, None)]);
        assert_eq!(audit.wrong, 0);
    }
}
