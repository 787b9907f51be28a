//! Which key each record gets, in the OpenMessaging Benchmark's words.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum KeyDistributor {
    /// None; full batches go to the partitions in turn
    #[value(name = "none")]
    NoKey,
    /// One key after the other
    #[value(name = "round-robin")]
    KeyRoundRobin,
    /// Every key equally often, in random order
    Uniform,
    /// Few keys very often: the hot key of real loads
    Zipf,
}

impl KeyDistributor {
    pub const NAMES: &'static str = "NO_KEY, KEY_ROUND_ROBIN, RANDOM_NANO, UNIFORM or ZIPF";

    pub fn name(self) -> &'static str {
        match self {
            Self::NoKey => "NO_KEY",
            Self::KeyRoundRobin => "KEY_ROUND_ROBIN",
            Self::Uniform => "UNIFORM",
            Self::Zipf => "ZIPF",
        }
    }

    /// The distributor under the name that a workload file has for it.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "NO_KEY" => Self::NoKey,
            "KEY_ROUND_ROBIN" => Self::KeyRoundRobin,
            // The clock's nanoseconds modulo the number of keys: as good as uniform.
            "RANDOM_NANO" | "UNIFORM" => Self::Uniform,
            "ZIPF" => Self::Zipf,
            _ => return None,
        })
    }
}
