//! Whether the file system tells the device at once of every block that a deleted file leaves (`discard`, mount(8)).

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

use super::report::Finding;

const DISCARD: &str = "discard";

/// Nothing is said where the mount is not found, as on file systems that are made of several devices.
pub(super) fn check(file: &File) -> Option<Finding> {
    let device = file.metadata().ok()?.dev();
    let mountinfo = fs::read_to_string("/proc/self/mountinfo").ok()?;
    Some(finding(&Mount::of(device, &mountinfo)?))
}

fn finding(mount: &Mount<'_>) -> Finding {
    if !mount.discards() {
        return Finding::ok(DISCARD, "off: deleting segments does not hold writes up");
    }
    Finding::warn(
        DISCARD,
        "on: while the device forgets the blocks of deleted or compacted segments, it lets writes wait, for a tenth of a second after some GB",
        format!(
            "sudo mount -o remount,nodiscard '{}', take it out of /etc/fstab, and let fstrim.timer do it once a week",
            mount.point
        ),
    )
}

/// A line of `/proc/self/mountinfo` (proc(5)): `36 35 98:0 /root /point rw,noatime master:1 - ext4 /dev/sda1 rw,discard`.
#[derive(Debug, PartialEq, Eq)]
struct Mount<'a> {
    point: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    fn of(device: u64, mountinfo: &'a str) -> Option<Self> {
        let number = format!(
            "{}:{}",
            rustix::fs::major(device),
            rustix::fs::minor(device)
        );
        mountinfo.lines().find_map(|line| {
            let (mount, file_system) = line.split_once(" - ")?;
            let mut fields = mount.split(' ').skip(2);
            let is_it = fields.next()? == number;
            let point = fields.nth(1)?;
            let options = file_system.split(' ').nth(2)?;
            is_it.then_some(Self { point, options })
        })
    }

    fn discards(&self) -> bool {
        // btrfs has it as discard=sync and discard=async, of which the second waits.
        let mut options = self.options.split(',');
        options.any(|option| matches!(option, "discard" | "discard=sync"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::Status;
    use super::*;

    const MOUNTINFO: &str = "\
21 28 0:20 / /proc rw,nosuid - proc proc rw
28 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard,resuid=65534
40 28 254:16 / /srv/data rw,noatime shared:1 - xfs /dev/vdb rw,attr2
";

    fn mount(major: u32, minor: u32) -> Option<Mount<'static>> {
        Mount::of(rustix::fs::makedev(major, minor), MOUNTINFO)
    }

    #[test]
    fn a_mount_with_discard_is_a_warning_that_names_it() {
        let found = finding(&mount(254, 0).unwrap());
        assert_eq!(found.status, Status::Warn);
        assert!(found.fix.unwrap().contains("nodiscard '/'"));
        assert_eq!(finding(&mount(254, 16).unwrap()).status, Status::Ok);
        assert_eq!(mount(8, 1), None);
    }
}
