//! What this process, a broker on this machine, and the machine have used, from /proc: CPU time, memory, disk, network.
//!
//! Owns: nothing; it reads. Must never know: what the time was spent for.

mod find;
mod interface;
mod machine;

pub use find::pid_listening_on;
pub use interface::{Interface, InterfaceBytes};
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

/// The same of the thread that asks.
pub fn this_thread_cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
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
    /// In clock ticks since the machine's start: tells a process from a later one with its number.
    started_ticks: u64,
    rss_bytes: u64,
    rss_peak_bytes: u64,
    disk: Option<DiskBytes>,
}

/// What a process had moved from and to disks, the page cache's later writing included.
#[derive(Clone, Copy, Debug)]
struct DiskBytes {
    written: u64,
    read: u64,
}

impl CpuSnapshot {
    pub fn take(pid: Pid) -> io::Result<Self> {
        let directory = format!("/proc/{}", pid.0);
        let stat = fs::read_to_string(format!("{directory}/stat"))?;
        let process = parse_stat(&stat)?;
        if process.is_zombie {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("process {} has ended", pid.0),
            ));
        }
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
            let mut thread = parse_stat(&stat)?.thread;
            thread.voluntary_switches = number_after(&status, "voluntary_ctxt_switches:");
            thread.involuntary_switches = number_after(&status, "nonvoluntary_ctxt_switches:");
            threads.insert(tid, thread);
        }
        let status = fs::read_to_string(format!("{directory}/status"))?;
        // Only root or the owner may read it.
        let disk = fs::read_to_string(format!("{directory}/io")).map(|io| DiskBytes {
            written: number_after(&io, "write_bytes:"),
            read: number_after(&io, "read_bytes:"),
        });
        Ok(Self {
            pid,
            process: process.thread.time,
            threads,
            started_ticks: process.started_ticks,
            rss_bytes: number_after(&status, "VmRSS:") * 1024,
            rss_peak_bytes: number_after(&status, "VmHWM:") * 1024,
            disk: disk.ok(),
        })
    }

    pub fn pid(&self) -> Pid {
        self.pid
    }

    pub fn is_of_same_process(&self, other: &Self) -> bool {
        (self.pid, self.started_ticks) == (other.pid, other.started_ticks)
    }

    /// What was used since `earlier`, which is of the same process.
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
                voluntary_switches: thread
                    .voluntary_switches
                    .saturating_sub(before.map_or(0, |before| before.voluntary_switches)),
                involuntary_switches: thread
                    .involuntary_switches
                    .saturating_sub(before.map_or(0, |before| before.involuntary_switches)),
            };
            if used.user_s + used.system_s > 0.0 {
                threads.push(used);
            }
        }
        threads.sort_by(|a, b| (b.user_s + b.system_s).total_cmp(&(a.user_s + a.system_s)));
        let (user_s, system_s) = (
            self.process.user_s - earlier.process.user_s,
            self.process.system_s - earlier.process.system_s,
        );
        let disk_bytes =
            |of: fn(&DiskBytes) -> u64| Some(of(&self.disk?).saturating_sub(of(&earlier.disk?)));
        let switches = |of: fn(&ThreadUse) -> u64| Some(threads.iter().map(of).sum());
        CpuUse {
            pid: Some(self.pid),
            cpu_s: user_s + system_s,
            user_s: Some(user_s),
            system_s: Some(system_s),
            rss_bytes: Some(self.rss_bytes),
            rss_peak_bytes: Some(self.rss_peak_bytes),
            disk_written_bytes: disk_bytes(|disk| disk.written),
            disk_read_bytes: disk_bytes(|disk| disk.read),
            network_received_bytes: None,
            network_sent_bytes: None,
            voluntary_switches: switches(|thread| thread.voluntary_switches),
            involuntary_switches: switches(|thread| thread.involuntary_switches),
            threads,
        }
    }
}

/// What a process, or several, used over a stretch of the run. None is what could not be measured.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CpuUse {
    /// None for several processes, or for one on another machine.
    pub pid: Option<Pid>,
    pub cpu_s: f64,
    pub user_s: Option<f64>,
    pub system_s: Option<f64>,
    /// At the end of the stretch.
    pub rss_bytes: Option<u64>,
    /// Since the process was started.
    pub rss_peak_bytes: Option<u64>,
    pub disk_written_bytes: Option<u64>,
    pub disk_read_bytes: Option<u64>,
    /// As the broker tells it.
    pub network_received_bytes: Option<u64>,
    pub network_sent_bytes: Option<u64>,
    /// Of all threads that are listed.
    pub voluntary_switches: Option<u64>,
    pub involuntary_switches: Option<u64>,
    /// Those that used any, the busiest first.
    pub threads: Vec<ThreadUse>,
}

impl CpuUse {
    /// Of several processes together: what one of them does not tell, the sum does not.
    pub fn sum(mut parts: impl Iterator<Item = Self>) -> Option<Self> {
        let mut all = parts.next()?;
        for part in parts {
            all.pid = None;
            all.cpu_s += part.cpu_s;
            for (sum, more) in [
                (&mut all.user_s, part.user_s),
                (&mut all.system_s, part.system_s),
            ] {
                *sum = sum.zip(more).map(|(sum, more)| sum + more);
            }
            for (sum, more) in [
                (&mut all.rss_bytes, part.rss_bytes),
                (&mut all.rss_peak_bytes, part.rss_peak_bytes),
                (&mut all.disk_written_bytes, part.disk_written_bytes),
                (&mut all.disk_read_bytes, part.disk_read_bytes),
                (&mut all.network_received_bytes, part.network_received_bytes),
                (&mut all.network_sent_bytes, part.network_sent_bytes),
                (&mut all.voluntary_switches, part.voluntary_switches),
                (&mut all.involuntary_switches, part.involuntary_switches),
            ] {
                *sum = sum.zip(more).map(|(sum, more)| sum + more);
            }
            all.threads.extend(part.threads);
        }
        all.threads
            .sort_by(|a, b| (b.user_s + b.system_s).total_cmp(&(a.user_s + a.system_s)));
        Some(all)
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

/// A line of /proc/PID/stat.
struct Stat {
    thread: ThreadCpu,
    started_ticks: u64,
    /// It has ended, and nobody has asked for its exit code yet.
    is_zombie: bool,
}

/// The name stands in brackets and may hold anything, so the fields count from the last bracket.
fn parse_stat(stat: &str) -> io::Result<Stat> {
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
    let fields: Vec<&str> = stat[close + 1..].split_ascii_whitespace().collect();
    let ticks = |field: usize| {
        fields
            .get(field)
            .and_then(|field| field.parse::<u64>().ok())
            .ok_or_else(malformed)
    };
    let time = CpuTime {
        user_s: ticks(11)? as f64 / ticks_per_second,
        system_s: ticks(12)? as f64 / ticks_per_second,
    };
    Ok(Stat {
        thread: ThreadCpu {
            name: stat[open + 1..close].to_owned(),
            time,
            voluntary_switches: 0,
            involuntary_switches: 0,
        },
        started_ticks: ticks(19)?,
        is_zombie: fields.first() == Some(&"Z"),
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
            "7 (a ) (b) S 1 7 7 0 -1 4194560 1 0 0 0 {} {} 0 0 20 0 1 0 99 0",
            ticks * 3,
            ticks
        );
        let Stat {
            thread,
            started_ticks,
            is_zombie,
        } = parse_stat(&stat).unwrap();
        assert_eq!((started_ticks, is_zombie), (99, false));
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
        assert!(used.cpu_s >= 0.0);
        assert!(used.rss_bytes.unwrap() > 0 && used.rss_peak_bytes >= used.rss_bytes);
    }

    #[test]
    fn a_sum_does_not_tell_what_one_of_its_parts_does_not() {
        let part = |cpu_s, rss_bytes, disk_written_bytes| CpuUse {
            pid: Some(Pid(1)),
            cpu_s,
            rss_bytes,
            disk_written_bytes,
            ..CpuUse::default()
        };
        let parts = [part(1.0, Some(5), Some(7)), part(2.0, Some(6), None)];
        let sum = CpuUse::sum(parts.into_iter()).unwrap();
        assert_eq!((sum.pid, sum.cpu_s, sum.rss_bytes), (None, 3.0, Some(11)));
        assert_eq!(sum.disk_written_bytes, None);
        assert!(CpuUse::sum(std::iter::empty()).is_none());
    }
}
