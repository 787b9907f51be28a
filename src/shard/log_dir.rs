//! The health of a log directory, shared by all shards: one I/O error takes it offline for good.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Once offline nothing is appended or confirmed in it until the broker is started anew: after a failed fsync nobody knows what
/// the disk holds, and a second fsync would lie.
#[derive(Clone, Debug)]
pub struct LogDir {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    failure: OnceLock<Arc<str>>,
}

impl LogDir {
    pub fn new(path: PathBuf) -> Self {
        Self {
            inner: Arc::new(Inner {
                path,
                failure: OnceLock::new(),
            }),
        }
    }

    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Why it is offline, if it is.
    pub fn failure(&self) -> Option<Arc<str>> {
        self.inner.failure.get().cloned()
    }

    /// The first failure counts; it alone is logged.
    pub fn fail(&self, why: &dyn std::fmt::Display) {
        let mut is_first = false;
        self.inner.failure.get_or_init(|| {
            is_first = true;
            why.to_string().into()
        });
        if is_first {
            tracing::error!(directory = %self.path().display(), reason = %why, "log directory is offline until the next start");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_stays() {
        let dir = LogDir::new("d".into());
        assert_eq!(dir.failure(), None);
        dir.fail(&"first");
        dir.clone().fail(&"second");
        assert_eq!(dir.failure().as_deref(), Some("first"));
    }
}
