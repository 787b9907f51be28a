//! Wiring: from the settings to cores, shards, listeners and the admin door.

use crate::config::BrokerConfig;

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("this build has no shards yet: it cannot run a broker")]
    NoShards,
}

/// A running broker.
#[derive(Debug)]
pub struct Broker;

impl Broker {
    /// Returns once clients are served.
    pub fn start(_config: BrokerConfig) -> Result<Self, StartError> {
        Err(StartError::NoShards)
    }

    /// Asks it to drain, flush and mark a clean stop. Returns at once; further calls change nothing.
    pub fn stop(&self) {}

    /// Returns when it has stopped.
    pub fn wait(&self) {}
}
