//! Many connections that each send thousands of small requests at once: all are answered, in order, and nobody else waits for ever. And
//! requests that are larger than what a connection may have under way.

use bytes::{BufMut, BytesMut};
use corelog::model::limits::REQUEST_BYTES_IN_FLIGHT_PER_CONNECTION_MAX;
use kafka_protocol::messages::{ApiKey, ListOffsetsResponse, ResponseHeader};
use kafka_protocol::protocol::Decodable;

use crate::broker::{Broker, new_directory};
use crate::produce::{batch_of, create_topic, list_offsets_request, log_end, produce};
use crate::wire::{Client, frame_of};

const VERSION: i16 = 1;
const MESSAGE_TOO_LARGE: i16 = 10;

#[test]
fn every_small_request_of_many_full_buffers_is_answered_in_its_order() {
    const CONNECTIONS: usize = 24;
    const REQUESTS: i32 = 1_500;
    let data = new_directory();
    let broker = Broker::start(data.path(), &["cores=0,1"]);
    let mut bystander = broker.client();
    create_topic(&mut bystander, "t", 4, &[]);
    produce(&mut bystander, "t", batch_of(&[b"a", b"b"])).unwrap();
    let mut bytes = BytesMut::new();
    for correlation_id in 0..REQUESTS {
        // Every partition in turn, so that both shards are asked.
        let request = list_offsets_request("t", correlation_id % 4, -1);
        bytes.put(frame_of(
            ApiKey::ListOffsets as i16,
            VERSION,
            correlation_id,
            &request,
        ));
    }
    let mut clients: Vec<Client> = (0..CONNECTIONS).map(|_| broker.client()).collect();
    for client in &mut clients {
        client.send(&bytes);
    }
    assert_eq!(log_end(&mut bystander, "t"), 2);
    for client in &mut clients {
        for expected in 0..REQUESTS {
            let mut answer = client.receive().expect("an answer");
            let header = ResponseHeader::decode(&mut answer, 0).unwrap();
            assert_eq!(header.correlation_id, expected);
            let response = ListOffsetsResponse::decode(&mut answer, VERSION).unwrap();
            let partition = &response.topics[0].partitions[0];
            let end = if expected % 4 == 0 { 2 } else { 0 };
            assert_eq!((partition.error_code, partition.offset), (0, end));
        }
    }
}

#[test]
fn a_request_that_is_larger_than_what_a_connection_may_have_under_way_is_answered() {
    let data = new_directory();
    let broker = Broker::start(data.path(), &[]);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[]);
    let large = batch_of(&[&vec![0; REQUEST_BYTES_IN_FLIGHT_PER_CONNECTION_MAX * 5 / 4]]);
    for _ in 0..2 {
        let refused = produce(&mut client, "t", large.clone()).unwrap_err();
        assert_eq!(refused.error_code, MESSAGE_TOO_LARGE);
    }
    produce(&mut client, "t", batch_of(&[b"a"])).unwrap();
    assert_eq!(log_end(&mut client, "t"), 1);
}
