//! A load that is run several times: the flags of `corelog-perf run`, under a name. A set of them is a YAML file.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use super::SeriesError;
use crate::cli::RunArgs;
use crate::plan::PlanError;
use crate::rerun::{SHORT_BOOTSTRAP, without};

/// Decided for each run by the series.
const OWN_FLAGS: [&str; 6] = [
    "--bootstrap",
    "--out",
    "--json",
    "--runs",
    "--broker-pid",
    "--broker-metrics",
];

/// What a load that only warms does not have, or has otherwise.
const NOT_OF_A_WARMING: [&str; 12] = [
    "--rate",
    "--hold",
    "--try-duration",
    "--duration",
    "--warmup",
    "--backlog",
    "--backlog-drain-ratio",
    "--rebalance-every",
    "--baseline-seconds",
    "--read-duration",
    "--audit",
    "--broker-metrics",
];

/// The flags are known to be good.
#[derive(Clone, Debug)]
pub struct Case {
    name: String,
    what: String,
    /// What follows `corelog-perf run`.
    flags: Vec<String>,
}

impl Case {
    /// For several clusters, so that it must not name one.
    pub fn for_clusters(name: &str, what: &str, flags: Vec<String>) -> Result<Self, SeriesError> {
        let flag_of = |argument: &String| {
            let flag = match argument.split('=').next().unwrap_or_default() {
                short if short.starts_with(SHORT_BOOTSTRAP) => "--bootstrap",
                flag => flag,
            };
            OWN_FLAGS.into_iter().find(|own| *own == flag)
        };
        match flags.iter().find_map(flag_of) {
            Some(flag) => Err(SeriesError::OwnFlag {
                case: name.to_owned(),
                flag,
            }),
            None => Self::new(name, what, flags),
        }
    }

    pub fn new(name: &str, what: &str, flags: Vec<String>) -> Result<Self, SeriesError> {
        let name = name.to_owned();
        if !is_directory_name(&name) {
            return Err(SeriesError::Name { name });
        }
        let case = Self {
            name,
            what: what.to_owned(),
            flags,
        };
        case.arguments(&[])?
            .plan()
            .map_err(|source| SeriesError::Plan {
                case: case.name.clone(),
                source,
            })?;
        Ok(case)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn what(&self) -> &str {
        &self.what
    }

    pub fn flags(&self) -> &[String] {
        &self.flags
    }

    /// Where the case's own flags or driver say that its cluster is.
    pub fn bootstrap(&self) -> Result<String, PlanError> {
        Ok(self.known_arguments(&[]).plan()?.bootstrap)
    }

    pub fn only_reads(&self) -> Result<bool, PlanError> {
        Ok(self.known_arguments(&[]).plan()?.only_reads())
    }

    /// The case's load as fast as it goes, and nothing beside it.
    pub fn warming(
        &self,
        bootstrap: Option<&str>,
        duration: Duration,
    ) -> Result<RunArgs, PlanError> {
        let flags = without(self.flags.clone(), &NOT_OF_A_WARMING);
        let warming = Self {
            flags,
            ..self.clone()
        };
        let duration = format!("{}ms", duration.as_millis());
        let mut more: Vec<String> = ["--rate", "max", "--warmup", "0s", "--duration", &duration]
            .map(str::to_owned)
            .into();
        let off = [
            "--baseline-seconds",
            "0s",
            "--read-duration",
            "0s",
            "--audit",
            "off",
        ];
        more.extend(off.map(str::to_owned));
        if let Some(bootstrap) = bootstrap {
            more.extend(["--bootstrap".to_owned(), bootstrap.to_owned()]);
        }
        Ok(warming.known_arguments(&more))
    }

    /// Of flags that were taken when the case was made, with some that go with all of them.
    fn known_arguments(&self, more: &[String]) -> RunArgs {
        self.arguments(more)
            .expect("the flags are known to be good")
    }

    /// The run with `more` flags behind the case's own.
    pub fn arguments(&self, more: &[String]) -> Result<RunArgs, SeriesError> {
        let argv = ["corelog-perf".to_owned(), "run".to_owned()]
            .into_iter()
            .chain(self.flags.iter().cloned())
            .chain(more.iter().cloned())
            .collect();
        RunArgs::from_argv(argv).map_err(|source| SeriesError::Arguments {
            case: self.name.clone(),
            source,
        })
    }
}

pub fn is_directory_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(plain)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetFile {
    cases: Vec<SetCase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetCase {
    name: String,
    #[serde(default)]
    what: String,
    /// As on a command line, quotes included.
    run: String,
}

/// The cases of a file in its order, those that `wanted` names, or all where it names none; each with `more` flags, which go
/// before the case's own of the same name.
pub fn read_set(path: &Path, wanted: &[String], more: &[String]) -> Result<Vec<Case>, SeriesError> {
    let text = fs::read_to_string(path).map_err(|source| SeriesError::Read {
        path: path.to_owned(),
        source,
    })?;
    let set: SetFile = serde_norway::from_str(&text).map_err(|source| SeriesError::Set {
        path: path.to_owned(),
        source,
    })?;
    let mut names = BTreeSet::new();
    if let Some(twice) = set.cases.iter().find(|case| !names.insert(&case.name)) {
        return Err(SeriesError::SameName {
            name: twice.name.clone(),
        });
    }
    if let Some(unknown) = wanted.iter().find(|name| !names.contains(name)) {
        let known: Vec<_> = set.cases.iter().map(|case| case.name.as_str()).collect();
        return Err(SeriesError::UnknownCase {
            name: unknown.clone(),
            known: known.join(", "),
        });
    }
    if set.cases.is_empty() {
        return Err(SeriesError::NoCases {
            path: path.to_owned(),
        });
    }
    set.cases
        .into_iter()
        .filter(|case| wanted.is_empty() || wanted.contains(&case.name))
        .map(|case| {
            let flags = shlex::split(&case.run).ok_or_else(|| SeriesError::Quotes {
                case: case.name.clone(),
                run: case.run.clone(),
            })?;
            let mut flags = without_overridden(flags, more);
            flags.extend(more.iter().cloned());
            Case::for_clusters(&case.name, &case.what, flags)
        })
        .collect()
}

/// `flags` without those that `more` gives another value.
fn without_overridden(flags: Vec<String>, more: &[String]) -> Vec<String> {
    let name_of = |flag: &str| flag.split('=').next().unwrap_or_default().to_owned();
    let overridden: Vec<String> = more
        .iter()
        .filter(|flag| flag.starts_with("--"))
        .map(|flag| name_of(flag))
        .collect();
    let overridden: Vec<&str> = overridden.iter().map(String::as_str).collect();
    without(flags, &overridden)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str, wanted: &[&str], more: &[&str]) -> Result<Vec<Case>, SeriesError> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("set.yaml");
        fs::write(&path, text).expect("it is written");
        let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
        read_set(&path, &owned(wanted), &owned(more))
    }

    const TWO: &str = "cases:\n\
        - {name: one, what: the first, run: '1-topic-1-partition-1kb --rate max --duration 5s'}\n\
        - {name: two, run: '1-topic-16-partitions-1kb --rate \"10MB/s\"'}\n";

    #[test]
    fn flags_given_for_all_cases_replace_their_own_of_the_same_name() {
        let cases = set(TWO, &["one"], &["--duration", "1s", "--producers=2"]).expect("a set");
        assert_eq!(cases.len(), 1);
        let expected = "1-topic-1-partition-1kb --rate max --duration 1s --producers=2";
        assert_eq!(cases[0].flags().join(" "), expected);
        assert_eq!(cases[0].what(), "the first");
    }

    #[test]
    fn a_case_is_warmed_with_its_own_load_as_fast_as_it_goes_and_nothing_beside_it() {
        let flags = "1-topic-16-partitions-1kb --rate search --hold p99:10ms --try-duration 1s --duration 9s --acks all";
        let flags = flags.split_whitespace().map(str::to_owned).collect();
        let case = Case::for_clusters("case", "", flags).expect("a case");
        let warming = case.warming(Some("a:1"), Duration::from_secs(2));
        let plan = warming.expect("a run").plan().expect("it can be run");
        assert_eq!(plan.offer.rates(), [crate::quantity::Rate::Max]);
        assert_eq!((plan.bootstrap.as_str(), plan.partitions), ("a:1", 16));
        assert_eq!(plan.duration, Duration::from_secs(2));
    }

    #[test]
    fn a_set_with_anything_unknown_in_it_is_refused_before_anything_runs() {
        for (wrong, why) in [
            (TWO.replace("run:", "rum:"), "rum"),
            (TWO.replace("name: two", "name: one"), "twice"),
            (TWO.replace("name: two", "name: ../two"), "directory"),
            (TWO.replace("--rate max", "--rate fast"), "fast"),
            (TWO.replace("--rate max", "--out x"), "--out"),
            (TWO.replace("--rate max", "-b x:1"), "--bootstrap"),
            (
                TWO.replace("16-partitions", "17-partitions"),
                "17-partitions",
            ),
            (TWO.replace("\"10MB/s\"", "\"10MB/s"), "quotes"),
            ("cases: []".to_owned(), "no case"),
            ("[]".to_owned(), "not a set"),
        ] {
            let refused = set(&wrong, &[], &[]).expect_err(&wrong).to_string();
            assert!(refused.contains(why), "{refused}");
        }
        let refused = set(TWO, &["three"], &[]).expect_err("unknown").to_string();
        assert!(refused.contains("one, two"), "{refused}");
    }
}
