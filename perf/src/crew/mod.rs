//! The threads that put the load of one step on a broker: a crew.
//!
//! Owns: the producers and consumers of one [`LoadOrder`], and what they measured until it is handed over as a
//! [`LoadYield`]. Must never know: who gave the order, what else the run does, other crews. Runs on: the thread
//! that calls [`Crew::work`], which watches; producers and consumers have threads of their own.

mod load_order;
mod load_yield;
mod sample;

pub use load_order::{LoadOrder, ProducerOrder};
pub use load_yield::{Consumed, Edges, GroupYield, LoadYield, TopicLedger};
pub use sample::Sample;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle, sleep};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::client::cluster::Topic;
use crate::client::error::ClientError;
use crate::clock::Clock;
use crate::consumer::group::Members;
use crate::consumer::{Assigned, Begun, Following, PassesResult, TailResult, passes, tail};
use crate::keys::Keys;
use crate::live::{Live, Totals};
use crate::load_stage::LoadStage;
use crate::producer::{Producer, ProducerPlan, ProducerResult, Window};

const TICK: Duration = Duration::from_millis(100);
/// While a backlog grows or shrinks.
const COUNT_TICK: Duration = Duration::from_millis(20);

const SECOND_NS: u64 = 1_000_000_000;

/// What a crew tells while it works.
#[derive(Debug, Serialize, Deserialize)]
pub enum CrewNews {
    /// The measured window begins and ends.
    WindowOpens,
    WindowCloses,
    /// Of every second from the start on, and of what was left of the last; a change of stage ends a second early.
    Second(Box<Sample>),
    /// The counters, between the seconds while a backlog grows or shrinks.
    Count(Totals),
    /// The producers are done; consumers go on until they are released.
    CatchingUp(Totals),
}

/// Changes and ends a crew's work from another thread.
#[derive(Clone, Default)]
pub struct CrewControl {
    live: Arc<Live>,
    released: Arc<AtomicBool>,
}

impl CrewControl {
    /// Nothing new is sent; what is under way is waited for.
    pub fn stop(&self) {
        self.live.stop();
    }

    /// The load goes on in another way.
    pub fn enter(&self, stage: LoadStage) {
        self.live.enter(stage);
    }

    /// Consumers have read what they should: the crew ends once its producers are done.
    pub fn release(&self) {
        self.released.store(true, Relaxed);
    }
}

/// Connected, and ready to begin.
pub struct Crew {
    order: LoadOrder,
    producers: Vec<Producer>,
    following: Following,
    members: Members,
    control: CrewControl,
}

impl Crew {
    /// Connects every producer, and waits until every group is together; a broker that is not there is an error now, later it is part
    /// of the measurement.
    pub fn gather(mut order: LoadOrder, clock: Clock) -> Result<Self, ClientError> {
        let control = CrewControl::default();
        let keys = Keys::new(
            order.keys.distributor,
            order.keys.count,
            order.keys.zipf_exponent,
        )
        .map(Arc::new);
        let topics: Vec<Arc<Topic>> = order.topics.iter().cloned().map(Arc::new).collect();
        let connect = |producer: &ProducerOrder| {
            let plan = ProducerPlan {
                run: order.run,
                number: producer.number,
                identity: producer.identity,
                topic: Arc::clone(&topics[producer.topic]),
                schedule: producer.schedule,
                window: order.window,
                drain_until_ns: order.drain_until_ns,
                acks: order.acks,
                linger: order.linger,
                in_flight_max: order.in_flight_max,
                message_bytes: order.message_bytes,
                batch_bytes_max: order.batch_bytes_max,
                request_bytes_max: order.request_bytes_max,
                keys: keys.clone(),
                payloads: order.payloads.clone(),
                compression: order.compression,
            };
            Producer::connect(plan, clock, Arc::clone(&control.live))
        };
        let producers = order
            .producers
            .iter()
            .map(connect)
            .collect::<Result<_, _>>()?;
        let following = Following {
            run: order.run,
            message_bytes: order.message_bytes as u64,
            clock,
            live: Arc::clone(&control.live),
            begun: Arc::new(OnceLock::new()),
        };
        let members = Members::gather(std::mem::take(&mut order.members), following.clone())?;
        Ok(Self {
            order,
            producers,
            following,
            members,
            control,
        })
    }

    pub fn control(&self) -> CrewControl {
        self.control.clone()
    }

    /// Begins at `start_ns` of the crew's clock and returns when all threads have ended, which needs a release.
    pub fn work(self, start_ns: u64, mut tell: impl FnMut(CrewNews)) -> LoadYield {
        let Self {
            order,
            producers,
            following,
            members,
            control,
        } = self;
        let CrewControl { live, released } = control;
        let clock = following.clock;
        members.begin(Begun {
            start_ns,
            window: order.window.later_by(start_ns),
        });
        let consumers: Vec<JoinHandle<TailResult>> = order
            .consumers
            .into_iter()
            .enumerate()
            .map(|(consumer, plan)| {
                let (following, released) = (following.clone(), Arc::clone(&released));
                spawn(format!("consumer-{consumer}"), move || {
                    tail(plan, &following, &Assigned, || released.load(Relaxed))
                })
            })
            .collect();
        let producers: Vec<JoinHandle<ProducerResult>> = producers
            .into_iter()
            .enumerate()
            .map(|(number, mut producer)| {
                spawn(format!("producer-{number}"), move || {
                    producer.begin_at(start_ns);
                    sleep(Duration::from_nanos(
                        start_ns.saturating_sub(clock.now_ns()),
                    ));
                    producer.run()
                })
            })
            .collect();

        let replays_done = Arc::new(AtomicBool::new(false));
        let replays: Vec<JoinHandle<PassesResult>> = order
            .replays
            .into_iter()
            .enumerate()
            .map(|(number, plan)| {
                let (live, done) = (Arc::clone(&live), Arc::clone(&replays_done));
                spawn(format!("replay-{number}"), move || {
                    passes(&plan, clock, &live, &done)
                })
            })
            .collect();

        let elapsed_ns = || clock.now_ns().saturating_sub(start_ns);
        let is_done = || producers.iter().all(JoinHandle::is_finished);
        let measured = watch(
            &order.window,
            start_ns,
            &live,
            elapsed_ns,
            is_done,
            &mut tell,
        );
        replays_done.store(true, Relaxed);
        let produced = join(producers);
        let replayed = join(replays);
        let last = Sample::take(start_ns, elapsed_ns(), &live);
        tell(CrewNews::Second(Box::new(last)));
        tell(CrewNews::CatchingUp(live.totals()));
        while !released.load(Relaxed) {
            sleep(TICK);
            tell(CrewNews::CatchingUp(live.totals()));
        }
        let topics: Vec<_> = order.producers.iter().map(|it| it.topic).collect();
        let consumed = Consumed {
            tails: join(consumers),
            members: members.leave(),
        };
        LoadYield::of(measured, &topics, produced, consumed, &replayed)
    }
}

/// Until the producers are done: tells every second, and notes the totals when the window opens and closes.
fn watch(
    window: &Window,
    start_ns: u64,
    live: &Live,
    elapsed_ns: impl Fn() -> u64,
    is_done: impl Fn() -> bool,
    tell: &mut impl FnMut(CrewNews),
) -> Edges {
    let (mut opened, mut closed) = (None, None);
    let mut next_second_ns = SECOND_NS;
    let mut stage = live.stage();
    while !is_done() {
        let now_ns = elapsed_ns();
        let entered = live.stage();
        if entered != stage {
            let sample = Sample::take(start_ns, now_ns, live);
            tell(CrewNews::Second(Box::new(Sample { stage, ..sample })));
            stage = entered;
        }
        let is_counted = matches!(stage, LoadStage::Building | LoadStage::Draining);
        if is_counted {
            tell(CrewNews::Count(live.totals()));
        }
        if opened.is_none() && now_ns >= window.start_ns {
            opened = Some((now_ns, live.totals()));
            tell(CrewNews::WindowOpens);
        }
        let is_over = now_ns >= window.end_ns || live.is_stopped() || stage == LoadStage::Ending;
        if opened.is_some() && closed.is_none() && is_over {
            closed = Some((now_ns, live.totals()));
            tell(CrewNews::WindowCloses);
        }
        if now_ns >= next_second_ns {
            let sample = Sample::take(start_ns, now_ns, live);
            tell(CrewNews::Second(Box::new(sample)));
            next_second_ns += SECOND_NS;
        }
        let wait_ns = [window.start_ns, window.end_ns, next_second_ns]
            .into_iter()
            .filter(|edge| *edge > now_ns)
            .map(|edge| edge - now_ns)
            .min()
            .unwrap_or(u64::MAX)
            .min(if is_counted { COUNT_TICK } else { TICK }.as_nanos() as u64);
        sleep(Duration::from_nanos(wait_ns));
    }
    if live.stage() != stage {
        let sample = Sample::take(start_ns, elapsed_ns(), live);
        tell(CrewNews::Second(Box::new(Sample { stage, ..sample })));
    }
    // The producers were done before.
    let mut at_end = |news| {
        tell(news);
        (elapsed_ns(), live.totals())
    };
    let (opened_ns, before) = opened.unwrap_or_else(|| at_end(CrewNews::WindowOpens));
    let (closed_ns, after) = closed.unwrap_or_else(|| at_end(CrewNews::WindowCloses));
    Edges {
        opened_ns,
        closed_ns,
        before,
        after,
    }
}

fn join<T>(threads: Vec<JoinHandle<T>>) -> Vec<T> {
    threads
        .into_iter()
        .map(|thread| thread.join().expect("no thread of a crew panics"))
        .collect()
}

fn spawn<T: Send + 'static>(
    name: String,
    body: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    thread::Builder::new()
        .name(name)
        .spawn(body)
        .expect("the system has room for a thread")
}
