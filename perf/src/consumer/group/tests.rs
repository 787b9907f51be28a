//! Members of one group against a coordinator that is not Kafka's.

use super::*;
use crate::client::coordinator::delete_groups;
use crate::client::fake_coordinator::FakeCoordinator;
use crate::clock::Clock;
use crate::live::Live;
use crate::payload::PayloadPool;
use crate::producer::Window;
use crate::producer::batch::{BatchTemplate, ProducerIdentity};
use crate::producer::span::BatchSpan;
use crate::record::{ProducerNumber, RunId};
use crate::schedule::Schedule;

const RUN: RunId = RunId(7);
const PARTITIONS: usize = 5;
const BATCHES: i64 = 40;
const RECORDS_PER_BATCH: u32 = 3;
const RECORDS: i64 = BATCHES * RECORDS_PER_BATCH as i64;

/// One partition's log.
fn log() -> Vec<u8> {
    let pool = PayloadPool::Random {
        random_bytes_ratio: 0.5,
        pool_size: 1,
    };
    let (number, identity) = (ProducerNumber(0), ProducerIdentity::NONE);
    let template = BatchTemplate::new(RUN, number, identity, 64, 1000, None, &pool);
    let mut log = Vec::new();
    for batch in 0..BATCHES {
        let first = batch * i64::from(RECORDS_PER_BATCH);
        let span = BatchSpan {
            partition: 0,
            first_sequence: first as u64,
            record_count: RECORDS_PER_BATCH,
            first_record: 0,
            built_ns: 0,
            keyed: None,
        };
        let mut slot = template.slot();
        let schedule = Schedule::Closed { end_ns: 0 };
        let size = template.encode(&mut slot, &span, &schedule, &Clock::start());
        slot.truncate(size);
        slot[..8].copy_from_slice(&first.to_be_bytes());
        log.extend(slot);
    }
    log
}

fn members(coordinator: &FakeCoordinator, count: u32, settings: GroupSettings) -> Vec<MemberPlan> {
    let address = BrokerAddress(coordinator.address.clone());
    let plan = |number| MemberPlan {
        group: "g".to_owned(),
        number,
        members: count,
        topic_place: 0,
        topic: Topic {
            name: "t".to_owned(),
            leaders: vec![address.clone(); PARTITIONS],
        },
        starts: vec![0; PARTITIONS],
        bootstrap: address.clone(),
        limits: FetchLimits {
            response_bytes_max: 1 << 20,
            partition_bytes_max: 1 << 20,
            response_bytes_min: 1,
            wait_ms_max: 5,
        },
        settings,
    };
    (0..count).map(plan).collect()
}

fn settings(commit_interval: Duration, rebalance_every: Option<Duration>) -> GroupSettings {
    GroupSettings {
        assignor: Assignor::Range,
        session_timeout: Duration::from_secs(30),
        heartbeat_interval: Duration::from_millis(20),
        rebalance_timeout: Duration::from_secs(30),
        commit_interval,
        rebalance_every,
    }
}

/// Lets them read until everything was handed out and `is_enough`, and returns what they did.
fn consume(
    coordinator: &FakeCoordinator,
    settings: GroupSettings,
    is_enough: impl Fn() -> bool,
) -> (Vec<MemberResult>, u64) {
    let live = Arc::new(Live::default());
    let clock = Clock::start();
    let following = Following {
        run: RUN,
        message_bytes: 64,
        clock,
        live: Arc::clone(&live),
        begun: Arc::default(),
    };
    let plans = members(coordinator, 3, settings);
    let members = Members::gather(plans, following).expect("they come together");
    assert_eq!(coordinator.members(), 3);
    members.begin(Begun {
        start_ns: clock.now_ns(),
        window: Window {
            start_ns: 0,
            end_ns: u64::MAX,
        },
    });
    let all = PARTITIONS as u64 * RECORDS as u64;
    let deadline = Instant::now() + Duration::from_secs(60);
    while live.totals().consumed_records < all || !is_enough() {
        assert!(Instant::now() < deadline, "{:?}", live.totals());
        sleep(TICK);
    }
    (members.leave(), live.totals().consumed_records)
}

fn consumption(results: &[MemberResult]) -> Consumption {
    let mut all = Handed::default();
    results.iter().for_each(|it| all.merge(it.handed.clone()));
    all.consumption("g", &[(0, RECORDS); PARTITIONS])
}

#[test]
fn members_share_the_partitions_read_everything_once_and_commit_to_the_end() {
    let coordinator = FakeCoordinator::start(log());
    let settings = settings(Duration::ZERO, None);
    let (results, consumed) = consume(&coordinator, settings, || true);
    let mut shares: Vec<_> = results.iter().map(|it| it.partitions).collect();
    shares.sort_unstable();
    assert_eq!(shares, [1, 2, 2]);
    let all = PARTITIONS as u64 * RECORDS as u64;
    let found = consumption(&results);
    assert_eq!((found.records, found.unread, found.skipped), (all, 0, 0));
    assert_eq!((found.repeated, consumed), (0, all));
    let ends = (0..PARTITIONS as i32).map(|partition| (partition, RECORDS));
    assert_eq!(coordinator.committed(), ends.collect());
    assert_eq!(coordinator.members(), 0);
}

#[test]
fn a_group_is_deleted_with_its_offsets_once_its_members_have_left() {
    let coordinator = FakeCoordinator::start(log());
    let settings = settings(Duration::ZERO, None);
    let groups = ["g".to_owned()];
    let delete = || delete_groups(&coordinator.address, &groups);
    consume(&coordinator, settings, || {
        let refused = delete().expect_err("it has members").to_string();
        assert!(refused.contains("NON_EMPTY_GROUP"), "{refused}");
        true
    });
    assert!(!coordinator.committed().is_empty());
    delete().expect("nobody is in it");
    assert!(coordinator.committed().is_empty());
    delete().expect("a group that is not there is none that stays");
}

#[test]
fn members_that_leave_and_come_back_pass_nothing_over() {
    let coordinator = FakeCoordinator::start(log());
    let every = Duration::from_millis(150);
    let begin = Instant::now();
    let settings = settings(Duration::from_millis(10), Some(every));
    let (results, consumed) = consume(&coordinator, settings, || begin.elapsed() > every * 8);
    let found = consumption(&results);
    assert_eq!((found.unread, found.skipped), (0, 0), "{found:?}");
    // A record that came again is counted as repeated and not as consumed.
    assert_eq!(consumed, PARTITIONS as u64 * RECORDS as u64);
    let generations = results.iter().flat_map(|it| it.generations.iter());
    assert!(generations.max() > Some(&2));
    assert_eq!(coordinator.members(), 0);
}

#[test]
fn a_broker_without_groups_is_told_before_the_load() {
    let broker = crate::client::fake_broker::FakeBroker::start(|_| {
        crate::client::fake_broker::Reaction::Append
    });
    let coordinator = FakeCoordinator::start(Vec::new());
    let mut plans = members(&coordinator, 1, settings(Duration::ZERO, None));
    plans[0].bootstrap = BrokerAddress(broker.address);
    let following = Following {
        run: RUN,
        message_bytes: 64,
        clock: Clock::start(),
        live: Arc::default(),
        begun: Arc::default(),
    };
    let error = Members::gather(plans, following).err().expect("refused");
    assert!(error.to_string().contains("FindCoordinator"), "{error}");
}
