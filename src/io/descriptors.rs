//! File descriptors of this process: how many it may have, how many it has, and shares of them.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{Mode, OFlags, RawDir, SeekFrom};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What counts where there is no limit: the kernel's own default bound of one (`fs.nr_open`).
const UNLIMITED: u64 = 1 << 20;

/// Raises the soft limit of descriptors to the hard one, if that is allowed, and returns the one then in force (getrlimit(2)).
pub fn raise_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // A sandbox may forbid even this; then the soft limit is what there is.
    let _refused = setrlimit(Resource::Nofile, raised);
    limit_in_force()
}

pub fn limit_in_force() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(UNLIMITED)
}

/// Counts the open descriptors of this process. It needs none for that but the one that it keeps, so it counts right when none is left.
#[derive(Debug)]
pub struct OpenDescriptors {
    directory: OwnedFd,
}

impl OpenDescriptors {
    pub fn new() -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open("/proc/self/fd", flags, Mode::empty())?;
        Ok(Self { directory })
    }

    pub fn count(&self) -> io::Result<u64> {
        rustix::fs::seek(&self.directory, SeekFrom::Start(0))?;
        let mut buffer = [MaybeUninit::<u8>::uninit(); 4096];
        let mut entries = RawDir::new(&self.directory, &mut buffer);
        let mut count = 0;
        while let Some(entry) = entries.next() {
            let name = entry?.file_name().to_bytes()[0];
            count += u64::from(name != b'.');
        }
        Ok(count)
    }
}

/// Descriptors of one kind, of which there may be so many in the whole process. A clone is the same share.
#[derive(Clone, Debug)]
pub struct DescriptorShare {
    taken: Arc<AtomicUsize>,
    count_max: usize,
}

/// A place in a share, given back when it is dropped.
#[derive(Debug)]
pub struct DescriptorPlace {
    taken: Arc<AtomicUsize>,
}

impl DescriptorShare {
    pub fn new(count_max: usize) -> Self {
        Self {
            taken: Arc::default(),
            count_max,
        }
    }

    pub fn count_max(&self) -> usize {
        self.count_max
    }

    /// A place, unless the share or the first `narrower_max` of it are taken.
    pub fn take(&self, narrower_max: usize) -> Option<DescriptorPlace> {
        let count_max = self.count_max.min(narrower_max);
        let one_more = |taken| (taken < count_max).then_some(taken + 1);
        self.taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more)
            .ok()?;
        Some(DescriptorPlace {
            taken: self.taken.clone(),
        })
    }
}

impl Drop for DescriptorPlace {
    fn drop(&mut self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn the_soft_limit_is_raised_to_the_hard_one() {
        let in_force = raise_limit();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
        assert_eq!(in_force, limit.maximum.unwrap_or(UNLIMITED));
    }

    #[test]
    fn what_is_open_is_counted_again_and_again() {
        // Other tests of this process open and close files meanwhile; so many they do not.
        const OPENED: u64 = 300;
        let open = OpenDescriptors::new().unwrap();
        let before = open.count().unwrap();
        let files: Vec<_> = (0..OPENED)
            .map(|_| File::open("/dev/null").unwrap())
            .collect();
        assert!(open.count().unwrap() >= before + OPENED / 2);
        drop(files);
        assert!(open.count().unwrap() < before + OPENED / 2);
        assert!(before > 0);
    }

    #[test]
    fn a_share_is_never_exceeded_and_comes_back() {
        let share = DescriptorShare::new(3);
        let first = share.take(usize::MAX).unwrap();
        let second = share.take(2).unwrap();
        assert!(share.take(2).is_none());
        let _third = share.clone().take(usize::MAX).unwrap();
        assert!(share.take(usize::MAX).is_none());
        drop((first, second));
        assert!(share.take(2).is_some());
    }
}
