//! One way over loopback TCP in 1 MiB sends: what the wire alone allows and costs.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::cpu::this_process_cpu_seconds;

const SEND_BYTES: usize = 1024 * 1024;
const STREAM_COUNTS: [usize; 2] = [1, 2];

#[derive(Clone, Debug, Serialize)]
pub struct NetworkBaseline {
    pub congestion_control: String,
    pub streams: Vec<StreamRate>,
}

#[derive(Clone, Debug, Serialize)]
pub struct StreamRate {
    pub streams: usize,
    pub mb_per_s: f64,
    /// Of sender and receiver together.
    pub cpu_s_per_gb: f64,
}

impl NetworkBaseline {
    pub fn one_stream(&self) -> Option<&StreamRate> {
        self.streams.iter().find(|rate| rate.streams == 1)
    }
}

pub fn congestion_control() -> String {
    let name = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
    name.map_or_else(|_| "unknown".to_owned(), |name| name.trim().to_owned())
}

pub fn measure(each: Duration) -> io::Result<NetworkBaseline> {
    let streams = STREAM_COUNTS
        .into_iter()
        .map(|streams| measure_streams(streams, each))
        .collect::<io::Result<_>>()?;
    Ok(NetworkBaseline {
        congestion_control: congestion_control(),
        streams,
    })
}

fn measure_streams(streams: usize, how_long: Duration) -> io::Result<StreamRate> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let pairs = (0..streams)
        .map(|_| Ok((TcpStream::connect(address)?, listener.accept()?.0)))
        .collect::<io::Result<Vec<_>>>()?;
    let cpu_before = this_process_cpu_seconds();
    let begin = Instant::now();
    let received = thread::scope(|scope| {
        let mut receivers = Vec::new();
        for (sender, receiver) in pairs {
            scope.spawn(move || send(sender, begin + how_long));
            receivers.push(scope.spawn(move || receive(receiver)));
        }
        receivers
            .into_iter()
            .map(|receiver| receiver.join().expect("a receiver does not panic"))
            .sum::<io::Result<u64>>()
    })?;
    let (seconds, cpu_seconds) = (
        begin.elapsed().as_secs_f64(),
        this_process_cpu_seconds() - cpu_before,
    );
    Ok(StreamRate {
        streams,
        mb_per_s: received as f64 / 1e6 / seconds,
        cpu_s_per_gb: cpu_seconds / (received as f64 / 1e9),
    })
}

fn send(mut stream: TcpStream, until: Instant) -> io::Result<()> {
    let bytes = vec![0x5a; SEND_BYTES];
    // At least once, however late this thread got its turn: nothing sent would be no rate.
    loop {
        stream.write_all(&bytes)?;
        if Instant::now() >= until {
            return Ok(());
        }
    }
}

fn receive(mut stream: TcpStream) -> io::Result<u64> {
    let mut bytes = vec![0; SEND_BYTES];
    let mut received = 0;
    loop {
        match stream.read(&mut bytes)? {
            0 => return Ok(received),
            count => received += count as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_and_two_streams_are_measured() {
        let network = measure(Duration::from_millis(20)).unwrap();
        assert_eq!(
            network
                .streams
                .iter()
                .map(|rate| rate.streams)
                .collect::<Vec<_>>(),
            STREAM_COUNTS
        );
        assert!(
            network.streams.iter().all(|rate| rate.mb_per_s > 0.0),
            "{network:?}"
        );
        assert!(!network.congestion_control.is_empty());
    }
}
