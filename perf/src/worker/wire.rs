//! Frames between a coordinator and a worker: four bytes of length, big endian, then one message as JSON.
//!
//! Both sides send [`Alive`] every second, so that silence means that the other side is gone.

use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The largest frame that is sent or taken.
pub const FRAME_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The largest first frame of a connection: whoever is not of this protocol is found out by it.
pub const GREETING_BYTES_MAX: usize = 4096;

const ALIVE_INTERVAL: Duration = Duration::from_secs(1);

/// After such a silence the other side counts as gone.
pub const SILENCE_MAX: Duration = Duration::from_secs(5);

const PREFIX_BYTES: usize = 4;

#[derive(Debug, thiserror::Error)]
pub enum WireError {
    #[error("it closed the connection")]
    Closed,
    #[error("it was silent for {} s", SILENCE_MAX.as_secs())]
    Silent,
    #[error("the connection broke: {0}")]
    Io(io::Error),
    #[error("a frame of {got} bytes, where at most {max} are allowed")]
    TooLarge { got: usize, max: usize },
    #[error("what it sent is not understood: {0}")]
    Malformed(#[from] serde_json::Error),
}

impl From<io::Error> for WireError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Self::Silent,
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Io(error),
        }
    }
}

/// The two directions of a connection.
pub fn split(stream: TcpStream) -> io::Result<(FrameReader, FrameWriter)> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    stream.set_write_timeout(Some(SILENCE_MAX))?;
    let writer = FrameWriter(Arc::new(Mutex::new(stream.try_clone()?)));
    Ok((FrameReader(BufReader::new(stream)), writer))
}

pub struct FrameReader(BufReader<TcpStream>);

impl FrameReader {
    /// Waits for the next frame of at most `bytes_max`, and not longer than the other side may be silent.
    pub fn read<M: DeserializeOwned>(&mut self, bytes_max: usize) -> Result<M, WireError> {
        let mut prefix = [0; PREFIX_BYTES];
        self.0.read_exact(&mut prefix)?;
        let got = u32::from_be_bytes(prefix) as usize;
        if got > bytes_max {
            return Err(WireError::TooLarge {
                got,
                max: bytes_max,
            });
        }
        let mut frame = vec![0; got];
        self.0.read_exact(&mut frame)?;
        Ok(serde_json::from_slice(&frame)?)
    }
}

/// Frames of several threads do not mix.
#[derive(Clone)]
pub struct FrameWriter(Arc<Mutex<TcpStream>>);

impl FrameWriter {
    /// Ends the connection in both directions, whoever else holds it.
    pub fn close(&self) {
        let stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // It may have ended by itself.
        let _ = stream.shutdown(Shutdown::Both);
    }

    pub fn write(&self, message: &impl Serialize) -> Result<(), WireError> {
        let mut frame = vec![0; PREFIX_BYTES];
        serde_json::to_writer(&mut frame, message)?;
        let got = frame.len() - PREFIX_BYTES;
        if got > FRAME_BYTES_MAX {
            return Err(WireError::TooLarge {
                got,
                max: FRAME_BYTES_MAX,
            });
        }
        frame[..PREFIX_BYTES].copy_from_slice(&(got as u32).to_be_bytes());
        // A thread that panicked here left at most half a frame, which the other side finds out.
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(stream.write_all(&frame)?)
    }
}

/// Says that this side is there, until it is dropped.
pub struct Heartbeat {
    /// Its end ends the thread.
    _life: mpsc::Sender<()>,
}

impl Heartbeat {
    pub fn start<M: Serialize + Send + 'static>(
        writer: &FrameWriter,
        alive: M,
    ) -> io::Result<Self> {
        let writer = writer.clone();
        let (life, ended) = mpsc::channel::<()>();
        let body = move || {
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(ALIVE_INTERVAL) {
                // The reading side finds out that the other one is gone.
                let _ = writer.write(&alive);
            }
        };
        thread::Builder::new()
            .name("heartbeat".to_owned())
            .spawn(body)?;
        Ok(Self { _life: life })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let near =
            TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
        (near, listener.accept().expect("it connected").0)
    }

    #[test]
    fn a_frame_comes_out_as_it_went_in_and_an_end_is_told_from_it() {
        let (near, far) = pair();
        let (_, writer) = split(near).expect("a stream");
        let (mut reader, far_writer) = split(far).expect("a stream");
        writer.write(&vec![1, 2, 3]).expect("it is written");
        let read: Vec<u32> = reader.read(FRAME_BYTES_MAX).expect("a frame");
        assert_eq!(read, [1, 2, 3]);
        drop((reader, far_writer));
        let (mut reader, _) = split(pair().0).expect("a stream");
        assert!(matches!(
            reader.read::<u32>(FRAME_BYTES_MAX),
            Err(WireError::Closed)
        ));
    }

    #[test]
    fn a_frame_above_the_limit_is_refused_before_it_is_read() {
        let (mut near, far) = pair();
        let (mut reader, _writer) = split(far).expect("a stream");
        near.write_all(b"GET / HTTP/1.1\r\n")
            .expect("it is written");
        let greeting = reader.read::<u32>(GREETING_BYTES_MAX);
        assert!(matches!(
            greeting,
            Err(WireError::TooLarge {
                max: GREETING_BYTES_MAX,
                ..
            })
        ));
    }
}
