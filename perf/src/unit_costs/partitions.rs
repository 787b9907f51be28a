//! What partitions cost that nobody uses, and what memory they hold once they were written to.

use std::time::Duration;

use super::error::UnitCostsError;
use super::flags::UnitCostsArgs;
use super::report::{IdleWindow, PartitionCosts};
use super::stretch::{self, Shape, Stretch, run_arguments};
use crate::cli::RunArgs;
use crate::client::cluster::Cluster;
use crate::interrupt::Interrupt;
use crate::run;

/// From the creation of partitions to the window: the broker has then done what creation asks for.
const SETTLE: Duration = Duration::from_secs(2);

/// So that every partition gets some within a second or two.
const BATCH_BYTES: u64 = 16_384;

pub struct Partitions<'a> {
    pub flags: &'a UnitCostsArgs,
    pub interrupt: &'a Interrupt,
}

impl Partitions<'_> {
    /// Creates partitions, watches them, writes to them and deletes them, whatever comes between.
    pub fn measure(&self) -> Result<(PartitionCosts, Stretch), UnitCostsError> {
        let topic = format!("corelog-perf-idle-{:08x}", rand::random::<u32>());
        let written = Shape {
            name: format!("{} partitions written to", self.flags.idle_partitions),
            // Only that every partition is reached matters, not how fast.
            rate_bytes_per_s: None,
            duration: self.flags.duration,
            batch_bytes: BATCH_BYTES,
            has_consumer: false,
            partitions: self.flags.idle_partitions,
            topic: Some(topic.clone()),
            reads_back: false,
        };
        let arguments = run_arguments(self.flags, &written)?;
        let before = self.window("no load", &arguments, self.flags.duration)?;
        let cluster = Cluster::connect(&self.flags.bootstrap)?;
        cluster.create_topic(&topic, self.flags.idle_partitions, 1, &[])?;
        let measured = self.with_topic(&cluster, &topic, &arguments, &written);
        let deleted = cluster.delete_topic(&topic);
        let (idle, stretch) = measured?;
        deleted?;
        let count = self.flags.idle_partitions;
        let each =
            |rss_bytes: u64| rss_bytes.saturating_sub(before.broker_rss_bytes) / u64::from(count);
        let costs = PartitionCosts {
            count,
            before,
            idle,
            written_rss_bytes: stretch.broker_rss_bytes,
            idle_memory_bytes: each(idle.broker_rss_bytes),
            written_memory_bytes: each(stretch.broker_rss_bytes),
        };
        Ok((costs, stretch))
    }

    fn with_topic(
        &self,
        cluster: &Cluster,
        topic: &str,
        arguments: &RunArgs,
        written: &Shape,
    ) -> Result<(IdleWindow, Stretch), UnitCostsError> {
        cluster.await_topic(topic, written.partitions)?;
        self.window("partitions settle", arguments, SETTLE)?;
        let name = format!("{} idle partitions", written.partitions);
        let idle = self.window(&name, arguments, self.flags.duration)?;
        let (stretch, _) = stretch::run(self.flags, written, self.interrupt)?;
        Ok((idle, stretch))
    }

    fn window(
        &self,
        name: &str,
        arguments: &RunArgs,
        length: Duration,
    ) -> Result<IdleWindow, UnitCostsError> {
        eprintln!("{name}");
        let (seconds, cpu) = run::idle(arguments, &self.flags.bootstrap, length, self.interrupt)?;
        if self.interrupt.is_asked() {
            return Err(UnitCostsError::Interrupted);
        }
        let used = cpu.broker.ok_or(UnitCostsError::NoCpu)?;
        Ok(IdleWindow {
            seconds,
            broker_cpu_s: used.cpu_s,
            broker_cores: used.cpu_s / seconds,
            broker_rss_bytes: used.rss_bytes.ok_or(UnitCostsError::NoCpu)?,
        })
    }
}

impl PartitionCosts {
    /// Of each idle partition. What is too little to be seen is 0.
    pub fn cores_each(&self) -> f64 {
        let more = self.idle.broker_cores - self.before.broker_cores;
        more.max(0.0) / f64::from(self.count)
    }
}
