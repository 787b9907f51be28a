use std::time::Duration;

use clap::Args;

use crate::client::bootstrap::with_default_port;
use crate::client::cluster::Cluster;
use crate::client::connection::ClientOptions;
use crate::client::error::ClientError;

use super::time::parse_duration;

/// Enough for a broker that is alive, and soon told of one that is not.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Which cluster, and how long to wait for it.
#[derive(Args, Clone, Debug)]
pub(super) struct ClusterArguments {
    /// Brokers to begin with, HOST or HOST:PORT each (port 9092 if it is not said); the first that answers tells where the others are.
    #[arg(
        long,
        short,
        value_name = "HOST[:PORT]",
        env = "CORELOG_BOOTSTRAP",
        value_delimiter = ',',
        default_value = "127.0.0.1:9092"
    )]
    pub(super) bootstrap: Vec<String>,
    /// How long a broker may take to answer, such as 500ms or 1m.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    pub(super) timeout: Duration,
}

impl ClusterArguments {
    pub(super) fn connect(&self) -> Result<Cluster, ClientError> {
        let brief = self.timeout.min(CONNECT_TIMEOUT);
        let options = ClientOptions {
            client_id: "corelog",
            connect_timeout: brief,
            greeting_timeout: brief,
            response_timeout: self.timeout,
        };
        let brokers: Vec<String> = self
            .bootstrap
            .iter()
            .map(|address| with_default_port(address))
            .collect();
        Cluster::connect(&brokers, options)
    }
}
