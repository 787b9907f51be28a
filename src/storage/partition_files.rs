use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::io::fs;
use crate::model::{Offset, TimestampMs};

use super::atomic_file;
use super::fault_point;
use super::file_error::FileError;
use super::segment_name::{DELETED_SUFFIX, SegmentFileKind, SegmentFileName, is_leftover};
use super::time_index::TimeIndexEntry;

/// The files of a partition's directory that are named after an offset. Others are not ours to judge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionFiles {
    /// The segments by base offset, with the size of their `.log` in bytes.
    pub segments: BTreeMap<Offset, u64>,
    /// Everything else that belongs to an offset: indexes and producer snapshots.
    pub others: Vec<SegmentFileName>,
    /// What a crash left half-made or half-removed.
    pub leftovers: Vec<String>,
}

impl PartitionFiles {
    pub fn list(dir: &Path) -> Result<Self, FileError> {
        let mut files = Self::default();
        for entry in fs::read_dir(dir).map_err(FileError::of("list", dir))? {
            let entry = entry.map_err(FileError::of("list", dir))?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            match SegmentFileName::parse(&name) {
                Some(SegmentFileName {
                    base_offset,
                    kind: SegmentFileKind::Log,
                }) => {
                    let metadata = entry
                        .metadata()
                        .map_err(FileError::of("look up", &entry.path()))?;
                    files.segments.insert(base_offset, metadata.size_bytes());
                }
                Some(other) => files.others.push(other),
                None if is_leftover(&name) => files.leftovers.push(name),
                None => {}
            }
        }
        Ok(files)
    }

    /// Removes what a crash left half-made or half-removed. It holds nothing of the log, but may hold space that a recovery needs.
    pub fn remove_leftovers(&mut self, dir: &Path) -> Result<(), FileError> {
        for name in std::mem::take(&mut self.leftovers) {
            atomic_file::remove(&dir.join(name))?;
        }
        Ok(())
    }

    /// Removes what belongs to no segment: indexes without a `.log`, producer snapshots of other offsets than the recovery point's.
    pub fn remove_strays(&self, dir: &Path, recovery_point: Offset) -> Result<(), FileError> {
        let is_stray = |name: &&SegmentFileName| match name.kind {
            SegmentFileKind::Producers => name.base_offset != recovery_point,
            _ => !self.segments.contains_key(&name.base_offset),
        };
        for name in self.others.iter().filter(is_stray) {
            atomic_file::remove(&dir.join(name.to_string()))?;
        }
        Ok(())
    }
}

/// What of a segment has a name of its own. The log first: who finds indexes without it knows that they are strays.
const SEGMENT_KINDS: [SegmentFileKind; 3] = [
    SegmentFileKind::Log,
    SegmentFileKind::OffsetIndex,
    SegmentFileKind::TimeIndex,
];

/// When a segment's file was last written, as far as that matters: a segment with a timestamp goes by its records' time.
pub fn written_at(
    dir: &Path,
    base_offset: Offset,
    latest: Option<TimeIndexEntry>,
) -> Result<TimestampMs, FileError> {
    if latest.is_some() {
        return Ok(TimestampMs::NONE);
    }
    let path = dir.join(SegmentFileName::new(base_offset, SegmentFileKind::Log).to_string());
    let modified = fs::metadata(&path).and_then(|it| it.modified());
    modified.map_err(FileError::of("look up", &path))
}

/// Renames a segment with its indexes, so that it is no part of the log any more (Kafka's convention). Whoever reads it goes on.
pub fn rename_deleted(dir: &Path, base_offset: Offset) -> Result<(), FileError> {
    for kind in SEGMENT_KINDS {
        let from = dir.join(SegmentFileName::new(base_offset, kind).to_string());
        match fault_point::growth(|| fs::rename(&from, with_deleted_suffix(&from))) {
            // A segment may have no index, and what a crash left half done is gone already.
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(FileError::of("rename", &from)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Gives a segment's log the name of a deleted one too, so that its bytes do not go with the name that they have. False if there is a
/// deleted one of that name already.
pub fn link_deleted(dir: &Path, base_offset: Offset) -> Result<bool, FileError> {
    let path = dir.join(SegmentFileName::new(base_offset, SegmentFileKind::Log).to_string());
    match fault_point::growth(|| fs::hard_link(&path, with_deleted_suffix(&path))) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        linked => linked.map(|()| true).map_err(FileError::of("link", &path)),
    }
}

/// Where the log of a deleted segment is.
pub fn deleted_log_path(dir: &Path, base_offset: Offset) -> PathBuf {
    let name = SegmentFileName::new(base_offset, SegmentFileKind::Log).to_string();
    with_deleted_suffix(&dir.join(name))
}

/// Removes what [`rename_deleted`] has renamed.
pub fn remove_deleted(dir: &Path, base_offset: Offset) -> Result<(), FileError> {
    for kind in SEGMENT_KINDS {
        let renamed = dir.join(SegmentFileName::new(base_offset, kind).to_string());
        atomic_file::remove(&with_deleted_suffix(&renamed))?;
    }
    Ok(())
}

/// Removes a segment's indexes, which can be made anew from its log.
pub fn remove_indexes(dir: &Path, base_offset: Offset) -> Result<(), FileError> {
    for kind in [SegmentFileKind::OffsetIndex, SegmentFileKind::TimeIndex] {
        atomic_file::remove(&dir.join(SegmentFileName::new(base_offset, kind).to_string()))?;
    }
    Ok(())
}

fn with_deleted_suffix(path: &Path) -> PathBuf {
    let mut renamed = path.as_os_str().to_owned();
    renamed.push(DELETED_SUFFIX);
    renamed.into()
}

/// Removes a segment with its indexes. A reader of the directory that comes in between sees indexes without a segment.
pub fn remove_segment(dir: &Path, base_offset: Offset) -> Result<(), FileError> {
    for kind in SEGMENT_KINDS {
        atomic_file::remove(&dir.join(SegmentFileName::new(base_offset, kind).to_string()))?;
    }
    Ok(())
}

/// Removes the producer snapshot of a checkpoint that was replaced, if there is one.
pub fn remove_producers(dir: &Path, offset: Offset) -> Result<(), FileError> {
    atomic_file::remove(
        &dir.join(SegmentFileName::new(offset, SegmentFileKind::Producers).to_string()),
    )
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn only_what_belongs_to_no_segment_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let kept = [
            "00000000000000000100.log",
            "00000000000000000100.index",
            "00000000000000000100.timeindex",
            "00000000000000000150.producers",
            "leader-epoch-checkpoint",
            "notes.txt",
        ];
        let strays = [
            "00000000000000000050.index",
            "00000000000000000050.timeindex",
            "00000000000000000140.producers",
            "00000000000000000000.log.deleted",
            "partition.checkpoint.tmp",
        ];
        for name in kept.iter().chain(&strays) {
            fs::write(dir.path().join(name), b"x").unwrap();
        }
        let mut files = PartitionFiles::list(dir.path()).unwrap();
        assert_eq!(files.segments, BTreeMap::from([(Offset(100), 1)]));
        files.remove_leftovers(dir.path()).unwrap();
        files.remove_strays(dir.path(), Offset(150)).unwrap();
        let mut left: Vec<_> = fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        let mut kept = kept.to_vec();
        kept.sort();
        assert_eq!(left, kept);
    }

    #[test]
    fn a_renamed_segment_is_a_leftover_and_then_gone() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["00000000000000000007.log", "00000000000000000007.index"] {
            fs::write(dir.path().join(name), b"x").unwrap();
        }
        rename_deleted(dir.path(), Offset(7)).unwrap();
        let files = PartitionFiles::list(dir.path()).unwrap();
        assert!(files.segments.is_empty() && files.others.is_empty());
        assert_eq!(files.leftovers.len(), 2);
        remove_deleted(dir.path(), Offset(7)).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        rename_deleted(dir.path(), Offset(7)).unwrap();
        remove_deleted(dir.path(), Offset(7)).unwrap();
    }

    #[test]
    fn only_a_segment_without_timestamps_goes_by_its_files_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("00000000000000000007.log");
        let file = fs::File::create(&path).unwrap();
        let modified = UNIX_EPOCH + std::time::Duration::from_millis(1_234_567);
        file.set_modified(modified).unwrap();
        let at = |latest| written_at(dir.path(), Offset(7), latest).unwrap();
        assert_eq!(at(None), TimestampMs(1_234_567));
        let latest = TimeIndexEntry {
            timestamp: TimestampMs(5),
            offset: Offset(7),
        };
        assert_eq!(at(Some(latest)), TimestampMs::NONE);
    }

    #[test]
    fn a_segment_goes_with_its_indexes() {
        let dir = tempfile::tempdir().unwrap();
        for kind in [SegmentFileKind::Log, SegmentFileKind::TimeIndex] {
            fs::write(
                dir.path()
                    .join(SegmentFileName::new(Offset(7), kind).to_string()),
                b"",
            )
            .unwrap();
        }
        remove_segment(dir.path(), Offset(7)).unwrap();
        assert_eq!(
            PartitionFiles::list(dir.path()).unwrap(),
            PartitionFiles::default()
        );
    }
}
