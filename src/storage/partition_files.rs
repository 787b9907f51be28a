use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::model::Offset;

use super::atomic_file;
use super::file_error::FileError;
use super::segment_name::{SegmentFileKind, SegmentFileName, is_leftover};

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
                    files.segments.insert(base_offset, metadata.len());
                }
                Some(other) => files.others.push(other),
                None if is_leftover(&name) => files.leftovers.push(name),
                None => {}
            }
        }
        Ok(files)
    }

    /// Removes what belongs to no segment: leftovers, indexes without a `.log`, producer snapshots of other offsets than the
    /// recovery point's.
    pub fn remove_strays(&self, dir: &Path, recovery_point: Offset) -> Result<(), FileError> {
        let is_stray = |name: &&SegmentFileName| match name.kind {
            SegmentFileKind::Producers => name.base_offset != recovery_point,
            _ => !self.segments.contains_key(&name.base_offset),
        };
        for name in self.others.iter().filter(is_stray) {
            atomic_file::remove(&dir.join(name.to_string()))?;
        }
        for name in &self.leftovers {
            atomic_file::remove(&dir.join(name))?;
        }
        Ok(())
    }
}

/// Removes a segment with its indexes. A reader of the directory that comes in between sees indexes without a segment.
pub fn remove_segment(dir: &Path, base_offset: Offset) -> Result<(), FileError> {
    for kind in [
        SegmentFileKind::Log,
        SegmentFileKind::OffsetIndex,
        SegmentFileKind::TimeIndex,
    ] {
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
        let files = PartitionFiles::list(dir.path()).unwrap();
        assert_eq!(files.segments, BTreeMap::from([(Offset(100), 1)]));
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
