//! A producer's socket to one broker: requests out without waiting, answers in as they come, several under way.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

use kafka_protocol::messages::ApiKey;

use super::frame::{PartitionAck, ProduceFrame, read_acks};
use super::span::BatchSpan;
use crate::client::connection::{Connection, Traffic, frame_size};
use crate::client::error::ClientError;

/// Answers are small; one read takes all that are there.
const RECEIVE_BYTES: usize = 64 * 1024;

/// A request that waits for its answer.
pub struct InFlight {
    correlation_id: i32,
    pub spans: Vec<BatchSpan>,
}

/// What happened to a request.
pub struct Answer {
    pub spans: Vec<BatchSpan>,
    pub acks: Vec<PartitionAck>,
}

/// The connection broke, or the peer does not speak Kafka.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the broker closed the connection")]
    Closed,
    #[error("not an answer to a Produce request: {0}")]
    Protocol(String),
}

pub struct Link {
    stream: TcpStream,
    version: i16,
    frame: ProduceFrame,
    /// The request that is being written.
    writing: Option<InFlight>,
    in_flight: VecDeque<InFlight>,
    received: Vec<u8>,
    received_bytes: usize,
    next_correlation_id: i32,
    traffic: Traffic,
}

impl Link {
    /// `make_frame` gets the version that both sides speak.
    pub fn open(
        address: &str,
        version_min: i16,
        version_max: i16,
        make_frame: impl FnOnce(i16) -> ProduceFrame,
    ) -> Result<Self, ClientError> {
        let connection = Connection::open(address)?;
        let version =
            connection
                .versions()
                .choose(address, ApiKey::Produce, version_min, version_max)?;
        let stream = connection.into_nonblocking_stream()?;
        Ok(Self {
            stream,
            version,
            frame: make_frame(version),
            writing: None,
            in_flight: VecDeque::new(),
            received: vec![0; RECEIVE_BYTES],
            received_bytes: 0,
            next_correlation_id: 0,
            traffic: Traffic::default(),
        })
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    pub fn batches_per_request_max(&self) -> usize {
        self.frame.capacity()
    }

    pub fn is_writing(&self) -> bool {
        self.writing.is_some()
    }

    pub fn requests_under_way(&self) -> usize {
        self.in_flight.len() + usize::from(self.writing.is_some())
    }

    /// Makes the next request of these batches, at most `batches_per_request_max`; `encode` writes one into its slot
    /// and returns its size. Only when the last request has been written whole. Returns the request's size.
    pub fn start(
        &mut self,
        spans: Vec<BatchSpan>,
        mut encode: impl FnMut(&mut Vec<u8>, &BatchSpan) -> usize,
    ) -> usize {
        assert!(
            self.writing.is_none(),
            "a request is begun behind a half-written one"
        );
        self.frame.clear();
        for span in &spans {
            self.frame
                .push(span.partition as i32, |slot| encode(slot, span));
        }
        let correlation_id = self.next_correlation_id;
        self.next_correlation_id = correlation_id.wrapping_add(1);
        self.frame.seal(correlation_id);
        self.writing = Some(InFlight {
            correlation_id,
            spans,
        });
        self.frame.total_bytes()
    }

    /// What went over it since the last call. A request counts when it has been written whole.
    pub fn take_traffic(&mut self) -> Traffic {
        std::mem::take(&mut self.traffic)
    }

    /// Writes what the socket takes. Returns the request when it has been written whole and no answer will come.
    pub fn write(&mut self, answered: bool) -> Result<Option<Vec<BatchSpan>>, LinkError> {
        if self.writing.is_none() || !self.frame.write_to(&mut self.stream)? {
            return Ok(None);
        }
        self.traffic.sent_bytes += self.frame.total_bytes() as u64;
        let written = self.writing.take().expect("a request was being written");
        if answered {
            self.in_flight.push_back(written);
            return Ok(None);
        }
        Ok(Some(written.spans))
    }

    /// Reads what is there and hands out each whole answer. What comes meanwhile, or the connection's end, shows in
    /// the next `poll`.
    pub fn read(&mut self, mut each: impl FnMut(Answer)) -> Result<(), LinkError> {
        loop {
            match self.stream.read(&mut self.received[self.received_bytes..]) {
                Ok(0) => return Err(LinkError::Closed),
                Ok(read_bytes) => {
                    self.received_bytes += read_bytes;
                    self.traffic.received_bytes += read_bytes as u64;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            }
            let took_all = self.received_bytes < self.received.len();
            self.split_answers(&mut each)?;
            if took_all {
                return Ok(());
            }
        }
    }

    fn split_answers(&mut self, each: &mut impl FnMut(Answer)) -> Result<(), LinkError> {
        let mut start = 0;
        while let Some(prefix) = self.received[start..self.received_bytes].first_chunk::<4>() {
            let size_bytes = frame_size(*prefix).map_err(LinkError::Protocol)?;
            let end = start + 4 + size_bytes;
            if end > self.received_bytes {
                // Room for the rest of a large answer.
                if end - start > self.received.len() {
                    self.received.resize(end - start, 0);
                }
                break;
            }
            let frame = &self.received[start + 4..end];
            let (correlation_id, body) = frame
                .split_first_chunk::<4>()
                .expect("a frame has at least four bytes");
            let request = self
                .in_flight
                .pop_front()
                .ok_or_else(|| LinkError::Protocol("an answer to nothing".to_owned()))?;
            let correlation_id = i32::from_be_bytes(*correlation_id);
            if correlation_id != request.correlation_id {
                return Err(LinkError::Protocol(format!(
                    "answer {correlation_id} where {} was due",
                    request.correlation_id
                )));
            }
            let mut acks = Vec::with_capacity(request.spans.len());
            read_acks(body, self.version, |ack| acks.push(ack))
                .map_err(|error| LinkError::Protocol(error.to_string()))?;
            each(Answer {
                spans: request.spans,
                acks,
            });
            start = end;
        }
        self.received.copy_within(start..self.received_bytes, 0);
        self.received_bytes -= start;
        Ok(())
    }

    /// Gives up the connection; returns what it had not answered.
    pub fn abandon(self) -> Vec<BatchSpan> {
        self.in_flight
            .into_iter()
            .chain(self.writing)
            .flat_map(|request| request.spans)
            .collect()
    }
}
