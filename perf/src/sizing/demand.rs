//! What is asked of the cluster.

use serde::Serialize;

use super::source::Sourced;

/// The load and how long it is kept. Brokers store batches as producers send them, so compression makes everything
/// that a broker writes, keeps and sends smaller; only producers and consumers see the payload itself.
#[derive(Clone, Debug, Serialize)]
pub struct Demand {
    /// Payload before compression, on average.
    pub ingest_bytes_per_s: Sourced<u64>,
    pub message_bytes: Sourced<u64>,
    /// The busiest time against the average.
    pub peak_factor: Sourced<f64>,
    /// Bytes before compression for each byte after it.
    pub compression_ratio: Sourced<f64>,
    /// Of each partition, the leader's included.
    pub copies: Sourced<u64>,
    pub retention_s: Sourced<u64>,
    /// Consumer groups that each read everything.
    pub reader_groups: Sourced<u64>,
    /// Of those, how many do not keep up and read from the disk.
    pub cold_reader_groups: Sourced<u64>,
    /// Payload that a producer puts into one request.
    pub request_bytes: Sourced<u64>,
    /// Payload of the busiest topic, on average.
    pub topic_ingest_bytes_per_s: Sourced<u64>,
    /// Payload that one consumer server processes.
    pub consumer_bytes_per_s: Sourced<u64>,
    /// Of all topics together, copies not counted.
    pub partitions: Sourced<u64>,
    pub segment_bytes: Sourced<u64>,
    /// How much of the newest is to be in memory, for readers and followers that keep up.
    pub cached_s: Sourced<u64>,
}

impl Demand {
    /// Bytes a second that reach the leaders on average.
    pub fn average_bytes_per_s(&self) -> u64 {
        self.compressed(self.ingest_bytes_per_s.value as f64)
    }

    /// Bytes a second that reach the leaders at the busiest time.
    pub fn peak_bytes_per_s(&self) -> u64 {
        self.compressed(self.ingest_bytes_per_s.value as f64 * self.peak_factor.value)
    }

    /// All copies of everything that is kept.
    pub fn kept_bytes(&self) -> u128 {
        u128::from(self.average_bytes_per_s())
            * u128::from(self.copies.value)
            * u128::from(self.retention_s.value)
    }

    pub fn messages_per_s(&self) -> f64 {
        self.ingest_bytes_per_s.value as f64 / self.message_bytes.value as f64
    }

    /// Produce requests a second at the busiest time.
    pub fn peak_requests_per_s(&self) -> u64 {
        let peak = self.ingest_bytes_per_s.value as f64 * self.peak_factor.value;
        (peak / self.sized_request_bytes() as f64).ceil() as u64
    }

    /// Payload of a request; a message is never cut.
    pub fn sized_request_bytes(&self) -> u64 {
        self.request_bytes.value.max(self.message_bytes.value)
    }

    /// Partitions of the busiest topic: all there are if it is the only one, else as many as it needs.
    pub fn topic_partitions(&self) -> u64 {
        if self.topic_ingest_bytes_per_s.value == self.ingest_bytes_per_s.value {
            self.partitions.value
        } else {
            self.consumer_group_partitions()
        }
    }

    /// Partitions that the busiest topic needs, so that a group's servers, one partition each, keep up at its peak.
    pub fn consumer_group_partitions(&self) -> u64 {
        partitions_for(
            self.topic_ingest_bytes_per_s.value,
            self.peak_factor.value,
            self.consumer_bytes_per_s.value,
        )
    }

    /// Bytes a second that one partition of the busiest topic stores, on average.
    pub fn partition_bytes_per_s(&self) -> f64 {
        self.topic_ingest_bytes_per_s.value as f64
            / self.compression_ratio.value
            / self.topic_partitions() as f64
    }

    /// The same load of another size: its topics and partitions grow with it.
    pub fn at_ingest(&self, ingest_bytes_per_s: u64) -> Self {
        let scaled = |value: u64| {
            let scaled = u128::from(value) * u128::from(ingest_bytes_per_s);
            let scaled = scaled.div_ceil(u128::from(self.ingest_bytes_per_s.value));
            u64::try_from(scaled).unwrap_or(u64::MAX).max(1)
        };
        let mut demand = self.clone();
        demand.partitions.value = scaled(self.partitions.value);
        demand.topic_ingest_bytes_per_s.value = scaled(self.topic_ingest_bytes_per_s.value);
        demand.ingest_bytes_per_s.value = ingest_bytes_per_s;
        demand
    }

    fn compressed(&self, bytes_per_s: f64) -> u64 {
        ((bytes_per_s / self.compression_ratio.value).round() as u64).max(1)
    }
}

/// One server of a group reads a partition, so a topic needs as many partitions as the group needs servers.
pub fn partitions_for(topic_bytes_per_s: u64, peak_factor: f64, consumer_bytes_per_s: u64) -> u64 {
    let peak_bytes_per_s = (topic_bytes_per_s as f64 * peak_factor).round() as u64;
    peak_bytes_per_s.div_ceil(consumer_bytes_per_s)
}
