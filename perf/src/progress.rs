//! What the terminal shows while a run goes on: a bar, or plain lines where there is no terminal.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Between two plain lines.
const PLAIN_INTERVAL: Duration = Duration::from_secs(5);

pub struct Progress {
    is_terminal: bool,
    bar: ProgressBar,
    name: String,
    phase_began: Instant,
    last_plain: Instant,
}

/// How long a phase is, and how far it has come: in time, or in a number of things.
#[derive(Clone, Copy, Debug)]
pub enum Extent {
    Time(Duration),
    Count(u64),
}

impl Extent {
    /// As the bar counts it.
    fn units(self) -> u64 {
        match self {
            Self::Time(time) => time.as_millis() as u64,
            Self::Count(count) => count,
        }
    }
}

impl Progress {
    pub fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        Self {
            is_terminal: std::io::stderr().is_terminal(),
            bar,
            name: String::new(),
            phase_began: Instant::now(),
            last_plain: Instant::now(),
        }
    }

    /// Begins a phase of about `length`; without one it is known only that something goes on.
    pub fn phase(&mut self, name: &str, length: Option<Extent>) {
        self.bar.finish_and_clear();
        self.name = name.to_owned();
        self.phase_began = Instant::now();
        self.last_plain = self.phase_began;
        if !self.is_terminal {
            eprintln!("{name}");
            return;
        }
        let (template, bar) = match length {
            Some(length) => (
                "{prefix:.bold} {bar:24} {percent:>3}% {wide_msg}",
                ProgressBar::new(length.units()),
            ),
            None => (
                "{prefix:.bold} {spinner} {wide_msg}",
                ProgressBar::new_spinner(),
            ),
        };
        bar.set_style(ProgressStyle::with_template(template).expect("the template is well formed"));
        bar.set_draw_target(ProgressDrawTarget::stderr());
        bar.set_prefix(name.to_owned());
        self.bar = bar;
    }

    pub fn at(&mut self, done: Extent, message: &str) {
        if self.is_terminal {
            self.bar.set_position(done.units());
            self.bar.set_message(message.to_owned());
        } else if self.last_plain.elapsed() >= PLAIN_INTERVAL {
            let elapsed = self.phase_began.elapsed();
            eprintln!("  {:.0} s: {message}", elapsed.as_secs_f64());
            self.last_plain = Instant::now();
        }
    }

    /// A phase that only says what it is at.
    pub fn doing(&mut self, what: &str) {
        if self.is_terminal {
            self.bar.set_message(what.to_owned());
            self.bar.tick();
        }
    }

    /// Something that stays on the terminal.
    pub fn note(&self, text: &str) {
        self.bar.suspend(|| eprintln!("{text}"));
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
