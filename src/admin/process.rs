use std::fs;

/// What the kernel says of this process, under the names that Prometheus client libraries agree on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ProcessFigures {
    pub(super) cpu_seconds: f64,
    pub(super) resident_memory_bytes: u64,
    pub(super) open_fds: u64,
}

impl ProcessFigures {
    /// Where `/proc` cannot be read the figures are 0: a page with the rest is worth more than none.
    pub(super) fn read() -> Self {
        let open_fds = fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64);
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let ticks_per_second = rustix::param::clock_ticks_per_second();
        Self {
            open_fds,
            ..parse_stat(&stat, ticks_per_second, rustix::param::page_size() as u64)
                .unwrap_or_default()
        }
    }
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
        assert!(
            figures.resident_memory_bytes > 0 && figures.open_fds > 0,
            "{figures:?}"
        );
    }
}
