//! How a producer sends records that have keys: batch by batch as the accumulator completes them.

use super::accumulator::Complete;
use super::batch::BatchSpan;
use super::{Next, Path, Producer};
use crate::live::Live;

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
                self.start_keyed_request(first, now_ns);
                Next::At(now_ns)
            }
            None if accumulator.has_complete() => Next::WhenSocketStirs,
            None if schedule.is_over(now_ns) && accumulator.is_empty() => Next::NothingToSend,
            None => Next::At(accumulator.next_ns(self.next_record, schedule, now_ns)),
        }
    }

    /// One request with `first` and the complete batches of other partitions that the same broker leads.
    fn start_keyed_request(&mut self, first: Complete, now_ns: u64) {
        let broker = self.path_of[first.partition];
        let Path::Up {
            link,
            free_since_ns,
        } = &mut self.paths[broker]
        else {
            unreachable!("a ready path is up")
        };
        self.lag
            .record_ns(now_ns.saturating_sub(first.since_ns.max(*free_since_ns)));
        let accumulator = self.accumulator.as_mut().expect("the batch came from it");
        let (plan, path_of, clock) = (&self.plan, &self.path_of, &self.clock);
        let (encoder, outcomes, send_delay) =
            (&mut self.encoder, &mut self.outcomes, &mut self.send_delay);
        let mut sent_records = 0;
        let wire_bytes = link.start(|frame| {
            let mut spans: Vec<BatchSpan> = Vec::new();
            let mut next = Some(first);
            while let Some(batch) = next {
                let record_count = batch.records.len() as u32;
                let span = BatchSpan {
                    partition: batch.partition,
                    first_sequence: outcomes.ledger.send(batch.partition, record_count),
                    record_count,
                    first_record: batch.records[0].record,
                    built_ns: now_ns,
                    keyed: Some(batch.records.into_boxed_slice()),
                };
                frame.push(span.partition as i32, |slot| {
                    encoder.encode(slot, &span, &plan.schedule, clock)
                });
                for index in 0..record_count {
                    let intended_ns = span.intended_ns(&plan.schedule, index);
                    send_delay.record_ns(now_ns.saturating_sub(intended_ns));
                }
                sent_records += u64::from(record_count);
                spans.push(span);
                // A request has one batch of a partition.
                next = (!frame.is_full())
                    .then(|| {
                        accumulator.take(|partition| {
                            path_of[partition] == broker
                                && spans.iter().all(|span| span.partition != partition)
                        })
                    })
                    .flatten();
            }
            spans
        });
        self.count_sent(sent_records, wire_bytes);
        Live::add(&self.live.requests_in_flight, 1);
        self.write(broker);
    }
}
