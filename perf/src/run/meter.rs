//! CPU time over a stretch, of broker, client and machine together.

use crate::cpu::{CpuSnapshot, CpuUse, MachineCpu, Pid};
use crate::report::CpuReport;

/// One instant.
pub struct Meter {
    broker: Option<CpuSnapshot>,
    client: Option<CpuSnapshot>,
    machine: MachineCpu,
}

impl Meter {
    /// A process that cannot be read is left out of the report.
    pub fn read(broker: Option<Pid>) -> Self {
        Self {
            broker: broker.and_then(|pid| CpuSnapshot::take(pid).ok()),
            client: CpuSnapshot::take(Pid::this()).ok(),
            machine: MachineCpu::take(),
        }
    }

    /// What was used since `earlier`, for `payload_bytes`.
    pub fn since(&self, earlier: &Self, payload_bytes: u64) -> CpuReport {
        let used = |now: &Option<CpuSnapshot>, before: &Option<CpuSnapshot>| {
            Some(now.as_ref()?.since(before.as_ref()?))
        };
        let payload_gb = payload_bytes as f64 / 1e9;
        let per_gb = |used: &Option<CpuUse>| {
            used.as_ref()
                .filter(|_| payload_gb > 0.0)
                .map(|used| used.total_s() / payload_gb)
        };
        let (broker, client) = (
            used(&self.broker, &earlier.broker),
            used(&self.client, &earlier.client),
        );
        let measured_s = [&broker, &client]
            .into_iter()
            .flatten()
            .map(CpuUse::total_s)
            .sum();
        CpuReport {
            payload_gb,
            broker_cpu_s_per_gb: per_gb(&broker),
            client_cpu_s_per_gb: per_gb(&client),
            broker,
            client,
            machine: self.machine.since(&earlier.machine, measured_s),
        }
    }
}
