//! Load from other machines: a worker carries out the load orders of a coordinator, which is the run.
//!
//! Owns: the protocol between the two, a worker's listener and sessions, the coordinator's links, how far clocks
//! are apart. Must never know: topics, rates and reports. Runs on: at the worker, a thread for each connection
//! and one for its crew; at the coordinator, a thread for each link that reads.
//!
//! A worker trusts its network: whoever reaches its port can make it put load on any address.

mod clock_offset;
mod error;
mod ledger_part;
mod link;
mod message;
mod occupancy;
mod own_cpu;
mod session;
#[cfg(test)]
mod tests;
mod wire;

pub use clock_offset::ClockOffset;
pub use error::{ServeError, WorkerError};
pub use link::{Link, LinkControl};
pub use message::Ended;

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use crate::interrupt::Interrupt;
use message::ToolVersion;
use occupancy::Occupancy;
use session::{Session, say};

/// How soon a Ctrl-C is noticed.
const LOOK_EVERY: Duration = Duration::from_millis(50);

pub struct Worker {
    address: SocketAddr,
}

impl Worker {
    /// Listens and serves from now on. With port 0 the system chooses one.
    pub fn start(address: SocketAddr) -> Result<Self, ServeError> {
        let failed = |source| ServeError::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let accepting = move || {
            let occupancy = Occupancy::default();
            for stream in listener.incoming().flatten() {
                let occupancy = occupancy.clone();
                let serving = thread::Builder::new().name("session".to_owned());
                // Without a thread the stream is dropped, which the coordinator sees.
                let _refused = serving.spawn(move || serve(stream, &occupancy));
            }
        };
        thread::Builder::new()
            .name("accept".to_owned())
            .spawn(accepting)
            .map_err(failed)?;
        Ok(Self { address })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn version(&self) -> impl std::fmt::Display {
        ToolVersion::this()
    }

    /// Returns at Ctrl-C.
    pub fn run(&self, interrupt: &Interrupt) {
        while !interrupt.is_asked() {
            thread::sleep(LOOK_EVERY);
        }
    }
}

fn serve(stream: TcpStream, occupancy: &Occupancy) {
    let name = match stream.peer_addr() {
        Ok(address) => address.to_string(),
        // It is gone already.
        Err(_) => return,
    };
    match Session::serve(stream, &name, occupancy) {
        Ok(()) => say(&name, "the run is over"),
        Err(end) => say(&name, &end.to_string()),
    }
}

/// One address of a machine, as a name may have several.
fn connect(address: &str, timeout: Duration) -> io::Result<TcpStream> {
    use std::net::ToSocketAddrs;
    let mut last_error = None;
    for candidate in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&candidate, timeout) {
            Ok(stream) => return Ok(stream),
            Err(error) => last_error = Some(error),
        }
    }
    Err(last_error.unwrap_or_else(|| io::Error::other("the name has no address")))
}
