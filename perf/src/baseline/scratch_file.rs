//! A file of a baseline, opened for O_DIRECT and gone afterwards.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::disk::DiskError;

/// Removed when it is dropped.
pub struct ScratchFile {
    path: PathBuf,
    file: File,
    o_direct: bool,
}

impl ScratchFile {
    /// `purpose` tells the files of one process apart.
    pub fn create(directory: &Path, purpose: &str) -> Result<Self, DiskError> {
        let path = directory.join(format!(".corelog-perf-{purpose}-{}", std::process::id()));
        let open = |flags: i32| {
            OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(true)
                .custom_flags(flags)
                .open(&path)
        };
        let (file, o_direct) = match open(libc::O_DIRECT) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => (open(0), false),
            opened => (opened, true),
        };
        match file {
            Ok(file) => Ok(Self {
                path,
                file,
                o_direct,
            }),
            Err(source) => Err(DiskError::File { path, source }),
        }
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    /// False where the file system refuses it.
    pub fn is_o_direct(&self) -> bool {
        self.o_direct
    }

    /// Names the file in the error of what was done to it.
    pub fn io(&self, during: &'static str) -> impl FnOnce(io::Error) -> DiskError {
        let path = self.path.clone();
        move |source| DiskError::Io {
            path,
            during,
            source,
        }
    }
}

impl Drop for ScratchFile {
    fn drop(&mut self) {
        // Nothing depends on it any more; a file that stays behind is only untidy.
        let _ = fs::remove_file(&self.path);
    }
}
