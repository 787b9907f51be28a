use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Ok,
    /// It works, and something is worse than it could be.
    Warn,
    /// A broker cannot work here.
    Fail,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "OK",
            Self::Warn => "WARN",
            Self::Fail => "FAIL",
        })
    }
}

/// The result of one check.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    pub check: &'static str,
    pub status: Status,
    /// What is so on this machine.
    pub found: String,
    /// The command that changes it; there is one for everything that is not OK.
    pub fix: Option<String>,
}

impl Finding {
    pub(super) fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self {
            check,
            status: Status::Ok,
            found: found.into(),
            fix: None,
        }
    }

    pub(super) fn warn(
        check: &'static str,
        found: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            check,
            status: Status::Warn,
            found: found.into(),
            fix: Some(fix.into()),
        }
    }

    pub(super) fn fail(
        check: &'static str,
        found: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            check,
            status: Status::Fail,
            found: found.into(),
            fix: Some(fix.into()),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<4} {}: {}", self.status, self.check, self.found)?;
        match &self.fix {
            Some(fix) => write!(f, "\n     fix: {fix}"),
            None => Ok(()),
        }
    }
}

/// What all checks found for a data directory.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The worst of all.
    status: Status,
    data: PathBuf,
    checks: Vec<Finding>,
}

impl Report {
    pub(super) fn new(data: &Path, checks: Vec<Finding>) -> Self {
        let status = checks.iter().map(|finding| finding.status).max();
        Self {
            status: status.unwrap_or(Status::Ok),
            data: data.to_owned(),
            checks,
        }
    }

    pub fn status(&self) -> Status {
        self.status
    }

    pub fn findings(&self) -> &[Finding] {
        &self.checks
    }

    pub fn with_status(&self, status: Status) -> impl Iterator<Item = &Finding> {
        self.checks
            .iter()
            .filter(move |finding| finding.status == status)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.checks {
            writeln!(f, "{finding}")?;
        }
        match self.status() {
            Status::Ok => write!(f, "A broker can run here."),
            Status::Warn => write!(f, "A broker can run here, with the warnings above."),
            Status::Fail => write!(f, "A broker cannot run here."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_finding_decides_and_its_fix_stands_below_it() {
        let fine = Finding::ok("kernel", "6.1");
        let worse = Finding::warn("free space", "1 GB", "rm");
        let worst = Finding::fail("io_uring", "refused", "sudo sysctl x");
        let status = |checks: &[&Finding]| {
            Report::new(Path::new("x"), checks.iter().copied().cloned().collect()).status()
        };
        assert_eq!(status(&[]), Status::Ok);
        assert_eq!(status(&[&fine]), Status::Ok);
        assert_eq!(status(&[&worse, &fine]), Status::Warn);
        assert_eq!(status(&[&worst, &worse]), Status::Fail);
        let report = Report::new(Path::new("x"), vec![fine, worst, worse]);
        let text = report.to_string();
        assert!(
            text.contains("FAIL io_uring: refused\n     fix: sudo sysctl x\n"),
            "{text}"
        );
    }
}
