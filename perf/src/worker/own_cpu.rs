//! What this process and its machine have used up to one instant.

use crate::cpu::{CpuSnapshot, CpuUse, MachineCpu, MachineShare, Pid};

pub struct OwnCpu {
    /// None where it cannot be read.
    process: Option<CpuSnapshot>,
    machine: MachineCpu,
}

impl OwnCpu {
    pub fn read() -> Self {
        Self {
            process: CpuSnapshot::take(Pid::this()).ok(),
            machine: MachineCpu::take(),
        }
    }

    pub fn since(&self, earlier: &Self) -> (Option<CpuUse>, MachineShare) {
        let both = self.process.as_ref().zip(earlier.process.as_ref());
        let process = both.map(|(now, before)| now.since(before));
        let measured_s = process.as_ref().map_or(0.0, |used| used.cpu_s);
        let machine = self.machine.since(&earlier.machine, measured_s);
        (process, machine)
    }
}
