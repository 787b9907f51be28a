//! Searches in simulated systems.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::offer::{LatencyBound, Quantile};

/// A search that makes more steps than this does not end.
const STEPS_MAX: u32 = 2 + TRIES_MAX + CONFIRMATIONS_MAX * (1 + REPEATS_MAX);

/// Runs a search; `system` tells what confirmed rate a step had and whether it held.
fn search(
    start_per_s: Option<u64>,
    mut system: impl FnMut(Trial) -> Outcome,
) -> (Finding, Vec<Trial>) {
    let (mut search, first) = RateSearch::new(RateUnit::BytesPerS, start_per_s);
    let mut trials = vec![first];
    let mut next = Some(first);
    while let Some(trial) = next {
        assert_eq!(search.finding(), None);
        next = search.next(&system(trial));
        trials.extend(next);
        assert!(trials.len() as u32 <= STEPS_MAX, "{trials:?}");
    }
    let finding = search.finding().expect("the search has ended").clone();
    (finding, trials)
}

fn per_s(rate: Rate) -> u64 {
    match rate {
        Rate::Bytes(per_s) => per_s,
        rate => panic!("{rate} is not in the search's unit"),
    }
}

fn too_slow() -> Miss {
    Miss::Latency {
        bound: LatencyBound {
            quantile: Quantile::P99,
            latency_max: Duration::from_millis(10),
        },
        got_ms: 20.0,
    }
}

/// Confirms up to `capacity`, and holds up to `limit`, which `noise` moves from step to step.
fn system(
    capacity: u64,
    limit: f64,
    mut noise: impl FnMut() -> f64,
) -> impl FnMut(Trial) -> Outcome {
    move |trial| match trial {
        Trial::ClosedLoop => Outcome {
            acked_per_s: capacity as f64 * noise(),
            miss: None,
        },
        Trial::Try(rate) | Trial::Confirm(rate) => Outcome {
            acked_per_s: per_s(rate).min(capacity) as f64,
            miss: (per_s(rate) as f64 > limit * noise()).then(too_slow),
        },
    }
}

fn found(finding: &Finding) -> (u64, Option<u64>) {
    match finding {
        Finding::Found { rate, not_held } => (per_s(*rate), not_held.map(per_s)),
        Finding::NotFound { reason } => panic!("{reason}"),
    }
}

#[test]
fn the_found_rate_is_confirmed_and_within_the_gap_below_the_limit() {
    // From far below the closed loop's rate to above it, which an open loop may reach.
    for limit in [0.02, 0.1, 0.3, 0.49, 0.5, 0.51, 0.74, 0.9, 1.0, 1.3, 2.0] {
        let limit = 400e6 * limit;
        let (finding, trials) = search(None, system(400_000_000, limit, || 1.0));
        let (rate, not_held) = found(&finding);
        let last = trials.last().expect("there are trials");
        assert_eq!(*last, Trial::Confirm(Rate::Bytes(rate)));
        assert!(rate as f64 <= limit, "{rate} of {limit}");
        assert!(
            rate as f64 * (1.0 + WITHIN_SHARE) >= limit,
            "{rate} of {limit}"
        );
        assert!(not_held.expect("a higher rate did not hold") as f64 > limit);
    }
}

#[test]
fn a_search_from_a_given_rate_asks_no_closed_loop() {
    for start in [1_000_000, 90_000_000, 300_000_000] {
        let (finding, trials) = search(Some(start), system(400_000_000, 100e6, || 1.0));
        assert_eq!(trials[0], Trial::Try(Rate::Bytes(start)));
        assert!(!trials.contains(&Trial::ClosedLoop));
        let (rate, _) = found(&finding);
        assert!((95e6..=100e6).contains(&(rate as f64)), "{rate}");
    }
}

#[test]
fn a_system_that_never_holds_ends_the_search_with_the_reason() {
    let (never, _) = search(None, system(400_000_000, 0.0, || 1.0));
    let Finding::NotFound { reason } = never else {
        panic!("{never:?}")
    };
    assert!(reason.contains("p99 was 20.0 ms"), "{reason}");
    assert!(reason.contains("not even"), "{reason}");
}

#[test]
fn a_system_that_confirms_nothing_ends_the_search_at_once() {
    let (finding, trials) = search(None, system(0, 0.0, || 1.0));
    assert!(matches!(finding, Finding::NotFound { .. }));
    assert_eq!(trials, [Trial::ClosedLoop]);
}

#[test]
fn a_system_that_holds_everything_ends_the_search_without_an_upper_bound() {
    let (finding, _) = search(None, system(1000, f64::INFINITY, || 1.0));
    assert_eq!(found(&finding).1, None);
}

#[test]
fn noise_neither_keeps_a_search_from_ending_nor_lets_an_unconfirmed_rate_through() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    for _ in 0..2_000 {
        let limit = 400e6 * random.random_range(0.05..1.2);
        let mut last_confirmed = None;
        let noise = || random.random_range(0.9..1.1);
        let mut of_system = system(400_000_000, limit, noise);
        let (finding, _) = search(None, |trial| {
            let outcome = of_system(trial);
            if matches!(trial, Trial::Confirm(_)) {
                last_confirmed = outcome.miss.is_none().then(|| trial.rate());
            }
            outcome
        });
        if let Finding::Found { rate, .. } = finding {
            assert_eq!(last_confirmed, Some(rate));
            let share = per_s(rate) as f64 / limit;
            // Each try may be wrong by the noise, and the gap comes on top.
            assert!((0.8..1.1).contains(&share), "{share} of {limit}");
        }
    }
}

#[test]
fn a_confirmation_that_fails_is_made_at_a_little_less() {
    let mut of_system = system(400_000_000, 100e6, || 1.0);
    let (finding, trials) = search(None, |trial| match trial {
        Trial::Confirm(rate) if per_s(rate) > 96_000_000 => Outcome {
            acked_per_s: 1.0,
            miss: Some(too_slow()),
        },
        trial => of_system(trial),
    });
    let (rate, not_held) = found(&finding);
    let confirmations = trials
        .iter()
        .filter(|trial| matches!(trial, Trial::Confirm(_)));
    assert_eq!(confirmations.count(), 2);
    assert!(rate <= 96_000_000 && not_held.expect("one failed") > 96_000_000);
}

#[test]
fn tries_that_hold_and_confirmations_that_do_not_find_nothing() {
    let mut of_system = system(400_000_000, 100e6, || 1.0);
    let (finding, trials) = search(None, |trial| match trial {
        Trial::Confirm(_) => Outcome {
            acked_per_s: 1.0,
            miss: Some(too_slow()),
        },
        trial => of_system(trial),
    });
    assert!(matches!(finding, Finding::NotFound { .. }));
    let confirmations = trials
        .iter()
        .filter(|trial| matches!(trial, Trial::Confirm(_)));
    assert_eq!(confirmations.count() as u32, CONFIRMATIONS_MAX);
}

#[test]
fn a_late_generator_gets_one_more_chance_and_no_third() {
    let late = || Outcome {
        acked_per_s: 1.0,
        miss: Some(Miss::GeneratorNotValid {
            reason: "late".to_owned(),
        }),
    };
    let mut of_system = system(400_000_000, 100e6, || 1.0);
    let mut steps = 0;
    let (finding, trials) = search(Some(100_000_000), |trial| {
        steps += 1;
        if steps == 1 { late() } else { of_system(trial) }
    });
    assert_eq!(trials[0], trials[1]);
    assert!(found(&finding).0 >= 95_000_000);
    let (finding, trials) = search(Some(100_000_000), |_| late());
    assert!(matches!(finding, Finding::NotFound { .. }));
    assert_eq!(trials[0], trials[1]);
    assert_ne!(trials[1], trials[2]);
}

#[test]
fn a_rate_of_single_messages_still_ends() {
    for limit in 1..30 {
        let (finding, _) = search(Some(3), system(100, f64::from(limit) + 0.5, || 1.0));
        let (rate, _) = found(&finding);
        assert!((1..=u64::from(limit as u32)).contains(&rate), "{rate}");
    }
}

#[test]
fn rates_have_three_digits() {
    assert_eq!(
        [0.2, 7.4, 123.4, 123_456.0, 99_960_000.0].map(readable),
        [1, 7, 123, 123_000, 100_000_000]
    );
}
