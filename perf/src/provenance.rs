//! Where a report comes from: everything without which its figures mean nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::baseline::network::congestion_control;
use crate::client::cluster::{BrokerAddress, Settings};
use crate::cpu::Pid;
use crate::report::WorkerReport;

#[derive(Clone, Debug, Serialize)]
pub struct Provenance {
    pub started_unix_ms: u64,
    pub argv: Vec<String>,
    pub tool: Tool,
    pub machine: Machine,
    /// Those that put the load on, if this process did not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerReport>,
    /// Of the directory that the disk baseline used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,
    pub broker: Broker,
}

/// This program, as it was built.
#[derive(Clone, Debug, Serialize)]
pub struct Tool {
    pub version: &'static str,
    /// Ends in `-dirty` if the tree held changes.
    pub commit: &'static str,
    pub profile: &'static str,
    pub opt_level: &'static str,
    pub target: &'static str,
    pub rustflags: &'static str,
}

impl Tool {
    pub fn this() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            commit: env!("CORELOG_PERF_COMMIT"),
            profile: env!("CORELOG_PERF_PROFILE"),
            opt_level: env!("CORELOG_PERF_OPT_LEVEL"),
            target: env!("CORELOG_PERF_TARGET"),
            rustflags: env!("CORELOG_PERF_RUSTFLAGS"),
        }
    }

    pub fn is_optimised(&self) -> bool {
        self.profile == "release"
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    pub cpu_model: String,
    pub cores: usize,
    pub memory_bytes: u64,
    pub kernel: String,
    pub congestion_control: String,
}

impl Machine {
    pub fn this() -> Self {
        let cpu_model = value_in("/proc/cpuinfo", "model name");
        let memory_kib = value_in("/proc/meminfo", "MemTotal")
            .split(' ')
            .next()
            .and_then(|kib| kib.parse::<u64>().ok());
        Self {
            cpu_model,
            cores: core_affinity::get_core_ids().map_or(0, |cores| cores.len()),
            memory_bytes: memory_kib.unwrap_or(0) * 1024,
            kernel: rustix::system::uname()
                .release()
                .to_string_lossy()
                .into_owned(),
            congestion_control: congestion_control(),
        }
    }
}

/// The text behind `name :` in a /proc file; "unknown" if it is not there.
fn value_in(path: &str, name: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let value = text.lines().find_map(|line| {
        line.strip_prefix(name)?
            .trim_start()
            .strip_prefix(':')
            .map(str::trim)
    });
    value.unwrap_or("unknown").to_owned()
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Storage {
    pub directory: PathBuf,
    pub mount_point: String,
    pub file_system: String,
    pub mount_options: String,
    pub device: String,
    pub scheduler: String,
}

impl Storage {
    pub fn of(directory: &Path) -> Option<Self> {
        let directory = directory.canonicalize().ok()?;
        let mut storage = mount_of(
            &directory,
            &fs::read_to_string("/proc/self/mountinfo").ok()?,
        )?;
        storage.scheduler =
            scheduler_of(&storage.scheduler).unwrap_or_else(|| "unknown".to_owned());
        Some(storage)
    }
}

/// `scheduler` of the result holds the device number, by which the scheduler is found.
///
/// A line: `36 35 98:0 /root /mount/point options [optional ...] - type device super-options`.
fn mount_of(directory: &Path, mountinfo: &str) -> Option<Storage> {
    let mount = |line: &str| {
        let (fields, behind) = line.split_once(" - ")?;
        let fields: Vec<_> = fields.split(' ').collect();
        let (device_number, mount_point, options) =
            (*fields.get(2)?, *fields.get(4)?, *fields.get(5)?);
        let mut behind = behind.split(' ');
        let (file_system, device) = (behind.next()?, behind.next()?);
        directory.starts_with(mount_point).then(|| Storage {
            directory: directory.to_owned(),
            mount_point: mount_point.to_owned(),
            file_system: file_system.to_owned(),
            mount_options: options.to_owned(),
            device: device.to_owned(),
            scheduler: device_number.to_owned(),
        })
    };
    // The last of equals lies on top.
    mountinfo
        .lines()
        .filter_map(mount)
        .max_by_key(|storage| storage.mount_point.len())
}

/// The one in brackets: `[none] mq-deadline`.
fn scheduler_of(device_number: &str) -> Option<String> {
    let block = Path::new("/sys/dev/block").join(device_number);
    // A partition has its queue one level up.
    let text = fs::read_to_string(block.join("queue/scheduler"))
        .or_else(|_| fs::read_to_string(block.join("../queue/scheduler")))
        .ok()?;
    Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())
}

/// The cluster that was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Broker {
    pub bootstrap: String,
    pub brokers: Vec<String>,
    /// The broker behind the bootstrap address, if it is on this machine.
    pub process: Option<BrokerProcess>,
    /// All brokers on this machine that are measured.
    pub processes: Vec<BrokerProcess>,
    /// As DescribeConfigs tells them; None if it does not.
    pub settings: Option<Settings>,
    pub topic_settings: Option<Settings>,
}

#[derive(Clone, Debug, Serialize)]
pub struct BrokerProcess {
    pub pid: Pid,
    pub executable: String,
    pub argv: Vec<String>,
    pub working_directory: PathBuf,
    /// The cores that it may run on.
    pub cores: String,
}

impl BrokerProcess {
    pub fn of(pid: Pid) -> Self {
        let directory = PathBuf::from(format!("/proc/{}", pid.0));
        let argv = fs::read(directory.join("cmdline")).unwrap_or_default();
        Self {
            pid,
            executable: fs::read_link(directory.join("exe"))
                .map_or_else(|_| "unknown".to_owned(), |path| path.display().to_string()),
            argv: argv
                .split(|byte| *byte == 0)
                .filter(|part| !part.is_empty())
                .map(|part| String::from_utf8_lossy(part).into_owned())
                .collect(),
            working_directory: fs::read_link(directory.join("cwd")).unwrap_or_default(),
            cores: value_in(
                &directory.join("status").display().to_string(),
                "Cpus_allowed_list",
            ),
        }
    }
}

impl Broker {
    pub fn new(bootstrap: &str, brokers: &[(i32, BrokerAddress)], pids: &[Pid]) -> Self {
        let processes: Vec<_> = pids.iter().copied().map(BrokerProcess::of).collect();
        Self {
            bootstrap: bootstrap.to_owned(),
            brokers: brokers
                .iter()
                .map(|(id, address)| format!("{id}@{}", address.0))
                .collect(),
            process: processes.first().cloned(),
            processes,
            settings: None,
            topic_settings: None,
        }
    }

    /// The directories that the broker keeps its logs in, if it is on this machine. A relative one is relative
    /// to where it was started.
    pub fn log_directories(&self) -> Vec<PathBuf> {
        let (Some(settings), Some(process)) = (&self.settings, &self.process) else {
            return Vec::new();
        };
        let value = ["log.dirs", "log.dir"].iter().find_map(|name| {
            settings
                .get(*name)?
                .as_deref()
                .filter(|value| !value.is_empty())
        });
        let paths = value.into_iter().flat_map(|value| value.split(','));
        paths
            .map(|path| process.working_directory.join(path.trim()))
            .collect()
    }
}

pub fn unix_ms_now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_mount_above_a_directory_is_its_storage() {
        let mountinfo = "25 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
                         30 25 0:26 / /data rw,nosuid shared:3 - xfs /dev/vdb rw\n\
                         31 25 0:27 / /database rw - tmpfs tmpfs rw\n";
        let storage = mount_of(Path::new("/data/logs"), mountinfo).unwrap();
        assert_eq!(
            (storage.mount_point.as_str(), storage.file_system.as_str()),
            ("/data", "xfs")
        );
        assert_eq!(
            (storage.mount_options.as_str(), storage.device.as_str()),
            ("rw,nosuid", "/dev/vdb")
        );
        assert_eq!(
            mount_of(Path::new("/home"), mountinfo).unwrap().device,
            "/dev/vda"
        );
    }

    #[test]
    fn a_brokers_log_directories_come_from_its_settings_and_its_working_directory() {
        let mut broker = Broker::new("a:1", &[], &[Pid::this()]);
        assert!(broker.log_directories().is_empty());
        broker.settings = Some(Settings::from([
            ("log.dir".to_owned(), Some("/ignored".to_owned())),
            ("log.dirs".to_owned(), Some("/a, b".to_owned())),
        ]));
        let here = std::env::current_dir().unwrap();
        assert_eq!(
            broker.log_directories(),
            [PathBuf::from("/a"), here.join("b")]
        );
    }
}
