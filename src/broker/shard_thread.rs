//! A shard's thread: its executor, its listeners, and what it does with what reaches it from outside.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crossbeam::channel::Sender;

use crate::api::context::ApiContext;
use crate::api::controller_client::{ControllerClient, ControllerGone};
use crate::config::{BrokerConfig, HostPort};
use crate::controller::ControllerCommand;
use crate::io::clock::Clock;
use crate::io::descriptors::DescriptorShare;
use crate::io::disk::{LogFile, OpenMode};
use crate::io::fs;
use crate::io::mesh::{ForeignReceiver, MeshSeat};
use crate::io::net::BoundListener;
use crate::io::{blocking, executor};
use crate::metadata::MetadataImage;
use crate::metrics::{Gauge, MetricsRegistry};
use crate::model::ShardId;
use crate::model::limits::DRAIN_MS;
use crate::server::accept::Server;
use crate::shard::cache_budget::CacheBudget;
use crate::shard::command::{Message, UnopenedPartition};
use crate::shard::log_dir::LogDir;
use crate::shard::memory_share::MemoryShare;
use crate::shard::open_partition::RecoveredPartition;
use crate::shard::router::Router;
use crate::shard::runtime::{Shard, ShardParts};
use crate::storage::partition_directory::WithoutId;

/// Everything that a shard's thread is given.
pub struct ShardSeat {
    pub shard: ShardId,
    pub shard_count: u16,
    pub seat: MeshSeat<Message>,
    pub from_outside: ForeignReceiver<Message>,
    pub commands: Sender<ControllerCommand>,
    pub config: Arc<BrokerConfig>,
    pub image: Arc<MetadataImage>,
    pub partitions: PartitionsAtStart,
    pub listeners: Vec<(BoundListener, HostPort)>,
    pub clock: Clock,
    pub metrics: MetricsRegistry,
    pub log_dir: LogDir,
    pub cache_budget: CacheBudget,
    pub memory: MemoryShare,
    pub open_files_max: usize,
    pub connection_descriptors: DescriptorShare,
    /// Told when the shard has stopped and its clients have their answers.
    pub ended: Sender<ShardId>,
}

/// What a start found of the partitions that a shard owns.
#[derive(Default)]
pub struct PartitionsAtStart {
    pub recovered: Vec<RecoveredPartition>,
    pub unopened: Vec<UnopenedPartition>,
    /// Directories that are removed later; one shard does it for all.
    pub strays: Vec<PathBuf>,
}

/// The main task of a shard's executor; ends when the broker has stopped.
pub async fn run(seat: ShardSeat) {
    let mesh = seat.seat.join().await;
    let parts = ShardParts {
        router: Router::new(seat.shard, seat.shard_count, mesh.outbox),
        clock: seat.clock,
        metrics: seat.metrics.shard(seat.shard),
        log_dir: seat.log_dir,
        config: seat.config,
        cache_budget: seat.cache_budget,
        memory: seat.memory,
        open_files_max: seat.open_files_max,
    };
    let shard = Shard::new(parts, seat.image);
    let PartitionsAtStart {
        recovered,
        unopened,
        strays,
    } = seat.partitions;
    for partition in recovered {
        shard.host_recovered(partition);
    }
    for UnopenedPartition { partition, why } in unopened {
        let pending = shard.pending();
        pending.insert(partition, WithoutId::Adopt, why);
    }
    shard.remove_strays_later(strays);
    let is_direct = is_direct(shard.log_dir(), seat.shard).await;
    shard.metrics().set_gauge(Gauge::DirectIo, is_direct.into());
    shard.start();
    for mut inbox in mesh.inboxes {
        let shard = shard.clone();
        executor::spawn_local(async move {
            while let Some(messages) = inbox.recv().await {
                for message in messages {
                    shard.receive(message);
                    executor::yield_if_needed().await;
                }
            }
        })
        .detach();
    }
    let mut from_outside = seat.from_outside;
    while !matches!(from_outside.recv().await, Some(Message::Start) | None) {}
    let server = Server::new(shard.clone(), seat.connection_descriptors);
    let commands = seat.commands;
    let controller =
        ControllerClient::new(move |command| commands.send(command).map_err(|_| ControllerGone));
    for (listener, advertised) in seat.listeners {
        let context = ApiContext {
            shard: shard.clone(),
            controller: controller.clone(),
            advertised: Rc::new(advertised),
            client_host: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        };
        server.listen(listener.open(), context);
    }
    while !shard.is_ended() {
        let Some(message) = from_outside.recv().await else {
            break;
        };
        shard.receive(message);
    }
    // What was answered last still has to reach its clients.
    server.drain(Duration::from_millis(DRAIN_MS)).await;
    // Nobody waits for it if the broker's handle is gone.
    let _ = seat.ended.send(seat.shard);
}

/// Whether O_DIRECT is really on where the segments will be: a file that is made and removed tells.
async fn is_direct(log_dir: &LogDir, shard: ShardId) -> bool {
    let path = log_dir.path().join(format!(".direct-{shard}.tmp"));
    let opened = LogFile::open(&path, OpenMode::Create).await;
    let is_direct = opened.is_ok_and(|file| file.is_direct());
    let removed = blocking::run(move || fs::remove_file(path)).await;
    is_direct && removed.is_ok()
}
