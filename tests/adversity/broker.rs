//! The process under test.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use tempfile::{NamedTempFile, TempDir};

use crate::wire::Client;

/// Only so that a broker which never gets there fails the test in place of hanging it.
pub const WAIT_MAX: Duration = Duration::from_secs(60);

/// A directory beside the build's own files: tests need a file system with O_DIRECT, which /tmp may not be.
pub fn new_directory() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// A running broker, which is killed if the test ends before it stops it.
pub struct Broker {
    process: Child,
    clients: SocketAddr,
    admin: SocketAddr,
    log: NamedTempFile,
}

impl Broker {
    pub fn start(data: &Path, settings: &[&str]) -> Self {
        Self::try_start(data, settings).unwrap_or_else(|refused| panic!("not ready: {refused:?}"))
    }

    /// The broker once it is ready, or how it ended and what it said.
    pub fn try_start(data: &Path, settings: &[&str]) -> Result<Self, Refused> {
        Self::try_start_with(data, settings, &[])
    }

    /// The same with variables in its environment.
    pub fn try_start_with(
        data: &Path,
        settings: &[&str],
        environment: &[(&str, &Path)],
    ) -> Result<Self, Refused> {
        let mut program = Command::new(env!("CARGO_BIN_EXE_corelog"));
        program.envs(environment.iter().copied());
        Self::try_start_as(program, data, settings)
    }

    /// The broker with a limit of its own, set by a line of shell in front of it.
    pub fn try_start_limited(
        limits: &str,
        data: &Path,
        settings: &[&str],
    ) -> Result<Self, Refused> {
        let mut program = Command::new("sh");
        let line = format!("{limits} && exec \"$0\" \"$@\"");
        program.args(["-c", &line, env!("CARGO_BIN_EXE_corelog")]);
        Self::try_start_as(program, data, settings)
    }

    /// Another one in its place and at its addresses, as after a kill.
    pub fn kill_and_start_again(mut self, data: &Path, between: impl FnOnce()) -> Self {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        between();
        let program = Command::new(env!("CARGO_BIN_EXE_corelog"));
        Self::try_start_at([self.clients, self.admin], program, data, &[]).unwrap()
    }

    fn try_start_as(command: Command, data: &Path, settings: &[&str]) -> Result<Self, Refused> {
        Self::try_start_at(free_addresses(), command, data, settings)
    }

    fn try_start_at(
        [clients, admin]: [SocketAddr; 2],
        mut command: Command,
        data: &Path,
        settings: &[&str],
    ) -> Result<Self, Refused> {
        // Not in the data directory: some tests make it unusable.
        let log = NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        command.arg("broker").arg("--data").arg(data);
        let listeners = [
            format!("listeners=PLAINTEXT://{clients}"),
            format!("admin.listener={admin}"),
        ];
        let listeners = listeners.iter().map(String::as_str);
        for setting in listeners
            .chain(["cores.pinned=false"])
            .chain(settings.iter().copied())
        {
            command.args(["--set", setting]);
        }
        let process = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.reopen().unwrap())
            .spawn()
            .expect("the program starts");
        let mut broker = Self {
            process,
            clients,
            admin,
            log,
        };
        let deadline = Instant::now() + WAIT_MAX;
        while !is_ready(admin) {
            let ended = broker.process.try_wait().unwrap();
            if let Some(status) = ended {
                let code = status.code();
                return Err(Refused {
                    code,
                    log: broker.log(),
                });
            }
            assert!(
                Instant::now() < deadline,
                "neither ready nor ended: {}",
                broker.log()
            );
            thread::sleep(Duration::from_millis(20));
        }
        Ok(broker)
    }

    pub fn address(&self) -> SocketAddr {
        self.clients
    }

    pub fn client(&self) -> Client {
        Client::connect(self.clients)
    }

    /// The sum of a counter over the shards.
    pub fn metric(&self, name: &str) -> u64 {
        let mut stream = TcpStream::connect(self.admin).unwrap();
        let request = b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        stream.write_all(request).unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        let prefix = format!("{name}{{");
        let lines = page.lines().filter(|line| line.starts_with(&prefix));
        let values: Vec<u64> = lines
            .map(|line| line.rsplit_once(' ').unwrap().1.parse().unwrap())
            .collect();
        assert!(!values.is_empty(), "no {name} in {page}");
        values.iter().sum()
    }

    /// What it has said so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log.path()).unwrap()
    }

    /// A page of the admin listener.
    pub fn page(&self, path: &str) -> String {
        ask(self.admin, path).unwrap()
    }

    /// The sum, over all its labels that contain `label`, of a figure on the metrics page.
    pub fn figure(&self, name: &str, label: &str) -> f64 {
        let page = self.page("/metrics");
        let lines = page.lines().filter(|line| {
            line.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with(['{', ' ']))
        });
        let values = lines.filter(|line| line.contains(label)).map(|line| {
            let (_, value) = line.rsplit_once(' ').unwrap();
            value.parse::<f64>().unwrap()
        });
        values.sum()
    }

    /// Once it stands still for a while: a thread makes memory resident that comes next.
    pub fn settled_resident_bytes(&self) -> u64 {
        let deadline = Instant::now() + WAIT_MAX;
        let mut last_bytes = self.resident_bytes();
        let mut same_count = 0;
        while same_count < 10 && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(20));
            let bytes = self.resident_bytes();
            same_count = if bytes == last_bytes {
                same_count + 1
            } else {
                0
            };
            last_bytes = bytes;
        }
        last_bytes
    }

    /// What its process really has open.
    pub fn open_descriptors(&self) -> usize {
        let directory = format!("/proc/{}/fd", self.process.id());
        fs::read_dir(directory).unwrap().count()
    }

    /// Takes descriptors away from the running process, or gives them back: from now on it may have so many.
    pub fn limit_descriptors(&self, count: u64) {
        let limit = Rlimit {
            current: Some(count),
            maximum: Some(20_000),
        };
        let process = Some(Pid::from_child(&self.process));
        prlimit(process, Resource::Nofile, limit).unwrap();
    }

    /// Without the pages of the program's own file, which come as they are run.
    pub fn resident_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let lines = status
            .lines()
            .filter(|line| line.starts_with("RssAnon:") || line.starts_with("RssShmem:"));
        let kib = lines.map(|line| {
            let kib = line.split_ascii_whitespace().nth(1).unwrap();
            kib.parse::<u64>().unwrap()
        });
        kib.sum::<u64>() * 1024
    }

    pub fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Stops it as an operator does.
    pub fn stop(mut self) {
        kill_process(Pid::from_child(&self.process), Signal::TERM).unwrap();
        let deadline = Instant::now() + WAIT_MAX;
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                assert_eq!(status.code(), Some(0), "{}", self.log());
                return;
            }
            assert!(
                Instant::now() < deadline,
                "it does not stop: {}",
                self.log()
            );
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // Both fail where it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
        if thread::panicking() {
            eprintln!("--- what the broker said\n{}---", self.log());
        }
    }
}

/// A broker that ended at its start.
#[derive(Debug)]
pub struct Refused {
    pub code: Option<i32>,
    pub log: String,
}

/// Runs another subcommand of the program.
pub fn corelog(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_corelog"))
        .args(arguments)
        .output()
        .unwrap()
}

fn is_ready(admin: SocketAddr) -> bool {
    ask(admin, "/readyz").is_ok_and(|reply| reply.starts_with("HTTP/1.1 200 "))
}

fn ask(admin: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut reply = String::new();
    let mut stream = TcpStream::connect(admin)?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    )?;
    stream.read_to_string(&mut reply)?;
    Ok(reply)
}

/// Two addresses of loopback that nobody listens on; both are held until both are known, so that they differ.
fn free_addresses() -> [SocketAddr; 2] {
    let held = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    held.map(|listener| listener.local_addr().unwrap())
}
