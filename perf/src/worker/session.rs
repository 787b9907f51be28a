//! A coordinator's connection, at the worker.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};

use super::ledger_part::parts;
use super::message::{
    Ended, FromWorker, Greeting, GreetingAnswer, ToWorker, ToolVersion, WorkerHost,
};
use super::occupancy::Occupancy;
use super::own_cpu::OwnCpu;
use super::wire::{
    FRAME_BYTES_MAX, FrameReader, FrameWriter, GREETING_BYTES_MAX, Heartbeat, WireError, split,
};
use crate::clock::Clock;
use crate::crew::{Crew, CrewControl, CrewNews, LoadOrder};
use crate::live::Totals;
use crate::provenance::Machine;

/// Why a session is over.
#[derive(Debug, thiserror::Error)]
pub enum SessionEnd {
    #[error("refused: {0}")]
    Refused(String),
    #[error("over: {0}")]
    Wire(#[from] WireError),
    #[error("over: it said what was out of turn")]
    OutOfTurn,
    #[error("the system did not give what a session needs: {0}")]
    System(#[from] std::io::Error),
}

/// What the coordinator has asked for so far.
enum Stage {
    Idle,
    Prepared(Box<Crew>),
    AtWork {
        control: CrewControl,
        thread: JoinHandle<()>,
        has_ended: Arc<AtomicBool>,
    },
}

pub struct Session {
    name: String,
    reader: FrameReader,
    writer: FrameWriter,
    clock: Clock,
    stage: Stage,
}

impl Session {
    /// Serves one coordinator until it goes away. `name`: what it is called on the terminal.
    pub fn serve(stream: TcpStream, name: &str, occupancy: &Occupancy) -> Result<(), SessionEnd> {
        let (mut reader, writer) = split(stream)?;
        let greeting: Greeting = reader.read(GREETING_BYTES_MAX)?;
        let (theirs, ours) = (greeting.coordinator, ToolVersion::this());
        let taken = if theirs == ours {
            occupancy
                .take(name)
                .map_err(|occupied| occupied.to_string())
        } else {
            Err(format!("it is {ours}, and the coordinator is {theirs}"))
        };
        writer.write(&GreetingAnswer {
            worker: ours,
            refused: taken.as_ref().err().cloned(),
        })?;
        let _place = taken.map_err(SessionEnd::Refused)?;
        say(name, "a run begins");
        let clock = Clock::start();
        writer.write(&WorkerHost {
            hostname: rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned(),
            machine: Machine::this(),
            origin_unix_ns: clock.origin_unix_ns(),
        })?;
        let _heartbeat = Heartbeat::start(&writer, FromWorker::Alive)?;
        let mut session = Self {
            name: name.to_owned(),
            reader,
            writer,
            clock,
            stage: Stage::Idle,
        };
        let end = session.follow();
        if session.is_at_work() {
            say(name, "the coordinator is gone: the load is stopped");
        }
        session.end_load();
        end
    }

    fn follow(&mut self) -> Result<(), SessionEnd> {
        loop {
            match self.reader.read(FRAME_BYTES_MAX) {
                Ok(ToWorker::Alive) => {}
                Ok(ToWorker::Clock) => {
                    let at_ns = self.clock.now_ns();
                    self.writer.write(&FromWorker::Clock { at_ns })?;
                }
                Ok(ToWorker::Prepare {
                    order,
                    origin_unix_ns,
                }) => self.prepare(*order, origin_unix_ns)?,
                Ok(ToWorker::Begin { start_ns }) => self.begin(start_ns)?,
                Ok(ToWorker::Stop) => {
                    if let Stage::AtWork { control, .. } = &self.stage {
                        say(&self.name, "the load is stopped");
                        control.stop();
                    }
                }
                Ok(ToWorker::Enter { stage }) => {
                    if let Stage::AtWork { control, .. } = &self.stage {
                        control.enter(stage);
                    }
                }
                Ok(ToWorker::Release) => {
                    if let Stage::AtWork { control, .. } = &self.stage {
                        control.release();
                    }
                }
                Err(WireError::Closed) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn prepare(&mut self, order: LoadOrder, origin_unix_ns: i64) -> Result<(), SessionEnd> {
        // The crew before has sent its end, so this does not wait.
        self.end_load();
        let length = match order.has_backlog {
            true => "until their backlog is drained and measured".to_owned(),
            false => format!("for {:.0} s", order.window.end_ns as f64 / 1e9),
        };
        let (producers, consumers) = (order.producers.len(), order.consumers.len());
        let consumers = consumers + order.members.len();
        say(
            &self.name,
            &format!("{producers} producers and {consumers} consumers {length}"),
        );
        let clock = self.clock.with_origin_unix_ns(origin_unix_ns);
        let answer = match Crew::gather(order, clock) {
            Ok(crew) => {
                self.stage = Stage::Prepared(Box::new(crew));
                FromWorker::Ready
            }
            Err(error) => {
                say(&self.name, &format!("cannot put the load on: {error}"));
                FromWorker::CannotPrepare {
                    reason: error.to_string(),
                }
            }
        };
        Ok(self.writer.write(&answer)?)
    }

    fn begin(&mut self, start_ns: u64) -> Result<(), SessionEnd> {
        let Stage::Prepared(crew) = std::mem::replace(&mut self.stage, Stage::Idle) else {
            return Err(SessionEnd::OutOfTurn);
        };
        let control = crew.control();
        let (writer, name) = (self.writer.clone(), self.name.clone());
        let has_ended = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&has_ended);
        let body = move || work(*crew, start_ns, &writer, &name, &ended);
        let thread = thread::Builder::new().name("crew".to_owned()).spawn(body)?;
        self.stage = Stage::AtWork {
            control,
            thread,
            has_ended,
        };
        Ok(())
    }

    fn is_at_work(&self) -> bool {
        matches!(&self.stage, Stage::AtWork { has_ended, .. } if !has_ended.load(Relaxed))
    }

    /// Nobody is there any more who would stop it.
    fn end_load(&mut self) {
        if let Stage::AtWork {
            control, thread, ..
        } = std::mem::replace(&mut self.stage, Stage::Idle)
        {
            control.stop();
            control.release();
            thread.join().expect("a crew does not panic");
        }
    }
}

/// Tells as the crew works, then what it brings back. If nobody listens any more, the session finds out.
fn work(crew: Crew, start_ns: u64, writer: &FrameWriter, name: &str, has_ended: &AtomicBool) {
    let mut totals = Totals::default();
    let (mut opened, mut closed) = (OwnCpu::read(), OwnCpu::read());
    let news = |news: CrewNews| {
        match &news {
            CrewNews::WindowOpens => opened = OwnCpu::read(),
            CrewNews::WindowCloses => closed = OwnCpu::read(),
            CrewNews::CatchingUp(now) => totals = *now,
            CrewNews::Second(_) | CrewNews::Count(_) => {}
        }
        let _ = writer.write(&FromWorker::News(news));
    };
    let mut load = crew.work(start_ns, news);
    has_ended.store(true, Relaxed);
    say(
        name,
        &format!(
            "load ended: {} records confirmed, {} failed, {} consumed",
            totals.acked_records, totals.failed_records, totals.consumed_records
        ),
    );
    let ledgers = std::mem::take(&mut load.ledgers);
    let sent = ledgers
        .iter()
        .flat_map(parts)
        .try_for_each(|part| writer.write(&FromWorker::Ledger(part)))
        .and_then(|()| {
            let (cpu, machine) = closed.since(&opened);
            writer.write(&FromWorker::Ended(Box::new(Ended { load, cpu, machine })))
        });
    if let Err(error) = sent {
        say(name, &format!("the results could not be sent: {error}"));
    }
}

/// One line on the terminal, which may be gone.
pub fn say(name: &str, what: &str) {
    let _ = writeln!(std::io::stdout(), "{name}: {what}");
}
