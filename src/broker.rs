//! Wiring: from the settings to cores, shards, listeners, the controller and the admin door.
//!
//! Owns: the order in which things start and stop. Must never know: what any of them does inside. Runs on: the thread that starts it.
//! After a crash: the next start finds the data directory as `storage` and `controller` left it.

mod controller_thread;
pub mod descriptor_budget;
mod leftovers;
pub mod memory_budget;
mod recovery;
mod shard_thread;

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crossbeam::channel::Receiver;

use crate::admin::{AdminError, AdminServer, Phase, Readiness};
use crate::config::{BrokerConfig, Cores, HostPort};
use crate::controller::{Controller, ControllerCommand, ControllerError};
use crate::io::clock::Clock;
use crate::io::descriptors::DescriptorShare;
use crate::io::dir::{self, DirError};
use crate::io::dir_lock::{DirLock, DirLockError};
use crate::io::executor::{self, Core, ExecutorError, ExecutorThread};
use crate::io::mesh::{self, ForeignSender, foreign_lane};
use crate::io::net::{self, BoundListener, NetError};
use crate::io::page_toucher;
use crate::metrics::MetricsRegistry;
use crate::model::ShardId;
use crate::model::limits::{DRAIN_MS, FOREIGN_MESSAGES_MAX};
use crate::shard::cache_budget::CacheBudget;
use crate::shard::call::ReplyTo;
use crate::shard::command::{Command, Message};
use crate::shard::log_dir::LogDir;
use crate::shard::placement;
use crate::shard::stray_directories::tell_of_strays;

use descriptor_budget::{DescriptorBudget, TooFewDescriptors};
use memory_budget::{MemoryBudget, TooLittleMemory};
pub use recovery::{Progress, RecoverAllError};
use shard_thread::{PartitionsAtStart, ShardSeat};

/// From this many cores up the controller has one to itself.
const CORES_FOR_OWN_CONTROLLER: usize = 4;

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the data directory: {0}")]
    DataDirectory(#[from] DirError),
    #[error(transparent)]
    Lock(#[from] DirLockError),
    #[error(transparent)]
    Controller(#[from] ControllerError),
    #[error(transparent)]
    Recovery(#[from] RecoverAllError),
    #[error("listener {listener}: {reason}")]
    Address { listener: HostPort, reason: String },
    #[error(transparent)]
    Listen(#[from] NetError),
    #[error(transparent)]
    Executor(#[from] ExecutorError),
    #[error(transparent)]
    Admin(#[from] AdminError),
    #[error("cannot start the controller's thread: {0}")]
    ControllerThread(#[source] std::io::Error),
    #[error("cores={0}: this process may not use that core")]
    NoSuchCore(usize),
    #[error(transparent)]
    Descriptors(#[from] TooFewDescriptors),
    #[error(transparent)]
    Memory(#[from] TooLittleMemory),
}

/// A running broker.
pub struct Broker {
    readiness: Arc<Readiness>,
    shards: Vec<ForeignSender<Message>>,
    addresses: Vec<SocketAddr>,
    admin_address: SocketAddr,
    /// Taken by whoever waits for the end.
    running: Mutex<Option<Running>>,
    stop: Stop,
}

struct Running {
    /// Their tasks never end by themselves: the threads go with the process, once each has said that it is done.
    _shards: Vec<ExecutorThread<()>>,
    shards_ended: Receiver<ShardId>,
    admin: AdminServer,
    lock: DirLock,
}

/// That a stop was asked for.
#[derive(Default)]
struct Stop {
    asked: Mutex<bool>,
    changed: Condvar,
}

/// Which cores do what.
struct CorePlan {
    shards: Vec<Core>,
    controller: Option<usize>,
}

impl Broker {
    /// Returns once clients are served. Blocks while partitions are recovered; `progress` is told how far that is.
    pub fn start(mut config: BrokerConfig, progress: &dyn Progress) -> Result<Self, StartError> {
        let data = config.log_dir.clone();
        dir::create_dir_all(&data)?;
        let lock = DirLock::acquire(&data)?;
        let plan = CorePlan::of(&config)?;
        let shard_count = u16::try_from(plan.shards.len()).expect("cores are bounded");
        let descriptors = DescriptorBudget::of_process(&config, plan.shards.len())?;
        let memory = MemoryBudget::of_process(&config, plan.shards.len(), descriptors.connections)?;
        match memory.is_plenty {
            true => tracing::debug!("memory: {}", memory.told()),
            false => tracing::info!("memory: {}", memory.told()),
        }
        if let Some(told) = memory.too_large_setting(&config) {
            tracing::warn!("{told}");
        }
        page_toucher::start(memory.touched_ahead_bytes);
        // One request may be as large as all of a shard's together, and no larger.
        config.request_max_bytes = config.request_max_bytes.min(memory.share.request_bytes);
        let readiness = Arc::new(Readiness::default());
        let metrics = MetricsRegistry::new(shard_count);
        metrics.set_memory_budget(memory.parts());
        metrics.set_descriptor_budget(descriptors.parts());
        let admin = AdminServer::start(
            &config.admin_listener,
            metrics.clone(),
            readiness.clone(),
            descriptors.admin,
        )?;
        let controller = Controller::open(&data, &config)?;
        let image = controller.image().clone();
        let config = Arc::new(controller.config().clone());
        let mut strays = leftovers::clear(&data, &image);
        // Before anything can end this start: the next one removes them.
        tell_of_strays(&strays.found);

        let threads = plan.shards.len();
        let recovered =
            recovery::recover_all(&data, &config, &image, threads, &readiness, progress)?;
        tell_of_strays(&recovered.displaced);
        strays.found.extend(recovered.displaced);
        // What was made and renamed survives a power cut before anything is confirmed.
        dir::sync_dir(&data)?;
        let mut partitions: Vec<PartitionsAtStart> =
            plan.shards.iter().map(|_| Default::default()).collect();
        for partition in recovered.partitions {
            let owner = placement::owner_of(partition.partition(), shard_count);
            partitions[owner.index()].recovered.push(partition);
        }
        if let Some(first) = recovered.unopened.first() {
            tracing::error!(
                partitions = recovered.unopened.len(),
                reason = %first.why,
                "partitions could not be opened: they answer KAFKA_STORAGE_ERROR and are tried again"
            );
        }
        for partition in recovered.unopened {
            let owner = placement::owner_of(partition.partition, shard_count);
            partitions[owner.index()].unopened.push(partition);
        }
        partitions[0].strays = [strays.found, strays.earlier].concat();

        // Bounded by the connections: each has at most one admin request in flight.
        let (commands, commanded) = crossbeam::channel::unbounded::<ControllerCommand>();
        let mut listeners = bind_all(&config, threads)?;
        let addresses = listeners[0]
            .iter()
            .map(|(listener, _)| listener.local_addr())
            .collect();
        let connection_descriptors = DescriptorShare::new(memory.connections);
        let clock = Clock::system();
        let log_dir = LogDir::new(data);
        let cache_budget = CacheBudget::new(memory.tail_cache_bytes, threads);
        let (ended, shards_ended) = crossbeam::channel::bounded(threads);
        let mut lanes = Vec::with_capacity(threads);
        let mut shards = Vec::with_capacity(threads);
        let seats = mesh::seats(threads)
            .into_iter()
            .zip(partitions)
            .zip(&plan.shards);
        for (index, ((seat, partitions), core)) in seats.enumerate() {
            let ended = ended.clone();
            let (home, from_outside) = foreign_lane(FOREIGN_MESSAGES_MAX);
            lanes.push(home);
            let seat = ShardSeat {
                shard: ShardId(index as u16),
                shard_count,
                seat,
                from_outside,
                commands: commands.clone(),
                config: config.clone(),
                image: image.clone(),
                partitions,
                listeners: std::mem::take(&mut listeners[index]),
                clock: clock.clone(),
                metrics: metrics.clone(),
                log_dir: log_dir.clone(),
                cache_budget: cache_budget.clone(),
                memory: memory.share,
                open_files_max: descriptors.segments_per_shard,
                connection_descriptors: connection_descriptors.clone(),
                ended,
            };
            shards.push(executor::spawn(
                &format!("shard-{index}"),
                *core,
                move || shard_thread::run(seat),
            )?);
        }
        controller_thread::start(controller, commanded, lanes.clone(), plan.controller)
            .map_err(StartError::ControllerThread)?;
        let locks = [lock];
        DirLock::tie_to_rings(&locks)?;
        let [lock] = locks;
        for lane in &lanes {
            lane.send_blocking(Message::Start);
        }
        readiness.advance(Phase::Ready);
        let admin_address = admin.address();
        let running = Running {
            _shards: shards,
            shards_ended,
            admin,
            lock,
        };
        Ok(Self {
            readiness,
            shards: lanes,
            addresses,
            admin_address,
            running: Mutex::new(Some(running)),
            stop: Stop::default(),
        })
    }

    /// Where clients are served; the ports are known here if 0 was asked for.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where metrics and health are served; the port is known here if 0 was asked for.
    pub fn admin_address(&self) -> SocketAddr {
        self.admin_address
    }

    pub fn shard_count(&self) -> usize {
        self.shards.len()
    }

    /// Asks it to drain, flush and mark a clean stop. Returns at once; further calls change nothing.
    pub fn stop(&self) {
        self.readiness.advance(Phase::Draining);
        *self
            .stop
            .asked
            .lock()
            .expect("no holder of the lock panics") = true;
        self.stop.changed.notify_all();
    }

    /// Returns when it was asked to stop and has stopped; whether everything is on disk.
    pub fn wait(&self) -> Result<(), StopError> {
        let asked = self
            .stop
            .asked
            .lock()
            .expect("no holder of the lock panics");
        drop(
            self.stop
                .changed
                .wait_while(asked, |asked| !*asked)
                .expect("no holder of the lock panics"),
        );
        let running = self
            .running
            .lock()
            .expect("no holder of the lock panics")
            .take();
        let Some(Running {
            shards_ended,
            admin,
            lock,
            ..
        }) = running
        else {
            return Ok(());
        };
        let mut stopped = Vec::with_capacity(self.shards.len());
        for shard in &self.shards {
            let (reply, receiver) = ReplyTo::thread();
            shard.send_blocking(Message::Command(Command::Stop(reply)));
            stopped.push(receiver);
        }
        let failures: Vec<String> = stopped
            .into_iter()
            .filter_map(|receiver| match receiver.recv() {
                Ok(stopped) => stopped.err(),
                Err(_) => Some("a shard ended without an answer".to_owned()),
            })
            .collect();
        for shard in &self.shards {
            shard.send_blocking(Message::End);
        }
        for _ in &self.shards {
            // A shard closes its connections at the latest after `DRAIN_MS`.
            let _ = shards_ended.recv_timeout(Duration::from_millis(2 * DRAIN_MS));
        }
        drop(admin);
        if failures.is_empty() {
            drop(lock);
            Ok(())
        } else {
            Err(StopError(failures.join("; ")))
        }
    }
}

/// Something could not be written at the end; the next start recovers.
#[derive(Debug, thiserror::Error)]
#[error("not everything is on disk; the next start recovers: {0}")]
pub struct StopError(String);

impl CorePlan {
    fn of(config: &BrokerConfig) -> Result<Self, StartError> {
        let available = executor::available_cores();
        let mut cores = match &config.cores {
            Cores::Auto => available.clone(),
            Cores::List(cores) => cores.clone(),
        };
        if let Some(missing) = cores.iter().find(|core| !available.contains(core)) {
            return Err(StartError::NoSuchCore(*missing));
        }
        let controller = match cores.len() >= CORES_FOR_OWN_CONTROLLER {
            true => cores.pop(),
            false => None,
        };
        let place = |core: usize| {
            if config.cores_pinned {
                Core::Pinned(core)
            } else {
                Core::Unpinned
            }
        };
        Ok(Self {
            shards: cores.into_iter().map(place).collect(),
            controller: controller.filter(|_| config.cores_pinned),
        })
    }
}

/// How many shards a broker with these settings has; 1 where they name a core that is not there, which a start refuses.
pub fn shard_count(config: &BrokerConfig) -> usize {
    CorePlan::of(config).map_or(1, |plan| plan.shards.len())
}

/// For each shard its sockets of all listeners, with what clients of each are told to connect to.
fn bind_all(
    config: &BrokerConfig,
    shard_count: usize,
) -> Result<Vec<Vec<(BoundListener, HostPort)>>, StartError> {
    let mut by_shard: Vec<Vec<_>> = (0..shard_count).map(|_| Vec::new()).collect();
    for listener in &config.listeners {
        let failed = |reason: String| StartError::Address {
            listener: listener.bind.clone(),
            reason,
        };
        let host = match listener.bind.host.as_str() {
            "" => "0.0.0.0",
            host => host,
        };
        let mut addresses = (host, listener.bind.port)
            .to_socket_addrs()
            .map_err(|error| failed(error.to_string()))?;
        let address = addresses
            .next()
            .ok_or_else(|| failed("it resolves to no address".to_owned()))?;
        for (shard, bound) in by_shard.iter_mut().zip(net::bind(address, shard_count)?) {
            let mut advertised = listener.advertised.clone();
            if advertised.port == 0 {
                advertised.port = bound.local_addr().port();
            }
            shard.push((bound, advertised));
        }
    }
    Ok(by_shard)
}
