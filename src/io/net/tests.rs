//! Connections between an executor and blocking sockets.

use std::io::{IoSlice, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream as BlockingStream};
use std::thread;
use std::time::Duration;

use super::*;
use crate::io::executor::{block_on, sleep, spawn_local, timeout};
use crate::io::recv::RecvPool;

fn listen() -> Listener {
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    bind(any_port, 1).expect("a listener").remove(0).open()
}

/// A connection of this executor and the blocking socket at its other end.
async fn pair() -> (Connection, BlockingStream) {
    let listener = listen();
    let peer = BlockingStream::connect(listener.local_addr()).expect("a connection");
    (
        listener
            .accept()
            .await
            .expect("the connection")
            .into_connection(),
        peer,
    )
}

/// As many bytes as no pair of socket buffers holds, in a pattern that no page or slice boundary repeats.
fn many_bytes() -> Vec<u8> {
    let pattern: Vec<u8> = (0..65_521u32).map(|i| (i ^ (i >> 7)) as u8).collect();
    pattern.repeat(512)
}

#[test]
fn slices_arrive_whole_and_in_order_however_slowly_the_peer_reads() {
    block_on(async {
        let (connection, mut peer) = pair().await;
        let sent = many_bytes();
        let expected = sent.clone();
        let reading = thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            let mut received = Vec::new();
            peer.read_to_end(&mut received).expect("the bytes");
            assert!(
                received == expected,
                "{} of {} bytes, or in another order",
                received.len(),
                expected.len()
            );
        });
        let (_reader, mut writer) = connection.split();
        // Sizes from none to a megabyte, and more slices than one call takes.
        let mut parts: Vec<&[u8]> = Vec::new();
        let mut rest = &sent[..];
        for len_bytes in [0, 1, 0, 4095, 1 << 20, 3, 0]
            .into_iter()
            .chain([700; 3000])
        {
            let (part, behind) = rest.split_at(len_bytes);
            parts.push(part);
            rest = behind;
        }
        parts.push(rest);
        parts.push(b"");
        let mut parts: Vec<_> = parts.into_iter().map(IoSlice::new).collect();
        writer.write_all(&mut parts, || ()).await.expect("all sent");
        writer.finish();
        reading.join().expect("the reader");
    });
}

#[test]
fn a_read_takes_all_that_has_arrived_and_then_sees_the_end() {
    block_on(async {
        let (connection, mut peer) = pair().await;
        let (mut reader, _writer) = connection.split();
        let sent = many_bytes();
        let expected = sent.clone();
        let writing = thread::spawn(move || peer.write_all(&sent));
        let mut buffer = RecvPool::new(0).take(expected.len() + 1);
        let mut reads = 0;
        while reader.read_into(&mut buffer).await.expect("bytes") > 0 {
            reads += 1;
        }
        assert!(
            buffer.bytes() == expected,
            "{} of {} bytes",
            buffer.len(),
            expected.len()
        );
        assert!(
            reads < 32 << 10,
            "{reads} reads of less than a kilobyte each"
        );
        writing.join().expect("the writer").expect("all sent");
    });
}

#[test]
fn both_halves_work_at_the_same_time() {
    block_on(async {
        let (connection, mut peer) = pair().await;
        let (mut reader, mut writer) = connection.split();
        let echoing = spawn_local(async move {
            let mut buffer = vec![0; 64 << 10];
            loop {
                let received_bytes = reader.read(&mut buffer).await.expect("bytes");
                if received_bytes == 0 {
                    return;
                }
                writer
                    .write_all(&mut [IoSlice::new(&buffer[..received_bytes])], || ())
                    .await
                    .expect("an echo");
            }
        });
        let sent = many_bytes();
        let expected = sent.clone();
        let mut sending = peer.try_clone().expect("a second handle");
        let writing = thread::spawn(move || {
            sending.write_all(&sent).expect("all sent");
            sending.shutdown(Shutdown::Write).expect("an end");
        });
        let reading = thread::spawn(move || {
            let mut echoed = Vec::new();
            peer.read_to_end(&mut echoed).expect("the echo");
            assert!(echoed == expected);
        });
        echoing.await;
        writing.join().expect("the writer");
        reading.join().expect("the reader");
    });
}

#[test]
fn a_writer_waits_for_a_peer_that_does_not_read_while_its_reader_goes_on() {
    block_on(async {
        let (connection, mut peer) = pair().await;
        let (mut reader, mut writer) = connection.split();
        let flood = many_bytes();
        let writing =
            spawn_local(async move { writer.write_all(&mut [IoSlice::new(&flood)], || ()).await });
        sleep(Duration::from_millis(20)).await;
        peer.write_all(b"still here").expect("all sent");
        let mut buffer = [0; 64];
        assert_eq!(reader.read(&mut buffer).await.expect("bytes"), 10);
        assert_eq!(&buffer[..10], b"still here");
        writing.cancel().await;
    });
}

#[test]
fn dropping_both_halves_ends_the_stream_at_the_peer_at_once() {
    block_on(async {
        let (connection, mut peer) = pair().await;
        let (reader, writer) = connection.split();
        drop(reader);
        drop(writer);
        // Within the same turn of the executor: nothing is left to a later one.
        assert_eq!(peer.read(&mut [0]).expect("an end"), 0);
    });
}

#[test]
fn a_peer_that_is_gone_is_a_disconnect_for_reader_and_writer() {
    block_on(async {
        let (connection, peer) = pair().await;
        let (mut reader, mut writer) = connection.split();
        // Closing with unread bytes resets the connection.
        writer
            .write_all(&mut [IoSlice::new(b"unread")], || ())
            .await
            .expect("room");
        sleep(Duration::from_millis(10)).await;
        drop(peer);
        let error = reader.read(&mut [0]).await.expect_err("a reset");
        assert!(error.is_disconnect(), "{error}");
        let error = writer
            .write_all(&mut [IoSlice::new(b"more")], || ())
            .await
            .expect_err("a closed connection");
        assert!(error.is_disconnect(), "{error}");
    });
}

#[test]
fn a_closer_ends_a_read_that_waits() {
    block_on(async {
        let (connection, _peer) = pair().await;
        let closer = connection.closer();
        let (mut reader, writer) = connection.split();
        let reading = spawn_local(async move { reader.read(&mut [0]).await });
        sleep(Duration::from_millis(5)).await;
        closer.close();
        let read = timeout(Duration::from_secs(30), reading)
            .await
            .expect("the read to end");
        assert_eq!(read.expect("an end"), 0);
        drop(writer);
        closer.close();
    });
}

#[test]
fn an_executor_connects_to_a_listener() {
    block_on(async {
        let listener = listen();
        let (_reader, mut writer) = Connection::connect(listener.local_addr())
            .await
            .expect("a connection")
            .split();
        writer
            .write_all(&mut [IoSlice::new(b"hello")], || ())
            .await
            .expect("all sent");
        let (mut reader, _writer) = listener
            .accept()
            .await
            .expect("the connection")
            .into_connection()
            .split();
        let mut buffer = [0; 64];
        assert_eq!(reader.read(&mut buffer).await.expect("bytes"), 5);
        drop(listener);
        let nobody = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let error = Connection::connect(nobody)
            .await
            .err()
            .expect("nobody listens");
        assert!(
            error
                .to_string()
                .starts_with("cannot connect to 127.0.0.1:1"),
            "{error}"
        );
    });
}

#[test]
fn a_wait_ends_at_the_low_water_mark_or_when_that_is_lowered() {
    block_on(async {
        let (connection, mut peer) = pair().await;
        let mark = connection.low_water_mark();
        let (mut reader, _writer) = connection.split();
        let mut buffer = vec![0; 64 * 1024];
        for (first, lowers) in [(10, true), (1_000, false)] {
            mark.set(5_000);
            peer.write_all(&vec![1; first]).expect("the first bytes");
            let mut reading = Box::pin(reader.read(&mut buffer));
            let early = timeout(Duration::from_millis(20), &mut reading).await;
            assert!(early.is_err(), "{first} bytes ended the wait");
            let rest = if lowers { 0 } else { 4_000 };
            match lowers {
                true => mark.set(1),
                false => peer.write_all(&vec![2; rest]).expect("the rest"),
            }
            assert_eq!(reading.await.expect("the bytes"), first + rest);
        }
        mark.set(5_000);
        peer.write_all(&[3]).expect("the last byte");
        peer.shutdown(Shutdown::Write).expect("the end");
        let last = reader.read(&mut buffer).await.expect("the last byte");
        let end = reader.read(&mut buffer).await.expect("the end");
        assert_eq!((last, end), (1, 0), "the end of the stream ends a wait");
    });
}
