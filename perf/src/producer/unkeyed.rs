//! How a producer sends records without keys: full batches to the partitions in turn.

use super::span::BatchSpan;
use super::{Next, Path, Producer};
use crate::schedule::Due;

/// What the schedule and the brokers allow at an instant.
enum Turn {
    /// A batch, due since then, to this partition.
    Now { partition: usize, since_ns: u64 },
    /// Nothing yet.
    Not(Next),
}

impl Producer {
    /// Starts one request, if a batch is due and finds room. Answers are looked at between any two.
    pub(super) fn send_due(&mut self, now_ns: u64) -> Next {
        if self.live.is_stopped() {
            return Next::NothingToSend;
        }
        match self.turn(now_ns) {
            Turn::Now {
                partition,
                since_ns,
            } => {
                let spans = self.take_due(partition, now_ns);
                self.start_request(self.path_of[partition], spans, since_ns, now_ns);
            }
            Turn::Not(next) => return next,
        }
        match self.turn(now_ns) {
            Turn::Now { .. } => Next::At(now_ns),
            Turn::Not(next) => next,
        }
    }

    fn turn(&self, now_ns: u64) -> Turn {
        match self.due(now_ns) {
            Due::Never => Turn::Not(Next::NothingToSend),
            Due::At(at_ns) => Turn::Not(Next::At(at_ns)),
            Due::Now { since_ns, .. } => match self.next_ready_partition() {
                Some(partition) => Turn::Now {
                    partition,
                    since_ns,
                },
                None => Turn::Not(Next::WhenSocketStirs),
            },
        }
    }

    fn due(&self, now_ns: u64) -> Due {
        self.plan.schedule.due(
            self.next_record,
            self.encoder.record_count_max(),
            self.plan.linger,
            now_ns,
        )
    }

    /// The next partition in turn whose broker can take a request.
    fn next_ready_partition(&self) -> Option<usize> {
        let is_ready = |broker: usize| self.paths[broker].is_ready(self.plan.in_flight_max);
        if !(0..self.paths.len()).any(is_ready) {
            return None;
        }
        let count = self.path_of.len();
        (0..count)
            .map(|step| (self.next_partition + step) % count)
            .find(|&partition| is_ready(self.path_of[partition]))
    }

    /// A batch for `first_partition` and for those that follow it in turn, as long as they are due, led by the same
    /// broker, and fit one request.
    fn take_due(&mut self, first_partition: usize, now_ns: u64) -> Vec<BatchSpan> {
        let broker = self.path_of[first_partition];
        let batches_max = match &self.paths[broker] {
            Path::Up { link, .. } => link.batches_per_request_max(),
            Path::Down { .. } => 0,
        };
        let mut spans = Vec::new();
        let mut partition = first_partition;
        while spans.len() < batches_max
            && self.path_of[partition] == broker
            && let Due::Now { record_count, .. } = self.due(now_ns)
        {
            spans.push(BatchSpan {
                partition,
                first_sequence: self.outcomes.ledger.send(partition, record_count),
                record_count,
                first_record: self.next_record,
                built_ns: now_ns,
                keyed: None,
            });
            self.next_record += u64::from(record_count);
            partition = (partition + 1) % self.path_of.len();
        }
        self.next_partition = partition;
        spans
    }
}
