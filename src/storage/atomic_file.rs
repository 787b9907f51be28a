use std::io::{self, Read};
use std::path::Path;

use super::fault_point;
use super::file_error::{FileError, SYNC_DIRECTORY};
use super::segment_name::UNFINISHED_SUFFIX;
use crate::io::fs::{self, File};

/// Replaces a small file as a whole: after a crash at any moment the path holds either the old bytes or the new ones, and once
/// this returned it holds the new ones, also after a power cut. One writer per path at a time.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(UNFINISHED_SUFFIX);
    let unfinished = Path::new(&unfinished);
    let written = write_new(unfinished, bytes).and_then(|()| {
        fault_point::growth(|| fs::rename(unfinished, path))
            .map_err(FileError::of("rename", unfinished))
    });
    if let Err(error) = written {
        // On a full disk its block may be the one that is missed next. A start removes it too.
        let _ = remove(unfinished);
        return Err(error);
    }
    sync_dir(path.parent().expect("a file lies in a directory"))
}

/// Writes over the start of a file that is there, in place: for one that is to be replaced where there is no space for a second one.
pub fn overwrite(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let file = fault_point::change(|| File::options().write(true).open(path))
        .map_err(FileError::of("open", path))?;
    fault_point::change(|| file.write_all_at(bytes, 0)).map_err(FileError::of("write", path))?;
    fault_point::change(|| file.sync_all()).map_err(FileError::of("sync", path))
}

fn write_new(unfinished: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let file = fault_point::growth(|| File::create(unfinished))
        .map_err(FileError::of("create", unfinished))?;
    fault_point::write_all_at(&file, bytes, 0).map_err(FileError::of("write", unfinished))?;
    fault_point::change(|| file.sync_all()).map_err(FileError::of("sync", unfinished))
}

/// The whole of a small file; `None` if it is not there. One that is longer than any that we write is cut there, so that it costs
/// no memory: its decoder sees that it is not whole.
pub fn read(path: &Path, bytes_max: u64) -> Result<Option<Vec<u8>>, FileError> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(FileError::of("open", path))?,
    };
    let mut bytes = Vec::new();
    file.take(bytes_max + 1)
        .read_to_end(&mut bytes)
        .map_err(FileError::of("read", path))?;
    Ok(Some(bytes))
}

/// Makes what was created, renamed or removed in a directory survive a power cut.
pub fn sync_dir(dir: &Path) -> Result<(), FileError> {
    let opened = fault_point::change(|| File::open(dir)).map_err(FileError::of("open", dir))?;
    fault_point::change(|| opened.sync_all()).map_err(FileError::of(SYNC_DIRECTORY, dir))
}

/// Removes a file; one that is not there is removed already.
pub fn remove(path: &Path) -> Result<(), FileError> {
    match fault_point::change(|| fs::remove_file(path)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(FileError::of("remove", path)(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        assert_eq!(read(&path, 100).unwrap(), None);
        replace(&path, b"one").unwrap();
        replace(&path, b"two!").unwrap();
        assert_eq!(read(&path, 100).unwrap().unwrap(), b"two!");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_beyond_its_bound_is_read_no_further() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        replace(&path, &[0; 5_000]).unwrap();
        assert_eq!(read(&path, 100).unwrap().unwrap().len(), 101);
    }

    #[test]
    fn errors_name_the_operation_and_the_path() {
        let error = replace(Path::new("/nonexistent/x"), b"")
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("cannot create /nonexistent/x.tmp: "),
            "{error}"
        );
        assert!(remove(Path::new("/nonexistent/x")).is_ok());
    }
}
