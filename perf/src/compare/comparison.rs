//! The comparison: each side against the first.

use super::metric::{FailOn, Metric};
use super::side::{Side, Stretch};
use crate::report::StoredError;

#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    #[error(transparent)]
    Report(#[from] StoredError),
    #[error(
        "{first} and {second} differ in {what}: {of_first} and {of_second}; such figures do not compare (--anyway shows them)"
    )]
    Conditions {
        first: String,
        second: String,
        what: &'static str,
        of_first: String,
        of_second: String,
    },
}

/// One metric of one stretch on one side, beside the first side's.
#[derive(Debug)]
pub struct Difference {
    pub stretch: Stretch,
    pub metric: Metric,
    pub side: usize,
    pub base: f64,
    pub value: f64,
    pub worse_by: f64,
    pub verdict: Verdict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The difference is no more than what runs of one side differ by.
    WithinSpread,
    Better,
    Worse,
    /// Single runs: nobody knows how much they differ by themselves.
    SpreadUnknown,
}

pub struct Comparison {
    pub sides: Vec<Side>,
    pub differences: Vec<Difference>,
}

impl Comparison {
    /// Reads all sides; `anyway` lets those differ that do not compare.
    pub fn read(reports: &[String], anyway: bool) -> Result<Self, CompareError> {
        let sides: Vec<Side> = reports
            .iter()
            .map(|reports| Side::read(reports))
            .collect::<Result<_, _>>()?;
        let (base, others) = sides.split_first().expect("the command line asks for two");
        for other in others.iter().filter(|_| !anyway) {
            if let Some((what, of_first, of_second)) = base.differs(other) {
                return Err(CompareError::Conditions {
                    first: base.name.clone(),
                    second: other.name.clone(),
                    what,
                    of_first,
                    of_second,
                });
            }
        }
        let mut differences = Vec::new();
        for (key, of_base) in &base.samples {
            for (side, other) in sides.iter().enumerate().skip(1) {
                let Some(sample) = other.samples.get(key) else {
                    continue;
                };
                let (stretch, metric) = key;
                let (base, value) = (of_base.median(), sample.median());
                let worse_by = metric.worse_by(base, value);
                let spread = of_base.spread().zip(sample.spread());
                differences.push(Difference {
                    stretch: stretch.clone(),
                    metric: *metric,
                    side,
                    base,
                    value,
                    worse_by,
                    verdict: match spread.map(|(one, other)| one.max(other)) {
                        None => Verdict::SpreadUnknown,
                        Some(spread) if worse_by.abs() <= spread => Verdict::WithinSpread,
                        Some(_) if worse_by > 0.0 => Verdict::Worse,
                        Some(_) => Verdict::Better,
                    },
                });
            }
        }
        Ok(Self { sides, differences })
    }

    /// The differences that exceed a bound.
    pub fn failures<'a>(&'a self, bounds: &'a [FailOn]) -> impl Iterator<Item = &'a Difference> {
        self.differences.iter().filter(|difference| {
            bounds.iter().any(|bound| {
                bound.metric == difference.metric && difference.worse_by > bound.worse_by_max
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::super::parse_fail_on;
    use super::*;
    use crate::report::sample;

    /// A report whose second step confirms after `p99_ms` at the 99th percentile.
    fn store(directory: &Path, name: &str, p99_ms: f64) -> String {
        let (report, _) = sample::report();
        let mut value = serde_json::to_value(&report).expect("a report is JSON");
        value["steps"][1]["publish_latency"]["p99_ms"] = p99_ms.into();
        let path = directory.join(name);
        fs::write(&path, value.to_string()).expect("it is written");
        path.display().to_string()
    }

    fn p99(comparison: &Comparison) -> &Difference {
        let is_p99 = |it: &&Difference| it.metric == Metric::P99 && it.stretch.name == "produce 2";
        comparison.differences.iter().find(is_p99).expect("a p99")
    }

    #[test]
    fn a_difference_counts_only_beyond_the_spread_of_the_runs() {
        let directory = tempfile::tempdir().expect("a directory");
        let run = |name, p99_ms| store(directory.path(), name, p99_ms);
        let base = format!("{},{}", run("a0", 10.0), run("a1", 12.0));
        let same = format!("{},{}", run("b0", 11.0), run("b1", 13.0));
        let worse = format!("{},{}", run("c0", 20.0), run("c1", 21.0));
        let compared = Comparison::read(&[base.clone(), same], false).unwrap();
        assert_eq!(p99(&compared).verdict, Verdict::WithinSpread);
        let compared = Comparison::read(&[worse.clone(), base.clone()], false).unwrap();
        assert_eq!(p99(&compared).verdict, Verdict::Better);
        let compared = Comparison::read(&[base, worse], false).unwrap();
        let p99 = p99(&compared);
        assert_eq!(
            (p99.base, p99.value, p99.verdict),
            (11.0, 20.5, Verdict::Worse)
        );
    }

    #[test]
    fn a_bound_fails_on_what_got_worse_by_more_and_on_nothing_else() {
        let directory = tempfile::tempdir().expect("a directory");
        let reports = [
            store(directory.path(), "a", 10.0),
            store(directory.path(), "b", 11.5),
        ];
        let compared = Comparison::read(&reports, false).unwrap();
        assert_eq!(p99(&compared).verdict, Verdict::SpreadUnknown);
        let failures = |bound| {
            let bound = [parse_fail_on(bound).unwrap()];
            compared.failures(&bound).count()
        };
        assert_eq!(
            (failures("p99:10%"), failures("p99:20%"), failures("p50:0%")),
            (1, 0, 0)
        );
    }

    #[test]
    fn other_durability_is_refused_unless_asked_for() {
        let directory = tempfile::tempdir().expect("a directory");
        let reports = [
            store(directory.path(), "a", 10.0),
            store(directory.path(), "b", 10.0),
        ];
        let text = fs::read_to_string(&reports[1]).unwrap();
        fs::write(&reports[1], text.replace("\"acks\":1", "\"acks\":-1")).unwrap();
        let refused = Comparison::read(&reports, false).err().expect("refused");
        assert!(refused.to_string().contains("durability"), "{refused}");
        assert!(Comparison::read(&reports, true).is_ok());
    }

    #[test]
    fn a_run_that_is_not_valid_and_another_schema_are_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let good = store(directory.path(), "a", 10.0);
        let text = fs::read_to_string(&good).unwrap();
        let bad = directory.path().join("b").display().to_string();
        for (from, to, why) in [
            ("\"valid\":true", "\"valid\":false", "not valid"),
            ("\"complete\":true", "\"complete\":false", "not valid"),
            ("\"schema_version\":", "\"schema_version\":9", "schema"),
            ("{", "", "JSON"),
        ] {
            fs::write(&bad, text.replacen(from, to, 1)).unwrap();
            let refused = Comparison::read(&[good.clone(), bad.clone()], true);
            let refused = refused.err().expect("refused").to_string();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
