//! What can go wrong with a socket, with the address.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use glommio::GlommioError;

use crate::io::os_error::Shortage;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionOperation {
    Connect,
    Read,
    Write,
}

impl fmt::Display for ConnectionOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connect to",
            Self::Read => "read from",
            Self::Write => "write to",
        })
    }
}

#[derive(Debug, thiserror::Error)]
pub enum NetError {
    #[error("cannot listen on {address}: another process holds it (EADDRINUSE)")]
    AddressInUse { address: SocketAddr },
    #[error("cannot listen on {address}: {source}")]
    Bind {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("cannot accept on {address}: {source}")]
    Accept {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("cannot {operation} {peer}: {source}")]
    Connection {
        operation: ConnectionOperation,
        peer: SocketAddr,
        source: io::Error,
    },
}

impl NetError {
    /// The peer went away, which is nobody's fault and not worth a line in the log.
    pub fn is_disconnect(&self) -> bool {
        use io::ErrorKind::{
            BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, TimedOut, UnexpectedEof,
        };
        let (Self::Accept { source, .. } | Self::Connection { source, .. }) = self else {
            return false;
        };
        matches!(
            source.kind(),
            BrokenPipe
                | ConnectionAborted
                | ConnectionReset
                | NotConnected
                | TimedOut
                | UnexpectedEof
        )
    }

    /// What the system is short of, if that is why. Accept again when there is more of it, not at once.
    pub fn shortage(&self) -> Option<Shortage> {
        let (Self::Accept { source, .. } | Self::Connection { source, .. }) = self else {
            return None;
        };
        Shortage::of(source)
    }

    pub(super) fn bind(address: SocketAddr, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AddrInUse => Self::AddressInUse { address },
            _ => Self::Bind { address, source },
        }
    }
}

/// The system's error inside what glommio made of it.
pub(super) fn io_error(error: GlommioError<()>) -> io::Error {
    match error {
        GlommioError::IoError(source) | GlommioError::EnhancedIoError { source, .. } => source,
        other => io::Error::other(other.to_string()),
    }
}
