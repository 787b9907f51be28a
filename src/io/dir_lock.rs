//! One owner per data directory.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// The file in the directory that is locked. It stays when the lock goes.
const LOCK_FILE: &str = ".lock";

#[derive(Debug, thiserror::Error)]
pub enum DirLockError {
    #[error("'{}' is in use by {}", directory.display(), owner(*pid))]
    Held {
        directory: PathBuf,
        pid: Option<u32>,
    },
    #[error("cannot lock '{}': {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

fn owner(pid: Option<u32>) -> String {
    match pid {
        Some(pid) => format!("the process {pid}"),
        None => "another process".to_owned(),
    }
}

/// The exclusive use of a directory, until it is dropped or the process ends in any way.
#[derive(Debug)]
pub struct DirLock {
    /// The lock belongs to this open file.
    file: File,
    directory: PathBuf,
    owner_was_killed: bool,
}

impl DirLock {
    /// Fails at once if another process, or another part of this one, holds the directory.
    pub fn acquire(directory: &Path) -> Result<Self, DirLockError> {
        let path = directory.join(LOCK_FILE);
        let failed = |source| DirLockError::Io {
            path: path.clone(),
            source,
        };
        // Not truncated: until the lock is held, the number in it is the owner's.
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path);
        let mut file = opened.map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let mut text = String::new();
                // Only for the message; an owner that has not written its number yet has none.
                let pid = file
                    .read_to_string(&mut text)
                    .ok()
                    .and_then(|_len| text.trim().parse().ok());
                return Err(DirLockError::Held {
                    directory: directory.to_owned(),
                    pid,
                });
            }
            Err(error) => return Err(failed(error.into())),
        }
        // A clean stop leaves the file empty.
        let owner_was_killed = file.metadata().map_err(failed)?.len() > 0;
        file.set_len(0)
            .and_then(|()| file.rewind())
            .map_err(failed)?;
        writeln!(file, "{}", process::id()).map_err(failed)?;
        Ok(Self {
            file,
            directory: directory.to_owned(),
            owner_was_killed,
        })
    }

    /// Whether the last owner ended without `release_clean`: what it was writing may still be on its way to the disk, since the kernel
    /// finishes a dead process's I/O after its locks are gone.
    pub fn owner_was_killed(&self) -> bool {
        self.owner_was_killed
    }

    /// Gives the directory up after a clean stop.
    pub fn release_clean(self) {
        if let Err(error) = self.file.set_len(0) {
            tracing::warn!(directory = %self.directory.display(), %error, "the next start will take this stop for a crash");
        }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_owner_is_refused_and_told_who_the_first_is() {
        let directory = tempfile::tempdir().expect("a directory");
        let lock = DirLock::acquire(directory.path()).expect("the first lock");
        let error = DirLock::acquire(directory.path()).expect_err("the second lock");
        let message = error.to_string();
        assert!(message.contains(&process::id().to_string()), "{message}");
        assert!(
            message.contains(&directory.path().display().to_string()),
            "{message}"
        );
        drop(lock);
        DirLock::acquire(directory.path()).expect("the lock after its owner");
    }

    #[test]
    fn a_directory_that_is_not_there_is_an_error_with_its_path() {
        let directory = tempfile::tempdir().expect("a directory");
        let error = DirLock::acquire(&directory.path().join("missing")).expect_err("no directory");
        assert!(error.to_string().contains("missing/.lock"), "{error}");
    }
}
