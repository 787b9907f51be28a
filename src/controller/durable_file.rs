use std::io::{self, Write};
use std::path::Path;

use crate::io::fs::{self, File};

/// Puts `bytes` in the place of the file, whole or not at all: a crash leaves either the old file or the new one. Durable when
/// it returns, name included.
pub(super) fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    let temporary = Path::new(&temporary);
    let renamed = write_new(temporary, bytes).and_then(|()| fs::rename(temporary, path));
    if renamed.is_err() {
        // On a full disk its blocks may be those that are missed next.
        let _ = fs::remove_file(temporary);
    }
    renamed?;
    sync_directory(parent(path))
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes the names in a directory durable.
pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

pub(super) fn read_if_present(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}
