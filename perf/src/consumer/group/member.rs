//! One member of a group: joins, reads what it is assigned, commits what it was handed, and joins again when the group changes.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use super::{Handed, MemberPlan, Seen, Shared};
use crate::client::coordinator::{Coordinator, Joined, Membership, Share};
use crate::client::error::{ClientError, ErrorCode};
use crate::consumer::reader::{Position, ReadPlan};
use crate::consumer::tail::{Following, Handover, TailResult, tail};
use crate::histogram::LatencyHistogram;

/// How often a member looks whether something is due.
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

/// Why a member stopped reading.
enum End {
    /// The group changes.
    Rebalance,
    /// It is its turn to be away for a while.
    Away,
    Done,
}

/// What the member's readers hand in.
struct Desk {
    /// Of this group, by all members of this process.
    seen: Arc<Seen>,
    /// Where the next record of each partition is that this member is to be handed.
    next: Vec<AtomicI64>,
    handed: Mutex<Handed>,
    moved: Condvar,
}

impl Handover for Desk {
    fn first_new(&self, partition: usize, first: i64) -> i64 {
        first.max(self.seen.0[partition].load(Relaxed))
    }

    fn handed(&self, partition: usize, offsets: Range<i64>) {
        self.seen.0[partition].fetch_max(offsets.end, Relaxed);
        let mut handed = self.handed.lock().expect("no reader panics");
        self.next[partition].store(offsets.end, Relaxed);
        handed.add(partition, offsets);
        self.moved.notify_one();
    }
}

/// What was committed, and how it went.
struct Commits {
    /// Under the present membership.
    last: BTreeMap<usize, i64>,
    due: Instant,
    count: u64,
    latency: LatencyHistogram,
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
            desk: Desk {
                seen,
                next: plan.starts.iter().map(|start| (*start).into()).collect(),
                handed: Mutex::new(Handed::default()),
                moved: Condvar::new(),
            },
            commits: Commits {
                last: BTreeMap::new(),
                due: Instant::now(),
                count: 0,
                latency: LatencyHistogram::new(),
            },
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
        let Desk { handed, .. } = self.desk;
        MemberResult {
            group: self.plan.group,
            topic_place: self.plan.topic_place,
            read: self.read,
            handed: handed.into_inner().expect("no reader panics"),
            generations: self.generations,
            pause: self.pause,
            commits: self.commits.count,
            commit_latency: self.commits.latency,
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
        self.commits.last.clear();
        for (partition, committed) in coordinator.committed(&topic.name, &mine)? {
            let next_offset = committed.unwrap_or(self.plan.starts[partition]);
            self.desk.next[partition].store(next_offset, Relaxed);
            self.commits.last.insert(partition, next_offset);
        }
        let mut plans = Vec::new();
        for (leader, partitions) in topic.partitions_by_leader() {
            let positions: Vec<_> = partitions
                .into_iter()
                .filter_map(|partition| {
                    Some(Position {
                        partition,
                        next_offset: *self.commits.last.get(&partition)?,
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

/// A member in one generation, while its readers read.
struct Attendance<'a> {
    plan: &'a MemberPlan,
    following: &'a Following,
    desk: &'a Desk,
    shared: &'a Shared,
    commits: &'a mut Commits,
    absences: u32,
    membership: &'a Membership,
}

impl Attendance<'_> {
    /// Heartbeats and commits until something ends it.
    fn attend(&mut self, coordinator: &mut Coordinator) -> Result<End, ClientError> {
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
        let handed = self.desk.handed.lock().expect("no reader panics");
        if !self.plan.settings.commit_interval.is_zero() {
            drop(handed);
            sleep(TICK);
        } else if self.uncommitted().is_empty() {
            let _woken = self.desk.moved.wait_timeout(handed, TICK);
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
        last.map(|(partition, last)| (*partition, self.desk.next[*partition].load(Relaxed), last))
            .filter(|(_, next, last)| next != *last)
            .map(|(partition, next, _)| (partition, next))
            .collect()
    }

    /// Where it stands, if that has moved.
    fn commit(&mut self, coordinator: &mut Coordinator) -> Result<(), ClientError> {
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

/// The group went on without the member.
fn is_exclusion(code: ErrorCode) -> bool {
    code == ErrorCode::UNKNOWN_MEMBER_ID || code == ErrorCode::ILLEGAL_GENERATION
}

fn refusal(error: &ClientError) -> Option<ErrorCode> {
    match error {
        ClientError::Refused { code, .. } => Some(*code),
        _ => None,
    }
}
