//! A panic on an executor's thread ends the process.
//!
//! Release builds abort on any panic. Where panics unwind (tests, development) the hook does the same for the threads
//! that ask for it, before any destructor of the half-dead executor runs.

use std::cell::Cell;
use std::panic;
use std::process;
use std::sync::Once;

thread_local! {
    static ABORTS: Cell<bool> = const { Cell::new(false) };
}

static HOOK: Once = Once::new();

/// From now on a panic on this thread is printed and then aborts the process (SIGABRT, a non-zero status).
pub(super) fn abort_process_on_panic_here() {
    HOOK.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            print(info);
            if ABORTS.get() {
                process::abort();
            }
        }));
    });
    ABORTS.set(true);
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use crate::io::executor::{Core, spawn, spawn_local};

    const CHILD: &str = "CORELOG_TEST_PANICKING_SHARD";

    /// Not a test of its own: the process that `a_panic_in_a_shard_ends_the_process` starts.
    #[test]
    fn panicking_shard() {
        if std::env::var_os(CHILD).is_none() {
            return;
        }
        let shard = spawn("shard-0", Core::Unpinned, || async {
            spawn_local(async { panic!("a task of the shard panics") }).await;
        });
        // Reached only if the process survives.
        shard.expect("an executor").join();
    }

    #[test]
    fn a_panic_in_a_shard_ends_the_process() {
        let test_binary = std::env::current_exe().expect("the path of this test");
        let output = Command::new(test_binary)
            .args([
                "--exact",
                "io::executor::abort::tests::panicking_shard",
                "--nocapture",
            ])
            .env(CHILD, "1")
            .output()
            .expect("a child process");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "it lived on: {stderr}");
        assert_eq!(
            output.status.code(),
            None,
            "it was not aborted: {}; {stderr}",
            output.status
        );
        assert!(
            stderr.contains("a task of the shard panics"),
            "it died in silence: {stderr}"
        );
    }
}
