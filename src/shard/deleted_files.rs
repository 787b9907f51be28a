//! Segments whose files were renamed for their deletion and stay for `file.delete.delay.ms`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::io::clock::Monotonic;
use crate::model::Offset;

/// By when they are due. A broker that ends before leaves them to its next start.
#[derive(Debug, Default)]
pub struct DeletedFiles {
    waiting: BTreeMap<(Monotonic, u64), DeletedSegment>,
    next_number: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedSegment {
    pub directory: PathBuf,
    pub base_offset: Offset,
}

impl DeletedFiles {
    pub fn push(&mut self, due: Monotonic, segment: DeletedSegment) {
        self.waiting.insert((due, self.next_number), segment);
        self.next_number += 1;
    }

    /// Those that are due at `now`, the longest due first.
    pub fn take_due(&mut self, now: Monotonic) -> Vec<DeletedSegment> {
        let later = self.waiting.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut self.waiting, later);
        due.into_values().collect()
    }

    /// Those of a directory that is renamed for its own deletion: another may have its name from now on.
    pub fn forget(&mut self, directory: &Path) {
        self.waiting.retain(|_, it| it.directory != directory);
    }

    /// All of them, because their space is needed now.
    pub fn take_all(&mut self) -> Vec<DeletedSegment> {
        std::mem::take(&mut self.waiting).into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn segment(base_offset: i64) -> DeletedSegment {
        DeletedSegment {
            directory: "d".into(),
            base_offset: Offset(base_offset),
        }
    }

    #[test]
    fn each_waits_for_its_own_time_in_whatever_order_they_came() {
        let at = |seconds| Monotonic::ZERO + Duration::from_secs(seconds);
        let mut files = DeletedFiles::default();
        files.push(at(60), segment(1));
        files.push(at(5), segment(2));
        files.push(at(5), segment(3));
        assert_eq!(files.take_due(at(4)), []);
        assert_eq!(files.take_due(at(5)), [segment(2), segment(3)]);
        assert_eq!(files.take_all(), [segment(1)]);
        assert_eq!(files.take_all(), []);
    }

    #[test]
    fn those_of_a_directory_that_is_deleted_itself_are_not_looked_for_any_more() {
        let mut files = DeletedFiles::default();
        files.push(Monotonic::ZERO, segment(1));
        files.forget(Path::new("other"));
        files.push(Monotonic::ZERO, segment(2));
        assert_eq!(files.waiting.len(), 2);
        files.forget(Path::new("d"));
        assert_eq!(files.take_all(), []);
    }
}
