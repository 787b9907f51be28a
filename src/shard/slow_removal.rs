//! Removing large files bit by bit. A file system that is mounted with `discard` tells the device of every block that a removed file
//! leaves, and the device lets writes wait meanwhile: some 20 ms for a segment of 16 MiB, 140 ms for some GB. Cut off in small pieces
//! the same blocks hold nothing up.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::io::fs::{self, File};
use crate::io::{blocking, executor};
use crate::model::limits::{REMOVAL_STEP_BYTES, REMOVAL_STEP_MS};
use crate::shard::disk_guard::Room;
use crate::shard::log_dir::LogDir;

/// Cuts a file that is about to be removed, until little is left of it. Whoever still reads it finds its end, and looks for the records
/// elsewhere. Completes without having done anything where the file is small, missing, or has another name too, and early where
/// space is short: then the rest is to go at once.
pub(super) async fn shrink(path: PathBuf, is_space_short: impl Fn() -> bool) -> io::Result<()> {
    while !is_space_short() {
        let file = path.clone();
        let left_bytes = blocking::run(move || cut(&file)).await?;
        if left_bytes == 0 {
            return Ok(());
        }
        executor::sleep(Duration::from_millis(REMOVAL_STEP_MS)).await;
    }
    Ok(())
}

/// The same for each file of a directory that is about to be removed.
pub(super) async fn shrink_all(
    directory: PathBuf,
    is_space_short: impl Fn() -> bool,
) -> io::Result<()> {
    let list = move || -> io::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(&directory)?;
        entries.map(|entry| Ok(entry?.path())).collect()
    };
    for path in blocking::run(list).await? {
        shrink(path, &is_space_short).await?;
    }
    Ok(())
}

/// Removes a directory that is no partition's any more, with all that is in it. What cannot be removed stays until the next start.
pub(super) async fn remove_directory(path: PathBuf, log_dir: &LogDir) {
    let shown = path.display().to_string();
    let is_space_short = || log_dir.room() != Room::Free;
    if let Err(error) = shrink_all(path.clone(), is_space_short).await {
        tracing::warn!(path = shown, %error, "a deleted partition's files were not cut");
    }
    if let Err(error) = blocking::run(move || fs::remove_dir_all(&path)).await {
        tracing::warn!(path = shown, %error, "a deleted partition's files stay until the next start");
    }
}

/// One step; the bytes that are left, or 0 where no further step is worth it.
fn cut(path: &Path) -> io::Result<u64> {
    let file = match File::options().write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        opened => opened?,
    };
    let metadata = file.metadata()?;
    // Another name means another owner, who has use for the bytes.
    let is_own = metadata.is_file() && metadata.link_count() == 1;
    if !is_own || metadata.size_bytes() <= REMOVAL_STEP_BYTES {
        return Ok(0);
    }
    let left_bytes = metadata.size_bytes() - REMOVAL_STEP_BYTES;
    file.set_len(left_bytes)?;
    Ok(left_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &Path, bytes: u64) {
        std::fs::File::create(path).unwrap().set_len(bytes).unwrap();
    }

    fn size(path: &Path) -> u64 {
        std::fs::metadata(path).unwrap().len()
    }

    #[test]
    fn a_large_file_is_cut_until_one_step_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let (large, small) = (dir.path().join("large"), dir.path().join("small"));
        file(&large, 3 * REMOVAL_STEP_BYTES + 5);
        file(&small, REMOVAL_STEP_BYTES);
        executor::block_on(shrink_all(dir.path().to_owned(), || true)).unwrap();
        assert_eq!(size(&large), 3 * REMOVAL_STEP_BYTES + 5, "space is short");
        executor::block_on(shrink_all(dir.path().to_owned(), || false)).unwrap();
        assert_eq!((size(&large), size(&small)), (5, REMOVAL_STEP_BYTES));
        executor::block_on(shrink(dir.path().join("missing"), || false)).unwrap();
    }

    #[test]
    fn a_file_with_another_name_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (kept, deleted) = (dir.path().join("0.log"), dir.path().join("0.log.deleted"));
        file(&kept, 3 * REMOVAL_STEP_BYTES);
        std::fs::hard_link(&kept, &deleted).unwrap();
        executor::block_on(shrink(deleted, || false)).unwrap();
        assert_eq!(size(&kept), 3 * REMOVAL_STEP_BYTES);
    }
}
