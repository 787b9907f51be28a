//! Listening sockets.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd};
use std::time::Duration;

use glommio::net::TcpListener;
use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};

use super::Connection;
use super::error::{NetError, io_error};
use crate::model::limits::{ACCEPT_BACKLOG, TCP_KEEPALIVE_AFTER_S};

/// A listening socket that has yet to reach its executor.
#[derive(Debug)]
pub struct BoundListener {
    socket: Socket,
    address: SocketAddr,
}

/// Listens on `address` with `count` sockets, one per executor; the kernel spreads connections over them. With port 0
/// all share the port that the first one got.
///
/// Fails with `AddressInUse` if any other process listens there, another broker of the same user included: the first
/// socket takes the address for itself alone, and only then opens it to its siblings (SO_REUSEPORT).
pub fn bind(address: SocketAddr, count: usize) -> Result<Vec<BoundListener>, NetError> {
    assert!(count > 0, "somebody has to listen");
    let failed = |error| NetError::bind(address, error);
    let first = listen_alone(address).map_err(failed)?;
    first.set_reuse_port(true).map_err(failed)?;
    let address = local_address(&first).map_err(failed)?;
    let mut listeners = vec![BoundListener {
        socket: first,
        address,
    }];
    for _ in 1..count {
        let socket = listen_beside(address).map_err(failed)?;
        listeners.push(BoundListener { socket, address });
    }
    Ok(listeners)
}

fn listen_alone(address: SocketAddr) -> io::Result<Socket> {
    let socket = new_socket(address)?;
    socket.bind(&address.into())?;
    socket.listen(ACCEPT_BACKLOG)?;
    Ok(socket)
}

fn listen_beside(address: SocketAddr) -> io::Result<Socket> {
    let socket = new_socket(address)?;
    socket.set_reuse_port(true)?;
    socket.bind(&address.into())?;
    socket.listen(ACCEPT_BACKLOG)?;
    Ok(socket)
}

fn new_socket(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    // Connections of an earlier run that linger in TIME_WAIT do not keep a restart from its port.
    socket.set_reuse_address(true)?;
    Ok(socket)
}

fn local_address(socket: &Socket) -> io::Result<SocketAddr> {
    let address = socket.local_addr()?;
    address
        .as_socket()
        .ok_or_else(|| io::Error::other("the socket has no IP address"))
}

impl BoundListener {
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Makes this the current executor's listener.
    pub fn open(self) -> Listener {
        // SAFETY: the descriptor is an open listening socket whose ownership moves to the listener.
        let listener = unsafe { TcpListener::from_raw_fd(self.socket.into_raw_fd()) };
        Listener {
            listener,
            address: self.address,
        }
    }
}

/// A listening socket of one executor.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
}

impl Listener {
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The next connection. Every error is about one connection or a shortage of the system's (`NetError::shortage`), which leaves the
    /// connection waiting; the listener goes on.
    pub async fn accept(&self) -> Result<Accepted, NetError> {
        let failed = |source| NetError::Accept {
            address: self.address,
            source,
        };
        let accepted = self
            .listener
            .shared_accept()
            .await
            .map_err(|error| failed(io_error(error)))?;
        // glommio hides the descriptor until a stream is made of it; a second descriptor outlives that stream.
        let stream = accepted.bind_to_executor();
        // SAFETY: the descriptor is open as long as `stream` lives, which is beyond the clone.
        let descriptor = unsafe { BorrowedFd::borrow_raw(stream.as_raw_fd()) };
        let socket = descriptor.try_clone_to_owned().map_err(failed)?;
        drop(stream);
        Accepted::new(TcpStream::from(socket)).map_err(failed)
    }
}

/// A connection that belongs to no executor yet.
#[derive(Debug)]
pub struct Accepted {
    socket: TcpStream,
    peer: SocketAddr,
}

impl Accepted {
    fn new(socket: TcpStream) -> io::Result<Self> {
        let peer = socket.peer_addr()?;
        // Without it a reply in several segments waits for the client's delayed acknowledgement: 40 ms.
        socket.set_nodelay(true)?;
        let keepalive = TcpKeepalive::new().with_time(Duration::from_secs(TCP_KEEPALIVE_AFTER_S));
        socket2::SockRef::from(&socket.as_fd()).set_tcp_keepalive(&keepalive)?;
        Ok(Self { socket, peer })
    }

    pub fn peer_addr(&self) -> SocketAddr {
        self.peer
    }

    /// Makes this a connection of the current executor.
    pub fn into_connection(self) -> Connection {
        Connection::new(self.socket.into(), self.peer)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::os::fd::OwnedFd;

    use super::*;
    use crate::io::executor::{Core, block_on, spawn, timeout};

    const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

    #[test]
    fn an_address_that_is_taken_is_an_error_that_names_it() {
        let taken = bind(ANY_PORT, 2).expect("two listeners");
        let address = taken[0].local_addr();
        // SO_REUSEPORT alone would let a second broker of the same user take half of the connections.
        let error = bind(address, 2).expect_err("a second broker");
        assert!(matches!(error, NetError::AddressInUse { .. }), "{error}");
        assert!(error.to_string().contains(&address.to_string()), "{error}");
        drop(taken);
        bind(address, 2).expect("listeners after the first broker");
    }

    #[test]
    fn a_restart_is_not_kept_from_its_port_by_lingering_connections() {
        let address = block_on(async {
            let listener = bind(ANY_PORT, 1).expect("a listener").remove(0).open();
            let client = std::net::TcpStream::connect(listener.local_addr()).expect("a connection");
            // The server closes first, so that its end lingers in TIME_WAIT.
            drop(listener.accept().await.expect("the connection"));
            drop(client);
            listener.local_addr()
        });
        bind(address, 2).expect("listeners on the same port");
    }

    #[test]
    fn connections_reach_all_listeners_of_an_address() {
        const LISTENERS: usize = 2;
        let listeners = bind(ANY_PORT, LISTENERS).expect("two listeners");
        let address = listeners[0].local_addr();
        let threads: Vec<_> = listeners
            .into_iter()
            .map(|listener| {
                let accepting = || async move {
                    let listener = listener.open();
                    let accepted = timeout(Duration::from_secs(30), listener.accept()).await;
                    accepted
                        .map(|accepted| accepted.map(|_connection| ()))
                        .is_ok_and(|outcome| outcome.is_ok())
                };
                spawn("accepts", Core::Unpinned, accepting).expect("an executor")
            })
            .collect();
        // The kernel picks by a hash of both ports: 64 connections miss one of two listeners once in 2^63 runs.
        let clients: Vec<_> = (0..64)
            .map(|_| std::net::TcpStream::connect(address))
            .collect();
        for thread in threads {
            assert!(thread.join(), "a listener got no connection");
        }
        drop(clients);
    }

    #[test]
    fn an_accepted_connection_sends_at_once_and_is_kept_alive() {
        block_on(async {
            let listener = bind(ANY_PORT, 1).expect("a listener").remove(0).open();
            let client = std::net::TcpStream::connect(listener.local_addr()).expect("a connection");
            let accepted = listener.accept().await.expect("the connection");
            assert_eq!(
                accepted.peer_addr(),
                client.local_addr().expect("an address")
            );
            assert!(accepted.socket.nodelay().expect("an option"));
            let socket = Socket::from(OwnedFd::from(accepted.socket));
            assert!(socket.keepalive().expect("an option"));
        });
    }
}
