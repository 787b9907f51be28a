//! Which brokers are measured, and by what: their processes where they run on this machine, else their metrics pages.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::broker_metrics::{MetricsError, MetricsSnapshot, MetricsUrl};
use crate::cli::RunArgs;
use crate::client::cluster::BrokerAddress;
use crate::cpu::{CpuSnapshot, CpuUse, Interface, Pid, pid_listening_on};

/// A broker that takes longer to accept is not on this machine.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub enum BrokersError {
    #[error("--broker-pid {pid}: that process cannot be read: {source}")]
    Process { pid: u32, source: std::io::Error },
    #[error("--broker-metrics: {0}")]
    Metrics(#[from] MetricsError),
}

/// Whether everything that the flags name can be measured now.
pub fn check(arguments: &RunArgs) -> Result<(), BrokersError> {
    for &pid in &arguments.broker_pid {
        CpuSnapshot::take(Pid(pid)).map_err(|source| BrokersError::Process { pid, source })?;
    }
    for url in &arguments.broker_metrics {
        url.scrape()?;
    }
    Ok(())
}

enum Source {
    Process {
        pid: Pid,
        /// Where it listens, so that it is found again after a restart.
        address: Option<SocketAddr>,
    },
    Page(MetricsUrl),
}

struct Broker {
    source: Source,
    is_on_this_machine: bool,
    /// False for a page beside the process that it tells of.
    in_sum: bool,
}

pub struct Brokers {
    brokers: Vec<Broker>,
    /// That the bootstrap connection uses.
    pub interface: Option<Interface>,
}

/// What one broker had used at one instant.
pub struct Reading {
    pub source: String,
    pub is_on_this_machine: bool,
    pub in_sum: bool,
    used: Result<Used, String>,
}

enum Used {
    Process(CpuSnapshot),
    Page(MetricsSnapshot),
}

impl Brokers {
    /// Those that the flags name; without `--broker-pid` the processes that listen where the cluster's brokers are, if that is this machine.
    pub fn find(arguments: &RunArgs, bootstrap: &str, cluster: &[(i32, BrokerAddress)]) -> Self {
        let addresses = std::iter::once(bootstrap).chain(cluster.iter().map(|(_, it)| &*it.0));
        let mut processes: Vec<(Pid, Option<SocketAddr>)> = Vec::new();
        if arguments.broker_pid.is_empty() {
            for (pid, address) in addresses.filter_map(listener_at) {
                if processes.iter().all(|(known, _)| *known != pid) {
                    processes.push((pid, Some(address)));
                }
            }
        } else {
            processes.extend(arguments.broker_pid.iter().map(|pid| (Pid(*pid), None)));
        }
        let has_processes = !processes.is_empty();
        let of_process = |(pid, address)| Broker {
            source: Source::Process { pid, address },
            is_on_this_machine: true,
            in_sum: true,
        };
        let of_page = |url: &MetricsUrl| {
            let is_on_this_machine = ends_of(url.authority()).is_some_and(is_one_machine);
            Broker {
                source: Source::Page(url.clone()),
                is_on_this_machine,
                in_sum: !(is_on_this_machine && has_processes),
            }
        };
        Self {
            brokers: processes
                .into_iter()
                .map(of_process)
                .chain(arguments.broker_metrics.iter().map(of_page))
                .collect(),
            interface: ends_of(bootstrap)
                .and_then(|(local, remote)| Interface::between(local.ip(), remote.ip())),
        }
    }

    /// The bootstrap address's first, unless flags name them.
    pub fn pids(&self) -> Vec<Pid> {
        let pid = |broker: &Broker| match broker.source {
            Source::Process { pid, .. } => Some(pid),
            Source::Page(_) => None,
        };
        self.brokers.iter().filter_map(pid).collect()
    }

    pub fn read(&self) -> Vec<Reading> {
        self.brokers.iter().map(Broker::read).collect()
    }
}

impl Broker {
    fn read(&self) -> Reading {
        let (source, used) = match &self.source {
            Source::Process { pid, address } => {
                let again = || CpuSnapshot::take(pid_listening_on((*address)?)?).ok();
                let used = CpuSnapshot::take(*pid).or_else(|error| again().ok_or(error));
                let pid = used.as_ref().map_or(*pid, CpuSnapshot::pid);
                let used = used.map(Used::Process).map_err(|error| error.to_string());
                (format!("process {}", pid.0), used)
            }
            Source::Page(url) => {
                let used = url.scrape().map(Used::Page);
                (url.to_string(), used.map_err(|error| error.to_string()))
            }
        };
        Reading {
            source,
            is_on_this_machine: self.is_on_this_machine,
            in_sum: self.in_sum,
            used,
        }
    }
}

impl Reading {
    /// What was used since `earlier`, of the same broker; else why it is not known.
    pub fn since(&self, earlier: &Self) -> Result<CpuUse, String> {
        let restarted = || "it was started again meanwhile".to_owned();
        match (self.used.as_ref()?, earlier.used.as_ref()?) {
            (Used::Process(now), Used::Process(before)) => now
                .is_of_same_process(before)
                .then(|| now.since(before))
                .ok_or_else(restarted),
            (Used::Page(now), Used::Page(before)) => page_since(now, before).ok_or_else(restarted),
            _ => unreachable!("a broker is always measured by the same means"),
        }
    }
}

/// None if the counters began anew.
fn page_since(now: &MetricsSnapshot, before: &MetricsSnapshot) -> Option<CpuUse> {
    let is_same = now.start_s == before.start_s && now.cpu_s >= before.cpu_s;
    let since =
        |of: fn(&MetricsSnapshot) -> Option<u64>| Some(of(now)?.saturating_sub(of(before)?));
    is_same.then(|| CpuUse {
        cpu_s: now.cpu_s - before.cpu_s,
        rss_bytes: now.rss_bytes,
        disk_written_bytes: since(|it| it.disk_written_bytes),
        disk_read_bytes: since(|it| it.disk_read_bytes),
        network_received_bytes: since(|it| it.network_received_bytes),
        network_sent_bytes: since(|it| it.network_sent_bytes),
        ..CpuUse::default()
    })
}

/// The process that listens at an address of this machine, and the address.
fn listener_at(address: &str) -> Option<(Pid, SocketAddr)> {
    let ends = ends_of(address)?;
    let remote = ends.1;
    is_one_machine(ends).then_some(())?;
    Some((pid_listening_on(remote)?, remote))
}

/// The local and the remote end of a connection there.
fn ends_of(address: &str) -> Option<(SocketAddr, SocketAddr)> {
    // A page's URL may leave out the port of HTTP.
    let resolved = address
        .to_socket_addrs()
        .or_else(|_| (address, 80).to_socket_addrs());
    resolved.ok()?.find_map(|candidate| {
        let stream = TcpStream::connect_timeout(&candidate, PROBE_TIMEOUT).ok()?;
        Some((stream.local_addr().ok()?, stream.peer_addr().ok()?))
    })
}

fn is_one_machine((local, remote): (SocketAddr, SocketAddr)) -> bool {
    local.ip() == remote.ip() || remote.ip().is_loopback()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn arguments(flags: &[&str]) -> RunArgs {
        let cli = Cli::try_parse_from(["corelog-perf", "run"].iter().chain(flags));
        match cli.expect("clap accepts it").command {
            Command::Run(arguments) => *arguments,
            _ => panic!("another command"),
        }
    }

    #[test]
    fn brokers_of_one_process_are_measured_once_and_those_that_are_away_not_at_all() {
        let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [bootstrap, second, gone] = listeners
            .each_ref()
            .map(|it| it.local_addr().unwrap().to_string());
        let [_bootstrap, _second, third] = listeners;
        drop(third);
        let cluster = [(1, BrokerAddress(second)), (2, BrokerAddress(gone))];
        let brokers = Brokers::find(&arguments(&[]), &bootstrap, &cluster);
        assert_eq!(brokers.pids(), [Pid::this()]);
        let named = Brokers::find(&arguments(&["--broker-pid", "1,2"]), &bootstrap, &cluster);
        assert_eq!(named.pids(), [Pid(1), Pid(2)]);
    }

    #[test]
    fn a_page_of_this_machine_is_not_added_to_the_process_that_it_tells_of() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let url = format!("http://{address}/metrics");
        let flags = arguments(&["--broker-metrics", &url]);
        let in_sum = |brokers: Brokers| -> Vec<bool> {
            brokers.brokers.iter().map(|it| it.in_sum).collect()
        };
        assert_eq!(in_sum(Brokers::find(&flags, &address, &[])), [true, false]);
        let nobody = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        assert_eq!(
            in_sum(Brokers::find(&flags, &nobody.to_string(), &[])),
            [true]
        );
    }

    #[test]
    fn counters_that_began_anew_are_not_measured() {
        let told = |cpu_s, start_s| MetricsSnapshot {
            cpu_s,
            start_s: Some(start_s),
            rss_bytes: None,
            disk_written_bytes: Some(cpu_s as u64),
            disk_read_bytes: None,
            network_received_bytes: None,
            network_sent_bytes: None,
        };
        let used = page_since(&told(5.0, 1.0), &told(2.0, 1.0)).unwrap();
        assert_eq!((used.cpu_s, used.disk_written_bytes), (3.0, Some(3)));
        assert!(page_since(&told(5.0, 2.0), &told(2.0, 1.0)).is_none());
        assert!(page_since(&told(1.0, 1.0), &told(2.0, 1.0)).is_none());
    }

    #[test]
    fn a_process_that_is_not_there_is_refused_before_the_run() {
        assert!(matches!(
            check(&arguments(&["--broker-pid", "4194305"])),
            Err(BrokersError::Process { pid: 4_194_305, .. })
        ));
        assert!(check(&arguments(&[])).is_ok());
    }
}
