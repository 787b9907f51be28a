use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::UNIX_EPOCH;

use crate::model::TimestampMs;

/// What a file system says of a file.
#[derive(Clone, Debug)]
pub struct Metadata(std::fs::Metadata);

impl Metadata {
    pub(super) fn real(metadata: std::fs::Metadata) -> Self {
        Self(metadata)
    }

    pub fn size_bytes(&self) -> u64 {
        self.0.len()
    }

    pub fn is_dir(&self) -> bool {
        self.0.is_dir()
    }

    pub fn is_file(&self) -> bool {
        self.0.is_file()
    }

    /// How many names the file has.
    pub fn link_count(&self) -> u64 {
        self.0.nlink()
    }

    /// When its content last changed, by the wall clock. Before 1970 is 1970.
    pub fn modified(&self) -> io::Result<TimestampMs> {
        let since_epoch = self.0.modified()?.duration_since(UNIX_EPOCH);
        let since_epoch = since_epoch.unwrap_or_default();
        Ok(TimestampMs(
            i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX),
        ))
    }
}
