use std::fmt;
use std::sync::{Mutex, PoisonError};

/// How far the process is. It goes down this list and never back up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Starting,
    /// Logs are being opened and, after an unclean stop, checked.
    Recovering {
        partitions_done: usize,
        partitions_all: usize,
    },
    /// Clients are served.
    Ready,
    /// No new connections; what was accepted is finished and flushed.
    Draining,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting => f.write_str("starting"),
            Self::Recovering {
                partitions_done,
                partitions_all,
            } => {
                write!(
                    f,
                    "recovering: {partitions_done} of {partitions_all} partitions"
                )
            }
            Self::Ready => f.write_str("ready"),
            Self::Draining => f.write_str("draining"),
        }
    }
}

/// Whether clients may be sent here. The broker writes it, `/readyz` tells it.
#[derive(Debug)]
pub struct Readiness(Mutex<Phase>);

impl Default for Readiness {
    fn default() -> Self {
        Self(Mutex::new(Phase::Starting))
    }
}

impl Readiness {
    /// Goes on to `phase`. An earlier phase than the present one is ignored: a late report of recovery must not make a
    /// draining broker look alive.
    pub fn advance(&self, phase: Phase) {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *now = phase.max(*now);
    }

    pub fn phase(&self) -> Phase {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draining_broker_never_becomes_ready_again() {
        let readiness = Readiness::default();
        assert_eq!(readiness.phase(), Phase::Starting);
        let half = Phase::Recovering {
            partitions_done: 5,
            partitions_all: 10,
        };
        readiness.advance(half);
        readiness.advance(Phase::Recovering {
            partitions_done: 4,
            partitions_all: 10,
        });
        assert_eq!(readiness.phase(), half);
        readiness.advance(Phase::Ready);
        readiness.advance(Phase::Draining);
        readiness.advance(Phase::Ready);
        readiness.advance(half);
        assert_eq!(readiness.phase(), Phase::Draining);
    }
}
