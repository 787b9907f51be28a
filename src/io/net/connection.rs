//! A connection as two halves for two tasks of one executor.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::pin::Pin;
use std::rc::{Rc, Weak};

use futures_lite::io::{AsyncRead, AsyncWrite};
use glommio::net::TcpStream;
use socket2::SockRef;

use super::error::{ConnectionOperation, NetError, io_error};
use crate::io::executor::yield_if_needed;
use crate::io::recv::RecvBuf;

/// The most slices that one sendmsg takes (the kernel's UIO_MAXIOV).
const SLICES_PER_CALL_MAX: usize = 1024;

/// A connection of one executor. Dropping both halves closes it.
pub struct Connection {
    stream: Rc<Stream>,
}

struct Stream {
    /// Borrowed only during a poll, never over an await; reading and writing keep their wakers apart.
    tcp: RefCell<TcpStream>,
    descriptor: RawFd,
    peer: SocketAddr,
}

impl Drop for Stream {
    /// The end of the stream reaches the peer now. Closing alone would wait until the ring has let go of its polls.
    fn drop(&mut self) {
        self.shutdown(Shutdown::Both);
    }
}

impl Stream {
    fn shutdown(&self, how: Shutdown) {
        // SAFETY: the descriptor is open as long as `tcp`, which drops after this.
        let descriptor = unsafe { BorrowedFd::borrow_raw(self.descriptor) };
        // Fails only where the peer has done the same before.
        let _not_connected = SockRef::from(&descriptor).shutdown(how);
    }

    fn error(&self, operation: ConnectionOperation, source: io::Error) -> NetError {
        NetError::Connection {
            operation,
            peer: self.peer,
            source,
        }
    }
}

impl Connection {
    pub(super) fn new(socket: OwnedFd, peer: SocketAddr) -> Self {
        let descriptor = socket.into_raw_fd();
        // SAFETY: the descriptor is an open socket whose ownership moves to the stream.
        let tcp = unsafe { TcpStream::from_raw_fd(descriptor) };
        Self {
            stream: Rc::new(Stream {
                tcp: RefCell::new(tcp),
                descriptor,
                peer,
            }),
        }
    }

    /// Connects to `peer`.
    pub async fn connect(peer: SocketAddr) -> Result<Self, NetError> {
        let failed = |source| NetError::Connection {
            operation: ConnectionOperation::Connect,
            peer,
            source,
        };
        let tcp = TcpStream::connect(peer)
            .await
            .map_err(|error| failed(io_error(error)))?;
        tcp.set_nodelay(true)
            .map_err(|error| failed(io_error(error)))?;
        let descriptor = tcp.as_raw_fd();
        Ok(Self {
            stream: Rc::new(Stream {
                tcp: RefCell::new(tcp),
                descriptor,
                peer,
            }),
        })
    }

    pub fn peer_addr(&self) -> SocketAddr {
        self.stream.peer
    }

    pub fn split(self) -> (Reader, Writer) {
        (
            Reader {
                stream: Rc::clone(&self.stream),
            },
            Writer {
                stream: self.stream,
            },
        )
    }

    /// What decides how much must arrive before the reading half is woken.
    pub fn low_water_mark(&self) -> LowWaterMark {
        LowWaterMark {
            stream: Rc::downgrade(&self.stream),
            mark_bytes: Cell::new(1),
        }
    }

    /// A handle that can end the connection from a third task.
    pub fn closer(&self) -> Closer {
        Closer {
            stream: Rc::downgrade(&self.stream),
        }
    }
}

/// The half that receives.
pub struct Reader {
    stream: Rc<Stream>,
}

impl Reader {
    pub fn peer_addr(&self) -> SocketAddr {
        self.stream.peer
    }

    /// Waits for bytes and copies as many as there are and fit; 0 is the end of the stream. Large buffers are cheap:
    /// what has arrived is taken by one call, and each call that empties the socket costs a poll. Panics if `buffer`
    /// is empty.
    pub async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, NetError> {
        assert!(
            !buffer.is_empty(),
            "a read into nothing would look like the end of the stream"
        );
        let stream = &*self.stream;
        let received = poll_fn(|cx| {
            let mut tcp = stream.tcp.borrow_mut();
            Pin::new(&mut *tcp).poll_read(cx, buffer)
        });
        received
            .await
            .map_err(|source| stream.error(ConnectionOperation::Read, source))
    }

    /// Receives behind what the buffer holds. Panics if it is full.
    pub async fn read_into(&mut self, buffer: &mut RecvBuf) -> Result<usize, NetError> {
        let received_bytes = self.read(buffer.unfilled()).await?;
        buffer.advance(received_bytes);
        Ok(received_bytes)
    }
}

/// The half that sends.
pub struct Writer {
    stream: Rc<Stream>,
}

impl Writer {
    pub fn peer_addr(&self) -> SocketAddr {
        self.stream.peer
    }

    /// Sends all slices one after the other, without joining them first. `parts` is used up: where it stands after an
    /// error is where sending stopped. `progressed` is called whenever the peer has made room for some of it.
    pub async fn write_all(
        &mut self,
        mut parts: &mut [IoSlice<'_>],
        progressed: impl Fn(),
    ) -> Result<(), NetError> {
        let stream = &*self.stream;
        let failed = |source| stream.error(ConnectionOperation::Write, source);
        IoSlice::advance_slices(&mut parts, 0);
        while !parts.is_empty() {
            let sent_bytes = match send_now(stream.descriptor, parts) {
                Ok(sent_bytes) => sent_bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // glommio's own write of the first slice does nothing either until there is room, and waits for it.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let sent = poll_fn(|cx| {
                        let mut tcp = stream.tcp.borrow_mut();
                        Pin::new(&mut *tcp).poll_write(cx, &parts[0])
                    });
                    sent.await.map_err(failed)?
                }
                Err(error) => return Err(failed(error)),
            };
            IoSlice::advance_slices(&mut parts, sent_bytes);
            progressed();
            // A peer that reads as fast as this sends would otherwise keep the core.
            yield_if_needed().await;
        }
        Ok(())
    }

    /// Tells the peer that nothing more will come; what was sent still arrives.
    pub fn finish(&mut self) {
        self.stream.shutdown(Shutdown::Write);
    }
}

/// Sends what the socket takes without waiting.
fn send_now(descriptor: RawFd, parts: &[IoSlice<'_>]) -> io::Result<usize> {
    let slice_count = parts.len().min(SLICES_PER_CALL_MAX);
    // SAFETY: all zeros is a valid msghdr (no name, no control data, no slices).
    let mut message = unsafe { std::mem::zeroed::<libc::msghdr>() };
    // `IoSlice` has the layout of `iovec` by its documentation, and sendmsg only reads through the pointer.
    message.msg_iov = parts.as_ptr().cast_mut().cast();
    message.msg_iovlen = slice_count as _;
    // SAFETY: the descriptor is open, and the message's slices are borrowed for the length of the call.
    let sent = unsafe {
        libc::sendmsg(
            descriptor,
            &message,
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
        )
    };
    usize::try_from(sent).map_err(|_negative| io::Error::last_os_error())
}

/// How many bytes must have arrived before a wait for more of them ends (SO_RCVLOWAT of socket(7)). The end of the stream
/// and an error always end it. Does not keep the connection open.
pub struct LowWaterMark {
    stream: Weak<Stream>,
    mark_bytes: Cell<usize>,
}

impl LowWaterMark {
    pub fn bytes(&self) -> usize {
        self.mark_bytes.get()
    }

    /// Lowering it below what has arrived ends a wait that is under way. The kernel makes room for twice as much, and takes
    /// less where `net.ipv4.tcp_rmem` sets a limit; where it refuses, waits end as early as before.
    pub fn set(&self, bytes: usize) {
        let bytes = bytes.max(1);
        if bytes == self.mark_bytes.get() {
            return;
        }
        let (Some(stream), Ok(value)) = (self.stream.upgrade(), libc::c_int::try_from(bytes))
        else {
            return;
        };
        // SAFETY: the descriptor is open as long as the stream, and the value is borrowed for the length of the call.
        let result = unsafe {
            libc::setsockopt(
                stream.descriptor,
                libc::SOL_SOCKET,
                libc::SO_RCVLOWAT,
                (&raw const value).cast(),
                size_of::<libc::c_int>() as libc::socklen_t,
            )
        };
        if result == 0 {
            self.mark_bytes.set(bytes);
        }
    }
}

/// Ends a connection from outside its two tasks: both halves then see its end. Does not keep it open.
#[derive(Clone)]
pub struct Closer {
    stream: Weak<Stream>,
}

impl Closer {
    pub fn close(&self) {
        if let Some(stream) = self.stream.upgrade() {
            stream.shutdown(Shutdown::Both);
        }
    }
}
