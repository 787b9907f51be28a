use std::collections::BTreeMap;
use std::sync::Arc;

use super::answer::GroupError;
use super::id::{InstanceId, MemberId};
use super::member::{Member, Protocols};

/// The members of one group: who leads, who is static, who waits, which protocols all of them have.
#[derive(Debug)]
pub struct Members<T> {
    by_id: BTreeMap<MemberId, Member<T>>,
    statics: BTreeMap<InstanceId, MemberId>,
    leader: Option<MemberId>,
    joining_count: usize,
    /// How many members have each protocol.
    having: BTreeMap<Arc<str>, usize>,
    bytes: usize,
}

impl<T> Default for Members<T> {
    fn default() -> Self {
        Self {
            by_id: BTreeMap::new(),
            statics: BTreeMap::new(),
            leader: None,
            joining_count: 0,
            having: BTreeMap::new(),
            bytes: 0,
        }
    }
}

impl<T> Members<T> {
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn contains(&self, id: &MemberId) -> bool {
        self.by_id.contains_key(id)
    }

    pub fn get(&self, id: &MemberId) -> Option<&Member<T>> {
        self.by_id.get(id)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Member<T>> {
        self.by_id.values()
    }

    pub fn ids(&self) -> Vec<MemberId> {
        self.by_id.keys().cloned().collect()
    }

    pub fn leader(&self) -> Option<&MemberId> {
        self.leader.as_ref()
    }

    pub fn is_leader(&self, id: &MemberId) -> bool {
        self.leader.as_ref() == Some(id)
    }

    /// Who bears the instance id now.
    pub fn with_instance(&self, instance: &InstanceId) -> Option<&MemberId> {
        self.statics.get(instance)
    }

    pub fn joining_count(&self) -> usize {
        self.joining_count
    }

    pub fn all_are_joining(&self) -> bool {
        self.joining_count == self.by_id.len()
    }

    /// Whether the request comes from a member as it is now: known, and with an instance id that nobody has taken over.
    pub fn check(&self, id: &MemberId, instance: Option<&InstanceId>) -> Result<(), GroupError> {
        if let Some(instance) = instance {
            match self.statics.get(instance) {
                None => return Err(GroupError::UnknownMember),
                Some(current) if current != id => return Err(GroupError::FencedInstance),
                Some(_) => {}
            }
        }
        match self.contains(id) {
            true => Ok(()),
            false => Err(GroupError::UnknownMember),
        }
    }

    /// The first to come leads.
    pub fn insert(&mut self, member: Member<T>) {
        debug_assert!(!self.contains(&member.id));
        if self.leader.is_none() {
            self.leader = Some(member.id.clone());
        }
        if let Some(instance) = &member.instance {
            self.statics.insert(instance.clone(), member.id.clone());
        }
        self.count_in(&member);
        self.by_id.insert(member.id.clone(), member);
    }

    /// Another leads where the leader goes; a rebalance chooses among those who take part.
    pub fn remove(&mut self, id: &MemberId) -> Option<Member<T>> {
        let member = self.by_id.remove(id)?;
        self.count_out(&member);
        if let Some(instance) = &member.instance {
            self.statics.remove(instance);
        }
        if self.is_leader(id) {
            self.leader = self.by_id.keys().next().cloned();
        }
        Some(member)
    }

    /// Lets `change` change a member. What it changes is counted anew.
    pub fn update<R>(
        &mut self,
        id: &MemberId,
        change: impl FnOnce(&mut Member<T>) -> R,
    ) -> Option<R> {
        let mut member = self.by_id.remove(id)?;
        self.count_out(&member);
        let result = change(&mut member);
        debug_assert_eq!(member.id, *id);
        self.count_in(&member);
        self.by_id.insert(member.id.clone(), member);
        Some(result)
    }

    /// The session of a member, which changes often and counts for nothing else.
    pub fn session_mut(&mut self, id: &MemberId) -> Option<&mut Member<T>> {
        self.by_id.get_mut(id)
    }

    /// The bearer of an instance id goes on under another member id, as leader too if it was.
    pub fn rename(&mut self, old: &MemberId, new: MemberId) {
        let Some(mut member) = self.by_id.remove(old) else {
            return;
        };
        if let Some(instance) = &member.instance {
            self.statics.insert(instance.clone(), new.clone());
        }
        if self.is_leader(old) {
            self.leader = Some(new.clone());
        }
        self.bytes -= member.bytes();
        member.id = new.clone();
        self.bytes += member.bytes();
        self.by_id.insert(new, member);
    }

    pub fn set_leader(&mut self, id: &MemberId) {
        debug_assert!(self.contains(id));
        self.leader = Some(id.clone());
    }

    /// A leader that takes part in the rebalance: the one it is, or else the first who does.
    pub fn elect_joined_leader(&mut self) -> bool {
        let leader = self.leader.as_ref().and_then(|leader| self.get(leader));
        if leader.is_some_and(|leader| leader.joining.is_some()) {
            return true;
        }
        let joined = self.iter().find(|member| member.joining.is_some());
        let joined = joined.map(|member| member.id.clone());
        let found = joined.is_some();
        self.leader = joined.or(self.leader.take());
        found
    }

    /// The longest that any member may take to rejoin.
    pub fn rebalance_timeout_ms(&self) -> i32 {
        let timeouts = self.iter().map(|member| member.rebalance_timeout_ms);
        timeouts.max().unwrap_or(0)
    }

    /// Whether all members have one of these.
    pub fn all_have_any<'a>(&self, mut names: impl Iterator<Item = &'a str>) -> bool {
        names.any(|name| self.having.get(name) == Some(&self.by_id.len()))
    }

    /// Every member votes for the first of its protocols that all of them have. Where two have as many votes, the leader's wish
    /// decides.
    pub fn choose_protocol(&self) -> Option<Arc<str>> {
        let all = self.by_id.len();
        let by_all = |name: &&Arc<str>| self.having.get(*name) == Some(&all);
        let mut votes: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
        for member in self.iter() {
            if let Some(vote) = member.protocols.names().find(by_all) {
                *votes.entry(vote).or_default() += 1;
            }
        }
        let most = votes.values().max()?;
        let leader = self.get(self.leader()?)?;
        let mut wishes = leader.protocols.names();
        let chosen = wishes.find(|name| votes.get(*name) == Some(most));
        chosen.cloned()
    }

    fn count_in(&mut self, member: &Member<T>) {
        self.bytes += member.bytes();
        self.joining_count += usize::from(member.joining.is_some());
        for name in distinct(&member.protocols) {
            *self.having.entry(name).or_default() += 1;
        }
    }

    fn count_out(&mut self, member: &Member<T>) {
        self.bytes -= member.bytes();
        self.joining_count -= usize::from(member.joining.is_some());
        for name in distinct(&member.protocols) {
            let count = self.having.get_mut(&name).expect("it was counted in");
            *count -= 1;
            if *count == 0 {
                self.having.remove(&name);
            }
        }
    }
}

/// A client may name a protocol twice; it has it once.
fn distinct(protocols: &Protocols) -> std::collections::BTreeSet<Arc<str>> {
    protocols.names().cloned().collect()
}
