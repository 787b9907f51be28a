//! Ctrl-C: the first ends the run early with a valid report, the second ends the process.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// What a shell reports for a program that Ctrl-C ended.
const EXIT_INTERRUPTED: i32 = 130;

#[derive(Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    pub fn install() -> io::Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal finds the flag unset and sets it, the second finds it set.
            flag::register_conditional_shutdown(signal, EXIT_INTERRUPTED, Arc::clone(&asked))?;
            flag::register(signal, Arc::clone(&asked))?;
        }
        Ok(Self(asked))
    }

    pub fn is_asked(&self) -> bool {
        self.0.load(Relaxed)
    }
}
