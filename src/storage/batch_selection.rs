//! Which whole batches of a run of bytes answer a fetch: Kafka's `max_bytes` rules (KIP-74), without any I/O.

use crate::model::limits::RECORD_BATCH_HEADER_BYTES;
use crate::model::{FilePosition, Offset};
use crate::record::header::RecordBatchHeader;
use crate::storage::byte_run::ByteRun;
use crate::storage::read_steps::ReadSteps;

/// What a reader asks for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The first batch returned is the one that holds this offset or, where there is none, the first behind it.
    pub offset: Offset,
    /// Batches are added while their sum stays within it.
    pub max_bytes: usize,
    /// The first batch is returned even if it is larger than `max_bytes`, so that a reader always gets on.
    pub first_whole: bool,
    /// Batches that start here or later are not shown (high watermark).
    pub below: Offset,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// The bytes from `start` to `end` are whole batches.
    Batches {
        start: FilePosition,
        end: FilePosition,
        /// The offset after the last of them.
        next: Offset,
        /// Neither a bound nor the segment ended the selection, but the run or the steps: what follows may be selected as well.
        goes_on: bool,
    },
    /// Nothing to return: the next batch is not yet shown, or larger than allowed.
    Nothing,
    /// The run must reach to `end` at least, and may start at `start`.
    Needs {
        start: FilePosition,
        end: FilePosition,
    },
    /// The steps were used up before the first batch was found; the search continues at the batch at `position`.
    Paused { position: FilePosition },
    /// What should be a batch is not one.
    Corrupt { position: FilePosition },
}

/// Hops over the batch headers of `run`, which starts on a batch; `segment_end` is where readable bytes end. Looks at one header at least,
/// whatever `steps` says.
pub fn select(
    run: &ByteRun,
    wanted: Wanted,
    segment_end: FilePosition,
    steps: &mut ReadSteps,
) -> Selection {
    let mut cursor = run.cursor();
    let mut position = run.start();
    let mut selected: Option<(FilePosition, FilePosition, Offset)> = None;
    let mut stop = Selection::Nothing;
    let mut is_first = true;
    while position < segment_end {
        if steps.is_used_up() && !is_first {
            stop = Selection::Paused { position };
            break;
        }
        is_first = false;
        steps.take(1);
        let mut header = [0; RECORD_BATCH_HEADER_BYTES];
        if !cursor.copy_at(position, &mut header) {
            let end = position.plus(RECORD_BATCH_HEADER_BYTES as u64);
            stop = if end > segment_end {
                Selection::Corrupt { position }
            } else {
                Selection::Needs {
                    start: position,
                    end,
                }
            };
            break;
        }
        let Ok(header) = RecordBatchHeader::from_array(&header) else {
            stop = Selection::Corrupt { position };
            break;
        };
        let end = position.plus(header.size_bytes() as u64);
        if end > segment_end {
            stop = Selection::Corrupt { position };
            break;
        }
        if header.base_offset >= wanted.below {
            break;
        }
        if header.last_offset() < wanted.offset {
            position = end;
            continue;
        }
        let start = selected.map_or(position, |(start, ..)| start);
        let fits = end.0 - start.0 <= wanted.max_bytes as u64;
        if !fits && (selected.is_some() || !wanted.first_whole) {
            break;
        }
        if end > run.end() {
            stop = Selection::Needs {
                start: position,
                end,
            };
            break;
        }
        selected = Some((start, end, header.next_offset()));
        position = end;
    }
    match selected {
        Some((start, end, next)) => Selection::Batches {
            start,
            end,
            next,
            goes_on: matches!(stop, Selection::Needs { .. } | Selection::Paused { .. }),
        },
        None => stop,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TimestampMs;
    use crate::model::limits::READ_STEPS_PER_SLICE;
    use crate::record::encode::BatchBuilder;
    use bytes::Bytes;

    fn run_of(batches: &[(i64, usize)]) -> ByteRun {
        let mut run = ByteRun::starting_at(FilePosition(0));
        for &(base_offset, records) in batches {
            let mut builder = BatchBuilder::new().base_offset(Offset(base_offset));
            for n in 0..records {
                builder.push(TimestampMs(0), None, Some(&[n as u8; 100]), &[]);
            }
            run.push(Bytes::from(builder.build()));
        }
        run
    }

    fn wanted(offset: i64, max_bytes: usize, below: i64) -> Wanted {
        Wanted {
            offset: Offset(offset),
            max_bytes,
            first_whole: true,
            below: Offset(below),
        }
    }

    fn sizes(run: &ByteRun) -> Vec<u64> {
        let mut ends = vec![0];
        for piece in run.clone().into_pieces() {
            ends.push(ends.last().unwrap() + piece.len() as u64);
        }
        ends
    }

    fn select_all(run: &ByteRun, wanted: Wanted, segment_end: FilePosition) -> Selection {
        select(run, wanted, segment_end, &mut ReadSteps::unbounded())
    }

    fn batches(start: u64, end: u64, next: i64) -> Selection {
        Selection::Batches {
            start: FilePosition(start),
            end: FilePosition(end),
            next: Offset(next),
            goes_on: false,
        }
    }

    #[test]
    fn an_offset_inside_a_batch_returns_the_whole_batch() {
        let run = run_of(&[(0, 5), (5, 5), (10, 5)]);
        let ends = sizes(&run);
        let selection = select_all(&run, wanted(7, 1 << 20, 100), run.end());
        assert_eq!(selection, batches(ends[1], ends[3], 15));
    }

    #[test]
    fn the_first_batch_is_returned_though_it_is_larger_than_max_bytes() {
        let run = run_of(&[(0, 5), (5, 5)]);
        let ends = sizes(&run);
        let selection = select_all(&run, wanted(0, 1, 100), run.end());
        assert_eq!(selection, batches(0, ends[1], 5));
        let not_first = Wanted {
            first_whole: false,
            ..wanted(0, 1, 100)
        };
        let selection = select_all(&run, not_first, run.end());
        assert_eq!(selection, Selection::Nothing);
    }

    #[test]
    fn nothing_above_the_high_watermark_is_shown() {
        let run = run_of(&[(0, 5), (5, 5)]);
        let ends = sizes(&run);
        let selection = select_all(&run, wanted(0, 1 << 20, 5), run.end());
        assert_eq!(selection, batches(0, ends[1], 5));
        let selection = select_all(&run, wanted(5, 1 << 20, 5), run.end());
        assert_eq!(selection, Selection::Nothing);
    }

    #[test]
    fn a_batch_cut_short_by_the_run_asks_for_more() {
        let run = run_of(&[(0, 5), (5, 5)]);
        let ends = sizes(&run);
        let short = run.clone().cut(FilePosition(0), FilePosition(ends[1] + 70));
        let selection = select_all(&short, wanted(5, 1 << 20, 100), run.end());
        assert_eq!(
            selection,
            Selection::Needs {
                start: FilePosition(ends[1]),
                end: FilePosition(ends[2])
            }
        );
        let selection = select_all(&short, wanted(0, 1 << 20, 100), run.end());
        assert_eq!(
            selection,
            Selection::Batches {
                start: FilePosition(0),
                end: FilePosition(ends[1]),
                next: Offset(5),
                goes_on: true,
            }
        );
    }

    #[test]
    fn a_selection_looks_at_each_header_once_and_at_no_more_than_its_steps_in_one_go() {
        let count = 3 * READ_STEPS_PER_SLICE as i64;
        let every_batch: Vec<_> = (0..count).map(|offset| (offset, 1)).collect();
        let run = run_of(&every_batch);
        let segment_end = run.end();
        for first_wanted in [0, count / 2] {
            let mut steps = ReadSteps::slice();
            let mut wanted = wanted(first_wanted, usize::MAX, count);
            let (mut from, mut slices, mut selected_bytes) = (run.start(), 0, 0);
            loop {
                let before = steps.taken();
                let rest = run.clone().cut(from, segment_end);
                let selection = select(&rest, wanted, segment_end, &mut steps);
                assert!(steps.taken() - before <= READ_STEPS_PER_SLICE as u64);
                slices += 1;
                let is_over = match selection {
                    Selection::Paused { position } => {
                        from = position;
                        false
                    }
                    Selection::Batches {
                        start,
                        end,
                        next,
                        goes_on,
                    } => {
                        selected_bytes += end.0 - start.0;
                        (from, wanted.offset) = (end, next);
                        !goes_on
                    }
                    other => panic!("{other:?}"),
                };
                if is_over {
                    break;
                }
                steps.refill();
            }
            assert_eq!(wanted.offset, Offset(count));
            let batch_bytes = segment_end.0 / count as u64;
            assert_eq!(selected_bytes, (count - first_wanted) as u64 * batch_bytes);
            assert_eq!(steps.taken(), count as u64);
            assert_eq!(slices, 3);
        }
    }
}
