use std::net::TcpListener;
use std::thread;

use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::{ApiVersionsResponse, MetadataRequest, MetadataResponse};

use super::*;

const OPTIONS: ClientOptions = ClientOptions {
    client_id: "test",
    connect_timeout: Duration::from_secs(20),
    greeting_timeout: Duration::from_secs(20),
    response_timeout: Duration::from_secs(20),
};

/// Takes one connection and hands it to `serve`.
fn peer(serve: impl FnOnce(TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || serve(listener.accept().unwrap().0));
    address
}

/// Reads a request and returns its correlation id.
fn request(stream: &mut TcpStream) -> i32 {
    let mut size = [0; 4];
    stream.read_exact(&mut size).unwrap();
    let mut frame = vec![0; u32::from_be_bytes(size) as usize];
    stream.read_exact(&mut frame).unwrap();
    i32::from_be_bytes(frame[4..8].try_into().unwrap())
}

fn answer(stream: &mut TcpStream, correlation_id: i32, body: &[u8]) {
    let size = 4 + body.len() as i32;
    let frame = [&size.to_be_bytes()[..], &correlation_id.to_be_bytes(), body].concat();
    stream.write_all(&frame).unwrap();
}

/// Answers the greeting of a broker that serves Metadata in these versions.
fn greet(stream: &mut TcpStream, min: i16, max: i16) {
    let correlation_id = request(stream);
    let metadata = ApiVersion::default()
        .with_api_key(ApiKey::Metadata as i16)
        .with_min_version(min)
        .with_max_version(max);
    let mut body = BytesMut::new();
    ApiVersionsResponse::default()
        .with_api_keys(vec![metadata])
        .encode(&mut body, 2)
        .unwrap();
    answer(stream, correlation_id, &body);
}

fn metadata_from(serve: impl FnOnce(TcpStream) + Send + 'static) -> ClientError {
    let address = peer(serve);
    let mut connection = Connection::open(&address, &OPTIONS).unwrap();
    connection.call(&MetadataRequest::default()).unwrap_err()
}

#[test]
fn an_address_where_nobody_listens_is_told() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let error = Connection::open(&address, &OPTIONS).err().unwrap();
    assert!(matches!(error, ClientError::Connect { .. }), "{error}");
    let error = Connection::open("nonsense", &OPTIONS).err().unwrap();
    assert!(matches!(error, ClientError::Address { .. }), "{error}");
}

#[test]
fn another_protocols_greeting_is_not_taken_for_a_frame() {
    assert!(frame_size(*b"HTTP").is_err());
    assert!(frame_size([0x80, 0, 0, 0]).is_err());
    assert!(frame_size([0, 0, 0, 3]).is_err());
    assert_eq!(frame_size([0, 0, 1, 0]), Ok(256));
    let address = peer(|mut stream| {
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .unwrap();
    });
    let error = Connection::open(&address, &OPTIONS).err().unwrap();
    assert!(matches!(error, ClientError::Protocol { .. }), "{error}");
}

#[test]
fn a_peer_that_closes_and_one_that_stays_silent_are_told_apart() {
    let closing = peer(|mut stream| _ = request(&mut stream));
    let error = Connection::open(&closing, &OPTIONS).err().unwrap();
    assert!(matches!(error, ClientError::Closed { .. }), "{error}");
    let (ended, end) = std::sync::mpsc::channel::<()>();
    let silent = peer(move |_stream| _ = end.recv());
    let brief = ClientOptions {
        greeting_timeout: Duration::from_millis(20),
        ..OPTIONS
    };
    let error = Connection::open(&silent, &brief).err().unwrap();
    assert!(matches!(error, ClientError::Silent { .. }), "{error}");
    drop(ended);
}

#[test]
fn a_peer_that_draws_its_answer_out_byte_by_byte_is_given_up() {
    let slow = peer(|mut stream| {
        // A frame of a megabyte, of which a byte comes now and then.
        let _ = stream.write_all(&[0, 16, 0, 0]);
        while stream.write_all(&[0]).is_ok() {
            thread::sleep(Duration::from_millis(5));
        }
    });
    let brief = ClientOptions {
        greeting_timeout: Duration::from_millis(100),
        ..OPTIONS
    };
    let error = Connection::open(&slow, &brief).err().unwrap();
    assert!(matches!(error, ClientError::Silent { .. }), "{error}");
}

#[test]
fn the_highest_version_of_both_sides_is_spoken_and_none_is_an_error() {
    let (tell, told) = std::sync::mpsc::channel();
    let address = peer(move |mut stream| {
        greet(&mut stream, 0, 7);
        let mut size = [0; 4];
        stream.read_exact(&mut size).unwrap();
        let mut frame = vec![0; u32::from_be_bytes(size) as usize];
        stream.read_exact(&mut frame).unwrap();
        tell.send(frame[2..4].to_vec()).unwrap();
        let mut body = BytesMut::new();
        MetadataResponse::default().encode(&mut body, 7).unwrap();
        answer(&mut stream, 1, &body);
    });
    let mut connection = Connection::open(&address, &OPTIONS).unwrap();
    connection.call(&MetadataRequest::default()).unwrap();
    assert_eq!(told.recv().unwrap(), [0, 7]);
    let error = metadata_from(|mut stream| greet(&mut stream, 0, 0));
    assert!(matches!(error, ClientError::Version { .. }), "{error}");
}

/// The codec would ask for two thousand million brokers of memory, and the process would be ended.
#[test]
fn a_count_that_lies_is_refused_before_it_is_decoded() {
    let error = metadata_from(|mut stream| {
        greet(&mut stream, 0, 8);
        let correlation_id = request(&mut stream);
        answer(
            &mut stream,
            correlation_id,
            &[0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff],
        );
    });
    assert!(matches!(error, ClientError::Shape { .. }), "{error}");
    let error = metadata_from(|mut stream| {
        greet(&mut stream, 0, 12);
        let correlation_id = request(&mut stream);
        // Two thousand million tagged fields in the header.
        answer(&mut stream, correlation_id, &[0xff, 0xff, 0xff, 0xff, 0x07]);
    });
    assert!(matches!(error, ClientError::Shape { .. }), "{error}");
}

#[test]
fn an_answer_to_another_request_or_with_bytes_behind_it_is_no_answer() {
    let error = metadata_from(|mut stream| {
        greet(&mut stream, 0, 8);
        let correlation_id = request(&mut stream);
        answer(&mut stream, correlation_id + 1, &[]);
    });
    assert!(error.to_string().contains("is numbered 2"), "{error}");
    let error = metadata_from(|mut stream| {
        greet(&mut stream, 0, 8);
        let correlation_id = request(&mut stream);
        let mut body = BytesMut::new();
        MetadataResponse::default().encode(&mut body, 8).unwrap();
        answer(&mut stream, correlation_id, &[&body[..], b"more"].concat());
    });
    assert!(error.to_string().contains("4 bytes follow"), "{error}");
}
