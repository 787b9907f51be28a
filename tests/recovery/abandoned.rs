//! An empty segment file within the log, which a roll left that came to nothing: whatever wrote the directory, no record is lost by it.

use std::fs;

use corelog::model::{FilePosition, Offset};
use corelog::storage::checkpoint::CHECKPOINT_FILE;
use corelog::storage::index_builder::IndexLengths;
use corelog::storage::index_files::IndexTail;
use corelog::storage::recovery::recover;
use corelog::storage::segment_name::{SegmentFileKind, SegmentFileName};
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use crate::writer::{RULES, Writer, log_name, partition};
use crate::{assert_fits, for_each_seed};

/// Puts an empty segment file where a batch within a segment starts; gives its offset, and which segment that is in.
fn abandon(writer: &Writer, random: &mut StdRng) -> Option<(Offset, usize)> {
    let within: Vec<_> = writer.batches.iter().filter(|it| it.position > 0).collect();
    let batch = within.choose(random)?;
    let base_offset = batch.header().base_offset;
    // As fallocate left it, or as it was created.
    let size_bytes = *[0, 1, 4096, 100_000].choose(random).unwrap();
    let path = writer.dir().join(log_name(base_offset));
    fs::write(path, vec![0; size_bytes]).unwrap();
    Some((base_offset, batch.segment))
}

/// As a start of an older version left a segment's indexes: they end where the abandoned segment starts.
fn shorten_indexes(writer: &Writer, (abandoned, segment): (Offset, usize)) {
    let base_offset = writer.segments[segment].base_offset;
    let mut short =
        corelog::storage::index_builder::IndexBuilder::new(base_offset, RULES.index_interval_bytes);
    let below = writer
        .batches
        .iter()
        .filter(|batch| batch.segment == segment && batch.header().base_offset < abandoned);
    for batch in below {
        let (header, position) = (batch.header(), FilePosition(batch.position as u64));
        short.on_batch(header.last_offset(), header.max_timestamp, position);
    }
    short.seal();
    let empty =
        corelog::storage::index_builder::IndexBuilder::new(abandoned, RULES.index_interval_bytes);
    for indexes in [&short, &empty] {
        let tail = IndexTail::of(indexes, IndexLengths::default());
        tail.write(writer.dir()).unwrap();
    }
}

#[test]
fn an_empty_segment_within_the_log_costs_no_record() {
    for_each_seed(|random| {
        let mut writer = Writer::new(random);
        for _ in 0..4 {
            writer.append_some(random);
            writer.write_all();
            let is_stopped = random.random_bool(0.5);
            if is_stopped {
                writer.checkpoint();
            }
            let abandoned: Vec<_> = (0..random.random_range(1..4))
                .filter_map(|_| abandon(&writer, random))
                .collect();
            let point = writer.recovery_point;
            let sealed = |&&(_, segment): &&(Offset, usize)| {
                writer.segments[segment].base_offset < point.segment
            };
            let mut is_short = false;
            for &sealed in abandoned.iter().filter(sealed) {
                if random.random_bool(0.5) {
                    shorten_indexes(&writer, sealed);
                    is_short = true;
                }
            }
            let is_lost = random.random_bool(0.2);
            if is_lost {
                fs::remove_file(writer.dir().join(CHECKPOINT_FILE)).unwrap();
            }
            println!(
                "  {abandoned:?}, stopped {is_stopped}, short indexes {is_short}, no checkpoint {is_lost}"
            );
            let recovered = recover(writer.dir(), partition(), &RULES).unwrap();
            assert_eq!(recovered.cuts, []);
            assert_eq!(recovered.damaged, []);
            assert_eq!(recovered.distrust.is_some(), is_lost);
            assert_fits(&recovered, &writer);
            for (base_offset, _) in abandoned {
                for kind in SegmentFileKind::ALL {
                    let name = SegmentFileName::new(base_offset, kind);
                    let is_snapshot = kind == SegmentFileKind::Producers;
                    assert!(is_snapshot || !writer.dir().join(name.to_string()).exists());
                }
            }
            writer.go_on(recovered);
        }
    });
}

#[test]
fn deleted_records_in_front_of_an_abandoned_segment_do_not_take_those_behind_with_them() {
    for_each_seed(|random| {
        let mut writer = Writer::new(random);
        while writer.segments.len() < 3 {
            writer.append_some(random);
        }
        writer.write_all();
        let (abandoned, segment) = abandon(&writer, random).unwrap();
        writer.log_start_offset = abandoned;
        writer.checkpoint();
        let recovered = recover(writer.dir(), partition(), &RULES).unwrap();
        assert_eq!(recovered.log_start_offset, abandoned);
        assert_eq!(recovered.log_end_offset, writer.log_end_offset());
        let first = recovered
            .sealed
            .first()
            .map_or(recovered.active.base_offset, |it| it.base_offset);
        assert_eq!(first, writer.segments[segment].base_offset);
        assert_eq!(recovered.cuts, []);
    });
}

#[test]
fn an_empty_segment_at_the_logs_end_is_where_it_continues() {
    for_each_seed(|random| {
        let mut writer = Writer::new(random);
        writer.append_some(random);
        writer.start_segment();
        writer.write_all();
        let prepared_bytes = *[0, 100_000].choose(random).unwrap();
        let path = writer.dir().join(log_name(writer.log_end_offset()));
        fs::write(path, vec![0; prepared_bytes]).unwrap();
        let is_lost = random.random_bool(0.5);
        if is_lost {
            fs::remove_file(writer.dir().join(CHECKPOINT_FILE)).unwrap();
        }
        let recovered = recover(writer.dir(), partition(), &RULES).unwrap();
        assert_eq!(recovered.cuts, []);
        assert_fits(&recovered, &writer);
    });
}

/// The roll was done while batches of the old segment were still on their way to the disk, and none of them was confirmed.
#[test]
fn an_empty_segment_behind_a_torn_end_is_no_loss() {
    for_each_seed(|random| {
        let mut writer = Writer::new(random);
        writer.append_some(random);
        writer.write_all();
        writer.checkpoint();
        let kept = writer.batches.len();
        let end = writer.log_end_offset();
        writer.append_some(random);
        if writer.active().base_offset > end {
            return;
        }
        let rolled = writer.log_end_offset();
        writer.cut_to(kept);
        writer.write_all();
        fs::write(writer.dir().join(log_name(rolled)), vec![0; 100_000]).unwrap();
        let recovered = recover(writer.dir(), partition(), &RULES).unwrap();
        assert_eq!(recovered.cuts, []);
        assert_eq!(recovered.log_end_offset, end);
        assert!(!writer.dir().join(log_name(rolled)).exists());
    });
}
