//! What the threads of a load do at the moment, where that changes while it runs.

use serde::{Deserialize, Serialize};

/// A load without a backlog is `Steady` until it ends by its schedule.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum LoadStage {
    /// Producers send, consumers follow.
    #[default]
    Steady,
    /// Consumers pause, so that a backlog grows.
    Building,
    /// Consumers go on, far behind.
    Draining,
    /// Consumers have caught up.
    Drained,
    /// No record is due any more.
    Ending,
}

impl LoadStage {
    const ALL: [Self; 5] = [
        Self::Steady,
        Self::Building,
        Self::Draining,
        Self::Drained,
        Self::Ending,
    ];

    /// For an atomic.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// None: no stage has this code.
    pub fn of_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Steady => "steady",
            Self::Building => "building",
            Self::Draining => "draining",
            Self::Drained => "drained",
            Self::Ending => "ending",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_comes_back_from_its_code_and_another_code_is_none() {
        for stage in LoadStage::ALL {
            assert_eq!(LoadStage::of_code(stage.code()), Some(stage));
        }
        assert_eq!(LoadStage::of_code(5), None);
    }
}
