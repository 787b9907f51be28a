//! A file system of its own for one broker: small enough to fill, and it can be made read-only or broken.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::broker::new_directory;

/// An ext4 in a file, mounted over a loop device; unmounted when dropped. Mounting takes root, or a sudo that does not ask.
pub struct SmallDisk {
    image: PathBuf,
    mount: PathBuf,
    /// Holds the image and the mount point.
    _parent: TempDir,
}

impl SmallDisk {
    pub fn new(size_bytes: u64) -> Self {
        let parent = new_directory();
        let (image, mount) = (parent.path().join("image"), parent.path().join("mount"));
        File::create(&image).unwrap().set_len(size_bytes).unwrap();
        fs::create_dir(&mount).unwrap();
        // No blocks kept back for root, who runs the tests.
        run(Command::new("mkfs.ext4")
            .args(["-q", "-F", "-m", "0"])
            .arg(&image));
        run(as_root("mount").args(["-o", "loop"]).args([&image, &mount]));
        let disk = Self {
            image,
            mount,
            _parent: parent,
        };
        run(as_root("chmod").arg("777").arg(&disk.mount));
        disk
    }

    pub fn path(&self) -> &Path {
        &self.mount
    }

    /// What may still be written.
    pub fn free_bytes(&self) -> u64 {
        let stat = rustix::fs::statvfs(&self.mount).unwrap();
        stat.f_bavail * stat.f_frsize
    }

    /// From now on the device has no blocks behind `sound_bytes`, and every write there fails. What was there is lost.
    pub fn fail_behind(&self, sound_bytes: u64) {
        let image = File::options().write(true).open(&self.image).unwrap();
        let mut find = as_root("losetup");
        find.args(["--noheadings", "--output", "NAME", "--associated"]);
        let device = run(find.arg(&self.image));
        // What is written before the device knows of it makes the file longer again.
        loop {
            image.set_len(sound_bytes).unwrap();
            run(as_root("losetup").args(["--set-capacity", device.trim()]));
            if image.metadata().unwrap().len() == sound_bytes {
                return;
            }
        }
    }

    pub fn make_read_only(&self) {
        run(as_root("mount").args(["-o", "remount,ro"]).arg(&self.mount));
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a broker that a failed test leaves to its own Drop may still have files open.
        run(as_root("umount").arg("--lazy").arg(&self.mount));
    }
}

pub fn as_root(program: &str) -> Command {
    if rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("sudo");
    command.args(["--non-interactive", program]);
    command
}

/// What it printed.
pub fn run(command: &mut Command) -> String {
    let output = command
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}
