use std::fmt::Write;
use std::path::Path;

use crate::model::{LeaderEpoch, Offset};

use super::atomic_file;
use super::file_error::FileError;

/// Kafka's name for the file, in the partition's directory.
pub const LEADER_EPOCHS_FILE: &str = "leader-epoch-checkpoint";

/// The format's version, in the first line.
const VERSION: u32 = 0;

/// A bound on what is read at a start: a million changes of leader, at up to 31 bytes a line.
const FILE_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Where each leader epoch of a partition starts (KIP-101): the first offset that its leader appended.
///
/// Rules: epochs strictly increase; starts strictly increase; an epoch without records may stand last, at the log end. The
/// entries cover the log from its start to its end; an epoch of which nothing is left is dropped, except that the entry
/// at the log start stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaderEpochs {
    entries: Vec<EpochStart>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochStart {
    pub epoch: LeaderEpoch,
    pub start_offset: Offset,
}

/// The answer of OffsetForLeaderEpoch; both are -1 where the epoch says nothing (`UNDEFINED`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochEnd {
    pub epoch: LeaderEpoch,
    /// The first offset behind the epoch.
    pub end_offset: Offset,
}

impl EpochEnd {
    pub const UNDEFINED: Self = Self {
        epoch: LeaderEpoch::UNKNOWN,
        end_offset: Offset::UNKNOWN,
    };
}

/// Why a `leader-epoch-checkpoint` is not one that we (or Kafka) wrote, whole. Recovery then takes the epochs from the batches.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeaderEpochsDamage {
    #[error("line {line}: expected {expected}")]
    Line { line: usize, expected: &'static str },
    #[error("it declares {declared_count} entries and has {actual_count}")]
    Count {
        declared_count: usize,
        actual_count: usize,
    },
    #[error("line {line}: an epoch or its start is not above the one before")]
    NotIncreasing { line: usize },
}

impl LeaderEpochs {
    pub fn entries(&self) -> &[EpochStart] {
        &self.entries
    }

    pub fn latest(&self) -> Option<EpochStart> {
        self.entries.last().copied()
    }

    /// Notes that `epoch` appends from `start_offset` on; true if that is new (then the file is to be written). The same or an
    /// older epoch changes nothing. An epoch in which nothing was appended gives way to its successor.
    pub fn assign(&mut self, epoch: LeaderEpoch, start_offset: Offset) -> bool {
        if !epoch.is_known() || self.latest().is_some_and(|latest| latest.epoch >= epoch) {
            return false;
        }
        while self
            .latest()
            .is_some_and(|latest| latest.start_offset >= start_offset)
        {
            self.entries.pop();
        }
        self.entries.push(EpochStart {
            epoch,
            start_offset,
        });
        true
    }

    /// The largest epoch at or below `requested`, and where it ends (KIP-101, 279, 320):
    /// the latest epoch ends at the log end; an epoch before the first ends where the first starts; a later one than the
    /// latest is unknown.
    pub fn end_offset_for(&self, requested: LeaderEpoch, log_end_offset: Offset) -> EpochEnd {
        let above = self
            .entries
            .partition_point(|entry| entry.epoch <= requested);
        let at_or_below = above.checked_sub(1).map(|at| self.entries[at]);
        match (requested.is_known(), at_or_below, self.entries.get(above)) {
            (false, ..) | (true, None, None) => EpochEnd::UNDEFINED,
            (true, Some(latest), None) if latest.epoch == requested => EpochEnd {
                epoch: requested,
                end_offset: log_end_offset,
            },
            (true, Some(_), None) => EpochEnd::UNDEFINED,
            (true, None, Some(first)) => EpochEnd {
                epoch: requested,
                end_offset: first.start_offset,
            },
            (true, Some(floor), Some(next)) => EpochEnd {
                epoch: floor.epoch,
                end_offset: next.start_offset,
            },
        }
    }

    /// The epoch in which the record at `offset` was appended.
    pub fn epoch_of(&self, offset: Offset) -> Option<LeaderEpoch> {
        let above = self
            .entries
            .partition_point(|entry| entry.start_offset <= offset);
        above.checked_sub(1).map(|at| self.entries[at].epoch)
    }

    /// Drops the epochs that start at `log_end_offset` or above, since the log was cut there. True if anything changed.
    pub fn truncate_from_end(&mut self, log_end_offset: Offset) -> bool {
        let kept = self
            .entries
            .partition_point(|entry| entry.start_offset < log_end_offset);
        let changed = kept < self.entries.len();
        self.entries.truncate(kept);
        changed
    }

    /// Drops the epochs that end at `log_start_offset` or below; the epoch there now starts there. True if anything changed.
    pub fn truncate_from_start(&mut self, log_start_offset: Offset) -> bool {
        let started = self
            .entries
            .partition_point(|entry| entry.start_offset <= log_start_offset);
        if started == 0 || (started == 1 && self.entries[0].start_offset == log_start_offset) {
            return false;
        }
        self.entries.drain(..started - 1);
        self.entries[0].start_offset = log_start_offset;
        true
    }

    /// Kafka's text: the version, the number of entries, then an epoch and its start in each line.
    ///
    /// ```text
    /// 0
    /// 2
    /// 0 0
    /// 3 120
    /// ```
    pub fn encode(&self) -> String {
        let mut text = format!("{VERSION}\n{}\n", self.entries.len());
        for entry in &self.entries {
            writeln!(text, "{} {}", entry.epoch, entry.start_offset)
                .expect("a String takes every write");
        }
        text
    }

    pub fn decode(text: &str) -> Result<Self, LeaderEpochsDamage> {
        if !text.is_empty() && !text.ends_with('\n') {
            // A cut last line may read as a smaller number.
            return Err(LeaderEpochsDamage::Line {
                line: text.lines().count(),
                expected: "the line's end",
            });
        }
        let mut lines = text.lines().zip(1..);
        let mut header = |line, expected| {
            lines
                .next()
                .and_then(|(text, _)| text.parse().ok())
                .ok_or(LeaderEpochsDamage::Line { line, expected })
        };
        if header(1, "the version, 0")? != VERSION as usize {
            return Err(LeaderEpochsDamage::Line {
                line: 1,
                expected: "the version, 0",
            });
        }
        let declared_count = header(2, "the number of entries")?;
        let mut epochs = Self::default();
        for (text, line) in lines {
            let damage = LeaderEpochsDamage::Line {
                line,
                expected: "an epoch and its start offset",
            };
            let entry = parse_entry(text).ok_or(damage)?;
            let above = |last: EpochStart| {
                last.epoch < entry.epoch && last.start_offset < entry.start_offset
            };
            if !epochs.latest().is_none_or(above) {
                return Err(LeaderEpochsDamage::NotIncreasing { line });
            }
            epochs.entries.push(entry);
        }
        // Also the only sign that the file was cut at the end of a line.
        if epochs.entries.len() != declared_count {
            return Err(LeaderEpochsDamage::Count {
                declared_count,
                actual_count: epochs.entries.len(),
            });
        }
        Ok(epochs)
    }

    /// Replaces the file; it survives a power cut when this returns.
    pub fn write(&self, dir: &Path) -> Result<(), FileError> {
        atomic_file::replace(&dir.join(LEADER_EPOCHS_FILE), self.encode().as_bytes())
    }

    /// `None` if there is no file; `Some(Err)` if it is damaged.
    pub fn read(dir: &Path) -> Result<Option<Result<Self, LeaderEpochsDamage>>, FileError> {
        let file = atomic_file::read(&dir.join(LEADER_EPOCHS_FILE), FILE_BYTES_MAX)?;
        Ok(file.map(|bytes| match std::str::from_utf8(&bytes) {
            Ok(text) => Self::decode(text),
            Err(_) => Err(LeaderEpochsDamage::Line {
                line: 1,
                expected: "text",
            }),
        }))
    }
}

fn parse_entry(line: &str) -> Option<EpochStart> {
    let (epoch, start_offset) = line.split_once(' ')?;
    let (epoch, start_offset) = (epoch.parse().ok()?, start_offset.parse().ok()?);
    (epoch >= 0 && start_offset >= 0).then_some(EpochStart {
        epoch: LeaderEpoch(epoch),
        start_offset: Offset(start_offset),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epochs(entries: &[(i32, i64)]) -> LeaderEpochs {
        let mut epochs = LeaderEpochs::default();
        for &(epoch, start) in entries {
            assert!(epochs.assign(LeaderEpoch(epoch), Offset(start)));
        }
        epochs
    }

    fn end(epoch: i32, end_offset: i64) -> EpochEnd {
        EpochEnd {
            epoch: LeaderEpoch(epoch),
            end_offset: Offset(end_offset),
        }
    }

    #[test]
    fn an_epoch_ends_where_the_next_one_starts() {
        let epochs = epochs(&[(2, 10), (4, 30), (7, 50)]);
        let answer = |requested| epochs.end_offset_for(LeaderEpoch(requested), Offset(80));
        assert_eq!(answer(-1), EpochEnd::UNDEFINED);
        assert_eq!(
            answer(1),
            end(1, 10),
            "before the first: its records are gone"
        );
        assert_eq!(answer(2), end(2, 30));
        assert_eq!(answer(3), end(2, 30), "between: the largest at or below");
        assert_eq!(answer(6), end(4, 50));
        assert_eq!(answer(7), end(7, 80), "the latest ends at the log end");
        assert_eq!(answer(8), EpochEnd::UNDEFINED);
        assert_eq!(
            LeaderEpochs::default().end_offset_for(LeaderEpoch(0), Offset(0)),
            EpochEnd::UNDEFINED
        );
    }

    #[test]
    fn an_epoch_is_assigned_once_and_never_goes_back() {
        let mut epochs = epochs(&[(2, 10)]);
        assert!(!epochs.assign(LeaderEpoch(2), Offset(20)));
        assert!(!epochs.assign(LeaderEpoch(1), Offset(20)));
        assert!(!epochs.assign(LeaderEpoch::UNKNOWN, Offset(20)));
        assert_eq!(
            epochs.entries(),
            [EpochStart {
                epoch: LeaderEpoch(2),
                start_offset: Offset(10)
            }]
        );
    }

    #[test]
    fn an_epoch_without_records_gives_way() {
        let epochs = epochs(&[(2, 10), (3, 20), (4, 20)]);
        assert_eq!(
            epochs
                .entries()
                .iter()
                .map(|entry| entry.epoch.0)
                .collect::<Vec<_>>(),
            [2, 4]
        );
    }

    #[test]
    fn the_epoch_of_an_offset_is_the_one_that_had_started() {
        let epochs = epochs(&[(2, 10), (4, 30)]);
        assert_eq!(epochs.epoch_of(Offset(9)), None);
        assert_eq!(epochs.epoch_of(Offset(29)), Some(LeaderEpoch(2)));
        assert_eq!(epochs.epoch_of(Offset(30)), Some(LeaderEpoch(4)));
    }

    #[test]
    fn cutting_the_end_drops_the_epochs_behind_it() {
        let mut cut = epochs(&[(2, 10), (4, 30), (7, 50)]);
        assert!(!cut.truncate_from_end(Offset(51)));
        assert!(cut.truncate_from_end(Offset(30)));
        assert_eq!(cut, epochs(&[(2, 10)]));
    }

    #[test]
    fn cutting_the_start_keeps_the_epoch_that_lies_there() {
        let mut cut = epochs(&[(2, 10), (4, 30), (7, 50)]);
        assert!(!cut.truncate_from_start(Offset(5)));
        assert!(!cut.truncate_from_start(Offset(10)));
        assert!(cut.truncate_from_start(Offset(40)));
        assert_eq!(cut, epochs(&[(4, 40), (7, 50)]));
        assert!(cut.truncate_from_start(Offset(50)));
        assert_eq!(cut, epochs(&[(7, 50)]));
    }

    #[test]
    fn the_file_is_kafkas() {
        let epochs = epochs(&[(0, 0), (3, 120)]);
        assert_eq!(epochs.encode(), "0\n2\n0 0\n3 120\n");
        assert_eq!(LeaderEpochs::decode(&epochs.encode()), Ok(epochs));
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(LeaderEpochs::read(dir.path()).unwrap(), None);
        LeaderEpochs::default().write(dir.path()).unwrap();
        assert_eq!(
            LeaderEpochs::read(dir.path()).unwrap(),
            Some(Ok(LeaderEpochs::default()))
        );
    }

    #[test]
    fn a_damaged_file_is_refused_with_its_line() {
        let damage = |text: &str| LeaderEpochs::decode(text).unwrap_err().to_string();
        assert_eq!(damage(""), "line 1: expected the version, 0");
        assert_eq!(damage("1\n0\n"), "line 1: expected the version, 0");
        assert_eq!(damage("0\nx\n"), "line 2: expected the number of entries");
        assert_eq!(
            damage("0\n1\n5\n"),
            "line 3: expected an epoch and its start offset"
        );
        assert_eq!(
            damage("0\n1\n-1 5\n"),
            "line 3: expected an epoch and its start offset"
        );
        assert_eq!(damage("0\n2\n0 0\n"), "it declares 2 entries and has 1");
        assert_eq!(
            damage("0\n2\n0 7\n1 7\n"),
            "line 4: an epoch or its start is not above the one before"
        );
    }

    #[test]
    fn no_cut_of_a_file_is_taken_for_the_whole() {
        let text = epochs(&[(0, 0), (3, 120), (4, 1_500)]).encode();
        for length in 0..text.len() {
            assert!(
                LeaderEpochs::decode(&text[..length]).is_err(),
                "{length} bytes"
            );
        }
    }
}
