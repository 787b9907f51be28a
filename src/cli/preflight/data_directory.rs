use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{OFlags, StatFs, fcntl_getfl, fstatfs};

use super::discard;
use super::report::Finding;
use crate::io::disk::FileSystemSpace;
use crate::model::limits::PAGE_BYTES;

const DIRECTORY: &str = "data directory";
const DIRECT: &str = "O_DIRECT";
const FILE_SYSTEM: &str = "file system";
const FREE_SPACE: &str = "free space";

/// Two segments of the default size: one that is written and one that is prepared.
const FREE_BYTES_ADVISED: u64 = 2 << 30;

/// The file systems that are worth a word, by the magic number of statfs(2).
const FILE_SYSTEMS: &[(i64, &str, Kind)] = &[
    (0xEF53, "ext4", Kind::Local),
    (0x5846_5342, "xfs", Kind::Local),
    (0xF2F5_2010, "f2fs", Kind::Local),
    (0x9123_683E, "btrfs", Kind::CopyOnWrite),
    (0x2FC1_2FC1, "zfs", Kind::CopyOnWrite),
    (0xCA45_1A4E, "bcachefs", Kind::CopyOnWrite),
    (0x0102_1994, "tmpfs", Kind::Memory),
    (0x8584_58F6, "ramfs", Kind::Memory),
    (0x794C_7630, "overlayfs", Kind::Layered),
    (0x6969, "nfs", Kind::Remote),
    (0xFF53_4D42, "cifs", Kind::Remote),
    (0xFE53_4D42, "smb2", Kind::Remote),
    (0x0102_1997, "9p", Kind::Remote),
    (0x6573_5546, "fuse", Kind::Remote),
    (0x00C3_6400, "ceph", Kind::Remote),
];

/// What a kind of file system means for a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Local,
    CopyOnWrite,
    Memory,
    Layered,
    Remote,
}

/// `high_watermark` is the used share of the file system from which a broker refuses produce.
pub(super) fn checks(data: &Path, high_watermark: f64) -> Vec<Finding> {
    let place = nearest_existing(data);
    if !place.is_dir() {
        let found = format!("{} is no directory", place.display());
        return vec![Finding::fail(
            DIRECTORY,
            found,
            format!(
                "choose another directory with --data, not {}",
                data.display()
            ),
        )];
    }
    let probe = match ProbeFile::open(&place, OFlags::empty()) {
        Ok(probe) => probe,
        // A full disk must not keep a broker from starting: it still serves what it has.
        Err(error) if is_disk_full(&error) => return vec![disk_full(&place)],
        Err(error) => {
            let path = data.display();
            let found = format!("no file can be made in {}: {error}", place.display());
            let fix =
                format!("sudo mkdir -p '{path}' && sudo chown \"$(id -u):$(id -g)\" '{path}'");
            return vec![Finding::fail(DIRECTORY, found, fix)];
        }
    };
    let mut findings = vec![directory(data, &place)];
    findings.extend(discard::check(&probe.file));
    match fstatfs(&probe.file) {
        Ok(stat) => findings.extend([
            file_system(&stat, data),
            direct_io(&place, &stat),
            free_space(FileSystemSpace::of(&place), &place, high_watermark),
        ]),
        Err(error) => findings.push(Finding::fail(
            FILE_SYSTEM,
            format!("{}: statfs: {error}", place.display()),
            "put the data on a local ext4 or xfs: --data DIR",
        )),
    }
    findings
}

fn directory(data: &Path, place: &Path) -> Finding {
    let note = if data == place {
        "is there and writable"
    } else {
        "will be made"
    };
    Finding::ok(DIRECTORY, format!("{} {note}", data.display()))
}

fn file_system(stat: &StatFs, data: &Path) -> Finding {
    let magic = magic_of(stat);
    let Some((_, name, kind)) = FILE_SYSTEMS.iter().find(|(known, ..)| *known == magic) else {
        return Finding::ok(FILE_SYSTEM, format!("of the unknown kind {magic:#x}"));
    };
    let elsewhere = "put the data on a local ext4 or xfs: --data DIR";
    match kind {
        Kind::Local => Finding::ok(FILE_SYSTEM, *name),
        Kind::CopyOnWrite => {
            let fix = format!(
                "mkdir -p '{0}' && chattr +C '{0}' (btrfs, before the first file), or {elsewhere}",
                data.display()
            );
            Finding::warn(
                FILE_SYSTEM,
                format!("{name} copies on write, which costs a log much of its speed"),
                fix,
            )
        }
        Kind::Memory => Finding::warn(
            FILE_SYSTEM,
            format!("{name} is memory: everything is lost when the machine stops"),
            elsewhere,
        ),
        Kind::Layered => Finding::warn(
            FILE_SYSTEM,
            format!("{name} is a container's own layer: the data ends with the container"),
            "mount a volume and point --data at it: docker run -v /srv/corelog:/data ...",
        ),
        Kind::Remote => Finding::warn(
            FILE_SYSTEM,
            format!("{name} may confirm writes and syncs that another machine has not stored"),
            elsewhere,
        ),
    }
}

/// Whether O_DIRECT is really on: the open must keep the flag, the file system must be one where it means something, and an
/// aligned write must go through in full.
fn direct_io(place: &Path, stat: &StatFs) -> Finding {
    const ELSEWHERE: &str = "put the data on a local ext4 or xfs: --data DIR";
    let buffered = |why: String| {
        let found =
            format!("{why}: writes go through the page cache, which costs memory and speed");
        Finding::warn(DIRECT, found, ELSEWHERE)
    };
    let probe = match ProbeFile::open(place, OFlags::DIRECT) {
        Ok(probe) => probe,
        Err(error) if is_disk_full(&error) => return not_checked(place),
        Err(error) => return buffered(format!("refused by the file system ({error})")),
    };
    let kept = fcntl_getfl(&probe.file).is_ok_and(|flags| flags.contains(OFlags::DIRECT));
    let magic = magic_of(stat);
    let in_memory = FILE_SYSTEMS
        .iter()
        .any(|(known, _, kind)| *known == magic && *kind == Kind::Memory);
    if !kept || in_memory {
        return buffered("silently off".to_owned());
    }
    match write_aligned_page(&probe.file) {
        Ok(PAGE_BYTES) => Finding::ok(
            DIRECT,
            format!("on; writes of {PAGE_BYTES} bytes are taken"),
        ),
        Ok(written) => Finding::fail(
            DIRECT,
            format!("a write of {PAGE_BYTES} bytes came back with {written}"),
            ELSEWHERE,
        ),
        Err(error) if is_disk_full(&error) => not_checked(place),
        Err(error) => Finding::fail(
            DIRECT,
            format!("an aligned write of {PAGE_BYTES} bytes failed: {error}"),
            ELSEWHERE,
        ),
    }
}

fn free_space(space: io::Result<FileSystemSpace>, place: &Path, high_watermark: f64) -> Finding {
    let space = match space {
        Ok(space) => space,
        Err(error) => return Finding::warn(FREE_SPACE, format!("unknown: {error}"), room(place)),
    };
    let found = format!("{:.1} GB", space.free_bytes as f64 / 1e9);
    let percent = |ratio: f64| (ratio * 1_000.0).round() / 10.0;
    if space.used_ratio() >= high_watermark {
        let (used, mark) = (percent(space.used_ratio()), percent(high_watermark));
        return Finding::warn(
            FREE_SPACE,
            format!(
                "{found}, {used} % are used: produce is refused from {mark} % on (log.dirs.high.watermark)"
            ),
            room(place),
        );
    }
    if space.free_bytes >= FREE_BYTES_ADVISED {
        return Finding::ok(FREE_SPACE, found);
    }
    Finding::warn(
        FREE_SPACE,
        format!("only {found}: producing stops when it is used up"),
        room(place),
    )
}

fn disk_full(place: &Path) -> Finding {
    Finding::warn(
        FREE_SPACE,
        format!(
            "none in {}: reading works, producing does not",
            place.display()
        ),
        room(place),
    )
}

fn not_checked(place: &Path) -> Finding {
    Finding::warn(DIRECT, "cannot be checked on a full disk", room(place))
}

fn room(place: &Path) -> String {
    format!(
        "make room (see what is large: sudo du -xh -d 2 '{}' | sort -h | tail), or move: --data DIR",
        place.display()
    )
}

/// The magic number as an unsigned 32-bit value: some of them would be negative in the kernel's `long` on 32 bits.
fn magic_of(stat: &StatFs) -> i64 {
    i64::from(stat.f_type as u32)
}

fn is_disk_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// The directory itself, or the nearest one above that exists: what a new directory would be made in.
fn nearest_existing(data: &Path) -> PathBuf {
    let absolute = std::path::absolute(data).unwrap_or_else(|_| data.to_owned());
    let existing = absolute.ancestors().find(|ancestor| ancestor.exists());
    let existing = existing.map_or_else(|| PathBuf::from("/"), Path::to_owned);
    // Told as the user told it, where that is possible.
    if existing == absolute {
        data.to_owned()
    } else {
        existing
    }
}

/// A file that has no name any more once it is open, so that nothing is left behind however this process ends.
struct ProbeFile {
    file: File,
}

impl ProbeFile {
    fn open(directory: &Path, flags: OFlags) -> io::Result<Self> {
        let name = format!(".corelog-preflight-{}-{}", std::process::id(), flags.bits());
        let path = directory.join(name);
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .custom_flags(flags.bits() as i32)
            .open(&path);
        // ext4 makes the name before it refuses the flag.
        match (opened, fs::remove_file(&path)) {
            (Ok(file), Ok(())) => Ok(Self { file }),
            (Ok(_), Err(error)) => Err(error),
            (Err(error), _) => Err(error),
        }
    }
}

/// Writes one page from memory that is aligned to one.
fn write_aligned_page(file: &File) -> io::Result<usize> {
    let memory = vec![0; 2 * PAGE_BYTES];
    let start = memory.as_ptr().align_offset(PAGE_BYTES);
    file.write_at(&memory[start..start + PAGE_BYTES], 0)
}

#[cfg(test)]
mod tests {
    use super::super::report::Status;
    use super::*;

    fn finding(findings: &[Finding], check: &str) -> Finding {
        findings
            .iter()
            .find(|finding| finding.check == check)
            .unwrap_or_else(|| panic!("{check} in {findings:?}"))
            .clone()
    }

    #[test]
    fn a_file_system_in_memory_is_told_to_have_no_direct_io() {
        let findings = checks(Path::new("/dev/shm"), 0.95);
        assert_eq!(finding(&findings, FILE_SYSTEM).status, Status::Warn);
        assert_eq!(
            finding(&findings, DIRECT).status,
            Status::Warn,
            "a flag that is kept and means nothing is not on"
        );
    }

    #[test]
    fn a_place_where_no_file_can_be_made_fails_with_the_reason() {
        let findings = checks(Path::new("/proc/corelog-data"), 0.95);
        assert_eq!(findings.len(), 1);
        assert_eq!(
            (findings[0].status, findings[0].check),
            (Status::Fail, DIRECTORY)
        );
        assert!(findings[0].found.contains("/proc"), "{findings:?}");
    }

    #[test]
    fn a_disk_on_which_produce_would_be_refused_is_a_warning() {
        let space = FileSystemSpace {
            used_bytes: 96_000_000_000,
            free_bytes: 4_000_000_000,
        };
        let found = |mark| free_space(Ok(space), Path::new("/x"), mark);
        assert_eq!(found(0.95).status, Status::Warn);
        assert!(
            found(0.95).found.contains("96 % are used"),
            "{:?}",
            found(0.95)
        );
        assert_eq!(found(0.97).status, Status::Ok);
    }

    #[test]
    fn a_full_disk_is_a_warning_because_reading_still_works() {
        assert_eq!(disk_full(Path::new("/x")).status, Status::Warn);
        assert!(is_disk_full(&io::Error::from_raw_os_error(libc::ENOSPC)));
        assert!(is_disk_full(&io::Error::from_raw_os_error(libc::EDQUOT)));
        assert!(!is_disk_full(&io::Error::from_raw_os_error(libc::EROFS)));
    }
}
