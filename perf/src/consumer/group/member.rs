//! One member of a group: joins, reads what it is assigned, commits what it was handed, and joins again when the group changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use super::attendance::{Attendance, Commits, End, refusal};
use super::desk::Desk;
use super::{Handed, MemberPlan, Seen, Shared};
use crate::client::coordinator::{Coordinator, Joined, Membership, Share};
use crate::client::error::{ClientError, ErrorCode};
use crate::consumer::reader::{Position, ReadPlan};
use crate::consumer::tail::{Following, TailResult, tail};
use crate::histogram::LatencyHistogram;

/// How often a member that is away looks whether everybody leaves.
const TICK: Duration = Duration::from_millis(10);

/// Before the load begins, how long to leave a coordinator alone that is not ready.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// What a member did from the load's begin on.
pub struct MemberResult {
    pub group: String,
    pub topic_place: usize,
    pub read: TailResult,
    pub handed: Handed,
    /// Those it became a member of.
    pub generations: BTreeSet<i32>,
    /// From when a member gave up its partitions to when it read again.
    pub pause: LatencyHistogram,
    pub commits: u64,
    pub commit_latency: LatencyHistogram,
    /// How many partitions it had last.
    pub partitions: usize,
}

pub struct Member {
    plan: MemberPlan,
    following: Following,
    shared: Arc<Shared>,
    desk: Desk,
    commits: Commits,
    /// Whether its generation has all the members that the group is to have.
    complete: Arc<AtomicBool>,
    /// Empty: the coordinator gives one.
    id: String,
    paused_at: Option<Instant>,
    /// How often it has been away.
    absences: u32,
    read: TailResult,
    generations: BTreeSet<i32>,
    pause: LatencyHistogram,
    partitions: usize,
}

impl Member {
    pub(super) fn new(
        plan: MemberPlan,
        following: Following,
        seen: Arc<Seen>,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            desk: Desk::new(seen, &plan.starts),
            commits: Commits::new(),
            plan,
            following,
            shared,
            complete: Arc::new(AtomicBool::new(false)),
            id: String::new(),
            paused_at: None,
            absences: 0,
            read: TailResult::new(),
            generations: BTreeSet::new(),
            pause: LatencyHistogram::new(),
            partitions: 0,
        }
    }

    pub(super) fn is_complete(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.complete)
    }

    /// Until everybody leaves. What fails is tried again, once the load has begun.
    pub fn run(mut self) -> MemberResult {
        while !self.is_done() {
            let Err(error) = self.belong() else {
                break;
            };
            self.complete.store(false, Relaxed);
            let code = refusal(&error);
            if code == Some(ErrorCode::UNKNOWN_MEMBER_ID) {
                self.id.clear();
            }
            if code == Some(ErrorCode::REBALANCE_IN_PROGRESS) {
                continue;
            }
            let comes_back = code.is_some_and(|code| code.is_retriable() || is_exclusion(code));
            if self.following.begun.get().is_some() {
                self.read.fail(&error, &self.following.live);
            } else if comes_back {
                // A coordinator that has just been made one: what nobody measures is no failure.
                sleep(RETRY_DELAY);
            } else {
                let mut failure = self.shared.failure.lock().expect("no member panics");
                failure.get_or_insert(error);
                break;
            }
        }
        self.leave_at_last();
        MemberResult {
            group: self.plan.group,
            topic_place: self.plan.topic_place,
            read: self.read,
            handed: self.desk.into_handed(),
            generations: self.generations,
            pause: self.pause,
            commits: self.commits.count(),
            commit_latency: self.commits.into_latency(),
            partitions: self.partitions,
        }
    }

    fn is_done(&self) -> bool {
        self.shared.done.load(Relaxed)
    }

    /// As long as one connection to the coordinator lasts; Ok when everybody leaves.
    fn belong(&mut self) -> Result<(), ClientError> {
        let timeouts = self.plan.timeouts();
        let mut coordinator =
            Coordinator::open(&self.plan.bootstrap.0, &self.plan.group, timeouts)?;
        while !self.is_done() {
            let (membership, share) = self.enter(&mut coordinator)?;
            let end = self.take_part(&mut coordinator, &membership, share);
            self.following.live.moved(coordinator.take_traffic());
            match end? {
                End::Rebalance => self.paused_at = Some(Instant::now()),
                End::Away => {
                    self.leave(&mut coordinator)?;
                    self.absences += 1;
                    self.stay_away();
                }
                End::Done => break,
            }
        }
        Ok(())
    }

    /// Joins, decides who reads what if it is the leader, and learns what it is to read.
    fn enter(&mut self, coordinator: &mut Coordinator) -> Result<(Membership, Share), ClientError> {
        let (topic, assignor) = (&self.plan.topic, self.plan.settings.assignor);
        let (membership, decided) = loop {
            match coordinator.join(&self.id, assignor.name(), &topic.name, self.plan.timeouts())? {
                Joined::IdGiven(id) => self.id = id,
                Joined::Member(membership) => break (membership, Vec::new()),
                Joined::Leader {
                    membership,
                    members,
                } => break (membership, assignor.assign(members, topic.leaders.len())),
            }
        };
        self.id = membership.member_id.clone();
        let share = coordinator.sync(&membership, &topic.name, &decided)?;
        Ok((membership, share))
    }

    /// Reads its share for as long as the generation lasts, then commits where it stands.
    fn take_part(
        &mut self,
        coordinator: &mut Coordinator,
        membership: &Membership,
        share: Share,
    ) -> Result<End, ClientError> {
        let plans = self.positions(coordinator, &share)?;
        let paused_at = self.paused_at.take();
        if self.following.begun.get().is_some() {
            self.generations.insert(membership.generation);
            if let Some(since) = paused_at {
                self.pause.record_ns(since.elapsed().as_nanos() as u64);
            }
        }
        self.partitions = share.partitions.len();
        self.complete
            .store(share.members == self.plan.members, Relaxed);
        let revoked = AtomicBool::new(false);
        let (following, desk) = (&self.following, &self.desk);
        let mut attendance = Attendance {
            plan: &self.plan,
            following,
            desk,
            shared: &self.shared,
            commits: &mut self.commits,
            absences: self.absences,
            membership,
        };
        let (end, tails) = thread::scope(|scope| {
            let readers: Vec<_> = plans
                .into_iter()
                .map(|plan| {
                    let is_over = || revoked.load(Relaxed);
                    scope.spawn(move || tail(plan, following, desk, is_over))
                })
                .collect();
            let end = attendance.attend(coordinator);
            revoked.store(true, Relaxed);
            let tails: Vec<_> = readers
                .into_iter()
                .map(|reader| reader.join().expect("no reader panics"))
                .collect();
            (end, tails)
        });
        let end = end.and_then(|end| attendance.commit(coordinator).map(|()| end));
        tails.into_iter().for_each(|tail| self.read.merge(tail));
        end
    }

    /// Where the share is to be read from: where the group has come to, or else where the load begins.
    fn positions(
        &mut self,
        coordinator: &mut Coordinator,
        share: &Share,
    ) -> Result<Vec<ReadPlan>, ClientError> {
        let topic = &self.plan.topic;
        let known = |partition: &&usize| **partition < topic.leaders.len();
        let mine: Vec<usize> = share.partitions.iter().filter(known).copied().collect();
        let mut begins = BTreeMap::new();
        for (partition, committed) in coordinator.committed(&topic.name, &mine)? {
            let next_offset = committed.unwrap_or(self.plan.starts[partition]);
            self.desk.begin(partition, next_offset);
            begins.insert(partition, next_offset);
        }
        let mut plans = Vec::new();
        for (leader, partitions) in topic.partitions_by_leader() {
            let positions: Vec<_> = partitions
                .into_iter()
                .filter_map(|partition| {
                    Some(Position {
                        partition,
                        next_offset: *begins.get(&partition)?,
                        end_offset: i64::MAX,
                    })
                })
                .collect();
            if !positions.is_empty() {
                plans.push(ReadPlan {
                    topic: topic.name.clone(),
                    leader: leader.clone(),
                    positions,
                    limits: self.plan.limits,
                });
            }
        }
        self.commits.begin(begins);
        Ok(plans)
    }

    fn leave(&mut self, coordinator: &mut Coordinator) -> Result<(), ClientError> {
        let id = std::mem::take(&mut self.id);
        coordinator.leave(&id)
    }

    /// Whoever just vanished would keep the others waiting. What fails does not matter any more.
    fn leave_at_last(&mut self) {
        if self.id.is_empty() {
            return;
        }
        let timeouts = self.plan.timeouts();
        let opened = Coordinator::open(&self.plan.bootstrap.0, &self.plan.group, timeouts);
        let _left = opened.and_then(|mut coordinator| self.leave(&mut coordinator));
    }

    /// Until the others have noticed.
    fn stay_away(&self) {
        let until = Instant::now() + self.plan.settings.heartbeat_interval;
        while Instant::now() < until && !self.is_done() {
            sleep(TICK);
        }
    }
}

/// The group went on without the member.
fn is_exclusion(code: ErrorCode) -> bool {
    code == ErrorCode::UNKNOWN_MEMBER_ID || code == ErrorCode::ILLEGAL_GENERATION
}
