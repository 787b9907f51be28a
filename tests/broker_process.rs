//! A broker as its operator sees it: it becomes ready, shows its figures, stops when it is asked to, and starts again.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Only so that a broker which never gets there fails the test in place of hanging it.
const WAIT_MAX: Duration = Duration::from_secs(30);

struct Broker {
    process: Option<Child>,
    clients: SocketAddr,
    admin: SocketAddr,
}

impl Broker {
    fn start(data: &Path, more: &[&str]) -> Self {
        let [clients, admin] = free_addresses();
        let process = Command::new(env!("CARGO_BIN_EXE_corelog"))
            .args([
                "broker",
                "--data",
                data.to_str().unwrap(),
                "--set",
                "cores.pinned=false",
            ])
            .args([
                "--set",
                &format!("listeners=PLAINTEXT://{clients}"),
                "--set",
                &format!("admin.listener={admin}"),
            ])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        Self {
            process: Some(process),
            clients,
            admin,
        }
    }

    fn start_and_wait(data: &Path, more: &[&str]) -> Self {
        let mut broker = Self::start(data, more);
        let deadline = Instant::now() + WAIT_MAX;
        while !broker
            .get("/readyz")
            .is_some_and(|reply| reply.starts_with("HTTP/1.1 200 "))
        {
            let ended = broker.process.as_mut().unwrap().try_wait().unwrap();
            if ended.is_some() || Instant::now() > deadline {
                panic!("not ready: {}", text(&broker.output().stderr));
            }
            thread::sleep(Duration::from_millis(20));
        }
        broker
    }

    /// The whole reply, or none while nobody listens.
    fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.admin).ok()?;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        )
        .ok()?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply).ok()?;
        Some(reply)
    }

    fn stop(mut self, signal: Signal) -> Output {
        kill_process(Pid::from_child(self.process.as_ref().unwrap()), signal).unwrap();
        self.output()
    }

    /// Waits for the end. A broker that does not come to one is killed, so that its test fails in place of hanging.
    fn output(&mut self) -> Output {
        let process = self.process.take().unwrap();
        let pid = Pid::from_child(&process);
        let (ended, end) = mpsc::channel::<()>();
        thread::spawn(move || {
            if end.recv_timeout(WAIT_MAX) == Err(RecvTimeoutError::Timeout) {
                // It may have ended just now; then there is nobody to kill.
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        let output = process.wait_with_output().unwrap();
        drop(ended);
        output
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }
}

/// Two addresses of loopback that nobody listens on; both are held until both are known, so that they differ.
fn free_addresses() -> [SocketAddr; 2] {
    let held = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    held.map(|listener| listener.local_addr().unwrap())
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("output is text")
}

#[test]
fn a_broker_becomes_ready_stops_when_asked_and_starts_again() {
    let data = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for signal in [Signal::TERM, Signal::INT] {
        let broker = Broker::start_and_wait(data.path(), &[]);
        assert!(
            TcpStream::connect(broker.clients).is_ok(),
            "ready means that clients are served"
        );
        let (clients, admin) = (broker.clients, broker.admin);
        let stopped = broker.stop(signal);
        let told = text(&stopped.stderr);
        assert_eq!(stopped.status.code(), Some(0), "{told}");
        let ready = told
            .lines()
            .find(|line| line.contains("ready: "))
            .expect(told);
        for named in [
            clients.to_string(),
            format!("http://{admin}/"),
            data.path().display().to_string(),
            "node=1".to_owned(),
            "shards=".to_owned(),
        ] {
            assert!(ready.contains(&named), "{named}: {ready}");
        }
        assert!(told.trim_end().ends_with("stopped cleanly"), "{told}");
        // The kernel takes rings down after the process has ended, and the listening sockets with them.
        let deadline = Instant::now() + WAIT_MAX;
        while TcpStream::connect(clients).is_ok() {
            assert!(
                Instant::now() < deadline,
                "{clients} still takes connections"
            );
            thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn the_admin_listener_shows_figures_and_health_of_a_running_broker() {
    let data = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let broker = Broker::start_and_wait(data.path(), &["--set", "cores=0"]);
    let metrics = broker.get("/metrics").unwrap();
    for family in [
        "corelog_build_info",
        "corelog_partitions{shard=\"0\"} 0",
        "process_open_fds",
    ] {
        assert!(metrics.contains(family), "{family} in {metrics}");
    }
    assert!(broker.get("/healthz").unwrap().ends_with("ok\n"));
    assert!(broker.get("/").unwrap().contains("ready"));
    broker.stop(Signal::TERM);
}

#[test]
fn a_second_broker_on_the_same_data_is_refused_and_the_first_goes_on() {
    let data = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let first = Broker::start_and_wait(data.path(), &[]);
    let refused = Broker::start(data.path(), &[]).output();
    assert_eq!(refused.status.code(), Some(1), "{}", text(&refused.stderr));
    assert!(
        text(&refused.stderr).contains(data.path().to_str().unwrap()),
        "{}",
        text(&refused.stderr)
    );
    assert!(first.get("/readyz").unwrap().starts_with("HTTP/1.1 200 "));
    first.stop(Signal::TERM);
}

#[test]
fn an_address_in_use_ends_the_start_and_is_named() {
    let data = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = held.local_addr().unwrap();
    for setting in [
        format!("listeners=PLAINTEXT://{taken}"),
        format!("admin.listener={taken}"),
    ] {
        let refused = Broker::start(data.path(), &["--set", &setting]).output();
        assert_eq!(refused.status.code(), Some(1), "{}", text(&refused.stderr));
        assert!(
            text(&refused.stderr).contains(&taken.to_string()),
            "{}",
            text(&refused.stderr)
        );
    }
}

#[test]
fn a_kill_is_told_in_one_line_however_many_partitions_there_are() {
    let data = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut broker = Broker::start_and_wait(data.path(), &[]);
    let bootstrap = broker.clients.to_string();
    let corelog = |arguments: &[&str], input: &str| {
        let mut process = Command::new(env!("CARGO_BIN_EXE_corelog"))
            .args(arguments)
            .args(["--bootstrap", &bootstrap])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        process
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        assert!(process.wait().unwrap().success(), "{arguments:?}");
    };
    corelog(&["topic", "create", "t", "--partitions", "6"], "");
    for partition in 0..6 {
        corelog(
            &["produce", "t", "-p", &partition.to_string()],
            "a record\n",
        );
    }
    broker.process.as_mut().unwrap().kill().unwrap();
    broker.output();
    let stopped = Broker::start_and_wait(data.path(), &[]).stop(Signal::TERM);
    let told = text(&stopped.stderr);
    let warned: Vec<&str> = told
        .lines()
        .filter(|line| line.contains(" WARN ") && !line.contains("preflight"))
        .collect();
    assert_eq!(warned.len(), 1, "{told}");
    assert!(warned[0].contains("logs_read_whole=6"), "{}", warned[0]);
    assert!(!told.contains("groups loaded"), "{told}");
}

#[test]
fn kafkas_own_server_properties_start_a_broker() {
    let data = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = data.path().join("server.properties");
    // What Kafka 4 ships as config/server.properties, with ports and a directory of its own.
    let [clients, controller] = free_addresses();
    let kafkas = format!(
        "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.bootstrap.servers={controller}\n\
         listeners=PLAINTEXT://{clients},CONTROLLER://{controller}\n\
         inter.broker.listener.name=PLAINTEXT\n\
         advertised.listeners=PLAINTEXT://{clients},CONTROLLER://{controller}\n\
         controller.listener.names=CONTROLLER\n\
         listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL\n\
         num.network.threads=3\nnum.io.threads=8\nsocket.send.buffer.bytes=102400\nsocket.receive.buffer.bytes=102400\n\
         socket.request.max.bytes=104857600\nlog.dirs={}\nnum.partitions=1\nnum.recovery.threads.per.data.dir=2\n\
         offsets.topic.replication.factor=1\nshare.coordinator.state.topic.replication.factor=1\n\
         share.coordinator.state.topic.min.isr=1\ntransaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n\
         log.retention.hours=168\nlog.segment.bytes=1073741824\nlog.retention.check.interval.ms=300000\n",
        data.path().join("logs").display()
    );
    std::fs::write(&file, kafkas).unwrap();
    let config = ["--config", file.to_str().unwrap()];
    let broker = Broker::start_and_wait(data.path(), &config);
    let stopped = broker.stop(Signal::TERM);
    let told = text(&stopped.stderr);
    let warned: Vec<&str> = told
        .lines()
        .filter(|line| line.contains("make no difference here"))
        .collect();
    assert_eq!(warned.len(), 1, "{told}");
    assert!(warned[0].contains("num.network.threads"), "{}", warned[0]);
    assert!(
        TcpListener::bind(controller).is_ok(),
        "nothing listens for controllers"
    );
}

#[test]
fn logs_are_json_where_that_was_asked_for() {
    let data = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let broker = Broker::start_and_wait(data.path(), &["--log-format", "json"]);
    let stopped = broker.stop(Signal::TERM);
    let lines = text(&stopped.stderr).lines();
    let parsed: Vec<serde_json::Value> = lines
        .map(|line| serde_json::from_str(line).expect(line))
        .collect();
    assert!(parsed.iter().any(|line| {
        line["message"]
            .as_str()
            .is_some_and(|message| message.starts_with("SIGTERM"))
    }));
}
