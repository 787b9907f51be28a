//! How far another machine's clock is from this one's.

/// One question and its answer.
#[derive(Clone, Copy, Debug)]
pub struct ClockExchange {
    /// On this machine's clock.
    pub asked_ns: u64,
    pub answered_ns: u64,
    /// On the other's, somewhere in between.
    pub theirs_ns: u64,
}

/// `theirs = ours + offset`, right to within the uncertainty whatever the two ways took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    pub offset_ns: i64,
    pub uncertainty_ns: u64,
}

impl ClockOffset {
    /// As NTP does it: the fastest of the exchanges leaves the least room, half of its time to either side.
    pub fn of(exchanges: &[ClockExchange]) -> Option<Self> {
        let took_ns = |it: &ClockExchange| it.answered_ns.saturating_sub(it.asked_ns);
        let fastest = exchanges.iter().min_by_key(|it| took_ns(it))?;
        let half_ns = took_ns(fastest).div_ceil(2);
        let middle_ns = fastest.asked_ns as i64 + half_ns as i64;
        Some(Self {
            offset_ns: fastest.theirs_ns as i64 - middle_ns,
            uncertainty_ns: half_ns,
        })
    }

    /// An instant of ours on their clock.
    pub fn theirs_ns(&self, ours_ns: u64) -> u64 {
        ours_ns.saturating_add_signed(self.offset_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn the_true_offset_lies_within_the_uncertainty_whichever_way_was_slow() {
        for seed in 0..100 {
            let mut random = SmallRng::seed_from_u64(seed);
            let true_offset_ns: i64 = random.random_range(-1_000_000_000..1_000_000_000);
            let exchanges: Vec<_> = (0..10)
                .map(|_| {
                    let asked_ns = random.random_range(2_000_000_000..3_000_000_000u64);
                    let there_ns = asked_ns + random.random_range(1_000..900_000);
                    ClockExchange {
                        asked_ns,
                        answered_ns: there_ns + random.random_range(1_000..900_000),
                        theirs_ns: there_ns.saturating_add_signed(true_offset_ns),
                    }
                })
                .collect();
            let measured = ClockOffset::of(&exchanges).expect("there are exchanges");
            let error_ns = measured.offset_ns.abs_diff(true_offset_ns);
            assert!(
                error_ns <= measured.uncertainty_ns,
                "seed {seed}: {error_ns} ns, {measured:?}"
            );
        }
    }

    #[test]
    fn the_fastest_exchange_decides() {
        let exchange = |took_ns: u64, theirs_ns| ClockExchange {
            asked_ns: 1000,
            answered_ns: 1000 + took_ns,
            theirs_ns,
        };
        let measured = ClockOffset::of(&[exchange(900, 9000), exchange(100, 5050)]);
        let expected = ClockOffset {
            offset_ns: 4000,
            uncertainty_ns: 50,
        };
        assert_eq!(measured, Some(expected));
        assert_eq!(expected.theirs_ns(1), 4001);
        assert_eq!(ClockOffset::of(&[]), None);
    }
}
