use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use signal_hook::consts::signal::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

const STOP_SIGNALS: [i32; 2] = [SIGTERM, SIGINT];

/// Calls `stop` on a thread of its own at the first SIGTERM or SIGINT. A second one ends the process at once, from within the
/// signal handler, so that nothing that hangs can hold it up.
pub(super) fn on_stop_signal(stop: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let asked_before = Arc::new(AtomicBool::new(false));
    for signal in STOP_SIGNALS {
        // In this order: the first signal finds the flag down and then raises it.
        flag::register_conditional_shutdown(signal, 128 + signal, asked_before.clone())?;
        flag::register(signal, asked_before.clone())?;
    }
    let mut signals = Signals::new(STOP_SIGNALS)?;
    let wait = move || {
        if let Some(signal) = signals.forever().next() {
            let name = if signal == SIGTERM {
                "SIGTERM"
            } else {
                "SIGINT"
            };
            tracing::info!("{name}: stopping; a second signal ends the process at once");
            stop();
        }
    };
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(wait)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use rustix::process::{Pid, Signal, kill_process};

    /// Set in the process that the test below starts.
    const CHILD: &str = "CORELOG_TEST_STOP_HANGS";

    /// Not a test of its own: the process that the test below sends signals to. Its stop hangs.
    #[test]
    fn a_process_whose_stop_hangs() {
        if std::env::var_os(CHILD).is_none() {
            return;
        }
        on_stop_signal(|| {
            println!("\nstopping");
            thread::sleep(Duration::MAX);
        })
        .unwrap();
        println!("\nrunning");
        thread::sleep(Duration::MAX);
    }

    #[test]
    fn the_first_signal_asks_and_the_second_ends_the_process_whatever_hangs() {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--nocapture", "a_process_whose_stop_hangs"])
            .env(CHILD, "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = Pid::from_child(&child);
        let mut lines = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map(Result::unwrap);
        assert!(lines.any(|line| line == "running"));
        kill_process(pid, Signal::TERM).unwrap();
        assert!(lines.any(|line| line == "stopping"));
        kill_process(pid, Signal::INT).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(128 + SIGINT));
    }
}
