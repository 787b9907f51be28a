//! Ctrl-C: the first ends the run early with a valid report, one that comes later ends the process.

use std::io;
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// What a shell reports for a program that Ctrl-C ended.
const EXIT_INTERRUPTED: i32 = 130;

/// A signal that reaches both the process and its group comes twice at once and is meant once.
const SAME_SIGNAL: Duration = Duration::from_millis(500);

#[derive(Clone)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    pub fn install() -> io::Result<Self> {
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let asked = Arc::new(AtomicBool::new(false));
        let interrupt = Self(Arc::clone(&asked));
        let watch = move || {
            let mut first = None;
            for _signal in &mut signals {
                asked.store(true, Relaxed);
                if first.get_or_insert_with(Instant::now).elapsed() > SAME_SIGNAL {
                    exit(EXIT_INTERRUPTED);
                }
            }
        };
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(watch)?;
        Ok(interrupt)
    }

    /// One that no signal reaches, and what asks for it.
    #[cfg(test)]
    pub fn for_tests() -> (Self, Arc<AtomicBool>) {
        let asked = Arc::new(AtomicBool::new(false));
        (Self(Arc::clone(&asked)), asked)
    }

    pub fn is_asked(&self) -> bool {
        self.0.load(Relaxed)
    }
}
