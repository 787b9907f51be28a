//! The file that the next segment is made of, and how it becomes one:
//!
//! ```text
//! next-segment.tmp                       opened, its space allocated: whatever fails here leaves no segment
//!   -> renamed to <log end offset>.log   decides
//!     -> the log continues in it         in memory only, and cannot fail
//! ```
//!
//! A start removes the first name. It finds the second one as an empty segment at the log's end, or, where the rename did not outlive a
//! power cut, the log ends in the segment before, since no record of the new one was synced before its directory.

use std::path::{Path, PathBuf};

use crate::io::fs;
use crate::model::Offset;
use crate::storage::atomic_file;
use crate::storage::fault_point;
use crate::storage::file_error::FileError;
use crate::storage::segment_name::{SegmentFileKind, SegmentFileName, spare_file};

/// The two names of a segment that is about to be.
#[derive(Clone, Debug)]
pub struct NextSegment {
    spare: PathBuf,
    segment: PathBuf,
}

impl NextSegment {
    /// The one that starts at `log_end`, where no segment may start yet.
    pub fn new(dir: &Path, log_end: Offset) -> Self {
        let name = SegmentFileName::new(log_end, SegmentFileKind::Log);
        Self {
            spare: dir.join(spare_file()),
            segment: dir.join(name.to_string()),
        }
    }

    /// Where its space is prepared.
    pub fn spare_path(&self) -> &Path {
        &self.spare
    }

    pub fn segment_path(&self) -> &Path {
        &self.segment
    }

    /// Gives the file its segment's name. After an error it has neither name, as far as the disk allows: nobody knows which one a failed
    /// rename has left.
    pub fn put_in_place(&self) -> Result<(), FileError> {
        let renamed = fault_point::growth(|| fs::rename(&self.spare, &self.segment));
        renamed.map_err(|error| {
            self.give_up();
            FileError::of("rename", &self.spare)(error)
        })
    }

    /// Removes what was made so far. An empty segment that stays all the same is told by the next start.
    pub fn give_up(&self) {
        for path in [&self.spare, &self.segment] {
            if let Err(error) = atomic_file::remove(path) {
                tracing::debug!(%error, "what was to be the next segment stays until the next start");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::storage::fault_point::planned::{self, Fault};
    use std::io::ErrorKind;

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap();
        let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
        entries.map(|it| name(it).into_string().unwrap()).collect()
    }

    #[test]
    fn a_roll_that_fails_leaves_no_segment() {
        let faults = [
            Fault::Fails(ErrorKind::StorageFull),
            Fault::FailsAfter(ErrorKind::Other),
        ];
        for fault in faults {
            let changes = planned::for_each_change(|at| {
                let dir = tempfile::tempdir().unwrap();
                let next = NextSegment::new(dir.path(), Offset(7));
                fs::write(next.spare_path(), [0; 100]).unwrap();
                let (placed, has_met) = planned::with(at, fault, || next.put_in_place());
                if has_met {
                    placed.unwrap_err();
                    assert_eq!(names(dir.path()), Vec::<String>::new());
                } else {
                    assert_eq!(names(dir.path()), ["00000000000000000007.log"]);
                }
                has_met
            });
            assert_eq!(changes, 1, "the rename is all that a roll changes");
        }
    }

    #[test]
    fn a_roll_that_dies_leaves_a_file_that_is_no_segment() {
        let dir = tempfile::tempdir().unwrap();
        let next = NextSegment::new(dir.path(), Offset(7));
        fs::write(next.spare_path(), [0; 100]).unwrap();
        let (placed, _) = planned::with(0, Fault::Dies, || next.put_in_place());
        placed.unwrap_err();
        assert_eq!(names(dir.path()), [spare_file()]);
    }
}
