//! Consumers that share a topic as members of a group, by Kafka's classic protocol: each subscription is a group.
//!
//! Owns: the members of one crew, and what they were handed. Must never know: the other crews' members, other than through the
//! group's coordinator; what becomes of the records. Runs on: a thread for each member, which joins, commits and sends its
//! heartbeats, and one for each broker that leads partitions of the member.

mod assignor;
mod attendance;
mod desk;
mod handed;
mod member;
#[cfg(test)]
mod tests;

pub use assignor::Assignor;
pub use handed::{Consumption, Handed};
pub use member::MemberResult;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use self::member::Member;
use super::tail::{Begun, Following};
use crate::client::cluster::{BrokerAddress, Topic};
use crate::client::coordinator::JoinTimeouts;
use crate::client::error::ClientError;
use crate::client::fetch::FetchLimits;

/// How long the members of all groups may take to come together before the load.
const GATHER_TIMEOUT: Duration = Duration::from_secs(60);

const TICK: Duration = Duration::from_millis(10);

/// How the members of a group behave.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupSettings {
    pub assignor: Assignor,
    pub session_timeout: Duration,
    pub heartbeat_interval: Duration,
    /// How long the others wait for a member that is to join again.
    pub rebalance_timeout: Duration,
    /// Zero: after each fetch, as soon as the commit before is answered.
    pub commit_interval: Duration,
    /// So often one of a group's members leaves and comes back.
    pub rebalance_every: Option<Duration>,
}

/// One member of a group.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MemberPlan {
    pub group: String,
    /// Its place among the group's members, of all crews.
    pub number: u32,
    pub members: u32,
    /// The topic's place among the load's.
    pub topic_place: usize,
    pub topic: Topic,
    /// Where a partition is read from that has no committed offset.
    pub starts: Vec<i64>,
    pub bootstrap: BrokerAddress,
    pub limits: FetchLimits,
    pub settings: GroupSettings,
}

impl MemberPlan {
    fn timeouts(&self) -> JoinTimeouts {
        JoinTimeouts {
            session: self.settings.session_timeout,
            rebalance: self.settings.rebalance_timeout,
        }
    }
}

/// What the members of one crew know of each other.
struct Shared {
    /// Everybody leaves.
    done: AtomicBool,
    /// Why a member gave up before the load began.
    failure: Mutex<Option<ClientError>>,
}

/// How far a group has read each partition: behind the last offset that one of this process's members was handed.
struct Seen(Vec<AtomicI64>);

/// The members of one crew, from before the load until they leave.
pub struct Members {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<MemberResult>>,
    following: Following,
}

impl Members {
    /// Returns when each is in a generation that has all the members of its group, of other crews too.
    pub fn gather(plans: Vec<MemberPlan>, following: Following) -> Result<Self, ClientError> {
        let shared = Arc::new(Shared {
            done: AtomicBool::new(false),
            failure: Mutex::new(None),
        });
        let mut members = Self {
            shared: Arc::clone(&shared),
            threads: Vec::new(),
            following: following.clone(),
        };
        let mut seen: BTreeMap<String, Arc<Seen>> = BTreeMap::new();
        let mut groups = Vec::new();
        for plan in plans {
            let of_group = || Arc::new(Seen(plan.starts.iter().map(|_| 0.into()).collect()));
            let seen = Arc::clone(seen.entry(plan.group.clone()).or_insert_with(of_group));
            let group = plan.group.clone();
            let name = format!("member-{}", members.threads.len());
            let member = Member::new(plan, following.clone(), seen, Arc::clone(&shared));
            groups.push((group, member.is_complete()));
            let thread = thread::Builder::new()
                .name(name)
                .spawn(move || member.run())
                .expect("the system has room for a thread");
            members.threads.push(thread);
        }
        let deadline = Instant::now() + GATHER_TIMEOUT;
        loop {
            if let Some(error) = members.failure() {
                return Err(error);
            }
            let Some((group, _)) = groups.iter().find(|(_, complete)| !complete.load(Relaxed))
            else {
                return Ok(members);
            };
            if Instant::now() > deadline {
                return Err(ClientError::Group {
                    group: group.clone(),
                    reason: format!(
                        "did not get its members together within {} s",
                        GATHER_TIMEOUT.as_secs()
                    ),
                });
            }
            sleep(TICK);
        }
    }

    fn failure(&self) -> Option<ClientError> {
        let mut failure = self.shared.failure.lock().expect("no member panics");
        failure.take()
    }

    /// From now on what they do is measured.
    pub fn begin(&self, begun: Begun) {
        self.following
            .begun
            .set(begun)
            .expect("a load begins only once");
    }

    /// Returns when all have committed and left.
    pub fn leave(mut self) -> Vec<MemberResult> {
        self.shared.done.store(true, Relaxed);
        std::mem::take(&mut self.threads)
            .into_iter()
            .map(|thread| thread.join().expect("no member of a group panics"))
            .collect()
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        self.shared.done.store(true, Relaxed);
        for thread in std::mem::take(&mut self.threads) {
            drop(thread.join());
        }
    }
}
