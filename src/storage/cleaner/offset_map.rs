//! The latest offset of each key, in a memory that is bounded.

use std::hash::Hasher;

use siphasher::sip128::{Hash128, Hasher128, SipHasher13};

use crate::model::Offset;

/// Of a hundred slots at most this many are used, so that a search stays short (Kafka's `log.cleaner.io.buffer.load.factor`).
const LOAD_PERCENT_MAX: usize = 90;

/// A key is known by 128 bits of a keyed hash: two keys that have one would be taken for the same, and the older record lost. With
/// a secret drawn for each map nobody can choose such keys, and by chance they do not occur.
///
/// The hash, and the offset above 0: a slot of zeros is free, and memory of zeros costs nothing before it is used.
type Slot = [u64; 3];

const FREE: Slot = [0; 3];

/// What one key takes.
pub const SLOT_BYTES: usize = size_of::<Slot>();

/// Filled in the order of offsets, then asked. When it is full the cleaning ends at the last whole batch that went in, and what lies
/// behind waits for another pass.
pub struct OffsetMap {
    slots: Vec<Slot>,
    used: usize,
    used_max: usize,
    secret: (u64, u64),
    /// Records below it are judged by the map; the others stay.
    end: Offset,
}

impl OffsetMap {
    /// For `key_count` keys at most, and in no more than `bytes_max` of memory, but at least for one key.
    pub fn new(key_count: u64, bytes_max: usize, start: Offset) -> Self {
        let slots_max = (bytes_max / SLOT_BYTES).max(2);
        let wanted = key_count.saturating_mul(100) / LOAD_PERCENT_MAX as u64 + 2;
        let slots = usize::try_from(wanted).unwrap_or(usize::MAX).min(slots_max);
        Self {
            slots: vec![FREE; slots],
            used: 0,
            used_max: (slots * LOAD_PERCENT_MAX / 100).max(1),
            secret: uuid::Uuid::new_v4().as_u64_pair(),
            end: start,
        }
    }

    /// Notes that `key` is at `offset`, which is above every one before; false if there is no room for another key.
    #[must_use]
    pub fn put(&mut self, key: &[u8], offset: Offset) -> bool {
        let hash = self.hash(key);
        let at = self.find(hash);
        if self.slots[at] == FREE {
            if self.used == self.used_max {
                return false;
            }
            self.used += 1;
        }
        let above_zero = u64::try_from(offset.0).expect("an offset is not negative") + 1;
        self.slots[at] = [hash[0], hash[1], above_zero];
        true
    }

    /// The last offset at which `key` was put.
    pub fn latest(&self, key: &[u8]) -> Option<Offset> {
        let [_, _, above_zero] = self.slots[self.find(self.hash(key))];
        above_zero
            .checked_sub(1)
            .map(|offset| Offset(offset as i64))
    }

    /// Everything below `end` was put, as far as it has a key.
    pub fn advance(&mut self, end: Offset) {
        debug_assert!(end >= self.end, "a log is read forward");
        self.end = end;
    }

    /// Where the cleaning ends.
    pub fn end(&self) -> Offset {
        self.end
    }

    pub fn len(&self) -> usize {
        self.used
    }

    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Memory held.
    pub fn bytes(&self) -> usize {
        self.slots.len() * SLOT_BYTES
    }

    /// The slot of `hash`, or the free one where it would go.
    fn find(&self, hash: [u64; 2]) -> usize {
        // The first word spreads over the slots: multiplied, its high bits choose (and no division is needed).
        let mut at = ((u128::from(hash[0]) * self.slots.len() as u128) >> 64) as usize;
        loop {
            let slot = &self.slots[at];
            if *slot == FREE || slot[..2] == hash {
                return at;
            }
            at += 1;
            if at == self.slots.len() {
                at = 0;
            }
        }
    }

    fn hash(&self, key: &[u8]) -> [u64; 2] {
        let mut hasher = SipHasher13::new_with_keys(self.secret.0, self.secret.1);
        hasher.write(key);
        let Hash128 { h1, h2 } = hasher.finish128();
        [h1, h2]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn the_latest_offset_of_each_key_is_found_up_to_the_last_slot() {
        let mut map = OffsetMap::new(1_000, 1 << 20, Offset::ZERO);
        let mut model = HashMap::new();
        for n in 0..5_000i64 {
            let key = (n * n % 1_000).to_string();
            assert!(map.put(key.as_bytes(), Offset(n)));
            model.insert(key, Offset(n));
        }
        assert_eq!(map.len(), model.len());
        for n in 0..1_000 {
            let key = n.to_string();
            assert_eq!(
                map.latest(key.as_bytes()),
                model.get(&key).copied(),
                "{key}"
            );
        }
    }

    #[test]
    fn a_full_map_takes_known_keys_and_no_new_one() {
        let mut map = OffsetMap::new(u64::MAX, 20 * SLOT_BYTES, Offset::ZERO);
        assert_eq!(map.bytes(), 20 * SLOT_BYTES);
        for n in 0..18i64 {
            assert!(map.put(&n.to_be_bytes(), Offset(n)), "{n}");
        }
        assert!(!map.put(b"one more", Offset(18)));
        assert!(map.put(&3i64.to_be_bytes(), Offset(19)));
        assert_eq!(map.latest(b"one more"), None);
        assert_eq!(map.latest(&3i64.to_be_bytes()), Some(Offset(19)));
    }

    #[test]
    fn memory_follows_what_may_come_and_never_its_bound() {
        assert!(OffsetMap::new(10, 1 << 30, Offset::ZERO).bytes() < 20 * SLOT_BYTES);
        let mut smallest = OffsetMap::new(10, 0, Offset::ZERO);
        assert!(smallest.put(b"a", Offset(0)));
        assert!(!smallest.put(b"b", Offset(1)));
    }
}
