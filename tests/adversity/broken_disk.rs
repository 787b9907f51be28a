//! A disk that fails under a running broker: from the first error on nothing is confirmed, and what was confirmed is still served.

use kafka_protocol::ResponseError::KafkaStorageError;

use crate::broker::Broker;
use crate::produce::{batch_of, create_topic, expect_value, log_end, produce};
use crate::small_disk::SmallDisk;

const DISK_BYTES: u64 = 256 * 1024 * 1024;

/// The first of the file system's two block groups, where the files of the first directories lie, begins with what it needs itself.
const SOUND_BYTES: u64 = 1024 * 1024;

const VALUE_BYTES: usize = 200_000;
const CONFIRMED: i64 = 10;

fn value(number: i64) -> Vec<u8> {
    vec![number as u8; VALUE_BYTES]
}

#[test]
fn after_a_failed_write_nothing_is_confirmed_and_what_was_is_served() {
    let disk = SmallDisk::new(DISK_BYTES);
    let broker = Broker::start(&disk.path().join("data"), &[]);
    let mut client = broker.client();
    create_topic(&mut client, "t", 1, &[]);
    create_topic(&mut client, "other", 1, &[]);
    for number in 0..CONFIRMED {
        assert_eq!(
            produce(&mut client, "t", batch_of(&[&value(number)])).unwrap(),
            number
        );
    }

    disk.fail_behind(SOUND_BYTES);
    for topic in ["t", "t", "other"] {
        let refusal = produce(&mut client, topic, batch_of(&[&value(CONFIRMED)])).unwrap_err();
        assert_eq!(refusal.error_code, KafkaStorageError.code(), "{refusal:?}");
    }
    assert!(
        broker.log().contains("log directory is offline"),
        "{}",
        broker.log()
    );

    assert_eq!(log_end(&mut client, "t"), CONFIRMED);
    for number in 0..CONFIRMED {
        expect_value(&mut client, "t", number, &value(number));
    }
    assert_eq!(log_end(&mut client, "other"), 0);
    broker.kill();
}
