//! Directories and small files, by calls that block: run them by `io::blocking::run`.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::os_error::Shortage;

const FSYNC: &str = "fsync";

/// An operation on a path that the system refused.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} '{}': {source}", path.display())]
pub struct DirError {
    pub operation: &'static str,
    pub path: PathBuf,
    pub source: io::Error,
}

impl DirError {
    fn new(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self {
            operation,
            path,
            source,
        }
    }

    /// What is short, if the operation may be tried again once there is more of it; a failed fsync may not.
    pub fn shortage(&self) -> Option<Shortage> {
        match self.operation {
            FSYNC => None,
            _ => Shortage::of(&self.source),
        }
    }
}

/// Makes the names in a directory survive a power cut: after creating, renaming or removing a file in it.
pub fn sync_dir(directory: &Path) -> Result<(), DirError> {
    let opened = File::open(directory).map_err(DirError::new("open", directory))?;
    opened.sync_all().map_err(DirError::new(FSYNC, directory))
}

/// Makes a directory and what is missing above it, each name surviving a power cut.
pub fn create_dir_all(directory: &Path) -> Result<(), DirError> {
    if directory.as_os_str().is_empty() || directory.is_dir() {
        return Ok(());
    }
    let above = parent_of(directory);
    create_dir_all(above)?;
    match fs::create_dir(directory) {
        // Somebody else was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && directory.is_dir() => Ok(()),
        Err(error) => Err(DirError::new("create the directory", directory)(error)),
        Ok(()) => sync_dir(above),
    }
}

/// Replaces a file's whole content: whoever reads it, after a crash too, sees all of the old or all of the new. The
/// new content survives a power cut when this returns. `<name>.tmp` beside it is overwritten.
pub fn replace_file(path: &Path, content: &[u8]) -> Result<(), DirError> {
    let temporary = temporary_of(path);
    let mut file = File::create(&temporary).map_err(DirError::new("create", &temporary))?;
    file.write_all(content)
        .map_err(DirError::new("write", &temporary))?;
    file.sync_all().map_err(DirError::new(FSYNC, &temporary))?;
    drop(file);
    fs::rename(&temporary, path).map_err(DirError::new("replace", path))?;
    sync_dir(parent_of(path))
}

/// Removes a file and makes that survive a power cut. A file that is not there is no error.
pub fn remove_file(path: &Path) -> Result<(), DirError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(DirError::new("remove", path)(error)),
        Ok(()) => sync_dir(parent_of(path)),
    }
}

fn temporary_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().expect("a file has a name").to_owned();
    name.push(".tmp");
    path.with_file_name(name)
}

fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_has_the_new_content_and_leaves_no_temporary_behind() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("checkpoint");
        replace_file(&path, b"old").expect("the first write");
        fs::write(temporary_of(&path), b"left over from a crash").expect("a leftover");
        replace_file(&path, b"new").expect("the second write");
        assert_eq!(fs::read(&path).expect("the file"), b"new");
        assert_eq!(
            fs::read_dir(directory.path())
                .expect("the directory")
                .count(),
            1
        );
    }

    #[test]
    fn nested_directories_are_made_and_made_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let nested = directory.path().join("a/b/c");
        create_dir_all(&nested).expect("new directories");
        create_dir_all(&nested).expect("existing directories");
        assert!(nested.is_dir());
    }

    #[test]
    fn an_error_names_the_path() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        fs::write(&path, b"").expect("a file");
        let error = create_dir_all(&path.join("below")).expect_err("a file is no directory");
        assert!(error.to_string().contains("/file'"), "{error}");
        let error = sync_dir(&directory.path().join("missing")).expect_err("no directory");
        assert!(error.to_string().contains("missing"), "{error}");
    }

    #[test]
    fn a_shortage_passes_but_a_failed_fsync_is_never_tried_again() {
        let failed = |operation, number| {
            let source = io::Error::from_raw_os_error(number);
            DirError::new(operation, Path::new("/x"))(source).shortage()
        };
        assert_eq!(failed("open", libc::EMFILE), Some(Shortage::Descriptors));
        assert_eq!(failed("create", libc::ENOSPC), Some(Shortage::Space));
        assert_eq!(failed("open", libc::EIO), None);
        assert_eq!(failed(FSYNC, libc::ENOMEM), None);
        assert_eq!(failed(FSYNC, libc::EIO), None);
    }

    #[test]
    fn removing_what_is_not_there_is_no_error() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        fs::write(&path, b"").expect("a file");
        remove_file(&path).expect("the file's end");
        remove_file(&path).expect("nothing to remove");
        assert!(!path.exists());
    }
}
