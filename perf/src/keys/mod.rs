//! Record keys: which there are, and in which order they come.
//!
//! Owns: the keys' bytes and how often each is drawn. Must never know: batches.

mod distributor;

pub use corelog::client::murmur2::partition_of;
pub use distributor::KeyDistributor;

use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// All keys have this length, so that a batch keeps its shape whatever the keys are.
pub const KEY_BYTES: usize = 10;

/// As in the OpenMessaging Benchmark.
pub const KEY_COUNT_DEFAULT: u32 = 10_000;
/// Every producer looks up the partition of each key before it starts.
pub const KEY_COUNT_MAX: u32 = 1_000_000;

/// The exponent that the Yahoo Cloud Serving Benchmark made usual.
pub const ZIPF_EXPONENT_DEFAULT: f64 = 0.99;

/// The keys of a load, the same for all its producers.
#[derive(Clone, Debug)]
pub struct Keys {
    distributor: KeyDistributor,
    count: u32,
    /// Of zipf: with which share of all records come this key and those before it.
    cumulative: Vec<f64>,
}

impl Keys {
    /// None for `NoKey`. `count` is at least 1.
    pub fn new(distributor: KeyDistributor, count: u32, zipf_exponent: f64) -> Option<Self> {
        assert!(count > 0, "a keyed record needs a key");
        let cumulative = match distributor {
            KeyDistributor::NoKey => return None,
            KeyDistributor::Zipf => zipf(count, zipf_exponent),
            KeyDistributor::KeyRoundRobin | KeyDistributor::Uniform => Vec::new(),
        };
        Some(Self {
            distributor,
            count,
            cumulative,
        })
    }

    pub fn bytes(&self, key: u32) -> [u8; KEY_BYTES] {
        let mut bytes = *b"key0000000";
        let mut rest = key;
        for digit in bytes[3..].iter_mut().rev() {
            *digit += (rest % 10) as u8;
            rest /= 10;
        }
        bytes
    }

    pub fn count(&self) -> u32 {
        self.count
    }
}

fn zipf(count: u32, exponent: f64) -> Vec<f64> {
    let mut sum = 0.0;
    let mut cumulative: Vec<f64> = (1..=count)
        .map(|rank| {
            sum += f64::from(rank).powf(-exponent);
            sum
        })
        .collect();
    cumulative.iter_mut().for_each(|share| *share /= sum);
    cumulative
}

/// One producer's keys, in the order of its records.
pub struct KeySequence {
    keys: Arc<Keys>,
    random: SmallRng,
    next: u32,
}

impl KeySequence {
    pub fn new(keys: Arc<Keys>, seed: u64) -> Self {
        Self {
            keys,
            random: SmallRng::seed_from_u64(seed),
            next: 0,
        }
    }

    /// The number of the next record's key.
    pub fn draw(&mut self) -> u32 {
        let count = self.keys.count;
        match self.keys.distributor {
            KeyDistributor::Uniform => self.random.random_range(0..count),
            KeyDistributor::Zipf => {
                let share: f64 = self.random.random();
                let key = self.keys.cumulative.partition_point(|upto| *upto <= share);
                (key as u32).min(count - 1)
            }
            KeyDistributor::KeyRoundRobin | KeyDistributor::NoKey => {
                let key = self.next;
                self.next = (key + 1) % count;
                key
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(distributor: KeyDistributor, count: u32, draws: usize) -> Vec<usize> {
        let keys = Keys::new(distributor, count, 1.0).expect("it has keys");
        let mut sequence = KeySequence::new(Arc::new(keys), 7);
        let mut counts = vec![0; count as usize];
        (0..draws).for_each(|_| counts[sequence.draw() as usize] += 1);
        counts
    }

    #[test]
    fn every_key_has_bytes_of_its_own() {
        let keys = Keys::new(KeyDistributor::Uniform, 5, 1.0).unwrap();
        assert_eq!(&keys.bytes(42), b"key0000042");
        assert_eq!(&keys.bytes(KEY_COUNT_MAX - 1), b"key0999999");
    }

    #[test]
    fn round_robin_draws_every_key_equally_often() {
        assert_eq!(drawn(KeyDistributor::KeyRoundRobin, 4, 40), [10; 4]);
    }

    #[test]
    fn uniform_draws_every_key_about_equally_often() {
        let counts = drawn(KeyDistributor::Uniform, 10, 10_000);
        assert!(
            counts.iter().all(|count| (800..1200).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn zipf_draws_the_first_key_twice_as_often_as_the_second() {
        let counts = drawn(KeyDistributor::Zipf, 100, 100_000);
        let ratio = counts[0] as f64 / counts[1] as f64;
        assert!((1.8..2.2).contains(&ratio), "{ratio}");
        assert!(counts[0] > 10 * counts[50]);
    }
}
