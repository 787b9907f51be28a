use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::model::limits::{PRODUCER_BATCHES_REMEMBERED, PRODUCERS_PER_PARTITION_MAX};
use crate::model::{Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};
use crate::record::RecordBatchHeader;

/// A sequence's distance is told apart from its repeat after the wrap up to here: half of the 2^31 sequences.
const SEQUENCES_KNOWN_MAX: u32 = 1 << 30;

/// What a batch says of its idempotent producer (KIP-98).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerBatch {
    pub producer_id: ProducerId,
    pub epoch: ProducerEpoch,
    pub first_sequence: Sequence,
    pub last_sequence: Sequence,
}

impl ProducerBatch {
    /// `None` if the batch's producer is not idempotent, or if it is a marker of the broker, which has no sequence.
    pub fn of(header: &RecordBatchHeader) -> Option<Self> {
        if !header.producer_id.is_some()
            || header.base_sequence.0 < 0
            || header.attributes.is_control()
        {
            return None;
        }
        Some(Self {
            producer_id: header.producer_id,
            epoch: header.producer_epoch,
            first_sequence: header.base_sequence,
            last_sequence: header.base_sequence.plus(header.last_offset_delta),
        })
    }
}

/// What is to be done with an idempotent producer's batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is the next one: append it, then `record` it.
    Append,
    /// It is in the log already: answer success with the first offset. The original may still be on its way to disk (or to the
    /// followers), so the answer waits until `last_offset` is confirmed as the original's would.
    Duplicate {
        base_offset: Offset,
        last_offset: Offset,
        timestamp: TimestampMs,
    },
    /// It is surely in the log already, but too long ago to know where: DUPLICATE_SEQUENCE_NUMBER, which clients take as
    /// success. So this answer too waits, until everything below `before` is confirmed.
    DuplicateForgotten { before: Offset },
    /// Sequences are missing in between, or a new epoch does not start at 0: OUT_OF_ORDER_SEQUENCE_NUMBER.
    OutOfOrder { expected: Sequence },
    /// A newer instance of the producer wrote already: INVALID_PRODUCER_EPOCH.
    Fenced { current: ProducerEpoch },
}

/// One batch that is remembered to recognise its repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RememberedBatch {
    pub first_sequence: Sequence,
    pub last_sequence: Sequence,
    pub base_offset: Offset,
    pub last_offset: Offset,
    pub timestamp: TimestampMs,
}

/// A producer as DescribeProducers shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveProducer {
    pub producer_id: ProducerId,
    pub epoch: ProducerEpoch,
    pub last_sequence: Sequence,
    pub last_timestamp: TimestampMs,
}

#[derive(Clone, Debug)]
pub(super) struct ProducerEntry {
    pub(super) epoch: ProducerEpoch,
    /// The newest last; never empty.
    pub(super) batches: SmallVec<[RememberedBatch; PRODUCER_BATCHES_REMEMBERED]>,
    /// How many sequences up to the last one were appended without a gap.
    pub(super) sequences_known: u32,
    seen_ns: u64,
}

/// What one partition knows of its idempotent producers.
///
/// Rules: a batch counts from its append on, written or not, so that a repeat in flight is recognised. A producer that is
/// unknown (never seen, expired, or forgotten at the limit) may start at any sequence, as in Kafka, but on a log that was never
/// written only at 0. A new epoch starts at 0. Sequences go from 2^31 - 1 to 0. Time is the monotonic clock's: a jump of the
/// wall clock expires nobody; a restart counts as seen.
#[derive(Clone, Debug, Default)]
pub struct ProducerState {
    producers: FxHashMap<ProducerId, ProducerEntry>,
}

impl ProducerState {
    pub fn check(&self, batch: &ProducerBatch, log_end_offset: Offset) -> Verdict {
        let starts_at_zero = batch.first_sequence == Sequence::FIRST;
        let Some(entry) = self.producers.get(&batch.producer_id) else {
            return match log_end_offset == Offset::ZERO && !starts_at_zero {
                true => Verdict::OutOfOrder {
                    expected: Sequence::FIRST,
                },
                false => Verdict::Append,
            };
        };
        if batch.epoch < entry.epoch {
            return Verdict::Fenced {
                current: entry.epoch,
            };
        }
        if batch.epoch > entry.epoch {
            return if starts_at_zero {
                Verdict::Append
            } else {
                Verdict::OutOfOrder {
                    expected: Sequence::FIRST,
                }
            };
        }
        let same = |known: &&RememberedBatch| {
            (known.first_sequence, known.last_sequence)
                == (batch.first_sequence, batch.last_sequence)
        };
        if let Some(original) = entry.batches.iter().find(same) {
            return Verdict::Duplicate {
                base_offset: original.base_offset,
                last_offset: original.last_offset,
                timestamp: original.timestamp,
            };
        }
        match entry.last().last_sequence.plus(1) {
            expected if expected == batch.first_sequence => Verdict::Append,
            _ if entry.has_forgotten(batch) => Verdict::DuplicateForgotten {
                before: entry.batches[0].base_offset,
            },
            expected => Verdict::OutOfOrder { expected },
        }
    }

    /// Remembers a batch that was appended (or is read back by recovery: then nothing is asked, since it was asked then).
    pub fn record(
        &mut self,
        batch: &ProducerBatch,
        base_offset: Offset,
        last_offset: Offset,
        timestamp: TimestampMs,
        now_ns: u64,
    ) {
        let remembered = RememberedBatch {
            first_sequence: batch.first_sequence,
            last_sequence: batch.last_sequence,
            base_offset,
            last_offset,
            timestamp,
        };
        if let Some(entry) = self.producers.get_mut(&batch.producer_id) {
            entry.push(batch.epoch, remembered, now_ns);
            return;
        }
        if self.producers.len() >= PRODUCERS_PER_PARTITION_MAX {
            self.forget_least_recent();
        }
        let batches = SmallVec::from_slice(&[remembered]);
        let sequences_known = remembered.sequence_count();
        let entry = ProducerEntry {
            epoch: batch.epoch,
            batches,
            sequences_known,
            seen_ns: now_ns,
        };
        self.producers.insert(batch.producer_id, entry);
    }

    /// Forgets the producers that were not seen for `producer.id.expiration.ms`; returns how many.
    pub fn expire(&mut self, now_ns: u64, expiration_ns: u64) -> usize {
        let before = self.producers.len();
        self.producers
            .retain(|_, entry| now_ns.saturating_sub(entry.seen_ns) < expiration_ns);
        if self.producers.is_empty() {
            self.producers = FxHashMap::default();
        }
        before - self.producers.len()
    }

    pub fn len(&self) -> usize {
        self.producers.len()
    }

    pub fn is_empty(&self) -> bool {
        self.producers.is_empty()
    }

    /// By id.
    pub fn active_producers(&self) -> Vec<ActiveProducer> {
        self.sorted()
            .into_iter()
            .map(|(producer_id, entry)| ActiveProducer {
                producer_id,
                epoch: entry.epoch,
                last_sequence: entry.last().last_sequence,
                last_timestamp: entry.last().timestamp,
            })
            .collect()
    }

    /// Where each producer's last batch ends.
    pub fn last_offsets(&self) -> FxHashMap<ProducerId, Offset> {
        let last = self.producers.iter();
        last.map(|(&id, entry)| (id, entry.last().last_offset))
            .collect()
    }

    pub(super) fn sorted(&self) -> Vec<(ProducerId, &ProducerEntry)> {
        let mut entries: Vec<_> = self
            .producers
            .iter()
            .map(|(&id, entry)| (id, entry))
            .collect();
        entries.sort_unstable_by_key(|&(id, _)| id);
        entries
    }

    pub(super) fn restore(&mut self, producer_id: ProducerId, entry: ProducerEntry) {
        self.producers.insert(producer_id, entry);
    }

    /// A sixteenth at once, so that a flood of new producers costs each of them little.
    fn forget_least_recent(&mut self) {
        let mut last_offsets: Vec<Offset> = self
            .producers
            .values()
            .map(|entry| entry.last().last_offset)
            .collect();
        let (_, &mut newest_forgotten, _) =
            last_offsets.select_nth_unstable(PRODUCERS_PER_PARTITION_MAX / 16);
        self.producers
            .retain(|_, entry| entry.last().last_offset > newest_forgotten);
    }
}

impl ProducerEntry {
    pub(super) fn restored(
        epoch: ProducerEpoch,
        batches: SmallVec<[RememberedBatch; PRODUCER_BATCHES_REMEMBERED]>,
        sequences_known: u32,
        now_ns: u64,
    ) -> Self {
        Self {
            epoch,
            batches,
            sequences_known,
            seen_ns: now_ns,
        }
    }

    fn last(&self) -> &RememberedBatch {
        self.batches.last().expect("a producer is known by a batch")
    }

    fn push(&mut self, epoch: ProducerEpoch, batch: RememberedBatch, now_ns: u64) {
        // Another epoch counts anew. So does a gap: the producer was unknown in between.
        if epoch != self.epoch || self.last().last_sequence.plus(1) != batch.first_sequence {
            self.batches.clear();
            self.sequences_known = 0;
        }
        if self.batches.len() == PRODUCER_BATCHES_REMEMBERED {
            self.batches.remove(0);
        }
        self.epoch = epoch;
        self.seen_ns = now_ns;
        self.sequences_known =
            (self.sequences_known + batch.sequence_count()).min(SEQUENCES_KNOWN_MAX);
        self.batches.push(batch);
    }

    /// Whether the whole batch lies before the remembered ones, among sequences that were appended.
    fn has_forgotten(&self, batch: &ProducerBatch) -> bool {
        let behind_last = |sequence| distance(sequence, self.last().last_sequence);
        let oldest_remembered = behind_last(self.batches[0].first_sequence);
        let (first, last) = (
            behind_last(batch.first_sequence),
            behind_last(batch.last_sequence),
        );
        first < self.sequences_known && last <= first && last > oldest_remembered
    }
}

impl RememberedBatch {
    fn sequence_count(&self) -> u32 {
        (distance(self.first_sequence, self.last_sequence) + 1).min(SEQUENCES_KNOWN_MAX)
    }
}

/// How many sequences lie from `earlier` up to `later`, over the wrap.
fn distance(earlier: Sequence, later: Sequence) -> u32 {
    (later.0 as u32).wrapping_sub(earlier.0 as u32) & i32::MAX as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER_WRITTEN: Offset = Offset::ZERO;
    const WRITTEN: Offset = Offset(1_000);

    fn batch_of(producer: i64, epoch: i16, first: i32, count: i32) -> ProducerBatch {
        ProducerBatch {
            producer_id: ProducerId(producer),
            epoch: ProducerEpoch(epoch),
            first_sequence: Sequence(first),
            last_sequence: Sequence(first).plus(count - 1),
        }
    }

    fn batch(first: i32, count: i32) -> ProducerBatch {
        batch_of(7, 0, first, count)
    }

    /// Checks and records batches of one producer; offsets follow on `base`.
    fn append(state: &mut ProducerState, batch: ProducerBatch, base: i64) -> Verdict {
        let verdict = state.check(&batch, Offset(base));
        if verdict == Verdict::Append {
            let last = base + i64::from(distance(batch.first_sequence, batch.last_sequence));
            state.record(
                &batch,
                Offset(base),
                Offset(last),
                TimestampMs(base * 10),
                0,
            );
        }
        verdict
    }

    fn duplicate(base: i64, last: i64) -> Verdict {
        Verdict::Duplicate {
            base_offset: Offset(base),
            last_offset: Offset(last),
            timestamp: TimestampMs(base * 10),
        }
    }

    #[test]
    fn the_first_sequence_on_a_never_written_log_is_0() {
        let state = ProducerState::default();
        assert_eq!(
            state.check(&batch(3, 2), NEVER_WRITTEN),
            Verdict::OutOfOrder {
                expected: Sequence::FIRST
            }
        );
        assert_eq!(state.check(&batch(0, 2), NEVER_WRITTEN), Verdict::Append);
        assert_eq!(
            state.check(&batch(3, 2), WRITTEN),
            Verdict::Append,
            "the producer may have been forgotten"
        );
    }

    #[test]
    fn a_repeat_of_the_last_five_batches_answers_with_its_offsets() {
        let mut state = ProducerState::default();
        for number in 0..6 {
            assert_eq!(
                append(&mut state, batch(number * 10, 10), i64::from(number) * 10),
                Verdict::Append
            );
        }
        for number in 1..6 {
            assert_eq!(
                append(&mut state, batch(number * 10, 10), 60),
                duplicate(i64::from(number) * 10, i64::from(number) * 10 + 9)
            );
        }
        let forgotten = Verdict::DuplicateForgotten { before: Offset(10) };
        assert_eq!(
            append(&mut state, batch(0, 10), 60),
            forgotten,
            "a repeat of the sixth last"
        );
    }

    #[test]
    fn a_gap_is_out_of_order() {
        let mut state = ProducerState::default();
        append(&mut state, batch(0, 10), 0);
        assert_eq!(
            append(&mut state, batch(11, 5), 10),
            Verdict::OutOfOrder {
                expected: Sequence(10)
            }
        );
        assert_eq!(append(&mut state, batch(10, 5), 10), Verdict::Append);
    }

    #[test]
    fn sequences_that_were_cut_into_other_batches_are_no_repeat() {
        let mut state = ProducerState::default();
        append(&mut state, batch(0, 10), 0);
        for other in [batch(0, 5), batch(5, 5), batch(5, 10), batch(0, 11)] {
            assert_eq!(
                append(&mut state, other, 10),
                Verdict::OutOfOrder {
                    expected: Sequence(10)
                },
                "{other:?}"
            );
        }
    }

    #[test]
    fn what_was_before_a_producer_became_known_is_not_surely_a_repeat() {
        let mut state = ProducerState::default();
        for number in 0..7 {
            append(
                &mut state,
                batch(100 + number * 10, 10),
                500 + i64::from(number) * 10,
            );
        }
        assert!(matches!(
            append(&mut state, batch(100, 10), 570),
            Verdict::DuplicateForgotten { .. }
        ));
        assert_eq!(
            append(&mut state, batch(90, 10), 570),
            Verdict::OutOfOrder {
                expected: Sequence(170)
            }
        );
        assert_eq!(
            append(&mut state, batch(95, 10), 570),
            Verdict::OutOfOrder {
                expected: Sequence(170)
            }
        );
    }

    #[test]
    fn an_older_epoch_is_fenced_and_a_new_one_starts_at_0() {
        let mut state = ProducerState::default();
        append(&mut state, batch_of(7, 3, 0, 10), 0);
        assert_eq!(
            append(&mut state, batch_of(7, 2, 10, 1), 10),
            Verdict::Fenced {
                current: ProducerEpoch(3)
            }
        );
        assert_eq!(
            append(&mut state, batch_of(7, 4, 10, 1), 10),
            Verdict::OutOfOrder {
                expected: Sequence::FIRST
            }
        );
        assert_eq!(
            append(&mut state, batch_of(7, 4, 0, 10), 10),
            Verdict::Append
        );
        assert_eq!(
            append(&mut state, batch_of(7, 4, 0, 10), 20),
            duplicate(10, 19)
        );
        assert_eq!(
            append(&mut state, batch_of(7, 3, 0, 10), 20),
            Verdict::Fenced {
                current: ProducerEpoch(4)
            }
        );
    }

    #[test]
    fn sequences_wrap() {
        let mut state = ProducerState::default();
        append(&mut state, batch(i32::MAX - 14, 10), 100);
        let over = batch(i32::MAX - 4, 10);
        assert_eq!(over.last_sequence, Sequence(4));
        assert_eq!(append(&mut state, over, 110), Verdict::Append);
        assert_eq!(append(&mut state, over, 120), duplicate(110, 119));
        for number in 0..5 {
            assert_eq!(
                append(
                    &mut state,
                    batch(5 + number * 10, 10),
                    120 + i64::from(number) * 10
                ),
                Verdict::Append
            );
        }
        assert_eq!(
            append(&mut state, over, 170),
            Verdict::DuplicateForgotten {
                before: Offset(120)
            }
        );
        assert_eq!(
            append(&mut state, batch(1_000_000, 1), 170),
            Verdict::OutOfOrder {
                expected: Sequence(55)
            }
        );
    }

    #[test]
    fn producers_do_not_know_each_other() {
        let mut state = ProducerState::default();
        append(&mut state, batch_of(1, 0, 0, 10), 0);
        append(&mut state, batch_of(2, 5, 0, 1), 10);
        assert_eq!(
            append(&mut state, batch_of(1, 0, 10, 1), 11),
            Verdict::Append
        );
        let active = state.active_producers();
        assert_eq!(
            active
                .iter()
                .map(|active| (active.producer_id.0, active.epoch.0))
                .collect::<Vec<_>>(),
            [(1, 0), (2, 5)]
        );
        assert_eq!(
            (active[0].last_sequence, active[0].last_timestamp),
            (Sequence(10), TimestampMs(110))
        );
    }

    #[test]
    fn a_producer_expires_by_the_time_it_was_last_seen() {
        let mut state = ProducerState::default();
        state.record(
            &batch_of(1, 0, 0, 1),
            Offset(0),
            Offset(0),
            TimestampMs(i64::MAX),
            100,
        );
        state.record(
            &batch_of(2, 0, 0, 1),
            Offset(1),
            Offset(1),
            TimestampMs(0),
            200,
        );
        assert_eq!(state.expire(299, 200), 0);
        assert_eq!(state.expire(300, 200), 1);
        assert_eq!(state.active_producers()[0].producer_id, ProducerId(2));
        assert_eq!(
            state.expire(0, 200),
            0,
            "a clock that went back expires nobody"
        );
    }

    #[test]
    fn at_the_limit_the_least_recently_written_are_forgotten() {
        let mut state = ProducerState::default();
        for number in 0..PRODUCERS_PER_PARTITION_MAX as i64 {
            append(&mut state, batch_of(number, 0, 0, 1), number);
        }
        let end = PRODUCERS_PER_PARTITION_MAX as i64;
        append(&mut state, batch_of(0, 0, 1, 1), end);
        append(&mut state, batch_of(end, 0, 0, 1), end + 1);
        assert!(
            state.len() < PRODUCERS_PER_PARTITION_MAX
                && state.len() > PRODUCERS_PER_PARTITION_MAX * 9 / 10
        );
        assert_eq!(
            state.check(&batch_of(0, 0, 1, 1), WRITTEN),
            duplicate(end, end),
            "it wrote lately"
        );
        assert_eq!(
            state.check(&batch_of(1, 0, 5, 1), WRITTEN),
            Verdict::Append,
            "it is forgotten"
        );
        assert_eq!(
            state.check(&batch_of(end - 1, 0, 0, 1), WRITTEN),
            duplicate(end - 1, end - 1)
        );
    }
}
