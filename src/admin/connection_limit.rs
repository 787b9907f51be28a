use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};

use crate::model::limits::{ADMIN_CONNECTION_LIFETIME_MS, ADMIN_CONNECTIONS_MAX};

/// How much of the admin thread clients may hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) connections_max: usize,
    pub(super) connection_lifetime: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: ADMIN_CONNECTIONS_MAX,
            connection_lifetime: Duration::from_millis(ADMIN_CONNECTION_LIFETIME_MS),
        }
    }
}

/// A listener that holds a bounded number of connections, each for a bounded time.
///
/// At the limit it stops accepting, so further clients wait in the kernel's backlog. No connection outlives its time, whether
/// it sends slowly, reads slowly or idles: so a few bad clients cannot shut the operator out for longer than that.
pub(super) struct LimitedListener {
    listener: TcpListener,
    permits: Arc<Semaphore>,
    connection_lifetime: Duration,
}

impl LimitedListener {
    pub(super) fn new(listener: TcpListener, limits: Limits) -> Self {
        Self {
            listener,
            permits: Arc::new(Semaphore::new(limits.connections_max)),
            connection_lifetime: limits.connection_lifetime,
        }
    }
}

impl Listener for LimitedListener {
    type Io = LimitedStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (LimitedStream, SocketAddr) {
        let permit = self
            .permits
            .clone()
            .acquire_owned()
            .await
            .expect("the semaphore is never closed");
        // axum's own accept for TCP retries after errors and waits when file descriptors are short.
        let (stream, address) = Listener::accept(&mut self.listener).await;
        let deadline = Box::pin(sleep(self.connection_lifetime));
        (
            LimitedStream {
                stream,
                deadline,
                _permit: permit,
            },
            address,
        )
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that fails every read and write once its time is over.
pub(super) struct LimitedStream {
    stream: TcpStream,
    deadline: Pin<Box<Sleep>>,
    _permit: OwnedSemaphorePermit,
}

impl LimitedStream {
    fn check_deadline(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.deadline.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for LimitedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check_deadline(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for LimitedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check_deadline(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
