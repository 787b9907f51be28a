//! Receives whole frames into pooled buffers, with no copy of a large one.
//!
//! A large frame gets a buffer of its own and reads stop exactly at its end, so that the next one starts in a fresh buffer. Small
//! frames share a buffer; only the few bytes of the one cut short at its end move on. The buffer of a declared frame grows with what
//! has arrived, not with what was declared: doubling, up to the largest frame that this connection has delivered before at once.

use bytes::Bytes;
use smallvec::SmallVec;

use crate::io::net::{NetError, Reader};
use crate::io::recv::{RecvBuf, RecvPool};
use crate::model::limits::{RECV_BUF_BYTES_MIN, SHARED_BUFFER_FRAME_BYTES_MAX, WAKE_UP_BYTES_MAX};
use crate::protocol::frame::{self, FrameError, Next, SIZE_PREFIX_BYTES};

#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    #[error(transparent)]
    Net(#[from] NetError),
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("the connection ended inside a request")]
    EndInsideFrame,
}

pub type Frames = SmallVec<[Bytes; 4]>;

pub struct FrameReceiver {
    pool: RecvPool,
    buffer: RecvBuf,
    frame_bytes_max: usize,
    /// The largest frame that was received whole.
    proven_bytes: usize,
    /// The room for frames that share a buffer: more where reads fill it, less where they do not.
    shared_bytes: usize,
}

/// What one step of receiving led to.
pub enum Received {
    /// Bytes came, but no frame is whole yet.
    Part,
    /// Whole frames, without their length prefixes.
    Frames(Frames),
    /// The peer closed the connection between two frames.
    End,
}

impl FrameReceiver {
    pub fn new(pool: RecvPool, frame_bytes_max: usize) -> Self {
        let buffer = pool.take(RECV_BUF_BYTES_MIN);
        Self {
            pool,
            buffer,
            frame_bytes_max,
            proven_bytes: 0,
            shared_bytes: RECV_BUF_BYTES_MIN,
        }
    }

    /// Whether part of a frame has arrived.
    pub fn is_inside_frame(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// How much the frame under way lacks, as far as its length is known.
    pub fn missing_bytes(&self) -> usize {
        match frame::next(self.buffer.bytes(), self.frame_bytes_max) {
            Ok(Next::Partial { size_bytes }) => size_bytes - self.buffer.len(),
            _ => 0,
        }
    }

    /// Memory that the frame under way takes with the next step, if that is more than the smallest buffer, which every connection has; 0
    /// if it is not. The caller asks its quota first. A buffer that was taken for what came before counts once there is such a frame.
    pub fn wanted_bytes(&self) -> usize {
        let needed_bytes = self.buffer.len() + self.missing_bytes();
        let capacity = self.wanted_capacity().unwrap_or(self.buffer.capacity());
        match needed_bytes.min(capacity) {
            small if small <= RECV_BUF_BYTES_MIN => 0,
            bytes => bytes,
        }
    }

    /// Receives once. Cancelling it loses nothing.
    pub async fn receive(&mut self, reader: &mut Reader) -> Result<Received, ReceiveError> {
        if let Some(capacity) = self.wanted_capacity() {
            let mut larger = self.pool.take(capacity);
            larger.append(self.buffer.bytes());
            self.buffer = larger;
        }
        let own_bytes = match frame::next(self.buffer.bytes(), self.frame_bytes_max)? {
            Next::Partial { size_bytes } if size_bytes > SHARED_BUFFER_FRAME_BYTES_MAX => {
                Some(size_bytes - self.buffer.len())
            }
            _ => None,
        };
        let unfilled = self.buffer.unfilled();
        let room = unfilled.len().min(own_bytes.unwrap_or(self.shared_bytes));
        let received_bytes = reader.read(&mut unfilled[..room]).await?;
        if own_bytes.is_none() {
            self.shared_bytes = match received_bytes {
                all if all == room && self.takes_small_frames() => {
                    (self.shared_bytes * 2).min(WAKE_UP_BYTES_MAX)
                }
                few if few < self.shared_bytes / 4 => {
                    (self.shared_bytes / 2).max(RECV_BUF_BYTES_MIN)
                }
                _ => self.shared_bytes,
            };
        }
        if received_bytes == 0 {
            return if self.buffer.is_empty() {
                Ok(Received::End)
            } else {
                Err(ReceiveError::EndInsideFrame)
            };
        }
        self.buffer.advance(received_bytes);
        match frame::next(self.buffer.bytes(), self.frame_bytes_max)? {
            Next::NoLength | Next::Partial { .. } => Ok(Received::Part),
            Next::Whole { .. } => Ok(Received::Frames(self.take_frames()?)),
        }
    }

    /// A large frame is read up to its end: to take more before its length is known would be a copy later.
    fn takes_small_frames(&self) -> bool {
        self.proven_bytes <= SHARED_BUFFER_FRAME_BYTES_MAX
    }

    /// The capacity that the buffer must be exchanged for, if it must.
    fn wanted_capacity(&self) -> Option<usize> {
        let needed_bytes = match frame::next(self.buffer.bytes(), self.frame_bytes_max) {
            Ok(Next::Partial { size_bytes }) => size_bytes,
            _ => 0,
        };
        let is_full = self.buffer.len() == self.buffer.capacity();
        if needed_bytes <= self.buffer.capacity() && !is_full {
            return None;
        }
        let earned_bytes = (self.buffer.len() * 2)
            .max(self.proven_bytes)
            .max(RECV_BUF_BYTES_MIN);
        let capacity = needed_bytes.min(earned_bytes);
        (capacity > self.buffer.capacity()).then_some(capacity)
    }

    fn take_frames(&mut self) -> Result<Frames, ReceiveError> {
        // Nobody counts a buffer that waits for what may come. Without a large one the first bytes of a large frame are copied.
        let next_capacity = match self.proven_bytes.max(self.shared_bytes) {
            ahead if self.pool.has_room_ahead(ahead) => ahead,
            _ => RECV_BUF_BYTES_MIN,
        };
        let full = std::mem::replace(&mut self.buffer, self.pool.take(next_capacity)).freeze();
        let mut frames = Frames::new();
        let mut rest = full;
        while let Next::Whole { size_bytes } = frame::next(&rest, self.frame_bytes_max)? {
            let mut frame = rest.split_to(size_bytes);
            let _prefix = frame.split_to(SIZE_PREFIX_BYTES);
            self.proven_bytes = self.proven_bytes.max(size_bytes);
            frames.push(frame);
        }
        if rest.len() > self.buffer.capacity() {
            self.buffer = self.pool.take(rest.len());
        }
        self.buffer.append(&rest);
        Ok(frames)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver(buffer_bytes: usize) -> FrameReceiver {
        let mut receiver = FrameReceiver::new(RecvPool::new(0), 100 << 20);
        receiver.buffer = receiver.pool.take(buffer_bytes);
        receiver
    }

    #[test]
    fn a_large_frame_counts_as_soon_as_its_length_is_known_whatever_buffer_is_there() {
        const FRAME_BYTES: usize = 4 << 20;
        for (buffer_bytes, wanted_bytes) in [
            (RECV_BUF_BYTES_MIN, 0),
            (1 << 20, 1 << 20),
            (8 << 20, FRAME_BYTES),
        ] {
            let mut receiver = receiver(buffer_bytes);
            assert_eq!(receiver.wanted_bytes(), 0, "nothing has come");
            let length = (FRAME_BYTES - SIZE_PREFIX_BYTES) as i32;
            receiver.buffer.append(&length.to_be_bytes());
            assert_eq!(receiver.wanted_bytes(), wanted_bytes, "{buffer_bytes}");
        }
    }

    #[test]
    fn a_large_buffer_waits_for_the_next_frame_only_where_there_is_memory_for_it() {
        const FRAME_BYTES: usize = 1 << 20;
        for (free_bytes_max, next_bytes) in [(8 << 20, FRAME_BYTES), (0, RECV_BUF_BYTES_MIN)] {
            let mut receiver = FrameReceiver::new(RecvPool::new(free_bytes_max), 100 << 20);
            receiver.buffer = receiver.pool.take(FRAME_BYTES);
            receiver.proven_bytes = FRAME_BYTES;
            let length = (FRAME_BYTES - SIZE_PREFIX_BYTES) as i32;
            receiver.buffer.append(&length.to_be_bytes());
            let rest = receiver.missing_bytes();
            receiver.buffer.advance(rest);
            let frames = receiver.take_frames().unwrap();
            assert_eq!(frames.len(), 1);
            assert_eq!(receiver.buffer.capacity(), next_bytes);
        }
    }

    #[test]
    fn a_buffer_that_is_full_counts_as_what_it_grows_to() {
        let mut receiver = receiver(RECV_BUF_BYTES_MIN);
        receiver.buffer.append(&(1_i32 << 20).to_be_bytes());
        let rest = [0; RECV_BUF_BYTES_MIN - SIZE_PREFIX_BYTES];
        receiver.buffer.append(&rest);
        assert_eq!(receiver.wanted_bytes(), 2 * RECV_BUF_BYTES_MIN);
    }
}
