use std::fs;

use rand::RngExt;
use rand::rngs::StdRng;

use crate::writer::{Writer, log_name};

/// What a crash leaves of the segment files: everything below the recovery point, and behind it what had reached the disk.
#[derive(Debug)]
pub struct Crash {
    /// By segment; a segment whose file was not made yet is `None`.
    files: Vec<Option<Vec<u8>>>,
}

impl Crash {
    pub fn behind(writer: &Writer, random: &mut StdRng) -> Self {
        let point = writer.recovery_point;
        let stale: Vec<u8> = writer.segments[0].bytes.clone();
        let files = writer.segments.iter().enumerate().map(|(index, segment)| {
            if segment.base_offset < point.segment {
                return Some(segment.bytes.clone());
            }
            let is_behind = segment.base_offset > point.segment;
            if is_behind && random.random_bool(0.1) {
                return None;
            }
            let safe = if is_behind {
                0
            } else {
                point.position.0 as usize
            };
            let is_oldest = segment.base_offset == writer.segments[0].base_offset;
            let starts: Vec<usize> = writer
                .batches
                .iter()
                .filter(|batch| batch.segment == index)
                .map(|batch| batch.position)
                .collect();
            Some(damage(
                segment.bytes.clone(),
                &starts,
                safe,
                if is_oldest { &[] } else { &stale },
                random,
            ))
        });
        Self {
            files: files.collect(),
        }
    }

    pub fn write(&self, writer: &Writer) {
        for (file, segment) in self.files.iter().zip(&writer.segments) {
            let path = writer.dir().join(log_name(segment.base_offset));
            match file {
                Some(bytes) => fs::write(path, bytes).unwrap(),
                None => fs::remove_file(path).unwrap_or(()),
            }
        }
    }

    /// How many batches, from the first on, are on disk as they were written.
    pub fn intact_batches(&self, writer: &Writer) -> usize {
        let is_intact = |batch: &&crate::writer::WrittenBatch| {
            let range = batch.position..batch.position + batch.bytes.len();
            self.files[batch.segment]
                .as_ref()
                .and_then(|file| file.get(range))
                == Some(&batch.bytes[..])
        };
        writer.batches.iter().take_while(is_intact).count()
    }

    pub fn bytes(&self) -> usize {
        self.files.iter().flatten().map(Vec::len).sum()
    }
}

/// Damages what lies behind `safe`. `starts` are the batches' positions, `stale` is what a recycled file held before.
fn damage(
    mut bytes: Vec<u8>,
    starts: &[usize],
    safe: usize,
    stale: &[u8],
    random: &mut StdRng,
) -> Vec<u8> {
    let written = bytes.len();
    // The space behind is what the file had: nothing, zeros, or old batches.
    match random.random_range(0..3) {
        0 => {}
        1 => bytes.resize(written + random.random_range(1..20_000), 0),
        _ => bytes.extend(
            stale
                .iter()
                .skip(written)
                .take(random.random_range(1..20_000)),
        ),
    }
    if safe == written {
        return bytes;
    }
    let at = random.random_range(safe..written);
    match random.random_range(0..6) {
        0 => bytes.truncate(at),
        1 => bytes[at..].fill(0),
        2 => {
            let page = at.next_multiple_of(4096).min(written);
            let end = (page + 4096 * random.random_range(0..4)).min(bytes.len());
            bytes[page..end].fill(0);
        }
        3 => {
            let end = stale.len().min(bytes.len()).max(at);
            if at < end {
                bytes[at..end].copy_from_slice(&stale[at..end]);
            }
        }
        // The CRC does not cover the leader epoch: a higher one there is not seen, so the format cannot promise more.
        4 if starts
            .iter()
            .all(|start| !(start + 12..start + 16).contains(&at)) =>
        {
            bytes[at] = bytes[at].wrapping_add(random.random_range(1..=255));
        }
        _ => {}
    }
    bytes
}
