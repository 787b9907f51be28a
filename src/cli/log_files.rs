use std::fs;
use std::path::{Path, PathBuf};

use crate::controller::META_PROPERTIES;
use crate::storage::file_error::FileError;
use crate::storage::partition_dir::PartitionDirName;
use crate::storage::partition_files::PartitionFiles;
use crate::storage::segment_name::{SegmentFileKind, SegmentFileName};

/// What a path on the command line names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LogFiles {
    /// The directories of partitions: one, or all of a data directory, by name.
    Partitions(Vec<PathBuf>),
    /// One file of a segment, and the partition's directory that it lies in.
    Segment { dir: PathBuf, name: SegmentFileName },
}

#[derive(Debug, thiserror::Error)]
pub(super) enum LogFilesError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(
        "{} is no .log, .index or .timeindex file of a segment, and no directory of a partition or of a broker's data",
        .0.display()
    )]
    Unknown(PathBuf),
}

impl LogFiles {
    pub(super) fn at(path: &Path) -> Result<Self, LogFilesError> {
        let metadata = fs::metadata(path).map_err(FileError::of("look up", path))?;
        if metadata.is_dir() {
            return Self::in_dir(path);
        }
        let name = path.file_name().and_then(|name| name.to_str());
        match name.and_then(SegmentFileName::parse) {
            Some(name) if name.kind != SegmentFileKind::Producers => Ok(Self::Segment {
                dir: path.parent().unwrap_or(Path::new("")).to_owned(),
                name,
            }),
            _ => Err(LogFilesError::Unknown(path.to_owned())),
        }
    }

    fn in_dir(dir: &Path) -> Result<Self, LogFilesError> {
        if !PartitionFiles::list(dir)?.segments.is_empty() {
            return Ok(Self::Partitions(vec![dir.to_owned()]));
        }
        let mut partitions = Vec::new();
        for entry in fs::read_dir(dir).map_err(FileError::of("list", dir))? {
            let entry = entry.map_err(FileError::of("list", dir))?;
            let name = entry.file_name();
            if name.to_str().and_then(PartitionDirName::parse).is_some() && entry.path().is_dir() {
                partitions.push(entry.path());
            }
        }
        partitions.sort();
        // A broker's data may have no partition yet, and a partition no segment.
        let name = dir.file_name().and_then(|name| name.to_str());
        let is_ours =
            name.and_then(PartitionDirName::parse).is_some() || dir.join(META_PROPERTIES).is_file();
        if partitions.is_empty() && !is_ours {
            return Err(LogFilesError::Unknown(dir.to_owned()));
        }
        Ok(Self::Partitions(partitions))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Offset;

    #[test]
    fn a_path_is_a_segment_a_partition_or_a_brokers_data() {
        let data = tempfile::tempdir().unwrap();
        let partitions = ["a-0", "b-x-11"].map(|name| data.path().join(name));
        for dir in &partitions {
            fs::create_dir(dir).unwrap();
        }
        fs::create_dir(data.path().join("metadata")).unwrap();
        let log = partitions[0].join("00000000000000000042.log");
        fs::write(&log, "").unwrap();
        fs::write(partitions[0].join("notes"), "").unwrap();

        let at = |path: &Path| LogFiles::at(path).unwrap();
        assert_eq!(at(data.path()), LogFiles::Partitions(partitions.to_vec()));
        assert_eq!(
            at(&partitions[0]),
            LogFiles::Partitions(vec![partitions[0].clone()])
        );
        assert_eq!(
            at(&log),
            LogFiles::Segment {
                dir: partitions[0].clone(),
                name: SegmentFileName::new(Offset(42), SegmentFileKind::Log),
            }
        );
        assert_eq!(
            at(&partitions[1]),
            LogFiles::Partitions(vec![]),
            "a partition that nothing was written to"
        );
        let empty = tempfile::tempdir().unwrap();
        fs::write(empty.path().join(META_PROPERTIES), "").unwrap();
        assert_eq!(at(empty.path()), LogFiles::Partitions(vec![]));
        for other in [data.path().join("metadata"), partitions[0].join("notes")] {
            assert!(
                matches!(LogFiles::at(&other), Err(LogFilesError::Unknown(path)) if path == other)
            );
        }
        assert!(matches!(
            LogFiles::at(&data.path().join("absent")),
            Err(LogFilesError::File(_))
        ));
    }
}
