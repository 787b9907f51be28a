//! The appender: owns the open chunk at a log's tail and says what is to be written next.
//!
//! It never awaits. `append` copies a batch once, into the open chunk; `next_write` freezes what has gathered and hands it
//! out; `on_written` moves the written mark. What each step means for a batch:
//!
//! ```text
//! append returned       in memory only: lost by a kill
//! next_write returned   an O_DIRECT write of it is running
//! on_written passed it  every byte up to here is on the device's side of the page cache: survives a kill
//! ```
//!
//! Chunks and pages. A chunk starts on a page boundary of its segment. The last page of a write is padded with zeros unless it is
//! full; the bytes of that partial page are carried into the next chunk, which is that page alone and writes it again:
//!
//! ```text
//! pages     |   0    |   1    |   2    |   3    |
//! write 1   |aaaaaaaa|bbbbbbbb|ccc00000|                 c is the partial page
//! write 2                     |cccddddd|                 starts with the 3 bytes carried
//! write 3                              |eeee0000|
//! ```
//!
//! So write 2 waits for write 1, while write 3 goes at once, as does any that follows a chunk which ended on a page boundary. That is
//! the whole rule of which writes may overlap in time.
//!
//! Writes 2 and 3 are two because of ext4: page 2 was written before and page 3 was only allocated, and a write over both kinds takes
//! the file's lock for itself, which io_uring leaves to a thread of the kernel. Writes over one kind go straight to the device.

use std::collections::VecDeque;

use crate::io::chunk::{Chunk, ChunkPool, ChunkSlice, OpenChunk};
use crate::model::limits::{
    CHUNK_BYTES_MAX, CHUNK_BYTES_MIN, PAGE_BYTES, WRITES_IN_FLIGHT_PER_PARTITION_MAX,
};
use crate::model::{FilePosition, Offset};

/// A place in the log: the offset to come next, and where its batch starts or will start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogMark {
    pub segment: Offset,
    pub position: FilePosition,
    pub offset: Offset,
}

/// Names one write between `next_write` and `on_written`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteId(u64);

/// One write to be made: the padded chunk, to `position` of the segment that starts at `segment`.
pub struct TailWrite {
    pub id: WriteId,
    pub segment: Offset,
    pub position: FilePosition,
    pub chunk: Chunk,
}

/// A chunk that no append will touch again.
#[derive(Clone)]
pub struct FrozenChunk {
    pub segment: Offset,
    /// Where the chunk's first byte lies, on a page boundary.
    pub position: FilePosition,
    /// How many bytes at its start repeat the end of the chunk before it.
    pub carried_bytes: usize,
    pub chunk: Chunk,
    /// The offset behind the last batch that ends in this chunk or before it.
    end_offset: Offset,
}

impl FrozenChunk {
    fn end(&self) -> FilePosition {
        self.position.plus(self.chunk.len() as u64)
    }

    fn ends_inside_a_page(&self) -> bool {
        !self.chunk.len().is_multiple_of(PAGE_BYTES)
    }
}

/// The bytes of the page in which the log ends, needed again when that page is written again.
enum TailPage {
    /// The log ends on a page boundary.
    Full,
    InChunk(ChunkSlice),
    /// A copy, so that an idle log holds no chunk.
    Copied(Box<[u8]>),
}

impl TailPage {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Full => &[],
            Self::InChunk(slice) => slice,
            Self::Copied(bytes) => bytes,
        }
    }
}

struct OpenTail {
    chunk: OpenChunk,
    position: FilePosition,
    carried_bytes: usize,
}

struct InFlight {
    id: WriteId,
    segment: Offset,
    end: FilePosition,
    end_offset: Offset,
    ends_inside_a_page: bool,
    done: bool,
}

pub struct Appender {
    pool: ChunkPool,
    open: Option<OpenTail>,
    tail_page: TailPage,
    /// Frozen, not yet handed out; oldest first.
    queued: VecDeque<FrozenChunk>,
    /// Handed out, oldest first; one that is done waits here for those before it.
    in_flight: VecDeque<InFlight>,
    next_id: u64,
    end: LogMark,
    written: LogMark,
    last_chunk_bytes: usize,
}

impl Appender {
    /// Continues a log that ends at `end`; `tail_page` holds the bytes from the start of its last page up to there.
    pub fn new(pool: ChunkPool, end: LogMark, tail_page: Box<[u8]>) -> Self {
        assert_eq!(
            tail_page.len(),
            end.position.0 as usize % PAGE_BYTES,
            "the tail page must end where the log ends, at {}",
            end.position
        );
        let tail_page = if tail_page.is_empty() {
            TailPage::Full
        } else {
            TailPage::Copied(tail_page)
        };
        Self {
            pool,
            open: None,
            tail_page,
            queued: VecDeque::new(),
            in_flight: VecDeque::new(),
            next_id: 0,
            end,
            written: end,
            last_chunk_bytes: 0,
        }
    }

    /// The end of what was appended, written or not.
    pub fn end(&self) -> LogMark {
        self.end
    }

    /// The end of what is written without a gap.
    pub fn written(&self) -> LogMark {
        self.written
    }

    pub fn is_all_written(&self) -> bool {
        self.written.offset == self.end.offset
    }

    /// Copies one batch to the end: `header` then `body`. `next_offset` is the offset behind its last record. Chunks that
    /// became full are passed to `frozen`, in order.
    pub fn append(
        &mut self,
        header: &[u8],
        body: &[u8],
        next_offset: Offset,
        mut frozen: impl FnMut(FrozenChunk),
    ) {
        let batch_bytes = header.len() + body.len();
        for mut rest in [header, body] {
            while !rest.is_empty() {
                let open = match &mut self.open {
                    Some(open) => open,
                    none => none.insert(Self::open_tail(
                        &self.pool,
                        self.end.position,
                        std::mem::replace(&mut self.tail_page, TailPage::Full),
                        batch_bytes,
                        self.last_chunk_bytes,
                        !self.in_flight.is_empty(),
                    )),
                };
                let now = rest.len().min(open.chunk.remaining());
                open.chunk.append(&rest[..now]);
                rest = &rest[now..];
                self.end.position = self.end.position.plus(now as u64);
                if open.chunk.remaining() == 0 {
                    frozen(self.freeze_open());
                }
            }
        }
        self.end.offset = next_offset;
        // A chunk that filled up exactly with this batch was frozen before its end offset was known.
        if self.open.is_none()
            && let Some(last) = self.queued.back_mut()
        {
            last.end_offset = next_offset;
        }
    }

    /// Ends the segment: what comes next goes to position 0 of a segment that starts at the log's end.
    pub fn start_segment(&mut self, mut frozen: impl FnMut(FrozenChunk)) {
        if self.open.is_some() {
            frozen(self.freeze_open());
        }
        self.tail_page = TailPage::Full;
        self.end.segment = self.end.offset;
        self.end.position = FilePosition::ZERO;
        if self.in_flight.is_empty() && self.queued.is_empty() {
            self.written = self.end;
        }
    }

    /// The next write that may start now, if any. A chunk that is not yet full goes out only when no other such write is in
    /// flight: meanwhile it gathers, and one write takes the place of many.
    pub fn next_write(&mut self, mut frozen: impl FnMut(FrozenChunk)) -> Option<TailWrite> {
        if self.in_flight.iter().filter(|write| !write.done).count()
            >= WRITES_IN_FLIGHT_PER_PARTITION_MAX
        {
            return None;
        }
        if self.queued.is_empty() {
            let open = self.open.as_ref()?;
            let segment = self.end.segment;
            let tail_in_flight = self
                .in_flight
                .iter()
                .any(|write| !write.done && write.ends_inside_a_page && write.segment == segment);
            if tail_in_flight || open.chunk.len() == open.carried_bytes {
                return None;
            }
            frozen(self.freeze_open());
        }
        let next = self.queued.front().expect("a chunk was queued above");
        let shares_a_page = next.carried_bytes > 0
            && self.in_flight.iter().any(|write| {
                !write.done && write.segment == next.segment && write.end > next.position
            });
        if shares_a_page {
            return None;
        }
        let next = self.queued.pop_front()?;
        let id = WriteId(self.next_id);
        self.next_id += 1;
        self.in_flight.push_back(InFlight {
            id,
            segment: next.segment,
            end: next.end(),
            end_offset: next.end_offset,
            ends_inside_a_page: next.ends_inside_a_page(),
            done: false,
        });
        Some(TailWrite {
            id,
            segment: next.segment,
            position: next.position,
            chunk: next.chunk,
        })
    }

    /// Says that write `id` has completed with its full length. Returns the written mark if it moved.
    pub fn on_written(&mut self, id: WriteId) -> Option<LogMark> {
        let write = self.in_flight.iter_mut().find(|write| write.id == id);
        let write = write.unwrap_or_else(|| panic!("write {id:?} completed but was not in flight"));
        assert!(!write.done, "write {id:?} completed twice");
        write.done = true;
        let before = self.written;
        while let Some(first) = self.in_flight.front()
            && first.done
        {
            self.written = LogMark {
                segment: first.segment,
                position: first.end,
                offset: first.end_offset,
            };
            self.in_flight.pop_front();
        }
        if self.in_flight.is_empty() && self.queued.is_empty() && self.open.is_none() {
            self.written = self.end;
        }
        (self.written.offset > before.offset).then_some(self.written)
    }

    /// Lets go of the chunk that the tail page lies in; at most a page is copied. For a log that has gone idle.
    pub fn release_tail_page(&mut self) {
        if let TailPage::InChunk(slice) = &self.tail_page {
            self.tail_page = TailPage::Copied(slice.to_vec().into_boxed_slice());
        }
    }

    fn freeze_open(&mut self) -> FrozenChunk {
        let open = self.open.take().expect("a chunk is open");
        let chunk = open.chunk.freeze();
        if open.carried_bytes == 0 {
            self.last_chunk_bytes = chunk.len();
        }
        let partial_bytes = chunk.len() % PAGE_BYTES;
        self.tail_page = if partial_bytes == 0 {
            TailPage::Full
        } else {
            TailPage::InChunk(chunk.slice(chunk.len() - partial_bytes..chunk.len()))
        };
        let frozen = FrozenChunk {
            segment: self.end.segment,
            position: open.position,
            carried_bytes: open.carried_bytes,
            chunk,
            end_offset: self.end.offset,
        };
        self.queued.push_back(frozen.clone());
        frozen
    }

    fn open_tail(
        pool: &ChunkPool,
        end: FilePosition,
        tail_page: TailPage,
        batch_bytes: usize,
        last_chunk_bytes: usize,
        is_busy: bool,
    ) -> OpenTail {
        let carried = tail_page.bytes();
        let capacity_bytes = match carried.len() {
            0 => chunk_capacity_bytes(batch_bytes, last_chunk_bytes, is_busy),
            _ => PAGE_BYTES,
        };
        let mut chunk = pool.take(capacity_bytes);
        chunk.append(carried);
        OpenTail {
            chunk,
            position: FilePosition(end.0 - carried.len() as u64),
            carried_bytes: carried.len(),
        }
    }
}

/// How large a chunk to open. While a write is running more batches will gather, as many as last time or more; else the batch
/// is likely to be written alone, and a larger chunk would only hold memory.
fn chunk_capacity_bytes(needed_bytes: usize, last_chunk_bytes: usize, is_busy: bool) -> usize {
    let expected_bytes = if is_busy {
        needed_bytes.max(last_chunk_bytes * 2)
    } else {
        needed_bytes
    };
    expected_bytes
        .next_power_of_two()
        .clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn appender() -> Appender {
        let end = LogMark {
            segment: Offset(0),
            position: FilePosition(0),
            offset: Offset(0),
        };
        Appender::new(ChunkPool::new(64 << 20), end, Box::new([]))
    }

    /// Plays the disk: applies every write that may start, in a given order of completion, to a byte vector.
    struct Disk(Vec<u8>);

    impl Disk {
        fn apply(&mut self, write: &TailWrite) {
            let at = write.position.0 as usize;
            assert_eq!(at % PAGE_BYTES, 0, "writes start on a page boundary");
            let mut bytes = write.chunk.bytes().to_vec();
            bytes.resize(write.chunk.padded_len(), 0);
            assert_eq!(bytes.len() % PAGE_BYTES, 0, "writes are whole pages");
            self.0.resize(self.0.len().max(at + bytes.len()), 0);
            self.0[at..at + bytes.len()].copy_from_slice(&bytes);
        }
    }

    #[test]
    fn appends_during_a_tail_write_merge_into_the_next_write() {
        let mut appender = appender();
        appender.append(&[1; 61], &[1; 1000], Offset(1), drop);
        let first = appender
            .next_write(drop)
            .expect("the first batch goes out at once");
        for n in 2..10 {
            appender.append(&[n; 61], &[n; 1000], Offset(n.into()), drop);
            assert!(
                appender.next_write(drop).is_none(),
                "its page is being written"
            );
        }
        assert_eq!(
            appender.on_written(first.id).map(|mark| mark.offset),
            Some(Offset(1))
        );
        let page = appender
            .next_write(drop)
            .expect("the page that is written again");
        let merged = appender
            .next_write(drop)
            .expect("and the rest of the eight batches, together");
        assert_eq!((page.chunk.len(), page.position.0), (PAGE_BYTES, 0));
        assert_eq!(merged.chunk.len(), 9 * 1061 - PAGE_BYTES);
        assert_eq!(
            appender.on_written(merged.id),
            None,
            "the first of them begins in the page"
        );
        assert_eq!(
            appender.on_written(page.id).map(|mark| mark.offset),
            Some(Offset(9))
        );
        assert!(appender.is_all_written());
    }

    #[test]
    fn full_chunks_are_written_in_parallel_and_confirmed_in_order() {
        let mut appender = appender();
        appender.append(
            &[7; 61],
            &vec![7; 3 * CHUNK_BYTES_MAX - 61],
            Offset(1),
            drop,
        );
        let writes: Vec<_> = std::iter::from_fn(|| appender.next_write(drop)).collect();
        assert_eq!(writes.len(), 3);
        assert_eq!(
            appender.on_written(writes[2].id),
            None,
            "a gap is before it"
        );
        assert_eq!(
            appender.on_written(writes[0].id),
            None,
            "the batch is not whole yet"
        );
        let mark = appender.on_written(writes[1].id).expect("now it is");
        assert_eq!(
            (mark.offset, mark.position),
            (Offset(1), FilePosition(3 * CHUNK_BYTES_MAX as u64))
        );
    }

    #[test]
    fn a_new_segment_starts_at_position_zero() {
        let mut appender = appender();
        appender.append(&[1; 61], &[1; 10], Offset(5), drop);
        appender.start_segment(drop);
        appender.append(&[2; 61], &[2; 10], Offset(6), drop);
        let first = appender.next_write(drop).unwrap();
        let second = appender.next_write(drop).unwrap();
        assert_eq!((first.segment, second.segment), (Offset(0), Offset(5)));
        assert_eq!((second.position, second.chunk.len()), (FilePosition(0), 71));
        assert_eq!(appender.on_written(second.id), None);
        let mark = appender.on_written(first.id).unwrap();
        assert_eq!(
            mark,
            LogMark {
                segment: Offset(5),
                position: FilePosition(71),
                offset: Offset(6)
            }
        );
    }

    #[test]
    fn the_disk_holds_exactly_what_was_appended_whatever_the_order_of_completions() {
        use rand::{RngExt, SeedableRng};
        let seed = rand::random::<u64>();
        println!("seed {seed}");
        let mut rng = rand::rngs::StdRng::seed_from_u64(seed);
        for _ in 0..50 {
            let (mut appender, mut disk, mut sent) = (appender(), Disk(Vec::new()), Vec::new());
            let mut running: Vec<TailWrite> = Vec::new();
            for offset in 1..200 {
                let body = vec![rng.random::<u8>(); rng.random_range(1..60_000)];
                appender.append(&[offset as u8; 61], &body, Offset(offset), drop);
                sent.extend_from_slice(&[offset as u8; 61]);
                sent.extend_from_slice(&body);
                if rng.random_bool(0.1) {
                    appender.release_tail_page();
                }
                running.extend(std::iter::from_fn(|| appender.next_write(drop)));
                while !running.is_empty() && rng.random_bool(0.5) {
                    let write = running.swap_remove(rng.random_range(0..running.len()));
                    disk.apply(&write);
                    if let Some(mark) = appender.on_written(write.id) {
                        let end = mark.position.0 as usize;
                        assert!(
                            disk.0[..end] == sent[..end],
                            "a confirmed byte is not on disk"
                        );
                    }
                    running.extend(std::iter::from_fn(|| appender.next_write(drop)));
                }
            }
            while let Some(write) = running.pop() {
                disk.apply(&write);
                appender.on_written(write.id);
                running.extend(std::iter::from_fn(|| appender.next_write(drop)));
            }
            assert!(appender.is_all_written());
            assert!(disk.0[..sent.len()] == sent[..]);
        }
    }
}
