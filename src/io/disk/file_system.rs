//! How full a file system is.

use std::io;
use std::path::Path;

/// The space of a file system as `df` counts it: what only root may use belongs to nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystemSpace {
    pub used_bytes: u64,
    pub free_bytes: u64,
}

impl FileSystemSpace {
    /// Of the file system that `path` is on. Blocks for as long as a file system that is not local does.
    pub fn of(path: &Path) -> io::Result<Self> {
        let stat = rustix::fs::statvfs(path)?;
        let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
        Ok(Self {
            used_bytes: bytes(stat.f_blocks.saturating_sub(stat.f_bfree)),
            free_bytes: bytes(stat.f_bavail),
        })
    }

    pub fn total_bytes(self) -> u64 {
        self.used_bytes.saturating_add(self.free_bytes)
    }

    /// From 0 to 1. A file system without space is full.
    pub fn used_ratio(self) -> f64 {
        match self.total_bytes() {
            0 => 1.0,
            total => self.used_bytes as f64 / total as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_lies_between_nothing_and_all() {
        let used_ratio = |used_bytes, free_bytes| {
            FileSystemSpace {
                used_bytes,
                free_bytes,
            }
            .used_ratio()
        };
        assert_eq!(used_ratio(0, 100), 0.0);
        assert_eq!(used_ratio(95, 5), 0.95);
        assert_eq!(used_ratio(100, 0), 1.0);
        assert_eq!(used_ratio(0, 0), 1.0);
    }

    #[test]
    fn a_real_file_system_has_space_and_a_missing_path_an_error() {
        let space = FileSystemSpace::of(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        assert!(space.total_bytes() > 0);
        assert!(FileSystemSpace::of(Path::new("/nonexistent/x")).is_err());
    }
}
