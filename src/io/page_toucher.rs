//! A thread that makes memory resident before a shard needs it.
//!
//! The kernel clears a huge page when it is first touched. That is 2 MiB at the speed of memory, and where a hypervisor has yet to find
//! the memory itself several milliseconds: a stall of the shard, in the latency of every request behind it. The clearing costs the same
//! here; it only keeps nobody waiting. Where this thread gets no CPU, a shard touches the memory itself, as it would without.

use std::sync::Once;
use std::thread;

use super::page_allocator::{
    Untouched, await_untouched, limit_ahead, map_region, put_in, touch_block,
};

static STARTED: Once = Once::new();

/// Begins to keep up to `ahead_bytes_max` resident, for the whole process. The thread ends with the process: it owns nothing
/// that must be put in order. Where it cannot be, memory is touched by who uses it.
pub fn start(ahead_bytes_max: usize) {
    STARTED.call_once(|| {
        limit_ahead(ahead_bytes_max);
        let started = thread::Builder::new()
            .name("page-toucher".to_owned())
            .spawn(|| while touch_next() {});
        if let Err(error) = started {
            tracing::warn!(%error, "cannot start the thread that touches memory in advance");
        }
    });
}

/// False if there is no address space left.
fn touch_next() -> bool {
    match await_untouched() {
        Untouched::Block(block) => touch_block(block),
        Untouched::Region => match map_region() {
            Some(region) => put_in(region),
            None => return false,
        },
    }
    true
}
