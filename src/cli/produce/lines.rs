use std::io::{self, BufRead, Read};
use std::sync::mpsc::{Receiver, RecvError, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use crate::model::limits::{PRODUCE_LINE_BYTES_MAX, PRODUCE_LINES_AHEAD_MAX};

/// Lines as they come, read on a thread of their own, so that a record does not wait for the line behind it.
pub(super) struct Lines(Receiver<io::Result<Vec<u8>>>);

impl Lines {
    pub(super) fn read(mut source: impl BufRead + Send + 'static) -> Self {
        let (send, lines) = sync_channel(PRODUCE_LINES_AHEAD_MAX);
        thread::spawn(move || {
            loop {
                let line = read_line(&mut source);
                let is_last = !matches!(line, Ok(Some(_)));
                let Some(line) = line.transpose() else {
                    return;
                };
                // Nobody listens any more where sending has failed.
                if send.send(line).is_err() || is_last {
                    return;
                }
            }
        });
        Self(lines)
    }

    /// The error: there are no more.
    pub(super) fn next(&self) -> Result<io::Result<Vec<u8>>, RecvError> {
        self.0.recv()
    }

    pub(super) fn next_within(
        &self,
        wait: Duration,
    ) -> Result<io::Result<Vec<u8>>, RecvTimeoutError> {
        self.0.recv_timeout(wait)
    }
}

fn read_line(source: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    source
        .take(PRODUCE_LINE_BYTES_MAX as u64 + 1)
        .read_until(b'\n', &mut line)?;
    match line.last() {
        None => return Ok(None),
        Some(b'\n') => _ = line.pop(),
        Some(_) => {}
    }
    match line.len() > PRODUCE_LINE_BYTES_MAX {
        true => Err(io::Error::other(format!(
            "it has more than {PRODUCE_LINE_BYTES_MAX} bytes"
        ))),
        false => Ok(Some(line)),
    }
}

/// How a line is a record.
#[derive(Clone, Debug, Default)]
pub(super) struct LineFormat {
    pub(super) key_separator: Option<String>,
    pub(super) null_marker: Option<String>,
}

/// Key and value of a record.
pub(super) type KeyAndValue<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

impl LineFormat {
    /// Cuts at the first separator.
    pub(super) fn split<'a>(&self, line: &'a [u8]) -> Result<KeyAndValue<'a>, String> {
        let (key, value) = match &self.key_separator {
            None => (None, line),
            Some(separator) => {
                let at = line
                    .windows(separator.len())
                    .position(|window| window == separator.as_bytes())
                    .ok_or_else(|| format!("has no '{separator}' behind a key"))?;
                (Some(&line[..at]), &line[at + separator.len()..])
            }
        };
        let is_null = self
            .null_marker
            .as_ref()
            .is_some_and(|marker| marker.as_bytes() == value);
        Ok((key, (!is_null).then_some(value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_at_the_first_separator_and_the_null_marker_is_no_value() {
        let format = LineFormat {
            key_separator: Some("::".to_owned()),
            null_marker: Some("NULL".to_owned()),
        };
        let split = |line: &'static str| format.split(line.as_bytes());
        assert_eq!(split("k::v::w"), Ok((Some(&b"k"[..]), Some(&b"v::w"[..]))));
        assert_eq!(split("::"), Ok((Some(&b""[..]), Some(&b""[..]))));
        assert_eq!(split("k::NULL"), Ok((Some(&b"k"[..]), None)));
        assert!(split("k:v").is_err());
        let plain = LineFormat::default().split(b"NULL");
        assert_eq!(plain, Ok((None, Some(&b"NULL"[..]))));
    }

    #[test]
    fn the_last_line_may_lack_its_end_and_empty_lines_are_lines() {
        let lines = Lines::read(io::Cursor::new(b"a\n\nb".to_vec()));
        let mut read = Vec::new();
        while let Ok(line) = lines.next() {
            read.push(String::from_utf8(line.unwrap()).unwrap());
        }
        assert_eq!(read, ["a", "", "b"]);
    }
}
