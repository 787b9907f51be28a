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

    /// How large the buffer must be for the next step, if it must grow; the caller asks its quota first.
    pub fn growth_bytes(&self) -> usize {
        match self.wanted_capacity() {
            Some(capacity) => capacity - self.buffer.capacity(),
            None => 0,
        }
    }

    /// Memory that the unfinished frame holds.
    pub fn held_bytes(&self) -> usize {
        self.buffer.capacity()
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
        let next_capacity = self.proven_bytes.max(self.shared_bytes);
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
