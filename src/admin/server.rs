use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Instant, SystemTime};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse};
use axum::routing::get;
use prometheus_client::encoding::prometheus_text;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::MissedTickBehavior;

use super::connection_limit::{LimitedListener, Limits};
use super::disk_growth::DiskGrowth;
use super::liveness::{Liveness, SAMPLE_INTERVAL};
use super::metrics_page::Figures;
use super::process::ProcessFigures;
use super::readiness::{Phase, Readiness};
use super::status_page::{self, Rates};
use super::throughput::Throughput;
use crate::config::HostPort;
use crate::metrics::{Gauge, MetricsRegistry};

#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    #[error("admin.listener={listener}: cannot listen there: {source}")]
    Listen {
        listener: HostPort,
        source: io::Error,
    },
    #[error("admin.listener: cannot start its thread: {0}")]
    Thread(#[source] io::Error),
}

/// The running admin listener. It stops when it is dropped.
#[derive(Debug)]
pub struct AdminServer {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What the pages are made from.
struct Pages {
    metrics: MetricsRegistry,
    readiness: Arc<Readiness>,
    registry: Registry,
    samples: Mutex<Samples>,
    growth: Arc<Mutex<DiskGrowth>>,
    started: Instant,
}

/// What is seen by looking at the figures again and again.
#[derive(Default)]
struct Samples {
    throughput: Throughput,
    liveness: Liveness,
}

impl AdminServer {
    /// Listens on `listener` and serves from a thread of its own, which inherits the CPU affinity of the caller: call it
    /// from a thread that is pinned to no core.
    pub fn start(
        listener: &HostPort,
        metrics: MetricsRegistry,
        readiness: Arc<Readiness>,
        connections_max: usize,
    ) -> Result<Self, AdminError> {
        let limits = Limits {
            connections_max,
            ..Limits::default()
        };
        Self::start_limited(listener, metrics, readiness, limits)
    }

    fn start_limited(
        listener: &HostPort,
        metrics: MetricsRegistry,
        readiness: Arc<Readiness>,
        limits: Limits,
    ) -> Result<Self, AdminError> {
        let listen = |source| AdminError::Listen {
            listener: listener.clone(),
            source,
        };
        let host = match listener.host.as_str() {
            "" => "0.0.0.0",
            host => host,
        };
        let listener = std::net::TcpListener::bind((host, listener.port)).map_err(listen)?;
        listener.set_nonblocking(true).map_err(listen)?;
        let bound = listener.local_addr().map_err(listen)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(AdminError::Thread)?;
        // Opens what figures of the process are read through, as long as there are descriptors.
        let _first = ProcessFigures::read();
        let pages = Arc::new(Pages::new(metrics, readiness));
        let (stop, stopped) = oneshot::channel();
        let serve = async move {
            let listener = LimitedListener::new(TcpListener::from_std(listener)?, limits);
            tokio::spawn(sample_figures(pages.clone()));
            let stopped = async {
                // An error means that the handle is gone, which is what it is for.
                let _ = stopped.await;
                Ok(())
            };
            futures_lite::future::or(axum::serve(listener, routes(pages)).into_future(), stopped)
                .await
        };
        let thread = thread::Builder::new()
            .name("admin".to_owned())
            .spawn(move || {
                if let Err(error) = runtime.block_on(serve) {
                    tracing::error!(%error, "the admin listener stopped");
                }
            })
            .map_err(AdminError::Thread)?;
        Ok(Self {
            address: bound,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Where it really listens: the port is known here if 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for AdminServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the admin thread had panicked");
        }
    }
}

impl Pages {
    fn new(metrics: MetricsRegistry, readiness: Arc<Readiness>) -> Self {
        let mut registry = Registry::default();
        let growth = Arc::default();
        registry.register_collector(Box::new(Figures {
            metrics: metrics.clone(),
            started: SystemTime::now(),
            growth: Arc::clone(&growth),
        }));
        Self {
            metrics,
            readiness,
            registry,
            samples: Mutex::default(),
            growth,
            started: Instant::now(),
        }
    }
}

fn routes(pages: Arc<Pages>) -> Router {
    Router::new()
        .route("/", get(status))
        .route("/metrics", get(metrics))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .with_state(pages)
}

async fn status(State(pages): State<Arc<Pages>>) -> impl IntoResponse {
    let (bytes_in, bytes_out) = lock(&pages.samples).throughput.bytes_per_second();
    let rates = Rates {
        bytes_in,
        bytes_out,
        growth: lock(&pages.growth).bytes_per_second(),
    };
    let page = status_page::render(
        &pages.metrics,
        pages.readiness.phase(),
        pages.started.elapsed(),
        rates,
    );
    ([(header::CACHE_CONTROL, "no-store")], Html(page))
}

async fn metrics(State(pages): State<Arc<Pages>>) -> impl IntoResponse {
    let mut page = String::new();
    match prometheus_text::encode(&mut page, &pages.registry) {
        Ok(()) => (
            StatusCode::OK,
            [(header::CONTENT_TYPE, prometheus_text::CONTENT_TYPE)],
            page,
        ),
        // The encoder is strict about names and label sets; a mistake there must be seen, not served in halves.
        Err(error) => {
            let message = format!("the metrics could not be encoded: {error}\n");
            (
                StatusCode::INTERNAL_SERVER_ERROR,
                [(header::CONTENT_TYPE, "text/plain")],
                message,
            )
        }
    }
}

/// A panic in any shard ends the process, so what is left to find out is whether one is stuck.
async fn healthz(State(pages): State<Arc<Pages>>) -> (StatusCode, String) {
    match lock(&pages.samples).liveness.stuck_shard() {
        None => (StatusCode::OK, "ok\n".to_owned()),
        Some(shard) => {
            let message = format!("shard {shard} is stuck\n");
            (StatusCode::SERVICE_UNAVAILABLE, message)
        }
    }
}

async fn readyz(State(pages): State<Arc<Pages>>) -> (StatusCode, String) {
    let phase = pages.readiness.phase();
    let mut shards = pages.metrics.shards().iter();
    if phase == Phase::Ready && shards.any(|it| it.gauge(Gauge::LogDirectoriesOffline) > 0) {
        // Nothing is confirmed any more; a restart may help.
        let message = "log directory offline\n".to_owned();
        return (StatusCode::SERVICE_UNAVAILABLE, message);
    }
    let status = if phase == Phase::Ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, format!("{phase}\n"))
}

async fn sample_figures(pages: Arc<Pages>) {
    let mut ticks = tokio::time::interval(SAMPLE_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        let mut samples = lock(&pages.samples);
        samples
            .throughput
            .sample(pages.started.elapsed(), &pages.metrics);
        samples.liveness.sample(&pages.metrics);
        drop(samples);
        lock(&pages.growth).sample(pages.started.elapsed(), &pages.metrics);
    }
}

fn lock<T>(samples: &Mutex<T>) -> MutexGuard<'_, T> {
    samples.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::time::Duration;

    fn loopback(port: u16) -> HostPort {
        HostPort {
            host: "localhost".to_owned(),
            port,
        }
    }

    fn start() -> (AdminServer, Arc<Readiness>) {
        start_with(Limits::default())
    }

    fn start_with(limits: Limits) -> (AdminServer, Arc<Readiness>) {
        let readiness = Arc::new(Readiness::default());
        let any_port = loopback(0);
        let server = AdminServer::start_limited(
            &any_port,
            MetricsRegistry::new(1),
            readiness.clone(),
            limits,
        )
        .unwrap();
        (server, readiness)
    }

    fn request(server: &AdminServer, line: &str) -> String {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        write!(
            stream,
            "{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply
    }

    #[test]
    fn readyz_says_no_until_ready_and_again_while_draining() {
        let (server, readiness) = start();
        assert!(request(&server, "GET /readyz").starts_with("HTTP/1.1 503 "));
        assert!(request(&server, "GET /healthz").starts_with("HTTP/1.1 200 "));
        readiness.advance(Phase::Ready);
        assert!(request(&server, "GET /readyz").starts_with("HTTP/1.1 200 "));
        readiness.advance(Phase::Draining);
        let reply = request(&server, "GET /readyz");
        assert!(
            reply.starts_with("HTTP/1.1 503 ") && reply.ends_with("draining\n"),
            "{reply}"
        );
    }

    #[test]
    fn pages_are_served_and_nothing_else_is() {
        let (server, _) = start();
        let metrics = request(&server, "GET /metrics");
        assert!(metrics.contains("text/plain; version=0.0.4"), "{metrics}");
        assert!(
            metrics.contains("corelog_build_info{version=\""),
            "{metrics}"
        );
        assert!(request(&server, "GET /").contains("<!doctype html>"));
        assert!(request(&server, "GET /nowhere").starts_with("HTTP/1.1 404 "));
        assert!(request(&server, "POST /metrics").starts_with("HTTP/1.1 405 "));
    }

    #[test]
    fn an_address_in_use_is_an_error_that_names_it() {
        let (server, readiness) = start();
        let taken = loopback(server.address().port());
        let error = AdminServer::start(&taken, MetricsRegistry::new(1), readiness, 1).unwrap_err();
        assert!(error.to_string().contains(&taken.to_string()), "{error}");
    }

    #[test]
    fn a_dropped_server_frees_its_port() {
        let (server, _) = start();
        let address = server.address();
        drop(server);
        assert!(TcpStream::connect(address).is_err());
    }

    #[test]
    fn a_client_that_sends_half_a_request_is_closed_and_others_go_on() {
        let limits = Limits {
            connections_max: 1,
            connection_lifetime: Duration::from_millis(50),
        };
        let (server, _) = start_with(limits);
        let mut slow = TcpStream::connect(server.address()).unwrap();
        slow.write_all(b"GET /healthz HT").unwrap();
        assert!(request(&server, "GET /healthz").ends_with("ok\n"));
        let mut rest = Vec::new();
        // Closed: by an end or by a reset, as the kernel likes; but it ends.
        let _ = slow.read_to_end(&mut rest);
        assert!(!rest.ends_with(b"ok\n"));
    }
}
