//! Fetches that wait for many bytes, that ask for several partitions within one bound, or that meet very many small batches.

use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use corelog::record::header::RecordBatchHeader;
use kafka_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use kafka_protocol::messages::fetch_request::FetchPartition;
use kafka_protocol::messages::fetch_response::FetchResponse;
use kafka_protocol::messages::produce_request::PartitionProduceData;
use kafka_protocol::messages::{DeleteRecordsRequest, FetchRequest, ProduceRequest};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::broker::{Broker, WAIT_MAX, new_directory};
use crate::produce::{
    batch_of, create_topic, fetch, fetch_request, produce, topic_data, topic_name,
};
use crate::wire::{Client, frame_of};

const TOPIC: &str = "fetched";
const FETCH_VERSION: i16 = 12;
const FETCH_KEY: i16 = 1;
const PRODUCE_VERSION: i16 = 9;
const PRODUCE_KEY: i16 = 0;
const MIB: i32 = 1024 * 1024;
/// The bytes of records that owners have read for fetches out of memory.
const READ_BYTES: &str = "corelog_tail_read_bytes_total";

/// A fetch of partitions, each from its offset and within its bound.
fn fetch_of(client: &mut Client, partitions: &[(i32, i64, i32)]) -> FetchRequest {
    let mut request = fetch_request(client, FETCH_VERSION, TOPIC, 0);
    let partitions = partitions.iter().map(|&(index, offset, max_bytes)| {
        FetchPartition::default()
            .with_partition(index)
            .with_fetch_offset(offset)
            .with_partition_max_bytes(max_bytes)
    });
    request.topics[0].partitions = partitions.collect();
    request
}

fn produce_to(client: &mut Client, partition: i32, value_bytes: usize) {
    let value = vec![b'v'; value_bytes];
    let mut topic = topic_data(TOPIC, None);
    topic.partition_data = vec![
        PartitionProduceData::default()
            .with_index(partition)
            .with_records(Some(batch_of(&[&value]))),
    ];
    let request = ProduceRequest::default()
        .with_acks(-1)
        .with_timeout_ms(30_000)
        .with_topic_data(vec![topic]);
    let answer = client.ask(PRODUCE_VERSION, &request);
    assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
}

/// The sizes of the records of each partition, in the order of the answer.
fn sizes(answer: &FetchResponse) -> Vec<usize> {
    let partitions = answer.responses.iter().flat_map(|it| &it.partitions);
    let sizes = partitions.map(|it| {
        assert_eq!(it.error_code, 0);
        it.records.as_ref().map_or(0, Bytes::len)
    });
    sizes.collect()
}

/// The base offsets of whole batches, one after the other, and the offset after them.
fn walk(mut records: Bytes) -> (Vec<i64>, i64) {
    let (mut offsets, mut next) = (Vec::new(), 0);
    while !records.is_empty() {
        let header = RecordBatchHeader::parse(&records).unwrap();
        assert!(header.crc_fits(&records.split_to(header.size_bytes())));
        offsets.push(header.base_offset.0);
        next = header.next_offset().0;
    }
    (offsets, next)
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < WAIT_MAX, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn waits(broker: &Broker) -> f64 {
    broker.figure(
        "corelog_request_duration_seconds_count",
        "api=\"Fetch\",stage=\"wait\"",
    )
}

#[test]
fn a_long_poll_counts_bytes_of_all_its_partitions_and_reads_once_when_they_are_enough() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[]);
    let (mut client, mut poller) = (broker.client(), broker.client());
    create_topic(&mut client, TOPIC, 4, &[]);
    let partitions = [0, 1, 2, 3].map(|index| (index, 0, MIB));
    let min_bytes = 200_000;
    let request = fetch_of(&mut poller, &partitions)
        .with_min_bytes(min_bytes)
        .with_max_wait_ms(i32::MAX);
    // One that asks for more than will come, and so sees every append too.
    let mut hungry = broker.client();
    let more = request.clone().with_min_bytes(2 * min_bytes);
    hungry.send(&frame_of(FETCH_KEY, FETCH_VERSION, 1, &more));
    poller.send(&frame_of(FETCH_KEY, FETCH_VERSION, 1, &request));
    wait_until("both fetches wait", || {
        broker.metric("corelog_fetches_waiting") == 2
    });

    let before = broker.metric(READ_BYTES);
    let batch_bytes = batch_of(&[&[b'v'; 1_000]]).len();
    let enough = (min_bytes as usize).div_ceil(batch_bytes);
    for batch in 0..enough {
        assert!(!poller.has_answer(), "an answer after {batch} batches");
        produce_to(&mut client, batch as i32 % 4, 1_000);
    }
    let mut frame = poller.receive().unwrap();
    let delivered = enough * batch_bytes;
    assert!(frame.len() >= delivered && frame.split_off(delivered).len() < 1_000);
    assert_eq!(broker.metric(READ_BYTES) - before, delivered as u64);
    assert!(!hungry.has_answer());
    broker.stop();
}

#[test]
fn min_bytes_that_are_there_are_not_waited_for() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[]);
    let mut client = broker.client();
    create_topic(&mut client, TOPIC, 4, &[]);
    for partition in [0, 1, 2, 3] {
        for _ in 0..5 {
            produce_to(&mut client, partition, 300_000);
        }
    }
    let cases: &[&[i32]] = &[&[0], &[0, 1], &[0, 1, 2, 3]];
    for &partitions in cases {
        let partitions: Vec<_> = partitions.iter().map(|&it| (it, 0, MIB)).collect();
        // Whole batches of one partition are less than what is asked for, and so are equal shares of the whole.
        let request = fetch_of(&mut client, &partitions)
            .with_min_bytes(MIB)
            .with_max_bytes(MIB)
            .with_max_wait_ms(WAIT_MAX.as_millis() as i32 / 2);
        let answer = client.ask(FETCH_VERSION, &request);
        let sum: usize = sizes(&answer).iter().sum();
        assert!((900_000..=MIB as usize).contains(&sum), "{sum} bytes");
        // More than its partitions may give is no reason to wait either.
        let request = request.with_min_bytes(i32::MAX).with_max_bytes(i32::MAX);
        let answer = client.ask(FETCH_VERSION, &request);
        assert!(sizes(&answer).iter().all(|&size| size > 900_000));
    }
    assert_eq!(waits(&broker), 0.0);
    broker.stop();
}

#[test]
fn a_long_poll_that_ends_by_its_time_gives_what_there_is() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[]);
    let mut client = broker.client();
    create_topic(&mut client, TOPIC, 2, &[]);
    for partition in [0, 1] {
        produce_to(&mut client, partition, 1_000);
    }
    let request = fetch_of(&mut client, &[(0, 0, MIB), (1, 0, MIB)])
        .with_min_bytes(100_000)
        .with_max_wait_ms(300);
    let before = broker.metric(READ_BYTES);
    let answer = client.ask(FETCH_VERSION, &request);
    let sizes = sizes(&answer);
    assert!(sizes.iter().all(|&size| size > 1_000), "{sizes:?}");
    let sum: usize = sizes.iter().sum();
    assert_eq!(broker.metric(READ_BYTES) - before, sum as u64);
    assert_eq!(waits(&broker), 1.0);
    broker.stop();
}

#[test]
fn only_the_first_partition_that_has_something_exceeds_the_bounds_of_a_fetch() {
    let seed = rand::rng().random();
    println!("seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let data = new_directory();
    let partition_count = 6;
    let mut broker = Broker::start(data.path(), &[]);
    let mut client = broker.client();
    create_topic(&mut client, TOPIC, partition_count, &[]);
    let batches_of: Vec<Vec<usize>> = (0..partition_count)
        .map(|partition| {
            let count = rng.random_range(0..6);
            let batches = (0..count).map(|_| {
                let value_bytes = rng.random_range(1..20_000);
                produce_to(&mut client, partition, value_bytes);
                batch_of(&[&vec![b'v'; value_bytes]]).len()
            });
            batches.collect()
        })
        .collect();
    for round in 0..400 {
        // The second half is read from the disk.
        if round == 200 {
            broker.stop();
            broker = Broker::start(data.path(), &[]);
            client = broker.client();
        }
        let mut order: Vec<i32> = (0..partition_count).collect();
        for n in (1..order.len()).rev() {
            order.swap(n, rng.random_range(0..=n));
        }
        let asked: Vec<_> = order
            .iter()
            .map(|&partition| {
                let end = batches_of[partition as usize].len() as i64;
                let offset = rng.random_range(0..=end);
                (partition, offset, rng.random_range(0..60_000))
            })
            .collect();
        let max_bytes = rng.random_range(0..100_000);
        let min_bytes = [0, 1, 20_000][rng.random_range(0..3)];
        let request = fetch_of(&mut client, &asked)
            .with_max_bytes(max_bytes)
            .with_min_bytes(min_bytes)
            .with_max_wait_ms(1);
        let answer = client.ask(FETCH_VERSION, &request);
        let sizes = sizes(&answer);
        let (mut left_bytes, mut is_first, mut has_data) = (max_bytes as usize, true, false);
        for (&(partition, offset, partition_max), &size) in asked.iter().zip(&sizes) {
            let batches = &batches_of[partition as usize][offset as usize..];
            has_data |= !batches.is_empty();
            let is_whole = (0..=batches.len()).any(|n| batches[..n].iter().sum::<usize>() == size);
            assert!(is_whole, "{size} bytes of {batches:?}");
            let bound = left_bytes.min(partition_max as usize);
            if is_first && !batches.is_empty() {
                let least = batches[0];
                assert!(
                    size >= least && size <= bound.max(least),
                    "{asked:?}: {sizes:?}"
                );
                is_first = false;
            } else {
                assert!(size <= bound, "{max_bytes}, {asked:?}: {sizes:?}");
            }
            left_bytes = left_bytes.saturating_sub(size);
        }
        assert_eq!(sizes.iter().sum::<usize>() > 0, has_data);
    }
    broker.stop();
}

#[test]
fn what_several_owners_have_is_filled_into_one_answer_up_to_its_bound() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[]);
    let mut client = broker.client();
    create_topic(&mut client, TOPIC, 8, &[]);
    for partition in 0..8 {
        produce_to(&mut client, partition, 10_000);
    }
    // One partition has all the rest of what is asked for.
    for _ in 0..50 {
        produce_to(&mut client, 5, 10_000);
    }
    let partitions: Vec<_> = (0..8).map(|index| (index, 0, MIB)).collect();
    let batch_bytes = batch_of(&[&[b'v'; 10_000]]).len();
    let max_bytes = 40 * batch_bytes + 500;
    let request = fetch_of(&mut client, &partitions).with_max_bytes(max_bytes as i32);
    let answer = client.ask(FETCH_VERSION, &request);
    let sum: usize = sizes(&answer).iter().sum();
    assert_eq!(sum / batch_bytes, 40, "{:?}", sizes(&answer));
    broker.stop();
}

#[test]
fn an_answer_of_many_partitions_leaves_the_room_that_clients_count_with() {
    // librdkafka takes up to `fetch.max.bytes` + 512 if it is told nothing else.
    const OVERHEAD_BYTES: usize = 512;
    let data = new_directory();
    let broker = Broker::start(data.path(), &[]);
    let mut client = broker.client();
    let partition_count = 24;
    create_topic(&mut client, TOPIC, partition_count, &[]);
    let batch_bytes = batch_of(&[&[b'v'; 10_000]]).len();
    for partition in 0..partition_count {
        produce_to(&mut client, partition, 10_000);
    }
    let partitions: Vec<_> = (0..partition_count).map(|it| (it, 0, MIB)).collect();
    let max_bytes = 10 * batch_bytes;
    let request = fetch_of(&mut client, &partitions).with_max_bytes(max_bytes as i32);
    client.send(&frame_of(FETCH_KEY, FETCH_VERSION, 1, &request));
    let frame_bytes = client.receive().unwrap().len();
    assert!(
        frame_bytes <= max_bytes + OVERHEAD_BYTES,
        "{frame_bytes} bytes"
    );
    assert!(frame_bytes > 9 * batch_bytes, "{frame_bytes} bytes");
    broker.stop();
}

#[test]
fn a_read_in_memory_goes_on_in_the_next_segment() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[]);
    let mut client = broker.client();
    create_topic(&mut client, TOPIC, 1, &[("segment.bytes", "1048576")]);
    for _ in 0..30 {
        produce_to(&mut client, 0, 100_000);
    }
    let request = fetch_of(&mut client, &[(0, 0, 10 * MIB)]);
    let mut answer = client.ask(FETCH_VERSION, &request);
    let records = answer.responses[0].partitions[0].records.take().unwrap();
    assert!(walk(records).0.into_iter().eq(0..30));
    broker.stop();
}

/// Sends `count` produce requests of one small batch each, without waiting in between.
fn produce_small(client: &mut Client, count: usize) {
    let request = ProduceRequest::default()
        .with_acks(-1)
        .with_timeout_ms(30_000)
        .with_topic_data(vec![topic_data(TOPIC, Some(batch_of(&[&[b's'; 150]])))]);
    let frame = frame_of(PRODUCE_KEY, PRODUCE_VERSION, 1, &request);
    let mut left = count;
    while left > 0 {
        let now = left.min(100);
        client.send(&frame.repeat(now));
        (0..now).for_each(|_| drop(client.receive().unwrap()));
        left -= now;
    }
}

#[test]
fn a_fetch_over_very_many_small_batches_gives_each_once_and_reads_none_twice() {
    const COUNT: usize = 10_000;
    let data = new_directory();
    let broker = Broker::start(data.path(), &[]);
    let mut client = broker.client();
    create_topic(&mut client, TOPIC, 1, &[]);
    produce_small(&mut client, COUNT);
    let (mut next, mut fetches, mut delivered) = (0, 0, 0);
    let before = broker.metric(READ_BYTES);
    while next < COUNT as i64 {
        let request = fetch_of(&mut client, &[(0, next, 50 * MIB)]);
        let mut answer = client.ask(FETCH_VERSION, &request);
        let records = answer.responses[0].partitions[0].records.take().unwrap();
        delivered += records.len();
        let (offsets, end) = walk(records);
        assert!(offsets.iter().copied().eq(next..end) && end > next);
        next = end;
        fetches += 1;
    }
    assert!(fetches <= 2, "{fetches} fetches");
    assert_eq!(broker.metric(READ_BYTES) - before, delivered as u64);
    broker.stop();
}

#[test]
fn a_long_read_while_its_records_are_deleted_gives_batches_in_order_or_says_out_of_range() {
    const COUNT: usize = 9_000;
    const OFFSET_OUT_OF_RANGE: i16 = 1;
    let data = new_directory();
    let broker = Broker::start(data.path(), &[]);
    let mut client = broker.client();
    // Small segments and little memory: what is deleted really goes.
    create_topic(&mut client, TOPIC, 1, &[("segment.bytes", "1048576")]);
    produce_small(&mut client, COUNT);
    let deleter = {
        let mut client = broker.client();
        thread::spawn(move || {
            for before in (0..=COUNT as i64).step_by(500) {
                let partition = DeleteRecordsPartition::default().with_offset(before);
                let topic = DeleteRecordsTopic::default()
                    .with_name(topic_name(TOPIC))
                    .with_partitions(vec![partition]);
                let request = DeleteRecordsRequest::default()
                    .with_timeout_ms(30_000)
                    .with_topics(vec![topic]);
                let answer = client.ask(2, &request);
                assert_eq!(answer.topics[0].partitions[0].error_code, 0);
            }
        })
    };
    let (mut fetches, mut given) = (0, 0);
    while !deleter.is_finished() || fetches == 0 {
        let from = (fetches * 997) % COUNT as i64;
        let request = fetch_of(&mut client, &[(0, from, 50 * MIB)]);
        let mut answer = client.ask(FETCH_VERSION, &request);
        let mut partition = answer.responses[0].partitions.remove(0);
        fetches += 1;
        match partition.error_code {
            0 => {
                let (offsets, end) = walk(partition.records.take().unwrap());
                assert!(
                    offsets.iter().copied().eq(from..end),
                    "from {from} to {end}"
                );
                given += offsets.len();
            }
            code => assert_eq!(code, OFFSET_OUT_OF_RANGE),
        }
    }
    deleter.join().unwrap();
    println!("{fetches} fetches gave {given} batches");
    assert_eq!(
        fetch(&mut client, TOPIC, 0).unwrap_err(),
        OFFSET_OUT_OF_RANGE
    );
    assert_eq!(
        produce(&mut client, TOPIC, batch_of(&[b"on"])).unwrap(),
        COUNT as i64
    );
    broker.stop();
}
