//! A controller without shards, for the tests of the admin APIs.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use tempfile::TempDir;

use crate::api::admin_context::AdminContext;
use crate::api::controller_client::{ControllerClient, ControllerGone};
use crate::config::{BrokerConfig, HostPort};
use crate::controller::{Controller, ControllerCommand, Followed, NewTopic, NewTopicLayout};
use crate::metadata::MetadataImage;

#[derive(Clone)]
pub struct TestContext {
    controller: Rc<RefCell<Controller>>,
    client: ControllerClient,
    advertised: HostPort,
    _directory: Rc<TempDir>,
}

impl TestContext {
    pub fn new() -> Self {
        Self::with_settings(&[])
    }

    pub fn with_settings(settings: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let config = BrokerConfig::from_file_settings(settings.iter().copied().collect()).unwrap();
        let controller = Rc::new(RefCell::new(
            Controller::open(directory.path(), &config).unwrap(),
        ));
        let executor = controller.clone();
        let client = ControllerClient::new(move |command: ControllerCommand| {
            let execution = executor.borrow_mut().execute(command);
            (execution.reply)(Followed::default());
            Ok(())
        });
        let advertised = HostPort {
            host: "broker.example".into(),
            port: 19092,
        };
        Self {
            controller,
            client,
            advertised,
            _directory: Rc::new(directory),
        }
    }

    /// The same broker after its controller stopped.
    pub fn without_controller(&self) -> Self {
        Self {
            client: ControllerClient::new(|_| Err(ControllerGone)),
            ..self.clone()
        }
    }

    pub fn with_topic(self, name: &str, partition_count: i32) -> Self {
        let layout = NewTopicLayout::Counts {
            partition_count,
            replication_factor: -1,
        };
        let topics = vec![NewTopic {
            name: name.into(),
            layout,
            settings: Vec::new(),
        }];
        let command = |reply| ControllerCommand::CreateTopics {
            topics,
            validate_only: false,
            reply,
        };
        run(self.client.ask(command)).unwrap().remove(0).unwrap();
        self
    }
}

impl AdminContext for TestContext {
    fn image(&self) -> Arc<MetadataImage> {
        self.controller.borrow().image().clone()
    }

    fn config(&self) -> Arc<BrokerConfig> {
        Arc::new(self.controller.borrow().config().clone())
    }

    fn advertised(&self) -> &HostPort {
        &self.advertised
    }

    fn controller(&self) -> &ControllerClient {
        &self.client
    }
}

pub fn run<T>(future: impl Future<Output = T>) -> T {
    futures_lite::future::block_on(future)
}

/// The response as a client of that version reads it.
pub fn read_back<R: Encodable + Decodable>(response: &R, version: i16) -> R {
    let mut bytes = BytesMut::new();
    response
        .encode(&mut bytes, version)
        .unwrap_or_else(|error| panic!("version {version}: {error:#}"));
    let mut bytes = Bytes::from(bytes);
    let response = R::decode(&mut bytes, version).unwrap();
    assert!(bytes.is_empty(), "version {version}");
    response
}

pub fn string(text: &str) -> StrBytes {
    StrBytes::from_string(text.into())
}
