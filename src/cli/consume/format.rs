use std::io::{self, Write};
use std::str::FromStr;

use crate::record::records::Record;

use crate::client::metadata::TopicPartition;

/// What is printed of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordFormat(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Topic,
    Partition,
    Offset,
    TimestampMs,
    Key,
    Value,
    Headers,
}

impl FromStr for RecordFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            let piece = match letter {
                '\\' => {
                    plain.push(match letters.next() {
                        Some('n') => '\n',
                        Some('t') => '\t',
                        Some('0') => '\0',
                        Some('\\') => '\\',
                        other => return Err(unknown('\\', other)),
                    });
                    continue;
                }
                '%' => match letters.next() {
                    Some('t') => Piece::Topic,
                    Some('p') => Piece::Partition,
                    Some('o') => Piece::Offset,
                    Some('T') => Piece::TimestampMs,
                    Some('k') => Piece::Key,
                    Some('v' | 's') => Piece::Value,
                    Some('h') => Piece::Headers,
                    Some('%') => {
                        plain.push('%');
                        continue;
                    }
                    other => return Err(unknown('%', other)),
                },
                letter => {
                    plain.push(letter);
                    continue;
                }
            };
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(piece);
        }
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Ok(Self(pieces))
    }
}

fn unknown(mark: char, letter: Option<char>) -> String {
    match letter {
        Some(letter) => format!("'{mark}{letter}' means nothing here"),
        None => format!("a '{mark}' stands at the end"),
    }
}

impl RecordFormat {
    /// Keys and values are written as they are; what is null is written as `null`.
    pub(super) fn write(
        &self,
        null: &str,
        out: &mut impl Write,
        at: &TopicPartition,
        record: &Record<'_>,
    ) -> io::Result<()> {
        let null = null.as_bytes();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.write_all(text.as_bytes())?,
                Piece::Topic => out.write_all(at.topic.as_bytes())?,
                Piece::Partition => write!(out, "{}", at.partition)?,
                Piece::Offset => write!(out, "{}", record.offset)?,
                Piece::TimestampMs => write!(out, "{}", record.timestamp)?,
                Piece::Key => out.write_all(record.key.unwrap_or(null))?,
                Piece::Value => out.write_all(record.value.unwrap_or(null))?,
                Piece::Headers => {
                    for (index, (name, value)) in record.headers.iter().enumerate() {
                        if index > 0 {
                            out.write_all(b",")?;
                        }
                        out.write_all(name)?;
                        out.write_all(b"=")?;
                        out.write_all(value.unwrap_or(null))?;
                    }
                }
            }
        }
        out.write_all(b"\n")
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
    fn each_part_of_a_record_has_its_mark() {
        let headers = [("h", Some(&b"1"[..])), ("i", None)];
        let batch = BatchBuilder::new()
            .record_with_headers(TimestampMs(77), Some(b"key"), Some(b"value"), &headers)
            .build();
        let mut reader = RecordReader::new(&batch, InflateBounds::up_to(1024)).unwrap();
        let record = reader.next_record().unwrap().unwrap();
        let mut line = Vec::new();
        let format: RecordFormat = r"%t-%p@%o %T\t%k=%v [%h] 100%%".parse().unwrap();
        let at = TopicPartition::new("orders", 3);
        format.write("NULL", &mut line, &at, &record).unwrap();
        let expected = "orders-3@0 77\tkey=value [h=1,i=NULL] 100%\n";
        assert_eq!(String::from_utf8(line).unwrap(), expected);
    }

    #[test]
    fn an_unknown_mark_is_refused() {
        for wrong in ["%x", "%", "\\q", "a\\"] {
            assert!(wrong.parse::<RecordFormat>().is_err(), "{wrong}");
        }
    }
}
