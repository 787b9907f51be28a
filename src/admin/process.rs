use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::io::descriptors::{self, OpenDescriptors};

/// What `/proc` is read through: opened once and kept, since the figures matter most when there is no descriptor left to open it with.
static SOURCES: OnceLock<Mutex<Sources>> = OnceLock::new();

#[derive(Debug, Default)]
struct Sources {
    descriptors: Option<OpenDescriptors>,
    stat: Option<File>,
}

/// More than the line of `/proc/PID/stat` ever takes.
const STAT_BYTES_MAX: usize = 4096;

/// What the kernel says of this process, under the names that Prometheus client libraries agree on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ProcessFigures {
    pub(super) cpu_seconds: f64,
    pub(super) resident_memory_bytes: u64,
    pub(super) open_fds: u64,
    /// The limit of these.
    pub(super) max_fds: u64,
}

impl ProcessFigures {
    /// Where `/proc` cannot be read the figures are 0: a page with the rest is worth more than none.
    pub(super) fn read() -> Self {
        let sources = SOURCES.get_or_init(|| Mutex::new(Sources::open()));
        let sources = sources.lock().unwrap_or_else(PoisonError::into_inner);
        let open_fds = sources.descriptors.as_ref().map(OpenDescriptors::count);
        let stat = sources.stat.as_ref().map(read_stat);
        let stat = stat.and_then(Result::ok).unwrap_or_default();
        let ticks_per_second = rustix::param::clock_ticks_per_second();
        Self {
            open_fds: open_fds.and_then(Result::ok).unwrap_or_default(),
            max_fds: descriptors::limit_in_force(),
            ..parse_stat(&stat, ticks_per_second, rustix::param::page_size() as u64)
                .unwrap_or_default()
        }
    }
}

impl Sources {
    fn open() -> Self {
        Self {
            descriptors: OpenDescriptors::new().ok(),
            stat: File::open("/proc/self/stat").ok(),
        }
    }
}

/// The kernel makes the line anew for each read from its start.
fn read_stat(file: &File) -> io::Result<String> {
    let mut line = [0; STAT_BYTES_MAX];
    let length = file.read_at(&mut line, 0)?;
    Ok(String::from_utf8_lossy(&line[..length]).into_owned())
}

/// Reads `/proc/PID/stat` (proc(5)): fields are counted behind the command's closing parenthesis, because the command may
/// hold spaces and parentheses itself.
fn parse_stat(stat: &str, ticks_per_second: u64, page_bytes: u64) -> Option<ProcessFigures> {
    const UTIME: usize = 14;
    const STIME: usize = 15;
    const RSS_PAGES: usize = 24;
    const FIRST_BEHIND_COMMAND: usize = 3;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| {
        fields
            .get(number - FIRST_BEHIND_COMMAND)?
            .parse::<u64>()
            .ok()
    };
    Some(ProcessFigures {
        cpu_seconds: (field(UTIME)? + field(STIME)?) as f64 / ticks_per_second as f64,
        resident_memory_bytes: field(RSS_PAGES)? * page_bytes,
        open_fds: 0,
        max_fds: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let stat = "42 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 150 50 13 14 15 16 17 18 19 20 300 22";
        let figures = parse_stat(stat, 100, 4096).unwrap();
        assert_eq!(figures.cpu_seconds, 2.0);
        assert_eq!(figures.resident_memory_bytes, 300 * 4096);
        assert_eq!(parse_stat("42 (x) S 1", 100, 4096), None);
        assert_eq!(parse_stat("", 100, 4096), None);
    }

    #[test]
    fn this_process_has_memory_and_open_files() {
        let figures = ProcessFigures::read();
        assert!(figures.max_fds > figures.open_fds, "{figures:?}");
        assert!(ProcessFigures::read().cpu_seconds >= figures.cpu_seconds);
        assert!(
            figures.resident_memory_bytes > 0 && figures.open_fds > 0,
            "{figures:?}"
        );
    }
}
