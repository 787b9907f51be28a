//! How a producer sends records that have keys: batch by batch as the accumulator completes them.

use super::accumulator::Complete;
use super::span::BatchSpan;
use super::{Next, Path, Producer};

impl Producer {
    /// Starts one request, if a keyed batch is complete and finds room.
    pub(super) fn send_keyed(&mut self, now_ns: u64) -> Next {
        if self.live.is_stopped() {
            return Next::NothingToSend;
        }
        let Some(accumulator) = &mut self.accumulator else {
            return Next::NothingToSend;
        };
        let schedule = &self.plan.schedule;
        accumulator.advance(&mut self.next_record, schedule, now_ns);
        let (paths, path_of, in_flight_max) = (&self.paths, &self.path_of, self.plan.in_flight_max);
        let first = accumulator.take(|partition| paths[path_of[partition]].is_ready(in_flight_max));
        match first {
            Some(first) => {
                let (broker, since_ns) = (path_of[first.partition], first.since_ns);
                let spans = self.take_complete(first, now_ns);
                self.start_request(broker, spans, since_ns, now_ns);
                Next::At(now_ns)
            }
            None if accumulator.has_complete() => Next::WhenSocketStirs,
            None if schedule.is_over(now_ns) && accumulator.is_empty() => Next::NothingToSend,
            None => Next::At(accumulator.next_ns(self.next_record, schedule, now_ns)),
        }
    }

    /// `first` and the complete batches of other partitions that the same broker leads, as many as fit one request.
    fn take_complete(&mut self, first: Complete, now_ns: u64) -> Vec<BatchSpan> {
        let broker = self.path_of[first.partition];
        let batches_max = match &self.paths[broker] {
            Path::Up { link, .. } => link.batches_per_request_max(),
            Path::Down { .. } => 0,
        };
        let accumulator = self.accumulator.as_mut().expect("the batch came from it");
        let mut spans: Vec<BatchSpan> = Vec::new();
        let mut next = Some(first);
        while let Some(batch) = next {
            let record_count = batch.records.len() as u32;
            spans.push(BatchSpan {
                partition: batch.partition,
                first_sequence: self.outcomes.ledger.send(batch.partition, record_count),
                record_count,
                first_record: batch.records[0].record,
                built_ns: now_ns,
                keyed: Some(batch.records.into_boxed_slice()),
            });
            if spans.len() >= batches_max {
                break;
            }
            // A request has one batch of a partition.
            next = accumulator.take(|partition| {
                self.path_of[partition] == broker
                    && spans.iter().all(|span| span.partition != partition)
            });
        }
        spans
    }
}
