//! The comparison: each side against the first.

use serde::Serialize;

use super::metric::{FailOn, Metric};
use super::sample::Sample;
use super::side::{Key, Side, Unlike};
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
        what: String,
        of_first: String,
        of_second: String,
    },
    #[error(
        "--fail-on {metric} cannot be checked: {missing}; it bounds what both sides have measured"
    )]
    NotMeasured { metric: Metric, missing: String },
}

/// One metric of one stretch, on every side that measured it.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// As the first side calls it.
    pub stretch: String,
    pub metric: Metric,
    pub unit: &'static str,
    /// One for each side.
    pub cells: Vec<Option<Cell>>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    pub median: f64,
    pub min: f64,
    pub max: f64,
    /// One for each run.
    pub values: Vec<f64>,
    /// None on the first side, and where that has nothing to compare with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against_first: Option<Difference>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// This side's median by the first side's.
    pub ratio: f64,
    /// As a share of the first side's; negative if this side is better.
    pub worse_by: f64,
    pub verdict: Verdict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The difference is no more than what runs of one side differ by.
    WithinSpread,
    Better,
    Worse,
    /// Fewer than three runs of a side: nobody knows how much they differ by themselves.
    SpreadUnknown,
}

/// A metric that got worse than it may.
pub struct Failure<'a> {
    pub row: &'a Row,
    pub side: &'a str,
    pub worse_by: f64,
}

#[derive(Clone, Debug, Serialize)]
pub struct SideSummary {
    pub name: String,
    pub runs: usize,
    /// Runs and latencies that are in no figure, and why.
    pub left_out: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    pub sides: Vec<SideSummary>,
    /// Conditions in which a side differs from the first, or the runs of a side among themselves, in words.
    pub differing: Vec<String>,
    pub rows: Vec<Row>,
}

impl Comparison {
    /// Reads all sides; `anyway` lets those differ that do not compare.
    pub fn read(reports: &[String], anyway: bool) -> Result<Self, CompareError> {
        let sides: Vec<Side> = reports
            .iter()
            .map(|reports| Side::read(reports))
            .collect::<Result<_, _>>()?;
        let (base, others) = sides.split_first().expect("the command line asks for two");
        let unlike = sides.iter().flat_map(|side| &side.unlike).next();
        if let Some(unlike) = unlike.filter(|_| !anyway) {
            let [of_first, of_second] = unlike.disparity.values.clone();
            return Err(CompareError::Conditions {
                first: unlike.first.clone(),
                second: unlike.other.clone(),
                what: unlike.disparity.what.clone(),
                of_first,
                of_second,
            });
        }
        for other in others.iter().filter(|_| !anyway) {
            if let Some(disparity) = base.differs(other).into_iter().next() {
                let [of_first, of_second] = disparity.values;
                return Err(CompareError::Conditions {
                    first: base.name.clone(),
                    second: other.name.clone(),
                    what: disparity.what,
                    of_first,
                    of_second,
                });
            }
        }
        Ok(Self::of(&sides))
    }

    /// `sides` is not empty.
    pub fn of(sides: &[Side]) -> Self {
        let (base, others) = sides.split_first().expect("there is a side to compare");
        let within_a_side = sides.iter().flat_map(|side| side.unlike.iter().cloned());
        let across_sides = others.iter().flat_map(|other| {
            let told = base.differs(other).into_iter().map(|disparity| Unlike {
                first: base.name.clone(),
                other: other.name.clone(),
                disparity,
            });
            told.collect::<Vec<_>>()
        });
        let differing = within_a_side.chain(across_sides).map(|unlike| {
            let [of_first, of_other] = unlike.disparity.values;
            format!(
                "{}: {of_first} ({}), {of_other} ({})",
                unlike.disparity.what, unlike.first, unlike.other
            )
        });
        let mut keys: Vec<&Key> = sides.iter().flat_map(|side| side.samples.keys()).collect();
        keys.sort();
        keys.dedup();
        let rows = keys.into_iter().map(|key| {
            let (stretch, metric) = key;
            let named = sides.iter().find(|side| side.samples.contains_key(key));
            let of_base = base.samples.get(key);
            Row {
                stretch: named.unwrap_or(base).name_of(stretch),
                metric: *metric,
                unit: metric.unit(),
                cells: sides
                    .iter()
                    .enumerate()
                    .map(|(number, side)| {
                        let sample = side.samples.get(key)?;
                        let of_base = of_base.filter(|_| number > 0);
                        Some(Cell::new(*metric, sample, of_base))
                    })
                    .collect(),
            }
        });
        Self {
            differing: differing.collect(),
            rows: rows.collect(),
            sides: sides
                .iter()
                .map(|side| SideSummary {
                    name: side.name.clone(),
                    runs: side.run_count,
                    left_out: side.left_out.clone(),
                })
                .collect(),
        }
    }

    /// A bound that nothing can exceed, because a side did not measure what it bounds: that is no success.
    pub fn check_bounds(&self, bounds: &[FailOn]) -> Result<(), CompareError> {
        bounds.iter().try_for_each(|bound| {
            let metric = bound.metric;
            let not_measured = |missing: String| Err(CompareError::NotMeasured { metric, missing });
            let mut rows = self.rows.iter().filter(|row| row.metric == metric);
            if !self.rows.iter().any(|row| row.metric == metric) {
                return not_measured("no run has it".to_owned());
            }
            let missing = rows.find_map(|row| {
                let side = row.cells.iter().position(Option::is_none)?;
                Some(format!(
                    "{} has it not of '{}'",
                    self.sides[side].name, row.stretch
                ))
            });
            missing.map_or(Ok(()), not_measured)
        })
    }

    /// What exceeds a bound.
    pub fn failures<'a>(&'a self, bounds: &'a [FailOn]) -> impl Iterator<Item = Failure<'a>> {
        self.rows.iter().flat_map(move |row| {
            let named = self.sides.iter().zip(&row.cells);
            named.filter_map(move |(side, cell)| {
                let worse_by = cell.as_ref()?.against_first?.worse_by;
                let exceeded = bounds
                    .iter()
                    .any(|bound| bound.metric == row.metric && worse_by > bound.worse_by_max);
                exceeded.then_some(Failure {
                    row,
                    side: &side.name,
                    worse_by,
                })
            })
        })
    }
}

impl Cell {
    fn new(metric: Metric, sample: &Sample, of_first: Option<&Sample>) -> Self {
        let median = sample.median();
        let against_first = of_first.map(|first| {
            let worse_by = metric.worse_by(first.median(), median);
            let spread = first.spread().zip(sample.spread());
            Difference {
                ratio: median / first.median(),
                worse_by,
                verdict: match spread.map(|(one, other)| one.max(other)) {
                    None => Verdict::SpreadUnknown,
                    Some(spread) if worse_by.abs() <= spread => Verdict::WithinSpread,
                    Some(_) if worse_by > 0.0 => Verdict::Worse,
                    Some(_) => Verdict::Better,
                },
            }
        });
        Self {
            median,
            min: sample.min(),
            max: sample.max(),
            values: sample.values().to_vec(),
            against_first,
        }
    }
}

impl Verdict {
    pub fn in_words(self) -> &'static str {
        match self {
            Self::WithinSpread => "within the spread",
            Self::Better => "better",
            Self::Worse => "WORSE",
            Self::SpreadUnknown => "? (needs 3 runs)",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use serde_json::json;

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

    /// Of the second side.
    fn p99(comparison: &Comparison) -> (f64, Verdict) {
        let is_p99 = |it: &&Row| it.metric == Metric::P99 && it.stretch == "produce, 10.0 MB/s";
        let row = comparison.rows.iter().find(is_p99).expect("a p99");
        let cell = row.cells[1].as_ref().expect("the second side has it");
        let difference = cell.against_first.expect("the first side has it");
        (cell.median, difference.verdict)
    }

    #[test]
    fn a_difference_counts_only_beyond_the_spread_of_the_runs() {
        let directory = tempfile::tempdir().expect("a directory");
        let run = |name: &str, p99_ms| store(directory.path(), name, p99_ms);
        let three = |name: &str, p99_ms: [f64; 3]| {
            let runs = [0, 1, 2].map(|number| run(&format!("{name}{number}"), p99_ms[number]));
            runs.join(",")
        };
        let base = three("a", [10.0, 12.0, 11.0]);
        let same = three("b", [11.0, 13.0, 12.0]);
        let worse = three("c", [20.0, 21.0, 20.5]);
        let compared = Comparison::read(&[base.clone(), same], false).unwrap();
        assert_eq!(p99(&compared), (12.0, Verdict::WithinSpread));
        let compared = Comparison::read(&[worse.clone(), base.clone()], false).unwrap();
        assert_eq!(p99(&compared), (11.0, Verdict::Better));
        let compared = Comparison::read(&[base, worse], false).unwrap();
        assert_eq!(p99(&compared), (20.5, Verdict::Worse));
    }

    #[test]
    fn the_text_of_two_sides_fits_a_terminal_of_80_columns() {
        let directory = tempfile::tempdir().expect("a directory");
        let run = |name: &str, p99_ms| store(directory.path(), name, p99_ms);
        let side = |name: &str, p99_ms: [f64; 3]| {
            [0, 1, 2].map(|number| run(&format!("{name}{number}"), p99_ms[number]))
        };
        let sides = [
            side("a", [10.0, 12.5, 11.0]),
            side("b", [123.0, 0.456, 100.0]),
        ];
        let mut compared = Comparison::read(&sides.map(|side| side.join(",")), false).unwrap();
        for (number, side) in compared.sides.iter_mut().enumerate() {
            side.name = format!("side{number}");
        }
        let text = super::super::text(&compared, crate::columns::Columns::OF_A_FILE);
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}\n{text}");
        }
        assert!(text.contains("produce, 10.0 MB/s\n"), "{text}");
    }

    #[test]
    fn two_runs_of_a_side_do_not_tell_how_far_runs_lie_apart() {
        let directory = tempfile::tempdir().expect("a directory");
        let run = |name, p99_ms| store(directory.path(), name, p99_ms);
        let base = format!("{},{}", run("a0", 10.0), run("a1", 10.1));
        let other = format!("{},{}", run("b0", 20.0), run("b1", 20.1));
        let compared = Comparison::read(&[base, other], false).unwrap();
        assert_eq!(p99(&compared).1, Verdict::SpreadUnknown);
        assert!(!super::super::text(&compared, crate::columns::Columns::WIDE).contains("WORSE"));
        assert!(!super::super::page::page(&compared).contains("class=\"bad\""));
    }

    #[test]
    fn runs_of_one_side_that_are_unlike_each_other_are_refused_unless_asked_for() {
        let directory = tempfile::tempdir().expect("a directory");
        let run = |name| store(directory.path(), name, 10.0);
        let (base, same) = (run("a"), run("b"));
        for (pointer, other, what) in [
            ("/workload/durability/acks", json!(-1), "durability: acks"),
            ("/workload/producerRates/0", json!("500 MB/s"), "rates"),
            (
                "/workload/producerConfig/linger.ms",
                json!("50"),
                "producer: linger.ms",
            ),
            ("/workload/topics", json!(2), "topics"),
        ] {
            let unlike = run("unlike");
            let text = fs::read_to_string(&unlike).unwrap();
            let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
            *value.pointer_mut(pointer).expect("it is there") = other;
            fs::write(&unlike, value.to_string()).unwrap();
            for sides in [
                [format!("{base},{unlike}"), same.clone()],
                [same.clone(), format!("{base},{unlike}")],
            ] {
                let refused = Comparison::read(&sides, false).expect_err(what).to_string();
                let names_both = [&base, &unlike].iter().all(|path| refused.contains(*path));
                assert!(refused.contains(what) && names_both, "{refused}");
                let shown = Comparison::read(&sides, true).expect("shown");
                assert!(
                    shown.differing[0].starts_with(what),
                    "{:?}",
                    shown.differing
                );
            }
        }
    }

    #[test]
    fn a_bound_on_what_a_side_has_not_measured_is_no_success() {
        let directory = tempfile::tempdir().expect("a directory");
        let run = |name| store(directory.path(), name, 10.0);
        let (base, other) = (run("a"), run("b"));
        let check = |metric: &str| {
            let compared = Comparison::read(&[base.clone(), other.clone()], false).unwrap();
            let bound = [parse_fail_on(&format!("{metric}:10%")).unwrap()];
            compared.check_bounds(&bound).map_err(|it| it.to_string())
        };
        assert_eq!(check("p99"), Ok(()));
        let refused = check("fetch").expect_err("no run reads");
        assert!(
            refused.contains("--fail-on fetch") && refused.contains("no run"),
            "{refused}"
        );
        let text = fs::read_to_string(&other).unwrap();
        let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
        value["steps"][1]["publish_latency"] = serde_json::Value::Null;
        fs::write(&other, value.to_string()).unwrap();
        let refused = check("p99").expect_err("one run has no latency");
        assert!(
            refused.contains(&other) && refused.contains("10.0 MB/s"),
            "{refused}"
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
        assert_eq!(p99(&compared), (11.5, Verdict::SpreadUnknown));
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
        let refused = Comparison::read(&reports, false).expect_err("refused");
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
            let refused = refused.expect_err("refused").to_string();
            assert!(refused.contains(why), "{refused}");
        }
    }

    #[test]
    fn runs_made_together_leave_out_what_was_not_valid_and_say_so() {
        let directory = tempfile::tempdir().expect("a directory");
        let paths = ["a", "b", "c", "d"].map(|name| store(directory.path(), name, 10.0));
        let change = |path: &String, from: &str, to: &str| {
            let text = fs::read_to_string(path).unwrap();
            fs::write(path, text.replacen(from, to, 1)).unwrap();
        };
        change(&paths[1], "\"complete\":true", "\"complete\":false");
        let mut late: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(&paths[2]).unwrap()).unwrap();
        late["steps"][1]["generator"]["valid"] = false.into();
        fs::write(&paths[2], late.to_string()).unwrap();
        let side = Side::of_runs("both", &paths);
        assert_eq!((side.run_count, side.left_out.len()), (3, 2));
        let compared = Comparison::of(&[side]);
        let runs_of = |metric| {
            let row = compared
                .rows
                .iter()
                .find(|row| row.metric == metric && row.stretch == "produce, 10.0 MB/s");
            row.and_then(|row| row.cells[0].as_ref())
                .map(|cell| cell.values.len())
        };
        assert_eq!(
            (runs_of(Metric::P99), runs_of(Metric::Throughput)),
            (Some(2), Some(3))
        );
    }
}
