//! What was used over a stretch, by brokers, client and machine together.

use super::brokers::{Brokers, Reading};
use crate::cpu::{CpuSnapshot, CpuUse, InterfaceBytes, MachineCpu, Pid};
use crate::report::{BrokerUse, CpuReport};

/// One instant.
pub struct Meter {
    brokers: Vec<Reading>,
    client: Option<CpuSnapshot>,
    machine: MachineCpu,
    interface: Option<InterfaceBytes>,
}

impl Meter {
    pub fn read(brokers: &Brokers) -> Self {
        Self {
            brokers: brokers.read(),
            client: CpuSnapshot::take(Pid::this()).ok(),
            machine: MachineCpu::take(),
            interface: brokers.interface.as_ref().and_then(|it| it.bytes()),
        }
    }

    /// What was used since `earlier`, for `payload_bytes`. A sum without one of its brokers would be wrong, so there is none.
    pub fn since(&self, earlier: &Self, payload_bytes: u64) -> CpuReport {
        let payload_gb = payload_bytes as f64 / 1e9;
        let per_gb = |used: &Option<CpuUse>| {
            used.as_ref()
                .filter(|_| payload_gb > 0.0)
                .map(|used| used.cpu_s / payload_gb)
        };
        let (mut brokers, mut summed, mut measured_s) = (Vec::new(), Some(Vec::new()), 0.0);
        for (now, before) in self.brokers.iter().zip(&earlier.brokers) {
            let used = now.since(before);
            if now.in_sum {
                summed = summed.zip(used.as_ref().ok()).map(|(mut all, used)| {
                    all.push(used.clone());
                    all
                });
                if let (true, Ok(used)) = (now.is_on_this_machine, &used) {
                    measured_s += used.cpu_s;
                }
            }
            let (used, not_measured) = match used {
                Ok(used) => (Some(used), None),
                Err(reason) => (None, Some(reason)),
            };
            brokers.push(BrokerUse {
                source: now.source.clone(),
                in_sum: now.in_sum,
                not_measured,
                used,
            });
        }
        let broker = summed.and_then(|all| CpuUse::sum(all.into_iter()));
        let client = self
            .client
            .as_ref()
            .zip(earlier.client.as_ref())
            .map(|(now, before)| now.since(before));
        measured_s += client.as_ref().map_or(0.0, |used| used.cpu_s);
        CpuReport {
            payload_gb,
            broker_cpu_s_per_gb: per_gb(&broker),
            client_cpu_s_per_gb: per_gb(&client),
            broker,
            brokers,
            client,
            machine: self.machine.since(&earlier.machine, measured_s),
        }
    }

    /// What went through the interface since `earlier`.
    pub fn interface_since(&self, earlier: &Self) -> Option<InterfaceBytes> {
        Some(self.interface.as_ref()?.since(earlier.interface.as_ref()?))
    }
}
