//! The disk under a directory: sequential O_DIRECT transfers of a prepared file, what an fdatasync costs, and
//! what latency small appends have.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::appends::PacedAppends;
use super::ring::{AlignedBuffer, Direction, transfer};
use super::scratch_file::ScratchFile;
use crate::histogram::{LatencyHistogram, LatencySummary};
use crate::quantity::Bytes;

const BLOCK_BYTES: [usize; 3] = [256 * 1024, 512 * 1024, 1024 * 1024];
const DEPTHS: [usize; 3] = [1, 4, 16];

/// What is overwritten before each measured fdatasync.
const SYNCED_WRITE_BYTES: usize = 64 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("{path}: {during}: {source}")]
    Io {
        path: PathBuf,
        during: &'static str,
        source: io::Error,
    },
    #[error("io_uring: {0}")]
    Ring(io::Error),
    #[error("the disk transferred {done_bytes} of {wanted_bytes} bytes")]
    Short {
        wanted_bytes: usize,
        done_bytes: usize,
    },
}

#[derive(Clone, Debug, Serialize)]
pub struct DiskBaseline {
    pub directory: PathBuf,
    /// False where the file system refuses it: then the page cache was measured.
    pub o_direct: bool,
    pub file_bytes: u64,
    /// Overwriting of prepared blocks.
    pub writes: Vec<TransferRate>,
    pub reads: Vec<TransferRate>,
    /// Of the fdatasync alone, each after an overwrite of 64 KiB.
    pub fdatasync: Option<LatencySummary>,
    pub appends: PacedAppends,
}

#[derive(Clone, Debug, Serialize)]
pub struct TransferRate {
    pub block_bytes: usize,
    pub depth: usize,
    pub mb_per_s: f64,
    pub latency: Option<LatencySummary>,
}

impl DiskBaseline {
    /// The best that the disk did in any shape of write: what a broker can hope for.
    pub fn write_mb_per_s(&self) -> f64 {
        best(&self.writes)
    }

    pub fn read_mb_per_s(&self) -> f64 {
        best(&self.reads)
    }
}

fn best(rates: &[TransferRate]) -> f64 {
    rates.iter().map(|rate| rate.mb_per_s).fold(0.0, f64::max)
}

pub fn measure(
    directory: &Path,
    file_bytes: Bytes,
    each: Duration,
    now_measuring: &mut impl FnMut(&str),
) -> Result<DiskBaseline, DiskError> {
    let largest = BLOCK_BYTES[BLOCK_BYTES.len() - 1] as u64;
    let file_bytes = file_bytes.0.next_multiple_of(largest);
    // Before the large file is there: on a mount with `discard` its removal would hold them up.
    now_measuring("disk: small appends on a schedule");
    let appends = PacedAppends::measure(directory, each)?;
    let file = ScratchFile::create(directory, "baseline")?;
    now_measuring("disk: preparing a file");
    transfer(
        file.file(),
        file_bytes,
        largest as usize,
        4,
        Direction::Write,
        None,
    )?;
    (file.file().sync_all()).map_err(file.io("fsync"))?;
    let mut rates = |direction: Direction, name: &str| {
        let mut rates = Vec::new();
        for depth in DEPTHS {
            for block_bytes in BLOCK_BYTES {
                now_measuring(&format!(
                    "disk: {name} of {} KiB, {depth} at a time",
                    block_bytes / 1024
                ));
                let done = transfer(
                    file.file(),
                    file_bytes,
                    block_bytes,
                    depth,
                    direction,
                    Some(each),
                )?;
                let mb_per_s = done.bytes as f64 / 1e6 / done.elapsed.as_secs_f64();
                rates.push(TransferRate {
                    block_bytes,
                    depth,
                    mb_per_s,
                    latency: done.latency.summary(),
                });
            }
        }
        Ok(rates)
    };
    let writes = rates(Direction::Write, "writes")?;
    let reads = rates(Direction::Read, "reads")?;
    now_measuring("disk: fdatasync");
    let fdatasync = measure_fdatasync(&file, file_bytes, each)?;
    Ok(DiskBaseline {
        directory: directory.to_owned(),
        o_direct: file.is_o_direct(),
        file_bytes,
        writes,
        reads,
        fdatasync,
        appends,
    })
}

fn measure_fdatasync(
    file: &ScratchFile,
    file_bytes: u64,
    how_long: Duration,
) -> Result<Option<LatencySummary>, DiskError> {
    let buffer = AlignedBuffer::new(SYNCED_WRITE_BYTES);
    let mut latency = LatencyHistogram::new();
    let begin = Instant::now();
    let positions = (0..file_bytes / SYNCED_WRITE_BYTES as u64)
        .cycle()
        .map(|block| block * SYNCED_WRITE_BYTES as u64);
    for position in positions {
        // At least one, however late this thread got its turn.
        if begin.elapsed() >= how_long && !latency.is_empty() {
            break;
        }
        (file.file().write_all_at(&buffer, position)).map_err(file.io("write"))?;
        let sync_begin = Instant::now();
        file.file().sync_data().map_err(file.io("fdatasync"))?;
        latency.record_ns(sync_begin.elapsed().as_nanos() as u64);
    }
    Ok(latency.summary())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn every_shape_of_transfer_is_measured_and_the_file_is_gone_afterwards() {
        let directory =
            std::env::temp_dir().join(format!("corelog-perf-disk-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let disk = measure(
            &directory,
            Bytes(4 << 20),
            Duration::from_millis(5),
            &mut |_| (),
        )
        .unwrap();
        assert_eq!((disk.writes.len(), disk.reads.len()), (9, 9));
        assert!(
            disk.writes
                .iter()
                .chain(&disk.reads)
                .all(|rate| rate.mb_per_s > 0.0),
            "{disk:?}"
        );
        assert!(disk.fdatasync.is_some());
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
        fs::remove_dir(&directory).unwrap();
    }

    #[test]
    fn a_directory_that_is_not_there_is_named() {
        let error = measure(
            Path::new("/nonexistent"),
            Bytes(1 << 20),
            Duration::ZERO,
            &mut |_| (),
        )
        .unwrap_err();
        assert!(error.to_string().contains("/nonexistent"), "{error}");
    }
}
