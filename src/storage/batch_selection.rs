//! Which whole batches of a run of bytes answer a fetch: Kafka's `max_bytes` rules (KIP-74), without any I/O.

use crate::model::limits::RECORD_BATCH_HEADER_BYTES;
use crate::model::{FilePosition, Offset};
use crate::record::header::RecordBatchHeader;
use crate::storage::byte_run::ByteRun;

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
    },
    /// Nothing to return: the next batch is not yet shown, or larger than allowed.
    Nothing,
    /// The run must reach to `end` at least, and may start at `start`.
    Needs {
        start: FilePosition,
        end: FilePosition,
    },
    /// What should be a batch is not one.
    Corrupt { position: FilePosition },
}

/// Hops over the batch headers of `run`, which starts on a batch; `segment_end` is where readable bytes end. With `check_crc` a
/// batch that fails its checksum ends the selection before it: bytes from a disk are not trusted.
pub fn select(
    run: &ByteRun,
    wanted: Wanted,
    segment_end: FilePosition,
    check_crc: bool,
) -> Selection {
    let mut position = run.start();
    let mut selected: Option<(FilePosition, FilePosition)> = None;
    let mut stop = Selection::Nothing;
    while position < segment_end {
        let mut header = [0; RECORD_BATCH_HEADER_BYTES];
        if !run.copy_at(position, &mut header) {
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
        let start = selected.map_or(position, |(start, _)| start);
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
        if check_crc && !header.crc_fits_pieces(run.pieces(position, end)) {
            stop = Selection::Corrupt { position };
            break;
        }
        selected = Some((start, end));
        position = end;
    }
    match selected {
        Some((start, end)) => Selection::Batches { start, end },
        None => stop,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TimestampMs;
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

    #[test]
    fn an_offset_inside_a_batch_returns_the_whole_batch() {
        let run = run_of(&[(0, 5), (5, 5), (10, 5)]);
        let ends = sizes(&run);
        let selection = select(&run, wanted(7, 1 << 20, 100), run.end(), true);
        assert_eq!(
            selection,
            Selection::Batches {
                start: FilePosition(ends[1]),
                end: FilePosition(ends[3])
            }
        );
    }

    #[test]
    fn the_first_batch_is_returned_though_it_is_larger_than_max_bytes() {
        let run = run_of(&[(0, 5), (5, 5)]);
        let ends = sizes(&run);
        let first = Selection::Batches {
            start: FilePosition(0),
            end: FilePosition(ends[1]),
        };
        assert_eq!(select(&run, wanted(0, 1, 100), run.end(), true), first);
        let not_first = Wanted {
            first_whole: false,
            ..wanted(0, 1, 100)
        };
        assert_eq!(select(&run, not_first, run.end(), true), Selection::Nothing);
    }

    #[test]
    fn nothing_above_the_high_watermark_is_shown() {
        let run = run_of(&[(0, 5), (5, 5)]);
        let ends = sizes(&run);
        let first = Selection::Batches {
            start: FilePosition(0),
            end: FilePosition(ends[1]),
        };
        assert_eq!(select(&run, wanted(0, 1 << 20, 5), run.end(), true), first);
        assert_eq!(
            select(&run, wanted(5, 1 << 20, 5), run.end(), true),
            Selection::Nothing
        );
    }

    #[test]
    fn a_batch_cut_short_by_the_run_asks_for_more() {
        let run = run_of(&[(0, 5), (5, 5)]);
        let ends = sizes(&run);
        let short = run.clone().cut(FilePosition(0), FilePosition(ends[1] + 70));
        let selection = select(&short, wanted(5, 1 << 20, 100), run.end(), true);
        assert_eq!(
            selection,
            Selection::Needs {
                start: FilePosition(ends[1]),
                end: FilePosition(ends[2])
            }
        );
    }

    #[test]
    fn a_damaged_batch_is_never_returned() {
        let run = run_of(&[(0, 5), (5, 5)]);
        let ends = sizes(&run);
        let mut bytes = run.to_vec();
        bytes[ends[1] as usize + 80] ^= 1;
        let mut damaged = ByteRun::starting_at(FilePosition(0));
        damaged.push(Bytes::from(bytes));
        let first = Selection::Batches {
            start: FilePosition(0),
            end: FilePosition(ends[1]),
        };
        assert_eq!(
            select(&damaged, wanted(0, 1 << 20, 100), run.end(), true),
            first
        );
        let corrupt = Selection::Corrupt {
            position: FilePosition(ends[1]),
        };
        assert_eq!(
            select(&damaged, wanted(5, 1 << 20, 100), run.end(), true),
            corrupt
        );
    }
}
