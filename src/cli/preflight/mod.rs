//! What the machine must offer before a broker can run on it, and what it should offer.
//!
//! Each check asks the kernel itself, by doing the thing or reading its answer, and never guesses from a version or a name.
//! FAIL means that a broker cannot work here. WARN means that it works and something is worse than it could be. Every line
//! that is not OK carries the command that changes it.

mod data_directory;
mod discard;
mod io_uring;
mod machine;
mod report;
mod resource_limits;

use std::path::Path;

use crate::config::BrokerConfig;

pub use report::{Finding, Report, Status};

/// Runs every check for a broker with these settings. It raises this process's soft limits to the hard ones on its way, since a broker
/// wants them so.
pub fn run(data: &Path, config: &BrokerConfig) -> Report {
    let mut findings = vec![machine::kernel(), io_uring::rings_and_operations()];
    findings.extend(data_directory::checks(data, config.disk_high_watermark));
    findings.extend([
        resource_limits::locked_memory(),
        resource_limits::open_files(config),
        resource_limits::memory(config),
        machine::congestion_control(),
    ]);
    Report::new(data, findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_directory_that_does_not_exist_yet_is_checked_and_not_made() {
        let parent = tempfile::tempdir().unwrap();
        let data = parent.path().join("a/b");
        let report = run(&data, &BrokerConfig::default());
        assert!(
            report
                .findings()
                .iter()
                .all(|finding| finding.check != "data directory" || finding.status == Status::Ok)
        );
        assert_eq!(
            std::fs::read_dir(parent.path()).unwrap().count(),
            0,
            "a check leaves nothing behind"
        );
    }

    #[test]
    fn a_data_directory_that_is_a_file_fails_and_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let report = run(file.path(), &BrokerConfig::default());
        let failed: Vec<&Finding> = report
            .findings()
            .iter()
            .filter(|finding| finding.status == Status::Fail)
            .collect();
        assert_eq!(failed.len(), 1, "{report}");
        assert!(
            failed[0].found.contains(&file.path().display().to_string()),
            "{report}"
        );
        assert!(failed[0].fix.is_some());
    }

    #[test]
    fn whatever_is_not_ok_says_what_to_do() {
        for data in ["/dev/shm/corelog-preflight-test", "/proc/corelog", "."] {
            for finding in run(Path::new(data), &BrokerConfig::default()).findings() {
                assert!(
                    finding.status == Status::Ok || finding.fix.is_some(),
                    "{finding:?}"
                );
            }
        }
    }
}
