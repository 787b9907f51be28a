//! Crews at work: the main thread watches the clock, the broker's CPU and what the crews tell.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::Run;
use super::course::Course;
use super::crews::{Brought, Hand, HandControl};
use super::meter::Meter;
use super::seconds::CrewSeconds;
use crate::crew::CrewNews;
use crate::live::Totals;
use crate::load_stage::LoadStage;
use crate::progress::Extent;
use crate::worker::WorkerError;

/// How long consumers may take to reach the last record.
const CATCH_UP: Duration = Duration::from_secs(10);

const TICK: Duration = Duration::from_millis(100);

/// What crews send to the main thread.
enum CrewEvent {
    News(CrewNews),
    Ended(Box<Brought>),
    Lost(WorkerError),
}

/// What became of a load step.
pub struct Conducted {
    /// Of each crew; None of one that was lost.
    pub brought: Vec<Option<Brought>>,
    /// The first loss, which ended the step.
    pub lost: Option<WorkerError>,
    /// At the measured window's edges.
    pub meter_before: Meter,
    pub meter_after: Meter,
}

/// How far the crews are, as the main thread knows it.
struct Watch {
    seconds: CrewSeconds,
    /// What each crew told last.
    totals: Vec<Totals>,
    /// Of those whose producers are done.
    catching_up: Vec<Option<Totals>>,
    brought: Vec<Option<Brought>>,
    lost: Option<WorkerError>,
    is_stopped: bool,
    opened: Option<Meter>,
    closed: Option<Meter>,
    released: bool,
    catch_up_until: Option<Instant>,
}

impl Run<'_> {
    /// `readings`: by how many subscriptions each record is read.
    pub(super) fn conduct(
        &mut self,
        crews: Vec<Hand<'_>>,
        start_ns: u64,
        readings: u64,
        course: &mut Course,
    ) -> Conducted {
        let controls: Vec<HandControl> = crews.iter().map(Hand::control).collect();
        let (tell, events) = channel();
        thread::scope(|scope| {
            for (number, crew) in crews.into_iter().enumerate() {
                let tell = tell.clone();
                let body = move || {
                    // The main thread listens until every crew has ended.
                    let news = |news| drop(tell.send((number, CrewEvent::News(news))));
                    let end = match crew.work(start_ns, news) {
                        Ok(brought) => CrewEvent::Ended(Box::new(brought)),
                        Err(error) => CrewEvent::Lost(error),
                    };
                    drop(tell.send((number, end)));
                };
                thread::Builder::new()
                    .name(format!("crew-{number}"))
                    .spawn_scoped(scope, body)
                    .expect("the system has room for a thread");
            }
            drop(tell);
            self.watch(&controls, &events, start_ns, readings, course)
        })
    }

    fn watch(
        &mut self,
        controls: &[HandControl],
        events: &Receiver<(usize, CrewEvent)>,
        start_ns: u64,
        readings: u64,
        course: &mut Course,
    ) -> Conducted {
        let mut watch = Watch {
            seconds: CrewSeconds::new(controls.len()),
            totals: vec![Totals::default(); controls.len()],
            catching_up: vec![None; controls.len()],
            brought: controls.iter().map(|_| None).collect(),
            lost: None,
            is_stopped: false,
            opened: None,
            closed: None,
            released: false,
            catch_up_until: None,
        };
        loop {
            if !watch.is_stopped && (self.interrupt.is_asked() || watch.lost.is_some()) {
                controls.iter().for_each(HandControl::stop);
                watch.is_stopped = true;
            }
            if let Some(backlog) = &mut course.backlog {
                let elapsed_ns = self.clock.now_ns().saturating_sub(start_ns);
                if let Some(stage) = backlog.next(elapsed_ns, &watch.all_totals()) {
                    controls.iter().for_each(|control| control.enter(stage));
                }
                if backlog.stage() == LoadStage::Ending {
                    course.timeline.end_at(elapsed_ns);
                }
            }
            if !watch.released && watch.is_caught_up(readings) {
                controls.iter().for_each(HandControl::release);
                watch.released = true;
            }
            match events.recv_timeout(TICK) {
                Ok((_, CrewEvent::News(CrewNews::WindowOpens))) => {
                    watch
                        .opened
                        .get_or_insert_with(|| Meter::read(&self.brokers));
                }
                Ok((_, CrewEvent::News(CrewNews::WindowCloses))) => {
                    watch
                        .closed
                        .get_or_insert_with(|| Meter::read(&self.brokers));
                }
                Ok((crew, event)) => {
                    watch.take(crew, event);
                    while let Some(second) = watch.seconds.next() {
                        course.add(&second);
                        self.show(course);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let read_meter = || Meter::read(&self.brokers);
        Conducted {
            brought: watch.brought,
            lost: watch.lost,
            meter_before: watch.opened.unwrap_or_else(read_meter),
            meter_after: watch.closed.unwrap_or_else(read_meter),
        }
    }

    fn show(&mut self, course: &Course) {
        let timeline = &course.timeline;
        let Some(second) = timeline.seconds.last() else {
            return;
        };
        let p99 = second
            .p99_ms
            .map_or_else(String::new, |p99| format!(", p99 {p99:.2} ms"));
        let consumed = if second.consumed_mb_per_s > 0.0 {
            format!(", consumed {:.0} MB/s", second.consumed_mb_per_s)
        } else {
            String::new()
        };
        let replayed = second
            .replay_mb_per_s
            .map_or_else(String::new, |rate| format!(", replayed {rate:.0} MB/s"));
        let backlog = course.unread().unwrap_or_default();
        let failed: u64 = timeline
            .seconds
            .iter()
            .map(|second| second.failed_records)
            .sum();
        let message = format!(
            "{:.0} MB/s{p99}{consumed}{replayed}{backlog}, {} in flight, {failed} failed",
            second.acked_mb_per_s, second.requests_in_flight
        );
        self.progress.at(
            Extent::Time(Duration::from_secs_f64(second.at_s + second.seconds)),
            &message,
        );
    }
}

impl Watch {
    fn take(&mut self, crew: usize, event: CrewEvent) {
        match event {
            CrewEvent::News(CrewNews::WindowOpens | CrewNews::WindowCloses) => {}
            CrewEvent::News(CrewNews::Second(sample)) => {
                self.totals[crew] = sample.totals;
                self.seconds.told(crew, *sample);
            }
            CrewEvent::News(CrewNews::Count(totals)) => self.totals[crew] = totals,
            CrewEvent::News(CrewNews::CatchingUp(totals)) => {
                self.totals[crew] = totals;
                self.seconds.ended(crew);
                self.catching_up[crew] = Some(totals);
            }
            CrewEvent::Ended(brought) => self.brought[crew] = Some(*brought),
            CrewEvent::Lost(error) => {
                self.seconds.ended(crew);
                self.catching_up[crew].get_or_insert_default();
                self.lost.get_or_insert(error);
            }
        }
    }

    fn all_totals(&self) -> Totals {
        let mut all = Totals::default();
        self.totals.iter().for_each(|totals| all.add(totals));
        all
    }

    /// Whether consumers have read all that was confirmed. They lag behind; what they have not read in time is
    /// left out of their figures.
    fn is_caught_up(&mut self, readings: u64) -> bool {
        if !self.catching_up.iter().all(Option::is_some) {
            return false;
        }
        let until = *self
            .catch_up_until
            .get_or_insert_with(|| Instant::now() + CATCH_UP);
        let totals =
            |of: fn(&Totals) -> u64| -> u64 { self.catching_up.iter().flatten().map(of).sum() };
        self.is_stopped
            || totals(|it| it.consumed_records) >= totals(|it| it.acked_records) * readings
            || Instant::now() >= until
    }
}
