//! Fetches of many partitions that lie on the disk, of which a response holds but a few.

use std::thread;

use corelog::record::header::RecordBatchHeader;
use kafka_protocol::messages::FetchRequest;
use kafka_protocol::messages::fetch_request::FetchPartition;
use kafka_protocol::messages::produce_request::PartitionProduceData;
use kafka_protocol::messages::{BrokerId, ProduceRequest};

use crate::broker::{Broker, new_directory};
use crate::produce::{batch_of, create_topic, fetch_request, topic_data};
use crate::wire::Client;

const TOPIC: &str = "cold";
const FETCH_VERSION: i16 = 12;
const BATCHES: i64 = 5;
const VALUE_BYTES: usize = 60_000;
const PARTITION_BYTES: u64 = BATCHES as u64 * VALUE_BYTES as u64;
const SHARE_OF_SHARD_BYTES: usize = 512 * 1024;

fn cores() -> usize {
    thread::available_parallelism().unwrap().get()
}

/// A fetch of all partitions from these offsets.
fn fetch_all(
    client: &mut Client,
    offsets: &[i64],
    max_bytes: usize,
    partition_max_bytes: usize,
) -> FetchRequest {
    let mut request = fetch_request(client, FETCH_VERSION, TOPIC, 0);
    let partitions = offsets.iter().zip(0..).map(|(&offset, index)| {
        FetchPartition::default()
            .with_partition(index)
            .with_fetch_offset(offset)
            .with_partition_max_bytes(partition_max_bytes as i32)
    });
    request.topics[0].partitions = partitions.collect();
    request
        .with_max_bytes(max_bytes as i32)
        .with_replica_id(BrokerId(-1))
}

fn fill(client: &mut Client, partitions: i32, batches: i64) {
    create_topic(client, TOPIC, partitions, &[]);
    let value = vec![b'v'; VALUE_BYTES];
    for _ in 0..batches {
        let data = (0..partitions).map(|index| {
            PartitionProduceData::default()
                .with_index(index)
                .with_records(Some(batch_of(&[&value])))
        });
        let mut topic = topic_data(TOPIC, None);
        topic.partition_data = data.collect();
        let request = ProduceRequest::default()
            .with_acks(-1)
            .with_timeout_ms(30_000)
            .with_topic_data(vec![topic]);
        let answer = client.ask(9, &request);
        let mut replies = answer.responses[0].partition_responses.iter();
        assert!(replies.all(|it| it.error_code == 0));
    }
}

#[test]
fn a_fetch_that_is_full_reads_no_more_from_the_disk_and_starves_no_partition() {
    let data = new_directory();
    let partitions = 16 * cores();
    let broker = Broker::start(data.path(), &[]);
    fill(&mut broker.client(), partitions as i32, BATCHES);
    broker.stop();
    let broker = Broker::start(data.path(), &[]);
    let mut client = broker.client();

    let mut offsets = vec![0; partitions];
    let mut fetches = 0;
    while offsets.iter().any(|&offset| offset < BATCHES) {
        let max_bytes = cores() * SHARE_OF_SHARD_BYTES;
        let request = fetch_all(&mut client, &offsets, max_bytes, 1024 * 1024);
        let before = broker.metric("corelog_disk_read_bytes_total");
        let answer = client.ask(FETCH_VERSION, &request);
        let read_bytes = broker.metric("corelog_disk_read_bytes_total") - before;
        let mut delivered_bytes = 0;
        for partition in &answer.responses[0].partitions {
            assert_eq!(partition.error_code, 0);
            let mut records = partition.records.clone().unwrap_or_default();
            delivered_bytes += records.len() as u64;
            while !records.is_empty() {
                let header = RecordBatchHeader::parse(&records).unwrap();
                let offset = &mut offsets[partition.partition_index as usize];
                assert_eq!(header.base_offset.0, *offset);
                *offset = header.next_offset().0;
                let _ = records.split_to(header.size_bytes());
            }
        }
        assert!(delivered_bytes > 0, "{fetches} fetches came to {offsets:?}");
        // What is fetched ahead of those delivered, and one more of each shard, which did not fit.
        let allowed_bytes = delivered_bytes + 3 * PARTITION_BYTES * cores() as u64;
        assert!(
            read_bytes <= allowed_bytes,
            "{read_bytes} bytes read, {delivered_bytes} delivered of {partitions} partitions"
        );
        fetches += 1;
    }
    broker.stop();
}

/// The disk gives a mebibyte of a partition at once: a client that takes more of each is not answered with one partition's.
#[test]
fn a_fetch_is_filled_with_what_many_partitions_have_on_the_disk() {
    const BATCHES: i64 = 40;
    const PARTITION_READ_BYTES: usize = 1024 * 1024;
    let data = new_directory();
    let partitions = 4 * cores();
    let broker = Broker::start(data.path(), &[]);
    fill(&mut broker.client(), partitions as i32, BATCHES);
    broker.stop();
    let broker = Broker::start(data.path(), &[]);
    let mut client = broker.client();
    let max_bytes = 3 * cores() * PARTITION_READ_BYTES;
    let request = fetch_all(&mut client, &vec![0; partitions], max_bytes, max_bytes);
    let answer = client.ask(FETCH_VERSION, &request);
    let records = answer.responses[0].partitions.iter();
    let delivered_bytes: usize = records
        .filter_map(|it| it.records.as_ref())
        .map(|it| it.len())
        .sum();
    assert!(delivered_bytes <= max_bytes);
    assert!(
        delivered_bytes >= max_bytes / 2,
        "{delivered_bytes} bytes of at most {max_bytes} from {partitions} partitions"
    );
    broker.stop();
}
