use std::io::{self, BufWriter, Stdout, Write};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

use crate::client::metadata::TopicPartition;
use crate::record::TimestampType;
use crate::record::records::Record;

use super::super::exit::CliError;
use super::format::RecordFormat;

/// How records are printed.
pub(super) enum Format {
    Json,
    Text {
        format: RecordFormat,
        /// What stands for a key, value or header that is null.
        null: String,
    },
}

/// Where records are printed.
pub(super) struct Output {
    out: BufWriter<Stdout>,
    format: Format,
    error: Option<io::Error>,
}

impl Output {
    pub(super) fn new(format: Format) -> Self {
        Self {
            out: BufWriter::new(io::stdout()),
            format,
            error: None,
        }
    }

    /// False: it is of no use to go on. `flush` says why.
    pub(super) fn write(
        &mut self,
        at: &TopicPartition,
        record: &Record<'_>,
        timestamp_type: TimestampType,
    ) -> bool {
        let written = match &self.format {
            Format::Text { format, null } => format.write(null, &mut self.out, at, record),
            Format::Json => writeln!(self.out, "{}", document(at, record, timestamp_type)),
        };
        self.error = written.err();
        self.error.is_none()
    }

    /// Whether the reader of a pipe has closed it, so that nobody sees what comes.
    pub(super) fn is_abandoned(&self) -> bool {
        let mut stdout = [PollFd::new(self.out.get_ref(), PollFlags::empty())];
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // What poll(2) always reports: the other end of a pipe is gone.
        poll(&mut stdout, Some(&at_once)).is_ok_and(|ready| ready > 0)
            && stdout[0].revents().contains(PollFlags::ERR)
    }

    /// Hands on all that was written. False: the reader has seen enough.
    pub(super) fn flush(&mut self) -> Result<bool, CliError> {
        let flushed = match self.error.take() {
            Some(error) => Err(error),
            None => self.out.flush(),
        };
        match flushed {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            Err(error) => Err(CliError::Output(error)),
        }
    }
}

fn document(at: &TopicPartition, record: &Record<'_>, timestamp_type: TimestampType) -> Value {
    let headers: Vec<Value> = record
        .headers
        .iter()
        .map(|(name, value)| json!({"name": text(Some(name)), "value": text(value)}))
        .collect();
    json!({
        "topic": at.topic,
        "partition": at.partition,
        "offset": record.offset.0,
        "timestamp_ms": record.timestamp.0,
        "timestamp_type": match timestamp_type {
            TimestampType::CreateTime => "CreateTime",
            TimestampType::LogAppendTime => "LogAppendTime",
        },
        "key": text(record.key),
        "value": text(record.value),
        "headers": headers,
    })
}

/// A string; where the bytes are no UTF-8, an object with them in base64, so that the two cannot be confused.
fn text(bytes: Option<&[u8]>) -> Value {
    match bytes.map(|bytes| (bytes, std::str::from_utf8(bytes))) {
        None => Value::Null,
        Some((_, Ok(text))) => Value::from(text),
        Some((bytes, Err(_))) => json!({"base64": BASE64_STANDARD.encode(bytes)}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TimestampMs;
    use crate::record::InflateBounds;
    use crate::record::encode::BatchBuilder;
    use crate::record::records::RecordReader;

    #[test]
    fn a_document_tells_null_text_and_bytes_apart() {
        let headers = [("h", None)];
        let batch = BatchBuilder::new()
            .record_with_headers(TimestampMs(5), None, Some(&[0xff, 0]), &headers)
            .build();
        let mut reader = RecordReader::new(&batch, InflateBounds::up_to(1024)).unwrap();
        let record = reader.next_record().unwrap().unwrap();
        let at = TopicPartition::new("t", 1);
        let expected = json!({
            "topic": "t", "partition": 1, "offset": 0,
            "timestamp_ms": 5, "timestamp_type": "CreateTime",
            "key": null, "value": {"base64": "/wA="},
            "headers": [{"name": "h", "value": null}],
        });
        assert_eq!(document(&at, &record, TimestampType::CreateTime), expected);
    }
}
