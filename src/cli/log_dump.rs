use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::model::limits::INDEX_FILE_BYTES_MAX;
use crate::model::{FilePosition, Offset};
use crate::record::records::{Record, RecordReader};
use crate::record::{InflateBounds, RecordBatchHeader, TimestampType};
use crate::storage::atomic_file;
use crate::storage::file_error::FileError;
use crate::storage::offset_index::{IndexDamage, OffsetIndex, SegmentEnd};
use crate::storage::partition_files::PartitionFiles;
use crate::storage::segment_name::{SegmentFileKind, SegmentFileName};
use crate::storage::segment_walk::{Found, SegmentWalk};
use crate::storage::time_index::TimeIndex;

use super::log_files::{LogFiles, LogFilesError};

/// How much of a key or value is shown in a line of text; JSON has all of it.
const SHOWN_BYTES_MAX: usize = 80;

#[derive(Clone, Copy, Debug)]
pub(super) struct DumpOptions {
    /// One JSON document a line.
    pub json: bool,
    /// Also each record of each batch.
    pub records: bool,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum DumpError {
    #[error(transparent)]
    Files(#[from] LogFilesError),
    #[error("{}: {damage}", path.display())]
    Index { path: PathBuf, damage: IndexDamage },
    #[error("the result cannot be written: {0}")]
    Output(#[source] io::Error),
}

impl From<FileError> for DumpError {
    fn from(error: FileError) -> Self {
        Self::Files(error.into())
    }
}

/// One batch of a segment.
#[derive(Serialize)]
struct BatchLine<'a> {
    path: &'a str,
    position: u64,
    size_bytes: usize,
    base_offset: i64,
    last_offset: i64,
    record_count: i32,
    leader_epoch: i32,
    codec: &'static str,
    timestamp_type: &'static str,
    max_timestamp: i64,
    producer_id: i64,
    producer_epoch: i16,
    base_sequence: i32,
    is_transactional: bool,
    is_control: bool,
    /// From when on compaction may drop its tombstones.
    #[serde(skip_serializing_if = "Option::is_none")]
    delete_horizon: Option<i64>,
    crc: u32,
    crc_fits: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    records: Option<Vec<RecordLine>>,
    /// Why not all records can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    records_problem: Option<String>,
}

#[derive(Serialize)]
struct RecordLine {
    offset: i64,
    timestamp: i64,
    key: Option<Bytes>,
    value: Option<Bytes>,
    headers: Vec<(Bytes, Option<Bytes>)>,
}

/// Bytes as text where they are text, else as hex digits.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Bytes {
    Text(String),
    Hex(String),
}

/// What stands where no batch is.
#[derive(Serialize)]
struct NoBatchLine<'a> {
    path: &'a str,
    position: u64,
    problem: Option<String>,
    reserved_bytes: Option<u64>,
}

#[derive(Serialize)]
struct OffsetEntryLine<'a> {
    path: &'a str,
    offset: i64,
    position: u64,
}

#[derive(Serialize)]
struct TimeEntryLine<'a> {
    path: &'a str,
    timestamp: i64,
    offset: i64,
}

/// Shows the segments at `path`, or the one index file there; false if something in them is no batch, or a damaged one.
pub(super) fn dump(
    path: &Path,
    options: DumpOptions,
    out: &mut impl Write,
) -> Result<bool, DumpError> {
    let mut dump = Dump {
        options,
        out,
        all_good: true,
    };
    match LogFiles::at(path)? {
        LogFiles::Segment { dir, name } => match name.kind {
            SegmentFileKind::OffsetIndex => dump.offset_index(path, name)?,
            SegmentFileKind::TimeIndex => dump.time_index(path, name)?,
            SegmentFileKind::Log | SegmentFileKind::Producers => {
                dump.segment(&dir.join(name.to_string()))?
            }
        },
        LogFiles::Partitions(dirs) => {
            for dir in dirs {
                for &base_offset in PartitionFiles::list(&dir)?.segments.keys() {
                    dump.segment(&dir.join(
                        SegmentFileName::new(base_offset, SegmentFileKind::Log).to_string(),
                    ))?;
                }
            }
        }
    }
    Ok(dump.all_good)
}

struct Dump<'a, Out> {
    options: DumpOptions,
    out: &'a mut Out,
    all_good: bool,
}

impl<Out: Write> Dump<'_, Out> {
    fn segment(&mut self, path: &Path) -> Result<(), DumpError> {
        let shown_path = path.display().to_string();
        self.title(&shown_path)?;
        let mut walk = SegmentWalk::open(path)?;
        while let Some((position, found)) = walk.read_next()? {
            match found {
                Found::Batch { header, crc } => {
                    let batch = self.options.records.then(|| walk.batch());
                    let line = BatchLine::of(&shown_path, position, &header, crc.is_none(), batch);
                    self.all_good &= line.crc_fits && line.records_problem.is_none();
                    self.line(&line, BatchLine::text)?;
                }
                Found::ReservedSpace => {
                    let reserved_bytes = Some(walk.size_bytes() - position.0);
                    let path = &shown_path;
                    let line = NoBatchLine {
                        path,
                        position: position.0,
                        problem: None,
                        reserved_bytes,
                    };
                    self.line(&line, NoBatchLine::text)?;
                }
                Found::NoBatch(bad_batch) => {
                    self.all_good = false;
                    let problem = Some(bad_batch.to_string());
                    let path = &shown_path;
                    let line = NoBatchLine {
                        path,
                        position: position.0,
                        problem,
                        reserved_bytes: None,
                    };
                    self.line(&line, NoBatchLine::text)?;
                }
            }
        }
        Ok(())
    }

    fn offset_index(&mut self, path: &Path, name: SegmentFileName) -> Result<(), DumpError> {
        let shown_path = path.display().to_string();
        self.title(&shown_path)?;
        let index = OffsetIndex::decode(name.base_offset, &read_index(path)?, ANY_END);
        for entry in index
            .map_err(|damage| DumpError::Index {
                path: path.to_owned(),
                damage,
            })?
            .iter()
        {
            let line = OffsetEntryLine {
                path: &shown_path,
                offset: entry.offset.0,
                position: entry.position.0,
            };
            self.line(&line, |line| {
                format!("offset {} position {}", line.offset, line.position)
            })?;
        }
        Ok(())
    }

    fn time_index(&mut self, path: &Path, name: SegmentFileName) -> Result<(), DumpError> {
        let shown_path = path.display().to_string();
        self.title(&shown_path)?;
        let index = TimeIndex::decode(name.base_offset, &read_index(path)?, ANY_END);
        for entry in index
            .map_err(|damage| DumpError::Index {
                path: path.to_owned(),
                damage,
            })?
            .iter()
        {
            let line = TimeEntryLine {
                path: &shown_path,
                timestamp: entry.timestamp.0,
                offset: entry.offset.0,
            };
            self.line(&line, |line| {
                format!("timestamp {} offset {}", line.timestamp, line.offset)
            })?;
        }
        Ok(())
    }

    /// A file's name above what is in it; each line of JSON has it.
    fn title(&mut self, path: &str) -> Result<(), DumpError> {
        if self.options.json {
            Ok(())
        } else {
            writeln!(self.out, "{path}").map_err(DumpError::Output)
        }
    }

    fn line<Line: Serialize>(
        &mut self,
        line: &Line,
        text: impl Fn(&Line) -> String,
    ) -> Result<(), DumpError> {
        let written = if self.options.json {
            serde_json::to_writer(&mut *self.out, line)
                .map_err(io::Error::from)
                .and_then(|()| writeln!(self.out))
        } else {
            writeln!(self.out, "{}", text(line))
        };
        written.map_err(DumpError::Output)
    }
}

/// Where a segment ends is not asked here.
const ANY_END: SegmentEnd = SegmentEnd {
    position: FilePosition(u64::MAX),
    offset: Offset(i64::MAX),
};

fn read_index(path: &Path) -> Result<Vec<u8>, DumpError> {
    let damage = IndexDamage::Missing;
    atomic_file::read(path, INDEX_FILE_BYTES_MAX)?.ok_or(DumpError::Index {
        path: path.to_owned(),
        damage,
    })
}

impl<'a> BatchLine<'a> {
    fn of(
        path: &'a str,
        position: FilePosition,
        header: &RecordBatchHeader,
        crc_fits: bool,
        batch: Option<&[u8]>,
    ) -> Self {
        let (records, records_problem) = batch.map_or((None, None), |batch| {
            let mut records = Vec::new();
            let problem = read_records(batch, &mut records);
            (Some(records), problem)
        });
        Self {
            path,
            position: position.0,
            size_bytes: header.size_bytes(),
            base_offset: header.base_offset.0,
            last_offset: header.last_offset().0,
            record_count: header.record_count,
            leader_epoch: header.leader_epoch.0,
            codec: header
                .attributes
                .codec()
                .map_or("unknown", |codec| codec.name()),
            timestamp_type: match header.attributes.timestamp_type() {
                TimestampType::CreateTime => "CreateTime",
                TimestampType::LogAppendTime => "LogAppendTime",
            },
            max_timestamp: header.max_timestamp.0,
            producer_id: header.producer_id.0,
            producer_epoch: header.producer_epoch.0,
            base_sequence: header.base_sequence.0,
            is_transactional: header.attributes.is_transactional(),
            is_control: header.attributes.is_control(),
            delete_horizon: header.delete_horizon().map(|horizon| horizon.0),
            crc: header.crc,
            crc_fits,
            records,
            records_problem,
        }
    }

    fn text(&self) -> String {
        let Self {
            position,
            size_bytes,
            base_offset,
            last_offset,
            record_count,
            leader_epoch,
            codec,
            ..
        } = self;
        let mut text = format!(
            "offsets {base_offset}..{last_offset} position {position} bytes {size_bytes} records {record_count} \
             epoch {leader_epoch} codec {codec} {} {}",
            self.timestamp_type, self.max_timestamp
        );
        if self.producer_id >= 0 {
            text += &format!(
                " producer {} epoch {} sequence {}",
                self.producer_id, self.producer_epoch, self.base_sequence
            );
        }
        if let Some(horizon) = self.delete_horizon {
            text += &format!(" delete horizon {horizon}");
        }
        for (is_set, flag) in [
            (self.is_transactional, " transactional"),
            (self.is_control, " control"),
        ] {
            text += if is_set { flag } else { "" };
        }
        text += &format!(
            " crc {:08x} {}",
            self.crc,
            if self.crc_fits {
                "fits"
            } else {
                "DOES NOT FIT"
            }
        );
        for record in self.records.iter().flatten() {
            text += &record.text();
        }
        if let Some(problem) = &self.records_problem {
            text += &format!("\n  PROBLEM {problem}");
        }
        text
    }
}

/// Reads as many records as can be read; what stopped it, if something did.
fn read_records(batch: &[u8], records: &mut Vec<RecordLine>) -> Option<String> {
    let mut reader = match RecordReader::new(batch, InflateBounds::WIDEST) {
        Ok(reader) => reader,
        Err(error) => return Some(error.to_string()),
    };
    loop {
        match reader.next_record() {
            Ok(Some(record)) => records.push(RecordLine::of(&record)),
            Ok(None) => return None,
            Err(error) => return Some(error.to_string()),
        }
    }
}

impl RecordLine {
    fn of(record: &Record<'_>) -> Self {
        Self {
            offset: record.offset.0,
            timestamp: record.timestamp.0,
            key: record.key.map(Bytes::of),
            value: record.value.map(Bytes::of),
            headers: record
                .headers
                .iter()
                .map(|(name, value)| (Bytes::of(name), value.map(Bytes::of)))
                .collect(),
        }
    }

    fn text(&self) -> String {
        let shown = |bytes: &Option<Bytes>| bytes.as_ref().map_or("null".into(), Bytes::text);
        let mut text = format!(
            "\n  offset {} timestamp {} key {} value {}",
            self.offset,
            self.timestamp,
            shown(&self.key),
            shown(&self.value)
        );
        for (name, value) in &self.headers {
            text += &format!(" header {}={}", name.text(), shown(value));
        }
        text
    }
}

impl Bytes {
    fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Hex(bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
        }
    }

    /// In one line, with its end left out where it is long.
    fn text(&self) -> String {
        let (open, content, close) = match self {
            Self::Text(text) => ("\"", text.escape_debug().to_string(), "\""),
            Self::Hex(digits) => ("x'", digits.clone(), "'"),
        };
        match content.char_indices().nth(SHOWN_BYTES_MAX) {
            None => format!("{open}{content}{close}"),
            Some((cut, _)) => format!("{open}{}{close}...", &content[..cut]),
        }
    }
}

impl NoBatchLine<'_> {
    fn text(&self) -> String {
        let Self {
            position,
            problem,
            reserved_bytes,
            ..
        } = self;
        match (problem, reserved_bytes) {
            (Some(problem), _) => format!("position {position} PROBLEM no batch: {problem}"),
            (None, reserved) => format!(
                "position {position} reserved bytes {}",
                reserved.unwrap_or(0)
            ),
        }
    }
}
