//! How much memory this process may use: what the machine has, or less where a control group says so (cgroups(7)), as in a container.
//!
//! A group's limit holds for all groups in it, so each directory from the process's own up to the mount point is asked. Where a container
//! sees only a part of the hierarchy, that part's top is the mount point.

use std::fs;
use std::path::{Path, PathBuf};

/// The least of all limits, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    pub bytes: u64,
    /// The file that says so; `None` for the memory of the machine.
    pub source: Option<PathBuf>,
}

/// One hierarchy of control groups that counts memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hierarchy {
    V1,
    V2,
}

impl Hierarchy {
    /// The files that limit a group. From `memory.high` on the kernel slows the group down, which is no way to live either.
    fn files(self) -> &'static [&'static str] {
        match self {
            Self::V1 => &["memory.limit_in_bytes"],
            Self::V2 => &["memory.max", "memory.high"],
        }
    }
}

/// A process's own group in a hierarchy, and where that hierarchy is mounted.
#[derive(Debug, PartialEq, Eq)]
struct Group {
    hierarchy: Hierarchy,
    mount_point: PathBuf,
    directory: PathBuf,
}

impl MemoryLimit {
    /// The limit of this process now.
    pub fn in_force() -> Self {
        let info = rustix::system::sysinfo();
        let machine = Self {
            bytes: (info.totalram as u64).saturating_mul(u64::from(info.mem_unit.max(1))),
            source: None,
        };
        // Where these cannot be read there are no control groups.
        let cgroup = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mountinfo = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        machine.narrowed_by(&groups_of(&cgroup, &mountinfo))
    }

    fn narrowed_by(self, groups: &[Group]) -> Self {
        let limits = groups.iter().flat_map(Group::limits);
        limits.fold(self, |least, limit| match limit.bytes < least.bytes {
            true => limit,
            false => least,
        })
    }
}

impl Group {
    fn limits(&self) -> Vec<MemoryLimit> {
        let own = match self.directory.is_dir() {
            true => &self.directory,
            false => &self.mount_point,
        };
        let directories = own
            .ancestors()
            .take_while(|it| it.starts_with(&self.mount_point));
        let files = directories.flat_map(|directory| {
            let names = self.hierarchy.files().iter();
            names.map(move |name| directory.join(name))
        });
        let limits = files.filter_map(|file| {
            let bytes = limit_in(&file)?;
            let source = Some(file);
            Some(MemoryLimit { bytes, source })
        });
        limits.collect()
    }
}

/// `None` where there is no limit: no such file, or the word `max`.
fn limit_in(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// From `/proc/self/cgroup` and `/proc/self/mountinfo` (proc(5)):
///
/// ```text
/// 4:memory:/docker/f00          hierarchy, its controllers, the group's path within it
/// 0::/user.slice                version 2 has no controllers here
///
/// 35 31 0:32 /docker/f00 /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
///            what is mounted, where                                   type         options
/// ```
fn groups_of(cgroup: &str, mountinfo: &str) -> Vec<Group> {
    let path_of = |hierarchy| {
        cgroup.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            let is_it = match hierarchy {
                Hierarchy::V1 => controllers.split(',').any(|it| it == "memory"),
                Hierarchy::V2 => controllers.is_empty(),
            };
            is_it.then_some(path)
        })
    };
    let groups = mountinfo.lines().filter_map(|line| {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let (root, mount_point) = (mount.next()?, mount.next()?);
        let mut file_system = file_system.split(' ');
        let (kind, options) = (file_system.next()?, file_system.nth(1)?);
        let hierarchy = match kind {
            "cgroup" if options.split(',').any(|it| it == "memory") => Hierarchy::V1,
            "cgroup2" => Hierarchy::V2,
            _ => return None,
        };
        let mount_point = PathBuf::from(unescaped(mount_point));
        let path = Path::new(path_of(hierarchy)?);
        // What is mounted may be another part of the hierarchy than the group's; then its top is all that is known.
        let below = path.strip_prefix(unescaped(root)).unwrap_or(Path::new(""));
        Some(Group {
            hierarchy,
            directory: mount_point.join(below),
            mount_point,
        })
    });
    groups.collect()
}

/// A blank in a path, as the kernel writes it there.
fn unescaped(path: &str) -> String {
    path.replace("\\040", " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    fn machine(bytes: u64) -> MemoryLimit {
        MemoryLimit {
            bytes,
            source: None,
        }
    }

    fn group(hierarchy: Hierarchy, mount_point: &Path, below: &str) -> Group {
        Group {
            hierarchy,
            mount_point: mount_point.to_owned(),
            directory: mount_point.join(below),
        }
    }

    #[test]
    fn groups_are_found_where_they_are_mounted() {
        let v1 = groups_of(
            "4:memory:/a/b\n1:name=systemd:/x\n0::/\n",
            "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
             36 31 0:33 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu\n",
        );
        let mount = Path::new("/sys/fs/cgroup/memory");
        assert_eq!(v1, [group(Hierarchy::V1, mount, "a/b")]);
        let v2 = groups_of(
            "0::/user.slice/one\n",
            "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 master:1 - cgroup2 cgroup2 rw,nsdelegate\n",
        );
        let mount = Path::new("/sys/fs/cgroup");
        assert_eq!(v2, [group(Hierarchy::V2, mount, "user.slice/one")]);
    }

    #[test]
    fn in_a_container_the_mount_point_is_the_top() {
        let mounted = "35 31 0:32 /docker/f00 /sys/fs/cgroup/memory ro - cgroup cgroup ro,memory\n";
        let mount = Path::new("/sys/fs/cgroup/memory");
        for (path, below) in [
            ("/docker/f00", ""),
            ("/docker/f00/inner", "inner"),
            ("/elsewhere", ""),
        ] {
            let groups = groups_of(&format!("4:memory:{path}\n"), mounted);
            assert_eq!(groups, [group(Hierarchy::V1, mount, below)], "{path}");
        }
    }

    #[test]
    fn strange_lines_are_passed_over() {
        for (cgroup, mountinfo) in [
            ("", ""),
            ("memory", "35 31"),
            ("4:memory", "35 31 0:32 / /x rw - cgroup"),
            (":::", " - - - "),
        ] {
            assert_eq!(groups_of(cgroup, mountinfo), []);
        }
    }

    #[test]
    fn the_least_limit_of_all_groups_above_counts() {
        let mount = tempfile::tempdir().unwrap();
        let own = mount.path().join("outer/own");
        fs::create_dir_all(&own).unwrap();
        let write = |path: &str, text: &str| fs::write(mount.path().join(path), text).unwrap();
        let limit = |hierarchy, bytes| {
            machine(bytes).narrowed_by(&[group(hierarchy, mount.path(), "outer/own")])
        };
        assert_eq!(limit(Hierarchy::V2, 100 * MIB), machine(100 * MIB));

        write("outer/own/memory.max", "max\n");
        write("outer/own/memory.high", "max\n");
        write("outer/memory.max", &format!("{}\n", 60 * MIB));
        let outer = limit(Hierarchy::V2, 100 * MIB);
        assert_eq!(outer.bytes, 60 * MIB);
        assert_eq!(outer.source, Some(mount.path().join("outer/memory.max")));
        assert_eq!(limit(Hierarchy::V2, 50 * MIB), machine(50 * MIB));
        write("outer/own/memory.high", &format!("{}\n", 40 * MIB));
        assert_eq!(limit(Hierarchy::V2, 100 * MIB).bytes, 40 * MIB);

        // What version 1 says where there is no limit.
        write("outer/own/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(limit(Hierarchy::V1, 100 * MIB), machine(100 * MIB));
        write("memory.limit_in_bytes", &format!("{}\n", 30 * MIB));
        assert_eq!(limit(Hierarchy::V1, 100 * MIB).bytes, 30 * MIB);
    }

    #[test]
    fn a_group_that_is_not_there_is_asked_at_its_mount_point() {
        let mount = tempfile::tempdir().unwrap();
        fs::write(mount.path().join("memory.max"), "1000\n").unwrap();
        let groups = [group(Hierarchy::V2, mount.path(), "gone/away")];
        assert_eq!(machine(MIB).narrowed_by(&groups).bytes, 1000);
    }

    #[test]
    fn this_process_has_a_limit() {
        let limit = MemoryLimit::in_force();
        assert!(limit.bytes > 16 * MIB, "{limit:?}");
    }
}
