//! One owner per data directory, for as long as any of its writes may still land.
//!
//! A killed process is gone at once, its files closed; but writes that its rings had handed to a device land later. The next
//! owner must not start to recover before that. So the lock (flock on an open file) is tied to the rings: each registers the open file, and the kernel lets go
//! of it only when the ring's last request has ended.
//!
//! The lock file holds one line: the owner's process id and the time when that process began, since ids are used again.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::process;
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::model::limits::{
    DIR_LOCK_RETRY_MS, DIR_LOCK_WAIT_FOR_DEAD_OWNER_MS, DIR_LOCK_WAIT_FOR_LIVING_OWNER_MS,
};

/// The file in the directory that is locked. It stays when the lock goes.
const LOCK_FILE: &str = ".lock";

/// `IORING_REGISTER_FILES` of io_uring_register(2).
const REGISTER_FILES: libc::c_uint = 2;

#[derive(Debug, thiserror::Error)]
pub enum DirLockError {
    #[error("'{}' is in use by {}", directory.display(), describe(*owner_pid))]
    Held {
        directory: PathBuf,
        owner_pid: Option<u32>,
    },
    #[error(
        "'{}' was in use by the process {owner_pid}, which has ended, but not all of its writes have in {waited_ms} ms",
        directory.display()
    )]
    WritesOutstanding {
        directory: PathBuf,
        owner_pid: u32,
        waited_ms: u64,
    },
    #[error("cannot lock '{}': {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("cannot tie the lock of the data directory to an io_uring: {0}")]
    Tie(io::Error),
}

fn describe(owner_pid: Option<u32>) -> String {
    match owner_pid {
        Some(pid) => format!("the process {pid}"),
        None => "another process".to_owned(),
    }
}

/// The exclusive use of a directory, until it is dropped or the process ends in any way; and once it is tied, until the rings have ended too.
#[derive(Debug)]
pub struct DirLock {
    /// The lock belongs to this open file.
    file: File,
    directory: PathBuf,
    owner_was_killed: bool,
}

impl DirLock {
    /// Takes the directory. Blocks while a process that has ended still has writes under way, for at most
    /// `DIR_LOCK_WAIT_FOR_DEAD_OWNER_MS`, and while a process that lives holds it (it may be about to end), for at most
    /// `DIR_LOCK_WAIT_FOR_LIVING_OWNER_MS`.
    pub fn acquire(directory: &Path) -> Result<Self, DirLockError> {
        let path = directory.join(LOCK_FILE);
        let failed = |source| DirLockError::Io {
            path: path.clone(),
            source,
        };
        let started = Instant::now();
        loop {
            // Not truncated: until the lock is held, the line in it is the owner's.
            let opened = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path);
            let mut file = opened.map_err(failed)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Self::take_over(file, directory).map_err(failed),
                Err(Errno::WOULDBLOCK) => {}
                Err(error) => return Err(failed(error.into())),
            }
            let owner = Owner::read_from(&mut file);
            let ended_owner = owner.filter(|owner| owner.has_ended());
            let wait_ms = match ended_owner {
                Some(_) => DIR_LOCK_WAIT_FOR_DEAD_OWNER_MS,
                None => DIR_LOCK_WAIT_FOR_LIVING_OWNER_MS,
            };
            if started.elapsed() < Duration::from_millis(wait_ms) {
                thread::sleep(Duration::from_millis(DIR_LOCK_RETRY_MS));
                continue;
            }
            let directory = directory.to_owned();
            return Err(match ended_owner {
                Some(owner) => DirLockError::WritesOutstanding {
                    directory,
                    owner_pid: owner.pid,
                    waited_ms: wait_ms,
                },
                None => DirLockError::Held {
                    directory,
                    owner_pid: owner.map(|owner| owner.pid),
                },
            });
        }
    }

    /// The file is locked by now.
    fn take_over(mut file: File, directory: &Path) -> io::Result<Self> {
        // A clean stop leaves the file empty.
        let owner_was_killed = file.metadata()?.len() > 0;
        Owner::this_process()?.write_to(&mut file)?;
        Ok(Self { file, directory: directory.to_owned(), owner_was_killed })
    }

    /// Whether the last owner ended without `release_clean`. If its lock was not tied to its rings, what it was writing may still be on its
    /// way to the disk.
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

    /// Ties the lock to every io_uring that this process has now: from here on the directory is free only when all of them have ended. To be called when
    /// the executors stand and before they write; again after new ones were started. One lock for each process: a ring that is tied to
    /// another stays so. Returns the number of rings.
    pub fn tie_to_rings(&self) -> Result<usize, DirLockError> {
        let rings = rings_of_this_process().map_err(DirLockError::Tie)?;
        for ring in &rings {
            register_file(*ring, &self.file).map_err(DirLockError::Tie)?;
        }
        Ok(rings.len())
    }
}

/// glommio keeps its rings to itself; the kernel lists them.
fn rings_of_this_process() -> io::Result<Vec<RawFd>> {
    let mut rings = Vec::new();
    for entry in fs::read_dir("/proc/self/fd")? {
        let entry = entry?;
        let is_ring = fs::read_link(entry.path())
            .is_ok_and(|target| target == Path::new("anon_inode:[io_uring]"));
        if let (true, Some(descriptor)) = (is_ring, entry.file_name().to_str()) {
            rings.push(descriptor.parse().map_err(io::Error::other)?);
        }
    }
    Ok(rings)
}

fn register_file(ring: RawFd, file: &File) -> io::Result<()> {
    let files = [file.as_raw_fd()];
    let count = files.len() as libc::c_uint;
    // SAFETY: the kernel reads `count` descriptors from `files` during the call, and keeps its own reference to the file.
    let outcome = unsafe { libc::syscall(libc::SYS_io_uring_register, ring, REGISTER_FILES, files.as_ptr(), count) };
    let error = io::Error::last_os_error();
    // EBUSY: registered before. glommio registers no files.
    if outcome >= 0 || error.raw_os_error() == Some(libc::EBUSY) { Ok(()) } else { Err(error) }
}

/// A process, and not another one that later got its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owner {
    pid: u32,
    /// In clock ticks since the machine's start, as the kernel counts them.
    started_at: u64,
}

impl Owner {
    fn this_process() -> io::Result<Self> {
        let pid = process::id();
        let started_at =
            start_of(pid).ok_or_else(|| io::Error::other("/proc does not show this process"))?;
        Ok(Self { pid, started_at })
    }

    fn has_ended(self) -> bool {
        start_of(self.pid) != Some(self.started_at)
    }

    fn write_to(self, file: &mut File) -> io::Result<()> {
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{} {}", self.pid, self.started_at)
    }

    /// `None` where the owner has not written its line yet.
    fn read_from(file: &mut File) -> Option<Self> {
        let mut line = String::new();
        file.read_to_string(&mut line).ok()?;
        line.parse().ok()
    }
}

impl FromStr for Owner {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let (pid, started_at) = line.trim_end().split_once(' ').ok_or(())?;
        Ok(Self {
            pid: pid.parse().map_err(drop)?,
            started_at: started_at.parse().map_err(drop)?,
        })
    }
}

/// When a process began; `None` if there is none, or only its remains that nobody has waited for.
fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; behind it follow the state (field 3) and, as field 22, the start.
    let (_name, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let is_zombie = matches!(fields.next()?, "Z" | "X");
    let started_at = fields.nth(18)?.parse().ok()?;
    (!is_zombie).then_some(started_at)
}

#[cfg(test)]
mod tests {
    use std::io::BufRead;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::io::executor::block_on;

    const CHILD: &str = "CORELOG_TEST_LOCK_OWNER";

    #[test]
    fn a_second_owner_is_refused_and_told_who_the_first_is() {
        let directory = tempfile::tempdir().expect("a directory");
        let lock = DirLock::acquire(directory.path()).expect("the first lock");
        let error = DirLock::acquire(directory.path()).expect_err("the second lock");
        let message = error.to_string();
        assert!(
            message.contains(&format!("the process {}", process::id())),
            "{message}"
        );
        assert!(
            message.contains(&directory.path().display().to_string()),
            "{message}"
        );
        drop(lock);
        DirLock::acquire(directory.path()).expect("the lock after its owner");
    }

    #[test]
    fn a_clean_stop_is_told_from_a_crash() {
        let directory = tempfile::tempdir().expect("a directory");
        let lock = DirLock::acquire(directory.path()).expect("a lock");
        assert!(!lock.owner_was_killed(), "there was none");
        drop(lock);
        let lock = DirLock::acquire(directory.path()).expect("a lock");
        assert!(lock.owner_was_killed());
        lock.release_clean();
        assert!(!DirLock::acquire(directory.path()).expect("a lock").owner_was_killed());
    }

    #[test]
    fn a_directory_that_is_not_there_is_an_error_with_its_path() {
        let directory = tempfile::tempdir().expect("a directory");
        let error = DirLock::acquire(&directory.path().join("missing")).expect_err("no directory");
        assert!(error.to_string().contains("missing/.lock"), "{error}");
    }

    #[test]
    fn an_owner_is_told_from_a_later_process_with_its_number() {
        let this = Owner::this_process().expect("this process");
        assert!(!this.has_ended());
        assert!(
            Owner {
                started_at: this.started_at + 1,
                ..this
            }
            .has_ended()
        );
        assert_eq!(
            format!("{} {}\n", this.pid, this.started_at).parse(),
            Ok(this)
        );
        assert_eq!("".parse::<Owner>(), Err(()));
    }

    /// Not a test of its own: the process that `a_tied_lock_ends_with_the_rings_of_a_killed_owner` starts and kills. It has rings of its own alone, which the
    /// process of all tests has not.
    #[test]
    fn lock_owner() {
        let Some(directory) = std::env::var_os(CHILD) else {
            return;
        };
        let directory = PathBuf::from(directory);
        block_on(async {
            let lock = DirLock::acquire(&directory).expect("the lock");
            assert!(lock.tie_to_rings().expect("rings") > 0);
            assert!(lock.tie_to_rings().expect("the same rings") > 0);
            drop(lock);
            // What holds the directory now are the rings.
            let error = DirLock::acquire(&directory).expect_err("the rings have not ended");
            assert!(matches!(error, DirLockError::Held { .. }), "{error}");
            println!("\nthe rings hold the directory");
            thread::sleep(Duration::from_secs(60));
        });
    }

    #[test]
    fn a_tied_lock_ends_with_the_rings_of_a_killed_owner() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut owner = Command::new(std::env::current_exe().expect("the path of this test"))
            .args(["--exact", "io::dir_lock::tests::lock_owner", "--nocapture"])
            .env(CHILD, directory.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child process");
        let stdout = io::BufReader::new(owner.stdout.take().expect("its output"));
        let held = stdout
            .lines()
            .map_while(Result::ok)
            .any(|line| line == "the rings hold the directory");
        assert!(held, "the owner failed: {:?}", owner.wait());
        let error = DirLock::acquire(directory.path()).expect_err("it is held");
        assert!(
            error.to_string().contains(&owner.id().to_string()),
            "{error}"
        );
        owner.kill().expect("a kill");
        // Not waited for yet: the remains of a process own nothing either.
        let lock = DirLock::acquire(directory.path()).expect("the lock of a dead owner");
        assert!(lock.owner_was_killed());
        owner.wait().expect("its end");
    }
}
