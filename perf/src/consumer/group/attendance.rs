//! What a member does while its readers read: heartbeats and commits, until something ends it.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::desk::Desk;
use super::{MemberPlan, Shared};
use crate::client::coordinator::{Coordinator, Membership};
use crate::client::error::{ClientError, ErrorCode};
use crate::consumer::tail::Following;
use crate::histogram::LatencyHistogram;

/// How often a member looks whether something is due.
const TICK: Duration = Duration::from_millis(10);

/// Why a member stopped reading.
pub enum End {
    /// The group changes.
    Rebalance,
    /// It is its turn to be away for a while.
    Away,
    Done,
}

/// What was committed, and how it went.
pub struct Commits {
    /// Under the present membership.
    last: BTreeMap<usize, i64>,
    due: Instant,
    count: u64,
    latency: LatencyHistogram,
}

impl Commits {
    pub fn new() -> Self {
        Self {
            last: BTreeMap::new(),
            due: Instant::now(),
            count: 0,
            latency: LatencyHistogram::new(),
        }
    }

    /// Under a new membership, which begins with what the group had committed.
    pub fn begin(&mut self, committed: BTreeMap<usize, i64>) {
        self.last = committed;
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn into_latency(self) -> LatencyHistogram {
        self.latency
    }
}

/// A member in one generation, while its readers read.
pub struct Attendance<'a> {
    pub(super) plan: &'a MemberPlan,
    pub(super) following: &'a Following,
    pub(super) desk: &'a Desk,
    pub(super) shared: &'a Shared,
    pub(super) commits: &'a mut Commits,
    pub(super) absences: u32,
    pub(super) membership: &'a Membership,
}

impl Attendance<'_> {
    /// Heartbeats and commits until something ends it.
    pub fn attend(&mut self, coordinator: &mut Coordinator) -> Result<End, ClientError> {
        let settings = self.plan.settings;
        let mut heartbeat_due = Instant::now() + settings.heartbeat_interval;
        self.commits.due = Instant::now() + settings.commit_interval;
        loop {
            if self.shared.done.load(Relaxed) {
                return Ok(End::Done);
            }
            if self.is_to_be_away() {
                return Ok(End::Away);
            }
            let now = Instant::now();
            let mut told = Ok(());
            if now >= heartbeat_due {
                told = coordinator.heartbeat(self.membership);
                heartbeat_due = now + settings.heartbeat_interval;
            }
            if told.is_ok() && now >= self.commits.due {
                told = self.commit(coordinator);
                self.commits.due = Instant::now() + settings.commit_interval;
            }
            match told {
                Err(error) if refusal(&error) == Some(ErrorCode::REBALANCE_IN_PROGRESS) => {
                    return Ok(End::Rebalance);
                }
                told => told?,
            }
            self.wait();
        }
    }

    /// A moment, or until a reader has handed in something that is to be committed at once.
    fn wait(&self) {
        match self.plan.settings.commit_interval.is_zero() {
            true => self.desk.wait_while(|| self.uncommitted().is_empty(), TICK),
            false => sleep(TICK),
        }
    }

    fn is_to_be_away(&self) -> bool {
        let Some((every, begun)) = self
            .plan
            .settings
            .rebalance_every
            .zip(self.following.begun.get())
        else {
            return false;
        };
        let now_ns = self.following.clock.now_ns();
        let elapsed = Duration::from_nanos(now_ns.saturating_sub(begun.start_ns));
        let turns = self.absences * self.plan.members + self.plan.number + 1;
        elapsed >= every * turns
    }

    fn uncommitted(&self) -> Vec<(usize, i64)> {
        let last = self.commits.last.iter();
        last.map(|(partition, last)| (*partition, self.desk.next(*partition), last))
            .filter(|(_, next, last)| next != *last)
            .map(|(partition, next, _)| (partition, next))
            .collect()
    }

    /// Where it stands, if that has moved.
    pub fn commit(&mut self, coordinator: &mut Coordinator) -> Result<(), ClientError> {
        let moved = self.uncommitted();
        if moved.is_empty() {
            return Ok(());
        }
        let sent = Instant::now();
        coordinator.commit(self.membership, &self.plan.topic.name, &moved)?;
        let latency_ns = sent.elapsed().as_nanos() as u64;
        self.commits.last.extend(moved);
        if self.following.begun.get().is_some() {
            self.commits.count += 1;
            self.commits.latency.record_ns(latency_ns);
        }
        Ok(())
    }
}

/// What the broker said, if that is the error.
pub fn refusal(error: &ClientError) -> Option<ErrorCode> {
    match error {
        ClientError::Refused { code, .. } => Some(*code),
        _ => None,
    }
}
