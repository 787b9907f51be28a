//! The run's own requests, as fast as a broker takes them that keeps nothing: what client and wire allow and cost without a log.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::client::cluster::{BrokerAddress, Topic};
use crate::client::error::ClientError;
use crate::clock::Clock;
use crate::cpu::this_process_cpu_seconds;
use crate::crew::{Crew, CrewNews, LoadOrder, ProducerOrder};
use crate::null_broker::{NullBroker, NullBrokerError};
use crate::payload::PayloadPool;
use crate::plan::LoadPlan;
use crate::producer::Window;
use crate::producer::batch::ProducerIdentity;
use crate::record::{ProducerNumber, RunId};
use crate::schedule::Schedule;

/// From the last connection to the first record.
const START_DELAY: Duration = Duration::from_millis(10);

/// How long the last requests are waited for.
const DRAIN: Duration = Duration::from_secs(2);

/// How long the null broker may take to see that its clients have gone.
const SESSIONS_TIMEOUT: Duration = Duration::from_secs(2);

/// What is sent: the plan's topics, partitions, producers, batches, requests in flight. Not its rates, consumers, idempotence.
#[derive(Clone, Copy)]
pub struct NullLoad<'a> {
    pub plan: &'a LoadPlan,
    pub payloads: &'a PayloadPool,
}

#[derive(Clone, Debug, Serialize)]
pub struct NullLoadBaseline {
    pub producers: u32,
    pub seconds: f64,
    /// Payload, acked.
    pub mb_per_s: f64,
    /// Everything in this process but the null broker's threads.
    pub client_cpu_s_per_gb: f64,
    pub null_broker_cpu_s_per_gb: f64,
}

#[derive(Debug, thiserror::Error)]
pub enum NullLoadError {
    #[error(transparent)]
    Broker(#[from] NullBrokerError),
    #[error("the null broker: {0}")]
    Client(#[from] ClientError),
    #[error("the null broker acked nothing")]
    NothingAcked,
    #[error("the null broker's connections had not ended after {} s", SESSIONS_TIMEOUT.as_secs())]
    Sessions,
}

pub fn measure(load: NullLoad<'_>, how_long: Duration) -> Result<NullLoadBaseline, NullLoadError> {
    let any_port = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let broker = NullBroker::start(any_port, load.plan.partitions)?;
    let clock = Clock::start();
    let order = order(load, &BrokerAddress(broker.address().to_string()), how_long);
    let producers = order.producers.len() as u32;
    let crew = Crew::gather(order, clock)?;
    // There are no consumers to wait for.
    crew.control().release();
    let (cpu_before_s, null_before_s) = (this_process_cpu_seconds(), broker.ended_sessions_cpu_s());
    // Until the last ack: a window's edge may be seen late, and this is short.
    let (mut acked_bytes, mut last_ack_ns) = (0, 0);
    let start_ns = clock.now_ns() + START_DELAY.as_nanos() as u64;
    crew.work(start_ns, |news| {
        if let CrewNews::Second(sample) = news {
            acked_bytes = sample.totals.acked_bytes;
            last_ack_ns = last_ack_ns.max(sample.last_ack_ns.unwrap_or(0));
        }
    });
    let deadline = Instant::now() + SESSIONS_TIMEOUT;
    if !broker.await_sessions(deadline) {
        return Err(NullLoadError::Sessions);
    }
    let null_s = broker.ended_sessions_cpu_s() - null_before_s;
    let client_s = this_process_cpu_seconds() - cpu_before_s - null_s;
    if acked_bytes == 0 || last_ack_ns == 0 {
        return Err(NullLoadError::NothingAcked);
    }
    let (acked_gb, seconds) = (acked_bytes as f64 / 1e9, last_ack_ns as f64 / 1e9);
    Ok(NullLoadBaseline {
        producers,
        seconds,
        mb_per_s: acked_bytes as f64 / 1e6 / seconds,
        client_cpu_s_per_gb: client_s / acked_gb,
        null_broker_cpu_s_per_gb: null_s / acked_gb,
    })
}

fn order(load: NullLoad<'_>, broker: &BrokerAddress, how_long: Duration) -> LoadOrder {
    let NullLoad { plan, payloads } = load;
    let end_ns = how_long.as_nanos() as u64;
    let topic = |number| Topic {
        name: format!("null-{number}"),
        leaders: vec![broker.clone(); plan.partitions as usize],
    };
    let producer = |number| ProducerOrder {
        number: ProducerNumber(number),
        identity: ProducerIdentity::NONE,
        topic: (number / plan.producers) as usize,
        schedule: Schedule::Closed { end_ns },
    };
    LoadOrder {
        run: RunId(0),
        topics: (0..plan.topics).map(topic).collect(),
        producers: (0..plan.topics * plan.producers).map(producer).collect(),
        consumers: Vec::new(),
        members: Vec::new(),
        has_backlog: false,
        replays: Vec::new(),
        window: Window {
            start_ns: 0,
            end_ns,
        },
        drain_until_ns: end_ns + DRAIN.as_nanos() as u64,
        acks: plan.acks,
        linger: plan.linger,
        in_flight_max: plan.in_flight_max,
        message_bytes: plan.message_bytes,
        batch_bytes_max: plan.batch_bytes_max,
        request_bytes_max: plan.request_bytes_max,
        keys: plan.keys,
        payloads: payloads.clone(),
        compression: plan.compression,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    #[test]
    fn every_producer_of_the_plan_is_acked_and_both_sides_have_their_own_cost() {
        let flags = [
            "corelog-perf",
            "run",
            "--partitions",
            "3",
            "--producers",
            "2",
            "--topics",
            "2",
        ];
        let Command::Run(arguments) = Cli::try_parse_from(flags).unwrap().command else {
            panic!("another command");
        };
        let plan = arguments.plan().unwrap();
        let payloads = PayloadPool::open(&plan.payload, plan.message_bytes).unwrap();
        let load = NullLoad {
            plan: &plan,
            payloads: &payloads,
        };
        let measured = measure(load, Duration::from_millis(50)).unwrap();
        assert_eq!(measured.producers, 4);
        assert!(measured.mb_per_s > 0.0, "{measured:?}");
        assert!(measured.client_cpu_s_per_gb > 0.0, "{measured:?}");
        assert!(measured.null_broker_cpu_s_per_gb > 0.0, "{measured:?}");
    }
}
