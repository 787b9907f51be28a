//! How busy the whole machine was: a run beside other work says so.

use std::fs;

use serde::{Deserialize, Serialize};

/// The machine's CPU time so far, in ticks over all cores.
#[derive(Clone, Copy, Debug, Default)]
pub struct MachineCpu {
    busy: u64,
    idle: u64,
    steal: u64,
}

/// Shares of all cores' time over a stretch.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct MachineShare {
    pub busy: f64,
    /// Busy with neither the broker nor this program.
    pub others: f64,
    /// Taken by the hypervisor for other guests.
    pub steal: f64,
}

impl MachineCpu {
    pub fn take() -> Self {
        parse(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// `measured_s`: what broker and client used of it.
    pub fn since(&self, earlier: &Self, measured_s: f64) -> MachineShare {
        let (busy, idle, steal) = (
            // The kernel takes some of it back at times.
            self.busy.saturating_sub(earlier.busy),
            self.idle.saturating_sub(earlier.idle),
            self.steal.saturating_sub(earlier.steal),
        );
        let all = (busy + idle + steal).max(1) as f64;
        let measured = measured_s * rustix::param::clock_ticks_per_second() as f64;
        MachineShare {
            busy: busy as f64 / all,
            others: ((busy as f64 - measured) / all).max(0.0),
            steal: steal as f64 / all,
        }
    }
}

/// The first line: `cpu user nice system idle iowait irq softirq steal guest guest_nice`; guest time is part of
/// user time.
fn parse(stat: &str) -> MachineCpu {
    let line = stat.lines().next().unwrap_or_default();
    let ticks: Vec<u64> = line
        .split_ascii_whitespace()
        .skip(1)
        .filter_map(|field| field.parse().ok())
        .collect();
    let at = |index: usize| ticks.get(index).copied().unwrap_or(0);
    MachineCpu {
        busy: at(0) + at(1) + at(2) + at(5) + at(6),
        idle: at(3) + at(4),
        steal: at(7),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_neither_busy_nor_idle() {
        let before = parse("cpu  0 0 0 0 0 0 0 0 0 0\n");
        let after = parse("cpu  30 5 10 30 10 2 3 10 30 0\ncpu0 1 2 3\n");
        let share = after.since(
            &before,
            10.0 / rustix::param::clock_ticks_per_second() as f64,
        );
        assert!((share.busy - 0.5).abs() < 1e-9, "{share:?}");
        assert!((share.others - 0.4).abs() < 1e-9, "{share:?}");
        assert!((share.steal - 0.1).abs() < 1e-9, "{share:?}");
    }
}
