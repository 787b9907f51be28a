use std::sync::Arc;

use crate::api::controller_client::ControllerClient;
use crate::config::{BrokerConfig, HostPort};
use crate::metadata::MetadataImage;

/// What the admin APIs see and ask: the metadata as this shard has it, and the controller. A trait, so that they are tested
/// against a controller without shards.
pub trait AdminContext {
    fn image(&self) -> Arc<MetadataImage>;

    fn config(&self) -> Arc<BrokerConfig>;

    /// What the client is told to connect to; it depends on the listener that it came by.
    fn advertised(&self) -> &HostPort;

    fn controller(&self) -> &ControllerClient;
}
