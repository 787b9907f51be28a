//! The health of a log directory, shared by all shards: one I/O error takes it offline for good; how much room is left goes up and down.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use crate::shard::disk_guard::Room;

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
    /// An index of `Room::ALL`. One shard looks at the disk and says what all go by.
    room: AtomicU8,
}

impl LogDir {
    pub fn new(path: PathBuf) -> Self {
        Self {
            inner: Arc::new(Inner {
                path,
                failure: OnceLock::new(),
                room: AtomicU8::new(Room::Free as u8),
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

    /// What may be appended.
    pub fn room(&self) -> Room {
        Room::ALL[usize::from(self.inner.room.load(Ordering::Relaxed))]
    }

    pub fn set_room(&self, room: Room) {
        self.inner.room.store(room as u8, Ordering::Relaxed);
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
    fn every_shard_sees_the_room_that_one_has_found() {
        let dir = LogDir::new("d".into());
        for room in Room::ALL {
            dir.clone().set_room(room);
            assert_eq!(dir.room(), room);
        }
    }

    #[test]
    fn the_first_failure_stays() {
        let dir = LogDir::new("d".into());
        assert_eq!(dir.failure(), None);
        dir.fail(&"first");
        dir.clone().fail(&"second");
        assert_eq!(dir.failure().as_deref(), Some("first"));
    }
}
