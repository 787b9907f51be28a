//! How a cleaned segment takes the place of those that it was made from.
//!
//! ```text
//! cleaned, not yet in place     going into place                    in place
//! 0.log                         0.log                               0.log  (the cleaned one)
//! 7.log                         7.log, or removed already
//! 0.log.cleaned         --->    0.log.swap                  --->
//! 0.index.cleaned               0.index.cleaned, or 0.index         0.index
//! ```
//!
//! The rename to `.swap` decides: before it a start removes what was cleaned, after it a start goes on with what is left to do. What
//! comes behind it can be done twice. So whatever moment the process dies at, the log is the old one or the cleaned one.

use std::io;
use std::path::{Path, PathBuf};

use tracing::{error, info};

use crate::io::fs;
use crate::model::{LeaderEpoch, Offset};
use crate::storage::atomic_file;
use crate::storage::fault_point;
use crate::storage::file_error::FileError;
use crate::storage::partition_files::PartitionFiles;
use crate::storage::scan::{ScanStart, ScanStop, scan_cleaned_file};
use crate::storage::segment_name::{CLEANED_SUFFIX, SWAP_SUFFIX, SegmentFileKind, SegmentFileName};

const KINDS: [SegmentFileKind; 3] = [
    SegmentFileKind::Log,
    SegmentFileKind::OffsetIndex,
    SegmentFileKind::TimeIndex,
];

/// One change of a directory. All but the decision may be taken again after a crash, and then change nothing more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// What was done before survives a power cut.
    SyncDir(PathBuf),
    /// The rename that decides: the file must be there.
    Decide { from: PathBuf, to: PathBuf },
    /// If the file is there; it takes the place of one of that name.
    Rename { from: PathBuf, to: PathBuf },
    /// If the file is there. Where the disk has no room for its name neither of the two stays: missing indexes are made anew.
    PlaceIndex { from: PathBuf, to: PathBuf },
    /// If the file is there.
    Remove(PathBuf),
}

impl Step {
    pub fn take(&self) -> Result<(), FileError> {
        match self {
            Self::SyncDir(dir) => atomic_file::sync_dir(dir),
            Self::Remove(path) => atomic_file::remove(path),
            Self::Decide { from, to } => {
                fault_point::growth(|| fs::rename(from, to)).map_err(FileError::of("rename", from))
            }
            Self::Rename { from, to } => {
                if_there(fault_point::change(|| fs::rename(from, to)), from)
            }
            Self::PlaceIndex { from, to } => {
                match if_there(fault_point::growth(|| fs::rename(from, to)), from) {
                    Err(error) if error.is_disk_full() => {
                        // The old one first: a start that finds the new one takes this step again.
                        atomic_file::remove(to)?;
                        atomic_file::remove(from)
                    }
                    placed => placed,
                }
            }
        }
    }
}

fn if_there(renamed: io::Result<()>, from: &Path) -> Result<(), FileError> {
    match renamed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(FileError::of("rename", from)(error))
        }
        _ => Ok(()),
    }
}

/// A cleaned segment, whose three files are written and synced, and the segments that it replaces.
#[derive(Clone, Debug)]
pub struct Swap {
    dir: PathBuf,
    base_offset: Offset,
    /// The segments behind the first one, which has the cleaned one's name.
    others: Vec<Offset>,
}

impl Swap {
    /// `replaced` are the base offsets of a run of segments, in order; the cleaned one has the first one's.
    pub fn new(dir: &Path, replaced: &[Offset]) -> Self {
        let (&base_offset, others) = replaced.split_first().expect("something is replaced");
        Self {
            dir: dir.to_owned(),
            base_offset,
            others: others.to_owned(),
        }
    }

    /// So many steps decide; they leave the files alone that are replaced.
    pub const DECIDING_STEPS: usize = 3;

    /// Whether a step that failed for want of space after `taken` steps has changed nothing: then what was cleaned can be given up.
    pub fn is_undecided(taken: usize) -> bool {
        taken < Self::DECIDING_STEPS - 1
    }

    /// Everything to be done, in order.
    pub fn steps(&self) -> Vec<Step> {
        let decision = Step::Decide {
            from: self.path(SegmentFileKind::Log, CLEANED_SUFFIX),
            to: self.path(SegmentFileKind::Log, SWAP_SUFFIX),
        };
        let sync = Step::SyncDir(self.dir.clone());
        let mut steps = vec![sync.clone(), decision, sync];
        steps.extend(self.steps_behind_decision());
        steps
    }

    fn steps_behind_decision(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for &other in &self.others {
            let files = KINDS.map(|kind| SegmentFileName::new(other, kind).to_string());
            steps.extend(files.map(|name| Step::Remove(self.dir.join(name))));
        }
        for kind in [SegmentFileKind::OffsetIndex, SegmentFileKind::TimeIndex] {
            steps.push(Step::PlaceIndex {
                from: self.path(kind, CLEANED_SUFFIX),
                to: self.path(kind, ""),
            });
        }
        // The log last, and apart: as long as it has the other name, all of this is done again.
        steps.push(Step::SyncDir(self.dir.clone()));
        steps.push(Step::Rename {
            from: self.path(SegmentFileKind::Log, SWAP_SUFFIX),
            to: self.path(SegmentFileKind::Log, ""),
        });
        steps.push(Step::SyncDir(self.dir.clone()));
        steps
    }

    /// Takes every step. Blocks. After an error nobody knows how far it came: a start finds out.
    pub fn run(&self) -> Result<(), FileError> {
        self.run_on(&mut 0, self.steps().len())
    }

    /// Takes the steps that come after the first `taken` ones, `until` as many are taken, and counts them there. Blocks. A step that failed
    /// for want of a descriptor has not begun, and may be taken again.
    pub fn run_on(&self, taken: &mut usize, until: usize) -> Result<(), FileError> {
        for step in self.steps()[..until].iter().skip(*taken) {
            step.take()?;
            *taken += 1;
        }
        Ok(())
    }

    fn path(&self, kind: SegmentFileKind, suffix: &str) -> PathBuf {
        cleaned_path(&self.dir, self.base_offset, kind, suffix)
    }
}

/// Removes what was cleaned and is not to take anything's place. Blocks.
pub fn remove_cleaned(dir: &Path, base_offset: Offset) -> Result<(), FileError> {
    KINDS.iter().try_for_each(|&kind| {
        atomic_file::remove(&cleaned_path(dir, base_offset, kind, CLEANED_SUFFIX))
    })
}

/// Where a cleaned segment's records are written.
pub fn cleaned_log_path(dir: &Path, base_offset: Offset) -> PathBuf {
    cleaned_path(dir, base_offset, SegmentFileKind::Log, CLEANED_SUFFIX)
}

fn cleaned_path(dir: &Path, base_offset: Offset, kind: SegmentFileKind, suffix: &str) -> PathBuf {
    let name = SegmentFileName::new(base_offset, kind);
    dir.join(format!("{name}{suffix}"))
}

/// Finishes, at a start, the swap that a crash interrupted behind its decision.
pub fn finish_interrupted(dir: &Path) -> Result<(), FileError> {
    for entry in fs::read_dir(dir).map_err(FileError::of("list", dir))? {
        let entry = entry.map_err(FileError::of("list", dir))?;
        let name = entry.file_name();
        let segment = name
            .to_str()
            .and_then(|name| name.strip_suffix(SWAP_SUFFIX))
            .and_then(SegmentFileName::parse)
            .filter(|name| name.kind == SegmentFileKind::Log);
        if let Some(segment) = segment {
            finish(dir, segment.base_offset, &entry.path())?;
        }
    }
    Ok(())
}

fn finish(dir: &Path, base_offset: Offset, path: &Path) -> Result<(), FileError> {
    // A segment keeps its last batch, so its own end tells which ones it replaces.
    let start = ScanStart::of_segment(base_offset, LeaderEpoch::UNKNOWN);
    let end = scan_cleaned_file(path, start, None, |_, _| {})?;
    if end.stop != ScanStop::EndOfFile {
        error!(path = %path.display(), position = %end.position, stop = ?end.stop, "a cleaned segment is damaged");
    }
    let files = PartitionFiles::list(dir)?;
    let mut replaced = vec![base_offset];
    let others = files.segments.range(base_offset.plus(1)..);
    replaced.extend(
        others
            .map(|(&other, _)| other)
            .take_while(|&other| other < end.next_offset),
    );
    info!(path = %path.display(), replaced = replaced.len(), "a cleaned segment is put into its place");
    let swap = Swap::new(dir, &replaced);
    swap.steps_behind_decision().iter().try_for_each(Step::take)
}
