//! What lies in the log directory beside the partitions of the image: left of deleted topics by a process that died, mostly.

use std::path::{Path, PathBuf};

use crate::io::fs;
use crate::metadata::MetadataImage;
use crate::storage::file_error::FileError;
use crate::storage::partition_dir::{PartitionDirName, Removal, RemovedDirName};
use crate::storage::partition_directory::Identity;

/// Directories that are removed some time after the start.
#[derive(Debug, Default)]
pub struct Strays {
    /// Those that this start gave their name.
    pub found: Vec<PathBuf>,
    /// Those that an earlier one did.
    pub earlier: Vec<PathBuf>,
}

/// Removes what is left of deleted topics, and renames the directories of partitions that the image does not have. One under the name of
/// a partition that it has is left to that partition's opening. Nothing here stops a start: what cannot be done is logged, and the next
/// start tries again. Blocks; the log directory is then to be synced.
pub fn clear(log_dir: &Path, image: &MetadataImage) -> Strays {
    let mut strays = Strays::default();
    let entries = match fs::read_dir(log_dir) {
        Ok(entries) => entries,
        Err(error) => {
            tracing::warn!(path = %log_dir.display(), %error, "what is left of deleted topics stays");
            return strays;
        }
    };
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if let Some(removed) = RemovedDirName::parse(&name) {
            match removed.removal {
                Removal::Deleted => remove(&path),
                Removal::Stray => strays.earlier.push(path),
            }
        } else if let Some(name) = PartitionDirName::parse(&name)
            && fs::is_dir(&path)
        {
            match rename_if_stray(&path, &name, image) {
                Ok(renamed) => strays.found.extend(renamed),
                Err(error) => tracing::warn!(%error, "a directory of no topic's partition stays"),
            }
        }
    }
    strays
}

fn remove(path: &Path) {
    if let Err(error) = fs::remove_dir_all(path) {
        tracing::warn!(path = %path.display(), %error, "a deleted partition's files stay");
    }
}

/// The new path, if it was renamed.
fn rename_if_stray(
    path: &Path,
    name: &PartitionDirName,
    image: &MetadataImage,
) -> Result<Option<PathBuf>, FileError> {
    let has_partition = |topic: &str| {
        let topic = image.topic(topic);
        topic.is_some_and(|topic| topic.partition(name.partition).is_some())
    };
    if has_partition(name.topic.as_str()) {
        return Ok(None);
    }
    let is_stray = match Identity::of(path, name.partition)? {
        // Under a name that its topic never had, it is somebody's copy.
        Identity::Topic(topic) | Identity::WithoutId(Some(topic)) => image
            .topic_by_id(topic)
            .is_none_or(|topic| topic.name == name.topic),
        Identity::WithoutId(None) => true,
        // No crash leaves such files.
        Identity::Contradictory => false,
        // Nothing shows that it is a partition's.
        Identity::Absent | Identity::Empty | Identity::Foreign => return Ok(None),
    };
    if !is_stray {
        tracing::warn!(path = %path.display(), "a directory's files are of a partition of another name: it is left alone");
        return Ok(None);
    }
    let to = RemovedDirName::stray(&name.topic, name.partition).to_string();
    let to = path.with_file_name(to);
    fs::rename(path, &to).map_err(FileError::of("rename", path))?;
    Ok(Some(to))
}
