//! The product's client with the load generator's name and patience, in versions that the caller names, so that every broker is asked in
//! the same way. What a load sends and reads itself, `producer/` and `fetch.rs` do on the socket.

use std::net::TcpStream;
use std::time::Duration;

use corelog::client::connection::{self, ClientOptions, Sent, ServedVersions};
use kafka_protocol::messages::ApiKey;
use kafka_protocol::protocol::Request;

pub use corelog::client::connection::{Traffic, frame_size};

use super::error::ClientError;

pub const CLIENT_ID: &str = "corelog-perf";

const OPTIONS: ClientOptions = ClientOptions {
    client_id: CLIENT_ID,
    connect_timeout: Duration::from_secs(5),
    greeting_timeout: Duration::from_secs(4),
    response_timeout: Duration::from_secs(30),
};

pub struct Connection(connection::Connection);

impl Connection {
    /// Connects and asks what the broker serves.
    pub fn open(address: &str) -> Result<Self, ClientError> {
        connection::Connection::open(address, &OPTIONS).map(Self)
    }

    /// For whoever sends and reads by himself from here on.
    pub fn into_nonblocking_stream(self) -> Result<TcpStream, ClientError> {
        self.0.into_nonblocking_stream()
    }

    /// For requests whose answer may take so much longer by design.
    pub fn wait_longer_by(&mut self, by: Duration) -> Result<(), ClientError> {
        self.0.set_response_timeout(OPTIONS.response_timeout + by)
    }

    pub fn address(&self) -> &str {
        self.0.address()
    }

    pub fn versions(&self) -> &ServedVersions {
        self.0.versions()
    }

    /// What went over it since the last call.
    pub fn take_traffic(&mut self) -> Traffic {
        self.0.take_traffic()
    }

    /// Sends `request` in the highest version up to `max` and waits for its answer.
    pub fn call<R: Request>(
        &mut self,
        request: &R,
        min: i16,
        max: i16,
    ) -> Result<R::Response, ClientError> {
        self.0.call_between(request, min, max)
    }

    /// Waits for the answer to the request of that number, which is the oldest one under way.
    pub fn answer<R: Request>(
        &mut self,
        correlation_id: i32,
        version: i16,
    ) -> Result<R::Response, ClientError> {
        self.0
            .receive_response::<R>(Sent::new(correlation_id, version))
    }

    /// Sends `request` without waiting and returns the number that its answer will carry.
    pub fn send<R: Request>(&mut self, request: &R, version: i16) -> Result<i32, ClientError> {
        self.0
            .send_version(request, version)
            .map(|sent| sent.correlation_id())
    }

    /// Reads the next frame, without its size, into the start of `buffer` and returns its length. The buffer
    /// only grows, so that its memory is cleared once and not for every frame.
    pub fn receive(&mut self, buffer: &mut Vec<u8>) -> Result<usize, ClientError> {
        self.0.receive(buffer)
    }

    /// Turns an error code other than 0 into an error.
    pub fn refuse_error(
        &self,
        api: ApiKey,
        code: i16,
        message: Option<&str>,
    ) -> Result<(), ClientError> {
        self.0.refuse_error(api, CLIENT_ID, code, message)
    }

    pub fn protocol(&self, reason: String) -> ClientError {
        self.0.protocol(reason)
    }
}
