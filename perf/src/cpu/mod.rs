//! CPU time of this process, of a broker on this machine, and of the machine, from /proc.
//!
//! Owns: nothing; it reads. Must never know: what the time was spent for.

mod find;
mod machine;

pub use find::pid_listening_on;
pub use machine::{MachineCpu, MachineShare};

use std::collections::BTreeMap;
use std::fs;
use std::io;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// A process of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pid(pub u32);

impl Pid {
    pub fn this() -> Self {
        Self(std::process::id())
    }
}

/// User and system time of this process so far, to the nanosecond.
pub fn this_process_cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct CpuTime {
    user_s: f64,
    system_s: f64,
}

#[derive(Clone, Debug)]
struct ThreadCpu {
    name: String,
    time: CpuTime,
    voluntary_switches: u64,
    involuntary_switches: u64,
}

/// What a process and each of its threads have used up to one instant.
#[derive(Clone, Debug)]
pub struct CpuSnapshot {
    pid: Pid,
    /// Includes threads that have ended.
    process: CpuTime,
    threads: BTreeMap<u32, ThreadCpu>,
    rss_bytes: u64,
    written_bytes: u64,
    read_bytes: u64,
}

impl CpuSnapshot {
    pub fn take(pid: Pid) -> io::Result<Self> {
        let directory = format!("/proc/{}", pid.0);
        let process = parse_stat(&fs::read_to_string(format!("{directory}/stat"))?)?.time;
        let mut threads = BTreeMap::new();
        for task in fs::read_dir(format!("{directory}/task"))? {
            let task = task?;
            // A thread may end while it is looked at.
            let (Some(tid), Ok(stat)) = (
                task.file_name().to_str().and_then(|tid| tid.parse().ok()),
                fs::read_to_string(task.path().join("stat")),
            ) else {
                continue;
            };
            let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
            let mut thread = parse_stat(&stat)?;
            thread.voluntary_switches = number_after(&status, "voluntary_ctxt_switches:");
            thread.involuntary_switches = number_after(&status, "nonvoluntary_ctxt_switches:");
            threads.insert(tid, thread);
        }
        let status = fs::read_to_string(format!("{directory}/status"))?;
        // Only root or the owner may read it.
        let io = fs::read_to_string(format!("{directory}/io")).unwrap_or_default();
        Ok(Self {
            pid,
            process,
            threads,
            rss_bytes: number_after(&status, "VmRSS:") * 1024,
            written_bytes: number_after(&io, "write_bytes:"),
            read_bytes: number_after(&io, "read_bytes:"),
        })
    }

    /// What was used since `earlier`.
    pub fn since(&self, earlier: &Self) -> CpuUse {
        let mut threads = Vec::new();
        for (&tid, thread) in &self.threads {
            let before = earlier.threads.get(&tid);
            let time = |of: fn(&CpuTime) -> f64| {
                of(&thread.time) - before.map_or(0.0, |before| of(&before.time))
            };
            let used = ThreadUse {
                tid,
                name: thread.name.clone(),
                user_s: time(|time| time.user_s),
                system_s: time(|time| time.system_s),
                voluntary_switches: thread.voluntary_switches
                    - before.map_or(0, |before| before.voluntary_switches),
                involuntary_switches: thread.involuntary_switches
                    - before.map_or(0, |before| before.involuntary_switches),
            };
            if used.user_s + used.system_s > 0.0 {
                threads.push(used);
            }
        }
        threads.sort_by(|a, b| (b.user_s + b.system_s).total_cmp(&(a.user_s + a.system_s)));
        CpuUse {
            pid: self.pid,
            user_s: self.process.user_s - earlier.process.user_s,
            system_s: self.process.system_s - earlier.process.system_s,
            rss_bytes: self.rss_bytes,
            disk_written_bytes: self.written_bytes.saturating_sub(earlier.written_bytes),
            disk_read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            threads,
        }
    }
}

/// The CPU time of a process over a stretch of the run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CpuUse {
    pub pid: Pid,
    pub user_s: f64,
    pub system_s: f64,
    /// At the end of the stretch.
    pub rss_bytes: u64,
    pub disk_written_bytes: u64,
    pub disk_read_bytes: u64,
    /// Those that used any, the busiest first.
    pub threads: Vec<ThreadUse>,
}

impl CpuUse {
    pub fn total_s(&self) -> f64 {
        self.user_s + self.system_s
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ThreadUse {
    pub tid: u32,
    pub name: String,
    pub user_s: f64,
    pub system_s: f64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
}

impl ThreadUse {
    pub fn total_s(&self) -> f64 {
        self.user_s + self.system_s
    }
}

/// The name stands in brackets and may hold anything, so the fields count from the last bracket.
fn parse_stat(stat: &str) -> io::Result<ThreadCpu> {
    let malformed = || {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("not a line of /proc/PID/stat: {stat:?}"),
        )
    };
    let (open, close) = (
        stat.find('(').ok_or_else(malformed)?,
        stat.rfind(')').ok_or_else(malformed)?,
    );
    let ticks_per_second = rustix::param::clock_ticks_per_second() as f64;
    let mut fields = stat[close + 1..].split_ascii_whitespace().skip(11);
    let mut seconds = || {
        fields
            .next()
            .and_then(|field| field.parse::<u64>().ok())
            .map(|ticks| ticks as f64 / ticks_per_second)
    };
    let time = CpuTime {
        user_s: seconds().ok_or_else(malformed)?,
        system_s: seconds().ok_or_else(malformed)?,
    };
    Ok(ThreadCpu {
        name: stat[open + 1..close].to_owned(),
        time,
        voluntary_switches: 0,
        involuntary_switches: 0,
    })
}

/// The number behind `name` at the start of a line; 0 if there is none.
fn number_after(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_ascii_whitespace().next())
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let ticks = rustix::param::clock_ticks_per_second();
        let stat = format!(
            "7 (a ) (b) S 1 7 7 0 -1 4194560 1 0 0 0 {} {} 0 0 20 0",
            ticks * 3,
            ticks
        );
        let thread = parse_stat(&stat).unwrap();
        assert_eq!(thread.name, "a ) (b");
        assert_eq!(
            thread.time,
            CpuTime {
                user_s: 3.0,
                system_s: 1.0
            }
        );
        assert!(parse_stat("7 (a) S 1").is_err());
    }

    #[test]
    fn this_process_can_be_read_and_its_time_does_not_go_back() {
        let before = CpuSnapshot::take(Pid::this()).unwrap();
        let used = CpuSnapshot::take(Pid::this()).unwrap().since(&before);
        assert!(used.total_s() >= 0.0);
        assert!(used.rss_bytes > 0);
    }
}
