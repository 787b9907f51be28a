"""kafka-python, of which two versions matter: the newest, and 2.0.2 of 2020, which sends fixed old request versions and
infers the broker's version from the ranges that it advertises. The same checks run on both; the old one
has no idempotent producer and deletes no records."""

import time

import kafka
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic
from kafka.errors import InvalidTopicError, TopicAlreadyExistsError

from harness.client import CODECS, TIMEOUT_S, ClientSuite, Mismatch, Record, arguments, expect, expect_same

IS_OLD = kafka.__version__.startswith("2.0.")


def run(suite):
    # It sends no header without a value, and no record that has neither key nor value.
    suite.records = [
        r._replace(
            headers=[(name, value or b"") for name, value in r.headers],
            key=b"" if r.key is None and r.value is None else r.key,
        )
        for r in suite.records
    ]
    admin = KafkaAdminClient(bootstrap_servers=suite.bootstrap)
    with suite.check("the broker's version is inferred"):
        inferred = consumer_of(suite).config["api_version"]
        expect(inferred >= (2, 1), True, f"{inferred} is new enough for zstd and headers")
    for codec in CODECS:
        with suite.check(f"{codec}: create topic"):
            admin.create_topics([NewTopic(suite.topic(codec), suite.partitions, 1)])
            expect(partition_count(suite, suite.topic(codec)), suite.partitions, "partitions")
        with suite.check(f"{codec}: produce{'' if IS_OLD else ' with the idempotent producer'}"):
            produce(suite, codec)
        consumer = consumer_of(suite)
        places = [TopicPartition(suite.topic(codec), p) for p in range(suite.partitions)]
        consumer.assign(places)
        with suite.check(f"{codec}: read back every byte"):
            consumer.seek_to_beginning()
            suite.expect_all(read_to_end(suite, consumer, places))
        suite.check_stored_codec(codec)
        with suite.check(f"{codec}: seek by offset"):
            for seek in suite.by_offset:
                place = TopicPartition(suite.topic(codec), seek["partition"])
                consumer.assign([place])
                consumer.seek(place, seek["offset"])
                got = read_to_end(suite, consumer, [place])
                expect_same(got, suite.in_partition(seek["partition"])[seek["offset"] :])
        with suite.check(f"{codec}: seek by time"):
            for look_up in suite.by_time:
                place = TopicPartition(suite.topic(codec), look_up["partition"])
                found = consumer.offsets_for_times({place: look_up["timestamp"]})[place]
                expect(found.offset if found else -1, look_up["offset"], f"offset for {look_up['timestamp']}")
        with suite.check(f"{codec}: earliest and latest"):
            expect(set(consumer.beginning_offsets(places).values()), {0}, "earliest")
            expect(set(consumer.end_offsets(places).values()), {len(suite.in_partition(0))}, "latest")
        consumer.close(autocommit=False)
    with suite.check("a topic that exists is refused"):
        expect_error(TopicAlreadyExistsError, lambda: admin.create_topics([NewTopic(suite.topic("none"), 1, 1)]))
    with suite.check("a bad topic name is refused"):
        expect_error(InvalidTopicError, lambda: admin.create_topics([NewTopic("no/slash in names", 1, 1)]))
    with suite.check("settings of a topic are described"):
        answer = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, suite.topic("none"))], **ALL_SETTINGS)
        expect("segment.bytes" in str(answer), True, "segment.bytes is among the settings")
    if not IS_OLD:
        with suite.check("transactions work or are refused for good"):
            transactions(suite)
        with suite.check("records are deleted up to an offset"):
            place = TopicPartition(suite.topic("zstd"), 1)
            admin.delete_records({place: 33})
            consumer = consumer_of(suite)
            expect(consumer.beginning_offsets([place]), {place: 33}, "earliest")
            consumer.assign([place])
            consumer.seek_to_beginning(place)
            expect_same(read_to_end(suite, consumer, [place]), suite.in_partition(1)[33:])
            consumer.close(autocommit=False)
    with suite.check("topics are deleted"):
        names = [suite.topic(codec) for codec in CODECS]
        admin.delete_topics(names)
        eventually(lambda: not set(names) & consumer_of(suite).topics())
    suite.done()


# 3.x describes only what differs from the defaults unless asked for all.
ALL_SETTINGS = {} if IS_OLD else {"config_filter": "all"}


def produce(suite, codec):
    settings = {} if IS_OLD else {"enable_idempotence": True}
    producer = KafkaProducer(
        bootstrap_servers=suite.bootstrap,
        acks="all",
        compression_type=None if codec == "none" else codec,
        linger_ms=20,
        **settings,
    )
    futures = [
        producer.send(
            suite.topic(codec),
            partition=r.partition,
            key=r.key,
            value=r.value,
            headers=r.headers,
            timestamp_ms=r.timestamp,
        )
        for r in suite.records
    ]
    producer.flush(TIMEOUT_S)
    acks = [future.get(TIMEOUT_S) for future in futures]
    expect(
        [(ack.partition, ack.offset, ack.timestamp) for ack in acks],
        [(r.partition, r.offset, r.timestamp) for r in suite.records],
        "acknowledged (partition, offset, timestamp)",
    )
    producer.close()


def transactions(suite):
    """A broker that has none says so, in place of leaving the producer to ask for a coordinator until its time is over."""
    producer = KafkaProducer(
        bootstrap_servers=suite.bootstrap, transactional_id=suite.topic("tx"), max_block_ms=TIMEOUT_S * 1000
    )
    try:
        producer.init_transactions()
    except kafka.errors.TransactionalIdAuthorizationFailedError:
        pass
    finally:
        producer.close(TIMEOUT_S)


def consumer_of(suite):
    return KafkaConsumer(
        bootstrap_servers=suite.bootstrap,
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="none",
        fetch_max_wait_ms=20,
    )


def read_to_end(suite, consumer, places):
    end = consumer.end_offsets(places)
    records = []
    deadline = time.monotonic() + TIMEOUT_S
    while any(consumer.position(place) < end[place] for place in places):
        if time.monotonic() > deadline:
            raise Mismatch(f"the end was not reached within {TIMEOUT_S} s, {len(records)} records read")
        for batch in consumer.poll(timeout_ms=200).values():
            records += [Record(m.partition, m.offset, m.timestamp, m.key, m.value, m.headers) for m in batch]
    return records


def partition_count(suite, topic):
    consumer = consumer_of(suite)
    try:
        return len(eventually(lambda: consumer.partitions_for_topic(topic)))
    finally:
        consumer.close(autocommit=False)


def eventually(condition):
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise Mismatch(f"it did not come about within {TIMEOUT_S} s")
        time.sleep(0.05)


def expect_error(kind, action):
    try:
        action()
    except kind:
        return
    raise Mismatch(f"no error, wanted {kind.__name__}")


if __name__ == "__main__":
    run(ClientSuite(arguments()))
