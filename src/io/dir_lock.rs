//! One owner per data directory, for as long as any of its writes may still land.
//!
//! A killed process is gone at once, its files closed; but writes that its rings had handed to a device land later.
//! The next owner must not start to recover before that. So the lock (flock on an open file) is tied to the rings:
//! each registers the open file, and the kernel lets go of it only when the ring's last request has ended.
//!
//! The lock file holds one line: the owner's process id and the time when that process began, since ids are used
//! again.

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

/// The exclusive use of a directory, until it is dropped or the process ends in any way; and once it is tied, until
/// the rings have ended too.
#[derive(Debug)]
pub struct DirLock {
    /// The lock belongs to this open file.
    file: File,
    directory: PathBuf,
}

impl DirLock {
    /// Takes the directory. Blocks while a process that has ended still has writes under way, for at most
    /// `DIR_LOCK_WAIT_FOR_DEAD_OWNER_MS`, and while a process that lives holds it (it may be about to end), for at
    /// most `DIR_LOCK_WAIT_FOR_LIVING_OWNER_MS`.
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
                Ok(()) => {
                    Owner::this_process()
                        .map_err(failed)?
                        .write_to(&mut file)
                        .map_err(failed)?;
                    return Ok(Self {
                        file,
                        directory: directory.to_owned(),
                    });
                }
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

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Ties all locks of this process to every io_uring that it has: to be called once, when the executors stand and
    /// before the first write. Returns the number of rings.
    pub fn tie_to_rings(locks: &[DirLock]) -> Result<usize, DirLockError> {
        let files: Vec<RawFd> = locks.iter().map(|lock| lock.file.as_raw_fd()).collect();
        let rings = rings_of_this_process().map_err(DirLockError::Tie)?;
        for ring in &rings {
            register_files(*ring, &files).map_err(DirLockError::Tie)?;
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

fn register_files(ring: RawFd, files: &[RawFd]) -> io::Result<()> {
    let count = libc::c_uint::try_from(files.len()).map_err(io::Error::other)?;
    // SAFETY: the kernel reads `count` descriptors from `files` during the call, and keeps its own references to the
    // files.
    let outcome = unsafe {
        libc::syscall(
            libc::SYS_io_uring_register,
            ring,
            REGISTER_FILES,
            files.as_ptr(),
            count,
        )
    };
    if outcome < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
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

    /// Not a test of its own: the process that `a_tied_lock_ends_with_the_rings_of_a_killed_owner` starts and kills.
    /// It has rings of its own alone, which the process of all tests has not.
    #[test]
    fn lock_owner() {
        let Some(directory) = std::env::var_os(CHILD) else {
            return;
        };
        let directory = PathBuf::from(directory);
        block_on(async move {
            let lock = DirLock::acquire(&directory).expect("the lock");
            assert!(DirLock::tie_to_rings(&[lock]).expect("rings") > 0);
            // The lock is dropped by now: what holds the directory are the rings.
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
        DirLock::acquire(directory.path()).expect("the lock of a dead owner");
        owner.wait().expect("its end");
    }
}
