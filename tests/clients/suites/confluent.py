"""confluent-kafka: the newest librdkafka, with its admin client."""

import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from harness.client import CODECS, TIMEOUT_S, ClientSuite, Mismatch, Record, arguments, expect, expect_same


def run(suite):
    admin = AdminClient({"bootstrap.servers": suite.bootstrap})
    with suite.check("cluster is described"):
        cluster = admin.describe_cluster(request_timeout=TIMEOUT_S).result(TIMEOUT_S)
        expect([f"{node.host}:{node.port}" for node in cluster.nodes], [suite.bootstrap], "nodes")
        expect(cluster.controller.id, cluster.nodes[0].id, "the controller is the broker")
        expect(bool(cluster.cluster_id), True, "there is a cluster id")
    for codec in CODECS:
        with suite.check(f"{codec}: create topic"):
            wait(admin.create_topics([NewTopic(suite.topic(codec), suite.partitions, 1)]))
            expect(partition_count(admin, suite.topic(codec)), suite.partitions, "partitions")
        with suite.check(f"{codec}: produce with the idempotent producer"):
            produce(suite, codec)
        with suite.check(f"{codec}: read back every byte"):
            suite.expect_all(read(suite, suite.topic(codec)))
        suite.check_stored_codec(codec)
        with suite.check(f"{codec}: seek by offset"):
            seek_by_offset(suite, codec)
        with suite.check(f"{codec}: seek by time"):
            seek_by_time(suite, codec)
        with suite.check(f"{codec}: earliest, latest, max timestamp"):
            list_offsets(suite, admin, codec)
    with suite.check("a topic that exists is refused"):
        expect_error(
            KafkaError.TOPIC_ALREADY_EXISTS, lambda: wait(admin.create_topics([NewTopic(suite.topic("none"), 1, 1)]))
        )
    with suite.check("a bad topic name is refused"):
        expect_error(
            KafkaError.TOPIC_EXCEPTION, lambda: wait(admin.create_topics([NewTopic("no/slash in names", 1, 1)]))
        )
    with suite.check("a record above max.message.bytes is refused, and the producer goes on"):
        too_large(suite)
    with suite.check("acks=0 and acks=1 reach the log"):
        weaker_acks(suite, admin)
    with suite.check("an offset out of range is reported"):
        out_of_range(suite)
    with suite.check("topic settings are described, altered and refused"):
        topic_settings(suite, admin)
    with suite.check("broker settings are described with defaults and sources"):
        broker_settings(admin)
    with suite.check("partitions are added"):
        wait(admin.create_partitions([NewPartitions(suite.topic("gzip"), suite.partitions + 2)]))
        expect(partition_count(admin, suite.topic("gzip"), suite.partitions + 2), suite.partitions + 2, "partitions")
        suite.expect_all(read(suite, suite.topic("gzip")))
    with suite.check("records are deleted up to an offset"):
        delete_records(suite, admin)
    with suite.check("transactions work or are refused for good"):
        transactions(suite)
    with suite.check("topics are deleted"):
        names = [suite.topic(codec) for codec in CODECS] + [suite.topic("acks")]
        wait(admin.delete_topics(names))
        eventually(lambda: not set(names) & set(admin.list_topics(timeout=TIMEOUT_S).topics))
    with suite.check("a topic of the same name starts empty"):
        wait(admin.create_topics([NewTopic(suite.topic("none"), suite.partitions, 1)]))
        expect(read(suite, suite.topic("none")), [], "records")
        wait(admin.delete_topics([suite.topic("none")]))
    suite.done()


def produce(suite, codec):
    producer = Producer(
        {
            "bootstrap.servers": suite.bootstrap,
            "enable.idempotence": True,
            "compression.type": codec,
            "linger.ms": 20,
            "delivery.timeout.ms": TIMEOUT_S * 1000,
        }
    )
    acks = []
    failures = []

    def on_delivery(error, message):
        (failures if error else acks).append(error or (message.partition(), message.offset(), message.timestamp()[1]))

    for record in suite.records:
        producer.produce(
            suite.topic(codec),
            partition=record.partition,
            key=record.key,
            value=record.value,
            headers=record.headers,
            timestamp=record.timestamp,
            on_delivery=on_delivery,
        )
    expect(producer.flush(TIMEOUT_S), 0, "records left unacknowledged")
    expect(failures, [], "failed deliveries")
    want = [(r.partition, r.offset, r.timestamp) for r in suite.records]
    expect(sorted(acks), sorted(want), "acknowledged (partition, offset, timestamp)")


def read(suite, topic, partition=None, offset=0):
    """Everything from the offset to the end, of one partition or of all."""
    consumer = make_consumer(suite)
    try:
        partitions = range(suite.partitions) if partition is None else [partition]
        consumer.assign([TopicPartition(topic, p, offset) for p in partitions])
        return read_to_end(consumer, partitions)
    finally:
        consumer.close()


def read_to_end(consumer, partitions):
    left = set(partitions)
    records = []
    deadline = time.monotonic() + TIMEOUT_S
    while left:
        if time.monotonic() > deadline:
            raise Mismatch(f"no end of partitions {left} after {TIMEOUT_S} s, {len(records)} records read")
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error() is None:
            records.append(record_of(message))
        elif message.error().code() == KafkaError._PARTITION_EOF:
            left.discard(message.partition())
        else:
            raise KafkaException(message.error())
    return records


def make_consumer(suite):
    # A group id is demanded by the library; with assign() and no commits the broker never hears of it.
    return Consumer(
        {
            "bootstrap.servers": suite.bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            # The end of a partition is reported by an empty fetch: half a second each with the default.
            "fetch.wait.max.ms": 20,
        }
    )


def record_of(message):
    return Record(
        message.partition(),
        message.offset(),
        message.timestamp()[1],
        message.key(),
        message.value(),
        message.headers() or [],
    )


def seek_by_offset(suite, codec):
    """One consumer that jumps about, also into the middle of batches."""
    consumer = make_consumer(suite)
    try:
        consumer.assign([TopicPartition(suite.topic(codec), p, 0) for p in range(suite.partitions)])
        read_to_end(consumer, range(suite.partitions))
        for place in suite.by_offset:
            consumer.seek(TopicPartition(suite.topic(codec), place["partition"], place["offset"]))
            got = read_to_end(consumer, [place["partition"]])
            expect_same(got, suite.in_partition(place["partition"])[place["offset"] :])
    finally:
        consumer.close()


def seek_by_time(suite, codec):
    consumer = make_consumer(suite)
    try:
        for look_up in suite.by_time:
            asked = TopicPartition(suite.topic(codec), look_up["partition"], look_up["timestamp"])
            (found,) = consumer.offsets_for_times([asked], timeout=TIMEOUT_S)
            # librdkafka gives OFFSET_END (-1) where no record is late enough.
            expect(found.offset, look_up["offset"], f"offset for {look_up['timestamp']} in {look_up['partition']}")
    finally:
        consumer.close()
    found = next(look_up for look_up in suite.by_time if look_up["offset"] > 0)
    got = read(suite, suite.topic(codec), found["partition"], found["offset"])
    expect_same(got, suite.in_partition(found["partition"])[found["offset"] :])


def list_offsets(suite, admin, codec):
    for partition in range(suite.partitions):
        records = suite.in_partition(partition)
        place = TopicPartition(suite.topic(codec), partition)
        newest = max(records, key=lambda r: (r.timestamp, -r.offset))
        wanted = [
            (OffsetSpec.earliest(), 0),
            (OffsetSpec.latest(), len(records)),
            (OffsetSpec.max_timestamp(), newest.offset),
        ]
        for spec, offset in wanted:
            (answer,) = admin.list_offsets({place: spec}, request_timeout=TIMEOUT_S).values()
            expect(answer.result(TIMEOUT_S).offset, offset, f"{type(spec).__name__} of {place}")


def too_large(suite):
    producer = Producer(
        {"bootstrap.servers": suite.bootstrap, "enable.idempotence": True, "message.max.bytes": 10_000_000}
    )
    results = []
    for size in (3_000_000, 100):
        producer.produce(
            suite.topic("acks"), value=bytes(size), partition=0, on_delivery=lambda e, m: results.append(e and e.code())
        )
        producer.flush(TIMEOUT_S)
    expect(results, [KafkaError.MSG_SIZE_TOO_LARGE, None], "results of the too large and the next record")


def transactions(suite):
    """A broker that has none says so, in place of leaving the producer to ask for a coordinator until its time is over."""
    producer = Producer({"bootstrap.servers": suite.bootstrap, "transactional.id": suite.topic("tx")})
    try:
        producer.init_transactions(TIMEOUT_S)
    except KafkaException as raised:
        error = raised.args[0]
        refused = KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        expect((error.code(), error.fatal(), error.retriable()), (refused, True, False), error.str())


def weaker_acks(suite, admin):
    """The topic was made by the check before: producing to an unknown topic creates it."""
    topic = suite.topic("acks")
    count = partition_count(admin, topic)
    for acks in (0, 1):
        producer = Producer({"bootstrap.servers": suite.bootstrap, "acks": acks})
        for number in range(100):
            producer.produce(topic, value=f"acks={acks} {number}".encode(), partition=0)
        expect(producer.flush(TIMEOUT_S), 0, "records left")
    want = [f"acks={acks} {number}".encode() for acks in (0, 1) for number in range(100)]
    expect(count, 1, "partitions of a topic that was created by its first use")
    eventually(lambda: [r.value for r in read(suite, topic, 0, 1)] == want)


def out_of_range(suite):
    consumer = make_consumer(suite)
    try:
        consumer.assign([TopicPartition(suite.topic("none"), 0, 1_000_000)])
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            message = consumer.poll(0.5)
            if message is not None:
                # librdkafka turns OFFSET_OUT_OF_RANGE into its own reset error, as auto.offset.reset=error asks.
                expect(message.error().code(), KafkaError._AUTO_OFFSET_RESET, "error")
                expect("out of range" in message.error().str(), True, f"{message.error().str()} says out of range")
                return
        raise Mismatch("no error came")
    finally:
        consumer.close()


def topic_settings(suite, admin):
    resource = ConfigResource(ResourceType.TOPIC, suite.topic("none"))
    settings = wait(admin.describe_configs([resource]))
    expect(settings["segment.bytes"].value, "1073741824", "segment.bytes")
    expect(settings["segment.bytes"].is_default, True, "segment.bytes is a default")
    change = ConfigResource(
        ResourceType.TOPIC,
        suite.topic("none"),
        incremental_configs=[ConfigEntry("retention.ms", "7200000", incremental_operation=AlterConfigOpType.SET)],
    )
    wait(admin.incremental_alter_configs([change]))
    eventually(lambda: wait(admin.describe_configs([resource]))["retention.ms"].value == "7200000")
    expect(wait(admin.describe_configs([resource]))["retention.ms"].is_default, False, "retention.ms is a default")
    undo = ConfigResource(
        ResourceType.TOPIC,
        suite.topic("none"),
        incremental_configs=[ConfigEntry("retention.ms", None, incremental_operation=AlterConfigOpType.DELETE)],
    )
    wait(admin.incremental_alter_configs([undo]))
    eventually(lambda: wait(admin.describe_configs([resource]))["retention.ms"].value == "604800000")
    for name, value in (("no.such.setting", "1"), ("retention.ms", "soon"), ("cleanup.policy", "burn")):
        bad = ConfigResource(
            ResourceType.TOPIC,
            suite.topic("none"),
            incremental_configs=[ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)],
        )
        expect_error(KafkaError.INVALID_CONFIG, lambda: wait(admin.incremental_alter_configs([bad])))


def broker_settings(admin):
    node = admin.describe_cluster().result(TIMEOUT_S).nodes[0]
    settings = wait(admin.describe_configs([ConfigResource(ResourceType.BROKER, str(node.id))]))
    for name in ("log.segment.bytes", "log.retention.ms", "message.max.bytes", "socket.request.max.bytes", "listeners"):
        if name not in settings:
            raise Mismatch(f"{name} is not among the {len(settings)} settings of the broker")
    expect(settings["listeners"].is_default, False, "listeners, which was given, is a default")
    expect(settings["log.segment.bytes"].is_default, True, "log.segment.bytes is a default")


def delete_records(suite, admin):
    topic = suite.topic("zstd")
    (answer,) = admin.delete_records([TopicPartition(topic, 0, 20)], request_timeout=TIMEOUT_S).values()
    expect(answer.result(TIMEOUT_S).low_watermark, 20, "low watermark")
    expect_same(read(suite, topic, 0, 20), suite.in_partition(0)[20:])
    consumer = make_consumer(suite)
    try:
        expect(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=TIMEOUT_S), (20, 80), "watermarks")
    finally:
        consumer.close()


def partition_count(admin, topic, at_least=1):
    def find():
        metadata = admin.list_topics(timeout=TIMEOUT_S).topics.get(topic)
        return metadata and metadata.error is None and len(metadata.partitions) >= at_least and metadata

    return len(eventually(find).partitions)


def eventually(condition):
    """For what a broker may do a moment after its answer (metadata, deletion), as Kafka does."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise Mismatch(f"it did not come about within {TIMEOUT_S} s")
        time.sleep(0.05)


def wait(futures):
    """The result of the only future, or of the last of several."""
    for future in futures.values():
        result = future.result(TIMEOUT_S)
    return result


def expect_error(code, action):
    try:
        action()
    except KafkaException as error:
        expect(error.args[0].name(), KafkaError(code).name(), "error")
    else:
        raise Mismatch(f"no error, wanted {KafkaError(code).name()}")


if __name__ == "__main__":
    run(ClientSuite(arguments()))
