//! One connection: takes all the frames that have arrived, answers them with one write.

use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::{Buf, Bytes, BytesMut};
use rustix::buffer::spare_capacity;

use super::Totals;
use super::answer::{self, AnswerError};
use super::topics::Topics;

/// One read takes as much as this.
const RECEIVE_BYTES: usize = 1024 * 1024;

/// Kafka's default of `socket.request.max.bytes`.
const FRAME_BYTES_MAX: usize = 100 * 1024 * 1024;

const SIZE_PREFIX_BYTES: usize = 4;

#[derive(Debug, thiserror::Error)]
pub enum SessionEnd {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("a frame of {0} bytes; at most {FRAME_BYTES_MAX} are taken")]
    FrameTooLarge(usize),
    #[error(transparent)]
    Answer(#[from] AnswerError),
}

pub struct Session {
    stream: TcpStream,
    topics: Arc<Topics>,
    totals: Arc<Totals>,
    /// What was received and not taken yet.
    received: Vec<u8>,
}

impl Session {
    pub fn new(stream: TcpStream, topics: Arc<Topics>, totals: Arc<Totals>) -> Self {
        Self {
            stream,
            topics,
            totals,
            received: Vec::with_capacity(RECEIVE_BYTES),
        }
    }

    /// Serves until the client goes away.
    pub fn serve(&mut self) -> Result<(), SessionEnd> {
        self.stream.set_nodelay(true)?;
        let mut answers = BytesMut::new();
        loop {
            let received_bytes =
                match rustix::io::read(&self.stream, spare_capacity(&mut self.received)) {
                    Ok(0) | Err(rustix::io::Errno::CONNRESET) => return Ok(()),
                    Ok(received_bytes) => received_bytes,
                    Err(rustix::io::Errno::INTR) => continue,
                    Err(error) => return Err(SessionEnd::Io(error.into())),
                };
            self.totals
                .received_bytes
                .fetch_add(received_bytes as u64, Relaxed);
            for frame in self.take_frames()? {
                self.totals.requests.fetch_add(1, Relaxed);
                answer::answer(frame, &self.topics, &self.totals, &mut answers)?;
            }
            self.stream.write_all(&answers)?;
            answers.clear();
        }
    }

    /// The whole frames, without their prefixes. What is left of one that is not whole is the start of a new buffer with room for it.
    fn take_frames(&mut self) -> Result<Vec<Bytes>, SessionEnd> {
        let mut frames = Vec::new();
        let first_bytes = size_of_frame(&self.received)?;
        if first_bytes.is_none_or(|size_bytes| size_bytes > self.received.len()) {
            let missing_bytes =
                first_bytes.map_or(0, |size_bytes| size_bytes - self.received.len());
            self.received.reserve(missing_bytes.max(1));
            return Ok(frames);
        }
        let mut rest = Bytes::from(std::mem::take(&mut self.received));
        let mut next_bytes = first_bytes;
        while let Some(size_bytes) = next_bytes
            && size_bytes <= rest.len()
        {
            let mut frame = rest.split_to(size_bytes);
            frame.advance(SIZE_PREFIX_BYTES);
            frames.push(frame);
            next_bytes = size_of_frame(&rest)?;
        }
        self.received = Vec::with_capacity(RECEIVE_BYTES.max(next_bytes.unwrap_or(0)));
        self.received.extend_from_slice(&rest);
        Ok(frames)
    }
}

/// The size of the frame at the front, its prefix included, once the prefix is there.
fn size_of_frame(received: &[u8]) -> Result<Option<usize>, SessionEnd> {
    let Some(prefix) = received.first_chunk::<SIZE_PREFIX_BYTES>() else {
        return Ok(None);
    };
    let size_bytes = SIZE_PREFIX_BYTES + u32::from_be_bytes(*prefix) as usize;
    if size_bytes > FRAME_BYTES_MAX {
        return Err(SessionEnd::FrameTooLarge(size_bytes));
    }
    Ok(Some(size_bytes))
}
