//! The controller: the one place where a change of the metadata is decided and made durable.
//!
//! Owns: the metadata log and its snapshot (`__metadata/`), the identity of the data directory (`meta.properties`), the rules of
//! creating, deleting and configuring topics, and the producer ids.
//! Must never know: shards, sockets, the wire. It hands out a new image with its delta, and a reply to call when they have been
//! followed.
//! Runs on: the controller's core (a shard's core on small machines), on a thread where blocking is allowed.
//! After a crash: every change that was replied to is there; `metadata_log` says what else may be.

mod alter_configs;
mod command;
mod create_partitions;
mod create_topics;
mod data_directory;
mod delete_topics;
mod durable_file;
mod end_checkpoint;
mod error;
mod followed;
mod frame;
mod layout;
mod metadata_log;
mod state;

pub use command::{
    ConfigChange, ConfigResource, ControllerCommand, Execution, MetadataUpdate, NewPartitions,
    NewTopic, NewTopicLayout, Reply, SettingsChange, TopicSelector,
};
pub use data_directory::{DataDirectoryError, META_PROPERTIES, METADATA_DIRECTORY};
pub use error::{
    AlterConfigError, CreatePartitionsError, CreateTopicError, DeleteTopicError, LayoutError,
    NotStored, ProducerIdError,
};
pub use followed::{Followed, NotFollowed};
pub use metadata_log::{MetadataLog, MetadataLogError};
pub use state::{Controller, ControllerError};
