use std::io;
use std::path::{Path, PathBuf};

use super::durable_file::{read_if_present, replace_file, sync_directory};
use super::end_checkpoint::EndCheckpoint;
use super::frame::{self, EncodeError, Frame, FrameDefect};
use crate::io::fs;
use crate::io::fs::File;
use crate::metadata::{ApplyError, MetadataImage, MetadataRecord};
use crate::model::limits::{METADATA_BATCH_BYTES_MAX, METADATA_RESERVE_BYTES};

/// The durable form of the metadata: every change in its order, as batches that apply whole or not at all.
///
/// ```text
///   metadata.snapshot   one frame: records that build the image as it was after batch S (absent at first: S = 0)
///   metadata.log        frames with the batches behind S, perhaps older ones that the snapshot holds already, then zeros
///   metadata.end        the last batch that was promised
/// ```
///
/// A change is promised when its frame is synced and then its number is in `metadata.end`. So at load:
/// - a bad frame whose number was promised is damage, and an error;
/// - a bad frame behind the last promise is a write that a crash cut off: it is cut away, unless a whole frame stands behind it,
///   which no crash leaves;
/// - a log that ends before the last promise was shortened, and is an error;
/// - whole frames behind the last promise are kept: their change may have been followed, and nobody was told that it failed.
///
/// The zeros are written ahead, so that an append overwrites blocks that are there: its sync then waits for no journal, and small
/// changes still succeed on a full disk, also after a large one that did not.
///
/// A failed sync is never tried again, for a second one can report success for bytes that are gone: the log is then offline.
pub struct MetadataLog {
    directory: PathBuf,
    file: File,
    end: EndCheckpoint,
    /// Where the next frame goes.
    length_bytes: u64,
    /// Up to where there are zeros.
    reserved_bytes: u64,
    sequence: u64,
    snapshot_interval_bytes: u64,
    snapshot_at_bytes: u64,
    offline: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum MetadataLogError {
    #[error("{path}: cannot {operation}: {source}", path = .path.display())]
    Io {
        path: PathBuf,
        operation: &'static str,
        source: io::Error,
    },
    #[error("{path} is missing: {reason}", path = .path.display())]
    Missing { path: PathBuf, reason: &'static str },
    #[error("{path}: the batch at position {position} is damaged: {defect}", path = .path.display())]
    Damaged {
        path: PathBuf,
        position: u64,
        defect: FrameDefect,
    },
    #[error(
        "{path}: the batch at position {position} is damaged, but a whole one stands behind it at {behind}: {defect}",
        path = .path.display()
    )]
    DamagedInside {
        path: PathBuf,
        position: u64,
        behind: u64,
        defect: FrameDefect,
    },
    #[error(
        "{path}: it ends at position {position} with batch {found}, but batch {promised} was confirmed: the file was shortened",
        path = .path.display()
    )]
    Shortened {
        path: PathBuf,
        position: u64,
        found: u64,
        promised: u64,
    },
    #[error("{path}: neither copy of the last batch's number is whole", path = .path.display())]
    EndUnreadable { path: PathBuf },
    #[error("{path}: the batch at position {position} does not fit what is before it: {reason}", path = .path.display())]
    Unfitting {
        path: PathBuf,
        position: u64,
        reason: ApplyError,
    },
    #[error("{0}")]
    Encode(#[from] EncodeError),
    #[error("{path}: an earlier write failed, so that nothing more is written before a restart", path = .path.display())]
    Offline { path: PathBuf },
}

const LOG: &str = "metadata.log";
const SNAPSHOT: &str = "metadata.snapshot";
const END: &str = "metadata.end";

impl MetadataLog {
    /// A log with one batch, in a directory that exists and is empty.
    pub(super) fn create(
        directory: &Path,
        records: &[MetadataRecord],
    ) -> Result<(), MetadataLogError> {
        let path = directory.join(LOG);
        let first = frame::encode(1, records, METADATA_BATCH_BYTES_MAX)?;
        replace_file(&path, &first).map_err(io_error(&path, "create it"))?;
        let end_path = directory.join(END);
        EndCheckpoint::create(&end_path, 1).map_err(io_error(&end_path, "create it"))?;
        sync_directory(directory).map_err(io_error(directory, "sync it"))
    }

    /// Reads everything, cuts off an unfinished write at the end, and refuses what a crash cannot have left.
    pub(super) fn open(
        directory: &Path,
        snapshot_interval_bytes: u64,
    ) -> Result<(Self, MetadataImage), MetadataLogError> {
        let path = directory.join(LOG);
        let (end, promised) = open_end(directory)?;
        let snapshot = load_snapshot(directory)?;
        let file =
            File::options()
                .read(true)
                .write(true)
                .open(&path)
                .map_err(|source| match source.kind() {
                    io::ErrorKind::NotFound => MetadataLogError::Missing {
                        path: path.clone(),
                        reason: "it is the metadata log",
                    },
                    _ => io_error(&path, "open it")(source),
                })?;
        let bytes = fs::read(&path).map_err(io_error(&path, "read it"))?;
        let replayed = replay(&path, &bytes, snapshot, promised)?;
        let mut log = Self {
            directory: directory.into(),
            file,
            end,
            length_bytes: replayed.length_bytes,
            reserved_bytes: bytes.len() as u64,
            sequence: replayed.sequence,
            snapshot_interval_bytes,
            snapshot_at_bytes: snapshot_interval_bytes,
            offline: false,
        };
        let tail = &bytes[replayed.length_bytes as usize..];
        log.settle(!is_zero(tail), promised)?;
        Ok((log, replayed.image))
    }

    /// Returns when the batch is durable and promised. After an error it counts as not done; only if the error was that of a sync
    /// may it come back after a restart.
    pub fn append(&mut self, records: &[MetadataRecord]) -> Result<(), MetadataLogError> {
        let path = self.path();
        if self.offline {
            return Err(MetadataLogError::Offline { path });
        }
        let bytes = frame::encode(self.sequence + 1, records, METADATA_BATCH_BYTES_MAX)?;
        self.reserve(bytes.len() as u64);
        if let Err(source) = self.file.write_all_at(&bytes, self.length_bytes) {
            // A full disk is no lasting fault: what was written of the frame is taken back, and a smaller change may succeed.
            self.offline = self.take_back().is_err();
            return Err(io_error(&path, "append to it")(source));
        }
        let synced = self.file.sync_data().map_err(io_error(&path, "sync it"));
        let promised = synced.and_then(|()| {
            let end_path = self.directory.join(END);
            self.end
                .write(self.sequence + 1)
                .map_err(io_error(&end_path, "write it"))
        });
        self.offline = promised.is_err();
        promised?;
        self.sequence += 1;
        self.length_bytes += bytes.len() as u64;
        self.reserved_bytes = self.reserved_bytes.max(self.length_bytes);
        Ok(())
    }

    /// Puts zeros in the place of what was written of a frame that is not promised. The blocks that were there stay: on a full disk a small
    /// change, such as a deletion that frees space, has no others. Where even that finds no room, as on a file system that copies what is
    /// written over, they go with it. A crash in between leaves an unfinished write.
    fn take_back(&mut self) -> io::Result<()> {
        let zeros = vec![0; (self.reserved_bytes - self.length_bytes) as usize];
        if self.file.write_all_at(&zeros, self.length_bytes).is_err() {
            self.reserved_bytes = self.length_bytes;
        }
        self.file.set_len(self.reserved_bytes)
    }

    /// Puts a snapshot in the place of a log that grew too long. A failure loses nothing: the log goes on growing, and the next
    /// attempt comes when it has grown by as much again.
    pub fn compact_if_long(&mut self, image: &MetadataImage) {
        if self.offline || self.length_bytes < self.snapshot_at_bytes {
            return;
        }
        match self.compact(image) {
            Ok(()) => self.snapshot_at_bytes = self.snapshot_interval_bytes,
            Err(error) => {
                tracing::warn!(%error, "no metadata snapshot was made");
                self.snapshot_at_bytes = self.length_bytes + self.snapshot_interval_bytes;
            }
        }
    }

    /// The order matters: the snapshot is durable under its name before the log loses what the snapshot holds.
    fn compact(&mut self, image: &MetadataImage) -> Result<(), MetadataLogError> {
        let snapshot_path = self.directory.join(SNAPSHOT);
        let bytes = frame::encode(self.sequence, &image.to_records(), u32::MAX as usize)?;
        replace_file(&snapshot_path, &bytes).map_err(io_error(&snapshot_path, "replace it"))?;
        let path = self.path();
        self.file.set_len(0).map_err(io_error(&path, "empty it"))?;
        (self.length_bytes, self.reserved_bytes) = (0, 0);
        // Of the blocks that have just become free.
        self.reserve(0);
        if let Err(source) = self.file.sync_data() {
            self.offline = true;
            return Err(io_error(&path, "sync it")(source));
        }
        Ok(())
    }

    /// Cuts off what a crash left of an unfinished write, and promises what the replay found.
    fn settle(&mut self, is_unfinished: bool, promised: u64) -> Result<(), MetadataLogError> {
        let path = self.path();
        if is_unfinished {
            tracing::warn!(
                file = %path.display(),
                position = self.length_bytes,
                cut_bytes = self.reserved_bytes - self.length_bytes,
                "cut off an unfinished write at the end of the metadata log"
            );
            self.take_back().map_err(io_error(&path, "cut it"))?;
        }
        if is_unfinished || self.sequence > promised {
            self.file.sync_data().map_err(io_error(&path, "sync it"))?;
            let end_path = self.directory.join(END);
            self.end
                .write(self.sequence)
                .map_err(io_error(&end_path, "write it"))?;
        }
        Ok(())
    }

    /// Writes zeros ahead, where those that are there would not last for a frame of this size. On a full disk there are fewer of
    /// them, or none, and nothing else is wrong.
    fn reserve(&mut self, frame_bytes: u64) {
        if self.length_bytes + frame_bytes + METADATA_RESERVE_BYTES / 2 <= self.reserved_bytes {
            return;
        }
        let wanted_bytes = self.length_bytes + frame_bytes + METADATA_RESERVE_BYTES;
        let zeros = vec![0; (wanted_bytes - self.reserved_bytes) as usize];
        if self.file.write_all_at(&zeros, self.reserved_bytes).is_ok() {
            self.reserved_bytes = wanted_bytes;
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.join(LOG)
    }

    /// As after a failed sync.
    #[cfg(test)]
    pub(super) fn take_offline(&mut self) {
        self.offline = true;
    }
}

struct Replayed {
    image: MetadataImage,
    sequence: u64,
    length_bytes: u64,
}

fn replay(
    path: &Path,
    bytes: &[u8],
    snapshot: Option<(u64, MetadataImage)>,
    promised: u64,
) -> Result<Replayed, MetadataLogError> {
    let (snapshot_sequence, mut image) = match snapshot {
        Some((sequence, image)) => (sequence, Some(image)),
        None => (0, None),
    };
    let mut sequence = snapshot_sequence;
    let mut position = 0;
    let mut previous = None;
    while position < bytes.len() {
        let rest = &bytes[position..];
        let next = match decode_in_order(rest, previous, snapshot_sequence) {
            Ok(next) => next,
            Err(defect) => {
                let number = previous.unwrap_or(sequence) + 1;
                check_unfinished(path, rest, position as u64, number, promised, defect)?;
                break;
            }
        };
        if next.sequence > snapshot_sequence {
            let unfitting = |reason| MetadataLogError::Unfitting {
                path: path.into(),
                position: position as u64,
                reason,
            };
            image = Some(match image {
                None => MetadataImage::from_records(&next.records).map_err(unfitting)?,
                Some(image) => image.apply(&next.records).map_err(unfitting)?.0,
            });
            sequence = next.sequence;
        }
        previous = Some(next.sequence);
        position += next.size_bytes;
    }
    let shortened = || MetadataLogError::Shortened {
        path: path.into(),
        position: position as u64,
        found: sequence,
        promised,
    };
    match image {
        Some(image) if sequence >= promised => Ok(Replayed {
            image,
            sequence,
            length_bytes: position as u64,
        }),
        _ => Err(shortened()),
    }
}

/// The next frame, which must have the number behind the previous one; the first may be any that the snapshot reaches up to.
fn decode_in_order(
    bytes: &[u8],
    previous: Option<u64>,
    snapshot_sequence: u64,
) -> Result<Frame, FrameDefect> {
    let next = frame::decode(bytes)?;
    let expected = previous.map_or(snapshot_sequence + 1, |previous| previous + 1);
    let fits = match previous {
        Some(_) => next.sequence == expected,
        None => (1..=expected).contains(&next.sequence),
    };
    if fits {
        Ok(next)
    } else {
        Err(FrameDefect::Sequence {
            expected,
            found: next.sequence,
        })
    }
}

/// Whether a bad frame is the zeros ahead, or can be what a crash left of the last write. `number` is the frame that belongs there.
fn check_unfinished(
    path: &Path,
    bytes: &[u8],
    position: u64,
    number: u64,
    promised: u64,
    defect: FrameDefect,
) -> Result<(), MetadataLogError> {
    // A log of zeros is one that a snapshot took the place of; whether it is the latest, the promise tells.
    if is_zero(bytes) && (number > promised || position == 0) {
        return Ok(());
    }
    let whole = matches!(
        defect,
        FrameDefect::Records(_) | FrameDefect::Sequence { .. }
    );
    if number <= promised || whole {
        return Err(MetadataLogError::Damaged {
            path: path.into(),
            position,
            defect,
        });
    }
    match frame::find_behind(bytes, number) {
        Some(distance) => {
            let behind = position + distance as u64;
            Err(MetadataLogError::DamagedInside {
                path: path.into(),
                position,
                behind,
                defect,
            })
        }
        None => Ok(()),
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

fn open_end(directory: &Path) -> Result<(EndCheckpoint, u64), MetadataLogError> {
    let path = directory.join(END);
    let (end, promised) = EndCheckpoint::open(&path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => MetadataLogError::Missing {
            path: path.clone(),
            reason: "it says how far the metadata log goes",
        },
        _ => io_error(&path, "read it")(source),
    })?;
    let promised = promised.ok_or(MetadataLogError::EndUnreadable { path })?;
    Ok((end, promised))
}

fn load_snapshot(directory: &Path) -> Result<Option<(u64, MetadataImage)>, MetadataLogError> {
    let path = directory.join(SNAPSHOT);
    let Some(bytes) = read_if_present(&path).map_err(io_error(&path, "read it"))? else {
        return Ok(None);
    };
    let damaged = |position, defect| MetadataLogError::Damaged {
        path: path.clone(),
        position,
        defect,
    };
    let snapshot = frame::decode(&bytes).map_err(|defect| damaged(0, defect))?;
    if snapshot.size_bytes != bytes.len() {
        let defect = FrameDefect::Short {
            needed: snapshot.size_bytes,
            present: bytes.len(),
        };
        return Err(damaged(snapshot.size_bytes as u64, defect));
    }
    let image = MetadataImage::from_records(&snapshot.records).map_err(|reason| {
        MetadataLogError::Unfitting {
            path: path.clone(),
            position: 0,
            reason,
        }
    })?;
    Ok(Some((snapshot.sequence, image)))
}

fn io_error(
    path: &Path,
    operation: &'static str,
) -> impl Fn(io::Error) -> MetadataLogError + use<> {
    let path = path.to_owned();
    move |source| MetadataLogError::Io {
        path: path.clone(),
        operation,
        source,
    }
}

#[cfg(test)]
mod tests;
