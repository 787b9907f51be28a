//! The bytes of replies: those that exist and are not sent yet, and those that a request under way may bring. They are counted before
//! anything is read for them; at a bound a connection is not served.
//!
//! A fetch is granted how much it may bring, never more than there is room for, so that many of them get less each in place of
//! waiting for each other. What any other reply takes is known when it exists. Where it depends on what the broker holds, and not on the
//! request, a guess counts until then, and a connection has one such request under way.
//!
//! A connection holds at most as much as it leaves free. So `n` greedy ones take the `n + 1`th part of the shard's bytes each, and as
//! much is left to everyone else: it takes hundreds of them to make the others wait.

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;

use crate::io::event::Event;
use crate::model::limits::{
    REPLY_BYTES_PER_CONNECTION_MAX, REPLY_BYTES_PER_SHARD_MAX, REPLY_GRANT_BYTES_MIN,
};

/// A grant leaves the other connections of the shard this many times as much.
const GRANTS_OF_WHAT_IS_LEFT: usize = 4;

/// What decides how large a reply is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplySize {
    /// The request: a few bytes for each thing that it names.
    OfRequest,
    /// What the broker holds, such as all topics or all offsets of a group.
    OfState,
    /// The grant that the request gets when it is dispatched.
    OfGrant,
}

/// The replies of all connections of a shard.
#[derive(Clone, Debug)]
pub struct ShardReplies {
    account: Rc<Account>,
    connection_bytes_max: usize,
    shard_bytes_max: usize,
}

impl Default for ShardReplies {
    fn default() -> Self {
        Self::with_limits(REPLY_BYTES_PER_CONNECTION_MAX, REPLY_BYTES_PER_SHARD_MAX)
    }
}

/// One connection's replies. A clone is the same budget.
#[derive(Clone, Debug)]
pub struct ReplyBudget {
    own: Rc<Account>,
    shard: ShardReplies,
}

#[derive(Debug, Default)]
struct Account {
    bytes: Cell<usize>,
    /// A request whose reply is `OfState` is under way.
    makes_reply_of_state: Cell<bool>,
    released: Event,
}

impl ShardReplies {
    pub fn with_limits(connection_bytes_max: usize, shard_bytes_max: usize) -> Self {
        Self {
            account: Rc::default(),
            connection_bytes_max,
            shard_bytes_max,
        }
    }

    pub fn connection(&self) -> ReplyBudget {
        ReplyBudget {
            own: Rc::default(),
            shard: self.clone(),
        }
    }

    pub fn used_bytes(&self) -> usize {
        self.account.bytes.get()
    }

    /// Whether connections wait for others to take their replies, or would.
    pub fn is_full(&self) -> bool {
        self.used_bytes() > 0 && self.free_bytes() < REPLY_GRANT_BYTES_MIN
    }

    fn free_bytes(&self) -> usize {
        self.shard_bytes_max.saturating_sub(self.used_bytes())
    }
}

impl ReplyBudget {
    /// Bytes of this connection's replies.
    pub fn used_bytes(&self) -> usize {
        self.own.bytes.get()
    }

    /// What to wait for before a request with such a reply may be dispatched; look again then. `None`: nothing.
    pub fn lack(&self, size: ReplySize) -> Option<impl Future<Output = ()> + use<>> {
        let (own_bytes, shard) = (self.used_bytes(), &self.shard);
        let is_own_lack = match size {
            ReplySize::OfRequest => own_bytes >= shard.connection_bytes_max,
            ReplySize::OfState if self.own.makes_reply_of_state.get() => true,
            ReplySize::OfState | ReplySize::OfGrant => {
                own_bytes > 0 && own_bytes + REPLY_GRANT_BYTES_MIN > shard.connection_bytes_max
            }
        };
        if is_own_lack {
            return Some(self.own.released.wait());
        }
        let is_shard_lack = match size {
            // Others' replies do not keep a request from being served whose own is small.
            ReplySize::OfRequest => false,
            ReplySize::OfState | ReplySize::OfGrant => {
                shard.is_full()
                    || own_bytes > 0 && own_bytes + 2 * REPLY_GRANT_BYTES_MIN > shard.free_bytes()
            }
        };
        is_shard_lack.then(|| shard.account.released.wait())
    }

    /// The place of the reply to a request that is being dispatched.
    pub fn hold(&self, size: ReplySize) -> HeldReply {
        let mut held = HeldReply {
            budget: self.clone(),
            bytes: 0,
            is_of_state: size == ReplySize::OfState,
        };
        if held.is_of_state {
            self.own.makes_reply_of_state.set(true);
            held.count(REPLY_GRANT_BYTES_MIN);
        }
        held
    }
}

/// Counts until it is dropped, which is after the reply was sent.
#[derive(Debug)]
pub struct HeldReply {
    budget: ReplyBudget,
    bytes: usize,
    is_of_state: bool,
}

impl HeldReply {
    /// How much of `asked_bytes` may be read. `None`: nothing now, since other connections of the shard have not taken their
    /// replies. What was granted before is given back first.
    ///
    /// The connection's own bound is looked at when the request is dispatched. The first of its requests must be answered
    /// whatever those after it hold, since nothing of them is sent before.
    pub fn grant(&mut self, asked_bytes: usize) -> Option<usize> {
        self.count(0);
        let ReplyBudget { own, shard } = &self.budget;
        if shard.is_full() {
            return None;
        }
        let share_bytes = match shard.used_bytes() {
            // Alone as well, since its client may be slow: whoever comes meanwhile has the other half.
            0 => shard.shard_bytes_max / 2,
            _ => shard.free_bytes() / GRANTS_OF_WHAT_IS_LEFT,
        };
        let own_bytes = match own.bytes.get() {
            0 => share_bytes,
            used => share_bytes
                .min(shard.connection_bytes_max.saturating_sub(used))
                .min(shard.free_bytes().saturating_sub(used) / 2),
        };
        let granted_bytes = asked_bytes.min(own_bytes.max(REPLY_GRANT_BYTES_MIN));
        // The first batch comes whole, however little was asked for.
        self.count(granted_bytes.max(REPLY_GRANT_BYTES_MIN));
        Some(granted_bytes)
    }

    /// What the reply really takes, now that this is known.
    pub fn settle(&mut self, bytes: usize) {
        if std::mem::take(&mut self.is_of_state) {
            self.budget.own.makes_reply_of_state.set(false);
            self.budget.own.released.notify();
        }
        self.count(bytes);
    }

    fn count(&mut self, bytes: usize) {
        let before = std::mem::replace(&mut self.bytes, bytes);
        let ReplyBudget { own, shard } = &self.budget;
        for account in [own, &shard.account] {
            account.bytes.set(account.bytes.get() - before + bytes);
            if bytes < before {
                account.released.notify();
            }
        }
    }
}

impl Drop for HeldReply {
    fn drop(&mut self) {
        self.settle(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_lite::future::{block_on, poll_once};

    const MIB: usize = 1024 * 1024;

    /// 8 MiB for a connection, 32 MiB for the shard.
    fn shard() -> ShardReplies {
        ShardReplies::with_limits(8 * MIB, 32 * MIB)
    }

    fn is_admitted(budget: &ReplyBudget, size: ReplySize) -> bool {
        budget.lack(size).is_none()
    }

    /// A fetch of 50 MiB that has brought all that it was granted; `None` where it is not dispatched.
    fn fetch(budget: &ReplyBudget) -> Option<HeldReply> {
        budget.lack(ReplySize::OfGrant).is_none().then(|| {
            let mut held = budget.hold(ReplySize::OfGrant);
            let granted_bytes = held.grant(50 * MIB).expect("it was admitted");
            held.settle(granted_bytes);
            held
        })
    }

    #[test]
    fn pipelined_fetches_of_one_connection_stay_within_its_bound_but_for_a_first_that_is_larger() {
        let shard = shard();
        let budget = shard.connection();
        let large = fetch(&budget).expect("one alone");
        assert_eq!(
            shard.used_bytes(),
            16 * MIB,
            "half of what all have together"
        );
        assert!(
            fetch(&shard.connection()).is_some(),
            "others are served meanwhile"
        );
        assert!(fetch(&budget).is_none());
        drop(large);
        let _other = shard.connection().hold(ReplySize::OfState);
        let mut held: Vec<HeldReply> = Vec::new();
        while let Some(next) = fetch(&budget) {
            held.push(next);
            assert!(held.len() <= 1024, "nothing stops it");
        }
        assert!(budget.own.bytes.get() <= 8 * MIB, "{}", held.len());
        let mut lack = Box::pin(budget.lack(ReplySize::OfGrant).expect("a wait"));
        assert_eq!(block_on(poll_once(&mut lack)), None);
        held.remove(0);
        assert_eq!(block_on(poll_once(&mut lack)), Some(()));
    }

    #[test]
    fn many_connections_get_less_each_and_never_more_than_the_shard_has() {
        let shard = shard();
        let small = shard.connection().hold(ReplySize::OfState);
        let budgets: Vec<_> = (0..100).map(|_| shard.connection()).collect();
        let held: Vec<_> = budgets.iter().map_while(fetch).collect();
        assert!(held.len() >= 10, "{}", held.len());
        assert!(shard.used_bytes() <= 32 * MIB && shard.is_full());
        drop((small, held));
        assert_eq!(shard.used_bytes(), 0);
    }

    #[test]
    fn greedy_connections_leave_as_much_free_as_each_of_them_takes() {
        let shard = shard();
        let greedy: Vec<_> = (0..7).map(|_| shard.connection()).collect();
        let mut held: Vec<_> = greedy
            .iter()
            .map(|it| it.hold(ReplySize::OfState))
            .collect();
        held.iter_mut().for_each(|it| it.settle(1));
        let mut rounds = 0;
        while let Some(next) = greedy.iter().find_map(fetch) {
            held.push(next);
            rounds += 1;
            assert!(rounds < 1000, "nothing stops them");
        }
        assert!(!shard.is_full(), "{} are free", shard.free_bytes());
        assert!(
            fetch(&shard.connection()).is_some(),
            "a modest one is served"
        );
    }

    #[test]
    fn at_the_bound_of_the_shard_requests_with_small_replies_are_served_and_others_wait() {
        let shard = shard();
        let (greedy, other) = (shard.connection(), shard.connection());
        let mut held = greedy.hold(ReplySize::OfGrant);
        held.settle(32 * MIB);
        assert!(is_admitted(&other, ReplySize::OfRequest));
        assert!(!is_admitted(&greedy, ReplySize::OfRequest));
        assert!(!is_admitted(&other, ReplySize::OfState));
        assert!(!is_admitted(&other, ReplySize::OfGrant));
        let mut waiting = other.hold(ReplySize::OfGrant);
        assert_eq!(waiting.grant(MIB), None);
        let mut lack = Box::pin(other.lack(ReplySize::OfGrant).expect("a wait"));
        assert_eq!(block_on(poll_once(&mut lack)), None);
        held.settle(31 * MIB);
        assert_eq!(block_on(poll_once(&mut lack)), Some(()));
        assert_eq!(waiting.grant(5), Some(5));
        assert_eq!(shard.used_bytes(), 32 * MIB, "a first batch comes whole");
    }

    #[test]
    fn a_connection_makes_one_reply_of_unknown_size_at_a_time() {
        let shard = shard();
        let budget = shard.connection();
        let mut held = budget.hold(ReplySize::OfState);
        assert!(!is_admitted(&budget, ReplySize::OfState));
        assert!(is_admitted(&budget, ReplySize::OfRequest));
        held.settle(10);
        assert!(is_admitted(&budget, ReplySize::OfState));
        held.settle(9 * MIB);
        for size in [ReplySize::OfRequest, ReplySize::OfState, ReplySize::OfGrant] {
            assert!(
                !is_admitted(&budget, size),
                "{size:?}: the reply is not sent"
            );
        }
        drop(budget.hold(ReplySize::OfRequest));
        drop(held);
        assert!(is_admitted(&budget, ReplySize::OfGrant));
        assert_eq!(shard.used_bytes(), 0);
    }

    #[test]
    fn a_long_poll_that_waits_holds_nothing_and_is_granted_anew_whatever_follows_it() {
        let shard = shard();
        let budget = shard.connection();
        let mut first = budget.hold(ReplySize::OfGrant);
        first.grant(50 * MIB).unwrap();
        first.settle(0);
        let _later: Vec<_> = std::iter::from_fn(|| fetch(&budget)).collect();
        assert!(!is_admitted(&budget, ReplySize::OfGrant));
        let mut other = shard.connection().hold(ReplySize::OfGrant);
        other.settle(16 * MIB);
        // The shard is full, and the poll is to be answered with nothing.
        assert_eq!(first.grant(50 * MIB), None);
        drop(other);
        drop(_later);
        let _later = {
            let _other = shard.connection().hold(ReplySize::OfState);
            std::iter::from_fn(|| fetch(&budget)).collect::<Vec<_>>()
        };
        assert!(first.grant(50 * MIB) >= Some(REPLY_GRANT_BYTES_MIN));
    }
}
