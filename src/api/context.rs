//! What every handler can reach: this connection's shard, and the controller.

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use crate::config::{BrokerConfig, HostPort};
use crate::metadata::{MetadataImage, Topic};
use crate::model::TopicId;
use crate::shard::runtime::Shard;

use super::admin_context::AdminContext;
use super::controller_client::ControllerClient;

/// One for each connection; cheap to clone.
#[derive(Clone)]
pub struct ApiContext {
    pub shard: Rc<Shard>,
    pub controller: ControllerClient,
    /// What the listener that this connection came in by tells clients to connect to.
    pub advertised: Rc<HostPort>,
    /// The client's address.
    pub client_host: IpAddr,
}

impl ApiContext {
    pub fn topic(&self, name: &str) -> Option<Arc<Topic>> {
        self.image().topic(name).cloned()
    }

    pub fn topic_by_id(&self, id: TopicId) -> Option<Arc<Topic>> {
        self.image().topic_by_id(id).cloned()
    }
}

impl AdminContext for ApiContext {
    fn image(&self) -> Arc<MetadataImage> {
        self.shard.image()
    }

    fn config(&self) -> Arc<BrokerConfig> {
        self.shard.config()
    }

    fn advertised(&self) -> &HostPort {
        &self.advertised
    }

    fn controller(&self) -> &ControllerClient {
        &self.controller
    }
}
