//! What becomes of one batch.

use std::io;

use rustc_hash::FxHashMap;

use crate::io::executor;
use crate::model::limits::COMPRESS_STEP_BYTES;
use crate::model::{Offset, ProducerId, TimestampMs};
use crate::record::kept_records::KeptRecords;
use crate::record::records::{RecordBody, RecordReader, RecordsError};
use crate::record::{InflateBounds, RecordBatchHeader};
use crate::storage::cleaner::offset_map::OffsetMap;
use crate::storage::record_steps::inflate_next;

/// By what it is decided.
pub struct BatchFilter<'a> {
    pub map: &'a OffsetMap,
    /// The last offset that each idempotent producer wrote: the batch that ends there has its last sequence.
    pub last_of_producers: &'a FxHashMap<ProducerId, Offset>,
    /// The time by which ages are judged, at the cleaning's start.
    pub judging: TimestampMs,
    /// The time from which a tombstone's `delete.retention.ms` counts.
    pub stamping: TimestampMs,
    /// `delete.retention.ms`
    pub delete_retention_ms: u64,
    pub bounds: InflateBounds,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Kept {
    /// All of it, byte for byte.
    AsItIs,
    Rewritten(Vec<u8>),
    Nothing,
}

/// What became of a batch, and how many records that took out.
#[derive(Debug, PartialEq, Eq)]
pub struct Filtered {
    pub kept: Kept,
    pub removed_count: u64,
    /// The records could not be read, so they all stayed.
    pub unreadable: Option<RecordsError>,
}

impl Filtered {
    fn as_it_is() -> Self {
        Self {
            kept: Kept::AsItIs,
            removed_count: 0,
            unreadable: None,
        }
    }
}

impl BatchFilter<'_> {
    /// Decides on a whole batch, whose CRC fits. `is_last` says that it is the last one of its segment, and so may not go.
    pub async fn apply(
        &self,
        header: &RecordBatchHeader,
        batch: &[u8],
        is_last: bool,
    ) -> io::Result<Filtered> {
        if header.attributes.is_control() || header.base_offset >= self.map.end() {
            return Ok(Filtered::as_it_is());
        }
        if header.record_count == 0 {
            let kept = match self.stays_empty(header, is_last) {
                true => Kept::AsItIs,
                false => Kept::Nothing,
            };
            return Ok(Filtered {
                kept,
                ..Filtered::as_it_is()
            });
        }
        let survey = match self.survey(header, batch).await {
            Ok(survey) => survey,
            Err(error) => {
                return Ok(Filtered {
                    unreadable: Some(error),
                    ..Filtered::as_it_is()
                });
            }
        };
        let removed_count = u64::from(header.record_count.unsigned_abs() - survey.kept_count);
        let new_horizon = (survey.keeps_tombstone && header.delete_horizon().is_none())
            .then(|| {
                self.stamping
                    .0
                    .saturating_add_unsigned(self.delete_retention_ms)
            })
            .map(TimestampMs);
        let kept = if removed_count == 0 && new_horizon.is_none() {
            Kept::AsItIs
        } else if survey.kept_count > 0 || self.stays_empty(header, is_last) {
            Kept::Rewritten(self.rewrite(header, batch, new_horizon).await?)
        } else {
            Kept::Nothing
        };
        Ok(Filtered {
            kept,
            removed_count,
            unreadable: None,
        })
    }

    /// Whether the batch stays though no record does.
    fn stays_empty(&self, header: &RecordBatchHeader, is_last: bool) -> bool {
        let last_of_producer = self.last_of_producers.get(&header.producer_id);
        is_last || last_of_producer == Some(&header.last_offset())
    }

    async fn survey(
        &self,
        header: &RecordBatchHeader,
        batch: &[u8],
    ) -> Result<Survey, RecordsError> {
        let mut survey = Survey::default();
        let mut records = RecordReader::new(batch, self.bounds)?;
        loop {
            inflate_next(&mut records).await?;
            let Some(record) = records.next_body()? else {
                break;
            };
            if self.keeps(header, &record) {
                survey.kept_count += 1;
                survey.keeps_tombstone |= record.value.is_none();
            }
        }
        Ok(survey)
    }

    async fn rewrite(
        &self,
        header: &RecordBatchHeader,
        batch: &[u8],
        new_horizon: Option<TimestampMs>,
    ) -> io::Result<Vec<u8>> {
        let mut kept = KeptRecords::of(*header);
        if let Some(horizon) = new_horizon {
            kept = kept.with_delete_horizon(horizon);
        }
        let mut records = RecordReader::new(batch, self.bounds).map_err(io::Error::other)?;
        loop {
            inflate_next(&mut records).await.map_err(io::Error::other)?;
            let next = records.next_encoded().map_err(io::Error::other)?;
            let Some((record, encoded)) = next else {
                break;
            };
            if self.keeps(header, &record) {
                kept.push(&record, encoded);
            }
        }
        let mut building = kept.building()?;
        while !building.step(COMPRESS_STEP_BYTES)? {
            executor::yield_if_needed().await;
        }
        building.finish()
    }

    fn keeps(&self, header: &RecordBatchHeader, record: &RecordBody<'_>) -> bool {
        let offset = header.base_offset.plus(i64::from(record.offset_delta));
        if offset >= self.map.end() {
            return true;
        }
        // From a time when the topic was not compacted: nothing could ever replace it.
        let Some(key) = record.key else {
            return false;
        };
        let is_latest = self.map.latest(key).is_none_or(|latest| offset >= latest);
        let is_due = header
            .delete_horizon()
            .is_some_and(|horizon| horizon <= self.judging);
        is_latest && (record.value.is_some() || !is_due)
    }
}

/// What a look at all records of a batch says.
#[derive(Default)]
struct Survey {
    kept_count: u32,
    keeps_tombstone: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ProducerEpoch, Sequence};
    use crate::record::Codec;
    use crate::record::encode::BatchBuilder;

    const NOW: TimestampMs = TimestampMs(1_000_000);
    const DELETE_RETENTION_MS: u64 = 5_000;

    fn batch(base_offset: i64, codec: Codec, records: &[(&str, Option<&str>)]) -> Vec<u8> {
        let mut builder = BatchBuilder::new()
            .base_offset(Offset(base_offset))
            .codec(codec)
            .producer(ProducerId(5), ProducerEpoch(0), Sequence(0));
        for (key, value) in records {
            let key = (!key.is_empty()).then_some(key.as_bytes());
            builder.push(TimestampMs(10), key, value.map(str::as_bytes), &[]);
        }
        builder.build()
    }

    struct Case {
        map: OffsetMap,
        last_of_producers: FxHashMap<ProducerId, Offset>,
        judging: TimestampMs,
        stamping: TimestampMs,
        bounds: InflateBounds,
    }

    impl Case {
        /// The map of the keys' latest offsets, everything below `end` judged.
        fn new(latest: &[(&str, i64)], end: i64) -> Self {
            let mut map = OffsetMap::new(100, 1 << 20, Offset::ZERO);
            for (key, offset) in latest {
                assert!(map.put(key.as_bytes(), Offset(*offset)));
            }
            map.advance(Offset(end));
            Self {
                map,
                last_of_producers: FxHashMap::default(),
                judging: NOW,
                stamping: NOW,
                bounds: InflateBounds::WIDEST,
            }
        }

        fn apply(&self, batch: &[u8], is_last: bool) -> Filtered {
            let filter = BatchFilter {
                map: &self.map,
                last_of_producers: &self.last_of_producers,
                judging: self.judging,
                stamping: self.stamping,
                delete_retention_ms: DELETE_RETENTION_MS,
                bounds: self.bounds,
            };
            let header = RecordBatchHeader::parse(batch).unwrap();
            executor::block_on(async { filter.apply(&header, batch, is_last).await.unwrap() })
        }
    }

    fn offsets(batch: &[u8]) -> Vec<i64> {
        let mut reader = RecordReader::new(batch, InflateBounds::WIDEST).unwrap();
        let mut offsets = Vec::new();
        while let Some(record) = reader.next_record().unwrap() {
            offsets.push(record.offset.0);
        }
        offsets
    }

    fn rewritten(filtered: Filtered) -> Vec<u8> {
        match filtered.kept {
            Kept::Rewritten(batch) => batch,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_latest_record_of_a_key_stays() {
        let case = Case::new(&[("a", 2), ("b", 4), ("c", 3)], 5);
        for codec in Codec::ALL {
            let records = [
                ("a", Some("1")),
                ("b", Some("2")),
                ("a", Some("3")),
                ("c", Some("4")),
                ("b", Some("5")),
            ];
            let filtered = case.apply(&batch(0, codec, &records), true);
            assert_eq!(filtered.removed_count, 2);
            assert_eq!(offsets(&rewritten(filtered)), [2, 3, 4]);
        }
    }

    #[test]
    fn a_batch_of_which_all_stays_is_not_touched() {
        let case = Case::new(&[("a", 0)], 2);
        let records = [("a", Some("1")), ("unknown", Some("2"))];
        assert_eq!(
            case.apply(&batch(0, Codec::Gzip, &records), false).kept,
            Kept::AsItIs
        );
        let behind = batch(2, Codec::None, &[("a", Some("1"))]);
        assert_eq!(
            case.apply(&behind, false).kept,
            Kept::AsItIs,
            "behind what the map covers"
        );
    }

    #[test]
    fn a_batch_that_takes_too_much_to_inflate_is_not_touched() {
        let mut case = Case::new(&[("a", 1)], 2);
        let value = "v".repeat(5_000);
        let records = [("a", Some(&value[..])), ("a", Some("2"))];
        let batch = batch(0, Codec::Lz4, &records);
        case.bounds = InflateBounds::up_to(5_000);
        let kept = case.apply(&batch, false);
        assert_eq!(kept.kept, Kept::AsItIs);
        assert!(kept.unreadable.is_some());
        case.bounds = InflateBounds::up_to(10_000);
        assert_eq!(offsets(&rewritten(case.apply(&batch, false))), [1]);
    }

    #[test]
    fn a_tombstone_stays_until_its_horizon_has_passed() {
        let mut case = Case::new(&[("a", 0), ("b", 1)], 2);
        let first = rewritten(case.apply(
            &batch(0, Codec::Snappy, &[("a", None), ("b", Some("1"))]),
            false,
        ));
        let header = RecordBatchHeader::parse(&first).unwrap();
        let horizon = TimestampMs(NOW.0 + DELETE_RETENTION_MS as i64);
        assert_eq!(header.delete_horizon(), Some(horizon));
        case.judging = TimestampMs(horizon.0 - 1);
        assert_eq!(
            case.apply(&first, false).kept,
            Kept::AsItIs,
            "its horizon does not move"
        );
        case.judging = horizon;
        assert_eq!(offsets(&rewritten(case.apply(&first, false))), [1]);
    }

    #[test]
    fn a_horizon_counts_from_the_stamp_and_not_from_the_time_by_which_ages_are_judged() {
        let mut case = Case::new(&[("a", 0)], 1);
        case.stamping = TimestampMs(NOW.0 + 9_000);
        let first = rewritten(case.apply(&batch(0, Codec::None, &[("a", None)]), false));
        let header = RecordBatchHeader::parse(&first).unwrap();
        let horizon = TimestampMs(NOW.0 + 9_000 + DELETE_RETENTION_MS as i64);
        assert_eq!(header.delete_horizon(), Some(horizon));
    }

    #[test]
    fn a_record_without_a_key_goes() {
        let case = Case::new(&[("a", 1)], 2);
        let filtered = case.apply(
            &batch(0, Codec::None, &[("", Some("old")), ("a", Some("1"))]),
            false,
        );
        assert_eq!(offsets(&rewritten(filtered)), [1]);
    }

    #[test]
    fn an_emptied_batch_stays_where_its_offset_or_sequence_is_needed() {
        let mut case = Case::new(&[("a", 9)], 10);
        let emptied = batch(0, Codec::Lz4, &[("a", Some("1")), ("a", Some("2"))]);
        assert_eq!(case.apply(&emptied, false).kept, Kept::Nothing);
        let last = rewritten(case.apply(&emptied, true));
        assert!(offsets(&last).is_empty());
        case.last_of_producers.insert(ProducerId(5), Offset(1));
        assert_eq!(rewritten(case.apply(&emptied, false)), last);
        assert_eq!(
            case.apply(&last, false).kept,
            Kept::AsItIs,
            "it is empty already"
        );
        case.last_of_producers.insert(ProducerId(5), Offset(9));
        assert_eq!(
            case.apply(&last, false).kept,
            Kept::Nothing,
            "the producer has written more"
        );
    }

    #[test]
    fn a_marker_and_what_does_not_read_stay_as_they_are() {
        let case = Case::new(&[("a", 9)], 10);
        let control = BatchBuilder::new()
            .attributes(
                crate::record::Attributes(0)
                    .with_control()
                    .with_transactional(),
            )
            .record(TimestampMs(1), Some(b"a"), Some(b"marker"))
            .build();
        assert_eq!(case.apply(&control, false).kept, Kept::AsItIs);
        let mut unreadable = batch(0, Codec::Zstd, &[("a", Some("1"))]);
        let end = unreadable.len();
        unreadable[end - 4..].fill(0xff);
        let filtered = case.apply(&unreadable, false);
        assert_eq!(filtered.kept, Kept::AsItIs);
        assert!(filtered.unreadable.is_some());
    }
}
