//! The tail cache: the newest frozen chunks of one log, still in memory because they have just been written.
//!
//! It holds a run of bytes without a gap up to the last frozen chunk. Readers that keep up never touch the disk. What it holds is
//! bounded per shard: `shard` drops the oldest chunks of the log that was read or written least recently.

use std::collections::VecDeque;

use crate::model::{FilePosition, Offset};
use crate::storage::appender::FrozenChunk;
use crate::storage::byte_run::ByteRun;

#[derive(Default)]
pub struct TailCache {
    chunks: VecDeque<FrozenChunk>,
    bytes: usize,
}

impl TailCache {
    pub fn push(&mut self, frozen: FrozenChunk) {
        self.bytes += frozen.chunk.capacity();
        self.chunks.push_back(frozen);
    }

    pub fn chunk_count(&self) -> usize {
        self.chunks.len()
    }

    /// Memory held, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Lets go of the oldest chunk; of a chunk that is still being written, the write keeps its own hold.
    pub fn drop_oldest(&mut self) -> usize {
        let Some(oldest) = self.chunks.pop_front() else {
            return 0;
        };
        self.bytes -= oldest.chunk.capacity();
        oldest.chunk.capacity()
    }

    pub fn clear(&mut self) {
        self.chunks.clear();
        self.bytes = 0;
    }

    /// The bytes of segment `segment` from `start` on, up to `end`, if memory holds them from the first one; without copying. Once
    /// there are `pieces_max` pieces nothing more is taken than what reaches to `must_reach`.
    pub fn read(
        &self,
        segment: Offset,
        start: FilePosition,
        must_reach: FilePosition,
        end: FilePosition,
        pieces_max: usize,
    ) -> Option<ByteRun> {
        let key = (segment, start);
        let first = self
            .chunks
            .partition_point(|chunk| (chunk.segment, chunk_end(chunk)) <= key);
        let mut run = ByteRun::starting_at(start);
        for frozen in self.chunks.range(first..) {
            let fresh = frozen.position.plus(frozen.carried_bytes as u64);
            let is_enough = run.piece_count() >= pieces_max && run.end() >= must_reach;
            if frozen.segment != segment || run.end() >= end || is_enough {
                break;
            }
            if fresh > run.end() {
                return None;
            }
            let from = (run.end().0 - frozen.position.0) as usize;
            let to = frozen.chunk.len().min((end.0 - frozen.position.0) as usize);
            run.push(bytes::Bytes::from(frozen.chunk.slice(from..to)));
        }
        (run.end() > start).then_some(run)
    }
}

fn chunk_end(frozen: &FrozenChunk) -> FilePosition {
    frozen.position.plus(frozen.chunk.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::chunk::ChunkPool;
    use crate::storage::appender::{Appender, LogMark};

    #[test]
    fn reads_any_range_without_repeating_carried_bytes() {
        let end = LogMark {
            segment: Offset(0),
            position: FilePosition(0),
            offset: Offset(0),
        };
        let mut appender = Appender::new(ChunkPool::new(64 << 20), end, Box::new([]));
        let mut cache = TailCache::default();
        let mut sent = Vec::new();
        for n in 0..300u16 {
            let body = vec![n as u8; 2500];
            appender.append(&[n as u8; 61], &body, Offset(n.into()), |frozen| {
                cache.push(frozen)
            });
            sent.extend_from_slice(&[n as u8; 61]);
            sent.extend_from_slice(&body);
            while let Some(write) = appender.next_write(|frozen| cache.push(frozen)) {
                appender.on_written(write.id);
            }
        }
        let read =
            |cache: &TailCache, segment, start: usize, must_reach: usize, end: usize, pieces| {
                let at = |position: usize| FilePosition(position as u64);
                cache.read(segment, at(start), at(must_reach), at(end), pieces)
            };
        for (start, end) in [
            (0, 10),
            (4095, 4097),
            (100_000, 400_000),
            (0, sent.len()),
            (sent.len() - 1, sent.len()),
        ] {
            let run = read(&cache, Offset(0), start, start, end, usize::MAX).unwrap();
            assert!(run.to_vec() == sent[start..end], "{start}..{end}");
        }
        let run = read(&cache, Offset(0), 0, 0, sent.len(), 3).unwrap();
        assert_eq!(run.piece_count(), 3);
        assert!(run.to_vec() == sent[..run.len()]);
        let run = read(&cache, Offset(0), 0, 100_000, sent.len(), 3).unwrap();
        assert!(run.piece_count() > 3 && run.len() >= 100_000 && run.len() < sent.len());
        assert!(cache.drop_oldest() > 0);
        let no_more = read(&cache, Offset(0), 0, 0, 10, usize::MAX);
        assert!(no_more.is_none(), "it is no longer in memory");
        let another = read(&cache, Offset(9), 0, 0, 10, usize::MAX);
        assert!(another.is_none(), "another segment");
    }
}
