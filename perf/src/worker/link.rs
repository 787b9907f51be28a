//! A coordinator's connection to one worker.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use super::clock_offset::{ClockExchange, ClockOffset};
use super::connect;
use super::error::WorkerError;
use super::ledger_part::LedgerParts;
use super::message::{
    Ended, FromWorker, Greeting, GreetingAnswer, ToWorker, ToolVersion, WorkerHost,
};
use super::wire::{
    FRAME_BYTES_MAX, FrameWriter, GREETING_BYTES_MAX, Heartbeat, SILENCE_MAX, WireError, split,
};
use crate::clock::Clock;
use crate::crew::{CrewNews, LoadOrder};
use crate::load_stage::LoadStage;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The clocks are compared so often, and the fastest answer counts.
const CLOCK_EXCHANGES: usize = 20;

/// How long a worker may take to connect its producers.
const PREPARE_TIMEOUT: Duration = Duration::from_secs(120);

type Incoming = Result<(u64, FromWorker), WireError>;

pub struct Link {
    address: String,
    host: WorkerHost,
    clock: Clock,
    writer: FrameWriter,
    /// With the instant of our clock at which it came in.
    incoming: Receiver<Incoming>,
    _heartbeat: Heartbeat,
}

/// Ends a worker's load from another thread. A worker that is not there any more needs no telling.
#[derive(Clone)]
pub struct LinkControl(FrameWriter);

impl LinkControl {
    pub fn stop(&self) {
        let _ = self.0.write(&ToWorker::Stop);
    }

    pub fn enter(&self, stage: LoadStage) {
        let _ = self.0.write(&ToWorker::Enter { stage });
    }

    pub fn release(&self) {
        let _ = self.0.write(&ToWorker::Release);
    }

    #[cfg(test)]
    pub fn hang_up(&self) {
        self.0.close();
    }
}

impl Link {
    /// Takes the worker for this run.
    pub fn open(address: &str, clock: Clock) -> Result<Self, WorkerError> {
        let not_there = |source| WorkerError::Connect {
            address: address.to_owned(),
            source,
        };
        let no_worker = |source| WorkerError::NoWorker {
            address: address.to_owned(),
            source,
        };
        let stream = connect(address, CONNECT_TIMEOUT).map_err(not_there)?;
        let (mut reader, writer) = split(stream).map_err(not_there)?;
        let ours = ToolVersion::this();
        let greeting = Greeting {
            coordinator: ours.clone(),
        };
        writer.write(&greeting).map_err(no_worker)?;
        let answer: GreetingAnswer = reader.read(GREETING_BYTES_MAX).map_err(no_worker)?;
        if answer.worker != ours {
            return Err(WorkerError::OtherVersion {
                address: address.to_owned(),
                theirs: Box::new(answer.worker),
                ours: Box::new(ours),
            });
        }
        if let Some(reason) = answer.refused {
            return Err(WorkerError::Refused {
                address: address.to_owned(),
                reason,
            });
        }
        let host = reader.read(GREETING_BYTES_MAX).map_err(no_worker)?;
        let (forward, incoming) = channel();
        let reading = move || {
            loop {
                let message = reader.read(FRAME_BYTES_MAX);
                let message = match message {
                    Ok(FromWorker::Alive) => continue,
                    Ok(message) => Ok((clock.now_ns(), message)),
                    Err(error) => Err(error),
                };
                let is_over = message.is_err();
                if forward.send(message).is_err() || is_over {
                    break;
                }
            }
        };
        thread::Builder::new()
            .name("worker-link".to_owned())
            .spawn(reading)
            .map_err(not_there)?;
        let heartbeat = Heartbeat::start(&writer, ToWorker::Alive).map_err(not_there)?;
        Ok(Self {
            address: address.to_owned(),
            host,
            clock,
            writer,
            incoming,
            _heartbeat: heartbeat,
        })
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn host(&self) -> &WorkerHost {
        &self.host
    }

    pub fn control(&self) -> LinkControl {
        LinkControl(self.writer.clone())
    }

    /// While no load is on.
    pub fn measure_clock(&mut self) -> Result<ClockOffset, WorkerError> {
        let mut exchanges = Vec::with_capacity(CLOCK_EXCHANGES);
        for _ in 0..CLOCK_EXCHANGES {
            let asked_ns = self.clock.now_ns();
            self.tell(&ToWorker::Clock)?;
            match self.next(SILENCE_MAX)? {
                (answered_ns, FromWorker::Clock { at_ns }) => exchanges.push(ClockExchange {
                    asked_ns,
                    answered_ns,
                    theirs_ns: at_ns,
                }),
                _ => return Err(self.out_of_turn()),
            }
        }
        Ok(ClockOffset::of(&exchanges).expect("there was an exchange"))
    }

    /// Asks the worker to connect its producers; `await_ready` hears whether it could.
    pub fn prepare(&self, order: LoadOrder, offset: ClockOffset) -> Result<(), WorkerError> {
        self.tell(&ToWorker::Prepare {
            order: Box::new(order),
            origin_unix_ns: self.clock.origin_unix_ns() - offset.offset_ns,
        })
    }

    pub fn await_ready(&mut self) -> Result<(), WorkerError> {
        match self.next(PREPARE_TIMEOUT)? {
            (_, FromWorker::Ready) => Ok(()),
            (_, FromWorker::CannotPrepare { reason }) => Err(WorkerError::CannotPrepare {
                address: self.address.clone(),
                reason,
            }),
            _ => Err(self.out_of_turn()),
        }
    }

    /// Begins at `start_ns` of our clock. Returns when the worker has ended its load and handed over what it
    /// measured, or is lost.
    pub fn work(
        &mut self,
        start_ns: u64,
        offset: ClockOffset,
        mut tell: impl FnMut(CrewNews),
    ) -> Result<Ended, WorkerError> {
        self.tell(&ToWorker::Begin {
            start_ns: offset.theirs_ns(start_ns),
        })?;
        let mut ledgers = LedgerParts::default();
        loop {
            // Its signs of life are watched by the thread that reads.
            match self
                .received(
                    self.incoming
                        .recv()
                        .map_err(|_| RecvTimeoutError::Disconnected),
                )?
                .1
            {
                FromWorker::News(news) => tell(news),
                FromWorker::Ledger(part) => {
                    ledgers.add(part).map_err(|source| WorkerError::Ledger {
                        address: self.address.clone(),
                        source,
                    })?
                }
                FromWorker::Ended(mut ended) => {
                    ended.load.ledgers = ledgers.into_ledgers();
                    return Ok(*ended);
                }
                _ => return Err(self.out_of_turn()),
            }
        }
    }

    fn tell(&self, message: &ToWorker) -> Result<(), WorkerError> {
        self.writer
            .write(message)
            .map_err(|source| self.lost(source))
    }

    /// The next message that is no sign of life.
    fn next(&self, timeout: Duration) -> Result<(u64, FromWorker), WorkerError> {
        self.received(self.incoming.recv_timeout(timeout))
    }

    fn received(
        &self,
        received: Result<Incoming, RecvTimeoutError>,
    ) -> Result<(u64, FromWorker), WorkerError> {
        match received {
            Ok(message) => message.map_err(|source| self.lost(source)),
            Err(RecvTimeoutError::Timeout) => Err(self.lost(WireError::Silent)),
            Err(RecvTimeoutError::Disconnected) => Err(self.lost(WireError::Closed)),
        }
    }

    fn lost(&self, source: WireError) -> WorkerError {
        WorkerError::Lost {
            address: self.address.clone(),
            source,
        }
    }

    fn out_of_turn(&self) -> WorkerError {
        WorkerError::OutOfTurn {
            address: self.address.clone(),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.writer.close();
    }
}
