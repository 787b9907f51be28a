"""The oracle test of compaction: one load into two brokers, and what each has left of it."""

import argparse
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from .apache_kafka import ApacheKafka
from .broker import BrokerError, Corelog, log_tail
from .client import CODECS
from .report import Report, Stopwatch
from .suite import CACHE, CHECKOUT

TIMEOUT_S = 90
SEGMENT_BYTES = 1024 * 1024
SEGMENT_MS = 60_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

BROKER_SETTINGS = ["log.cleaner.backoff.ms=100", "log.retention.check.interval.ms=200"]
KAFKA_SETTINGS = [*BROKER_SETTINGS, "log.initial.task.delay.ms=100"]


class Load:
    """Random records of one topic, to be sent in runs by one producer after another."""

    def __init__(self, rng, key_count):
        self.rng = rng
        self.key_count = key_count
        self.runs = []
        # By offset: key and value. One partition, and nothing else writes to it.
        self.rows = []
        self.timestamp = int(time.time() * 1000) - DAY_MS

    def add(self, count, tombstones):
        """Records by producers of changing kinds."""
        while count > 0:
            size = min(count, self.rng.randint(50, 400))
            count -= size
            codec = self.rng.choice(CODECS)
            is_idempotent = self.rng.random() < 0.5
            self.runs.append((codec, is_idempotent, [self.record(tombstones) for _ in range(size)]))

    def add_roll(self):
        """One record that is late enough to begin a segment: all in front of it may be compacted."""
        self.timestamp += 10 * SEGMENT_MS
        key = f"roll {len(self.rows)}".encode()
        self.runs.append(("none", False, [self.row(key, b"the segment's age is over")]))

    def record(self, tombstones):
        self.timestamp += self.rng.randint(0, 3)
        # A few hot keys, many cold ones.
        key = min(self.rng.randrange(self.key_count), self.rng.randrange(self.key_count))
        is_tombstone = tombstones and self.rng.random() < 0.1
        value = None if is_tombstone else self.rng.randbytes(self.rng.randint(0, 1500))
        return self.row(b"key %d" % key, value)

    def row(self, key, value):
        self.rows.append((key, value))
        return (key, value, self.timestamp)

    def compacted(self, keep_tombstones):
        """What is left once everything in front of the last record is compacted."""
        latest = {key: offset for offset, (key, _) in enumerate(self.rows[:-1])}
        left = [
            (offset, key, value)
            for offset, (key, value) in enumerate(self.rows[:-1])
            if latest[key] == offset and (keep_tombstones or value is not None)
        ]
        return [*left, (len(self.rows) - 1, *self.rows[-1])]

    def send(self, broker, topic):
        """Sends the runs that were added since the last time."""
        sent = 0
        for codec, is_idempotent, records in self.runs:
            producer = Producer(
                {
                    "bootstrap.servers": broker.bootstrap,
                    "compression.codec": codec,
                    "enable.idempotence": is_idempotent,
                    "max.in.flight.requests.per.connection": 1,
                    "linger.ms": 20,
                }
            )
            errors = []
            for key, value, timestamp in records:
                producer.produce(
                    topic,
                    key=key,
                    value=value,
                    timestamp=timestamp,
                    partition=0,
                    on_delivery=lambda error, _: error and errors.append(error),
                )
                producer.poll(0)
            left = producer.flush(TIMEOUT_S)
            if errors or left:
                raise BrokerError(f"{broker.name}: {left} records left, errors {errors[:3]}")
            sent += len(records)
        return sent


def read(broker, topic):
    """Everything from the start, as (offset, key, value)."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 20,
        }
    )
    rows = []
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            for message in consumer.consume(1000, 0.5):
                if message.error() is None:
                    rows.append((message.offset(), message.key(), message.value()))
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    return rows
                else:
                    raise KafkaException(message.error())
        raise BrokerError(f"{broker.name}: {topic} has no end")
    finally:
        consumer.close()


def wait_until_left(broker, topic, expected):
    """Compaction takes its time; a record that must stay may never be missing on the way."""
    must_stay = {row[0] for row in expected}
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        rows = read(broker, topic)
        missing = must_stay - {row[0] for row in rows}
        if missing:
            raise BrokerError(f"{broker.name}: offsets {sorted(missing)[:10]} of {topic} are gone")
        if rows == expected:
            return
        if time.monotonic() > deadline:
            surplus = [row for row in rows if row not in set(expected)]
            raise BrokerError(f"{broker.name}: {len(surplus)} records too many in {topic}, such as {surplus[:2]}")
        time.sleep(0.2)


def create(broker, topic, delete_retention_ms, dirty_ratio="0.01", **settings):
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    config = {
        "cleanup.policy": "compact",
        "segment.bytes": str(SEGMENT_BYTES),
        "segment.ms": str(SEGMENT_MS),
        "min.cleanable.dirty.ratio": dirty_ratio,
        "delete.retention.ms": str(delete_retention_ms),
        "index.interval.bytes": "1024",
        **settings,
    }
    for future in admin.create_topics([NewTopic(topic, 1, 1, config=config)]).values():
        future.result(TIMEOUT_S)


def alter(broker, topic, name, value):
    """Online: of a topic, or of the broker; None takes it back."""
    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    entry = ConfigEntry(name, value, incremental_operation=operation)
    resource = ConfigResource(
        ResourceType.TOPIC if topic else ResourceType.BROKER, topic or "1", incremental_configs=[entry]
    )
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(TIMEOUT_S)


def compare(report, brokers, name, action):
    """Does the same with both brokers; both have to come through."""
    for broker in brokers:
        try:
            action(broker)
            report.ok(f"{name}: {broker.name}")
        except (BrokerError, KafkaException) as error:
            report.fail(f"{name}: {broker.name}", str(error))


def run(report, brokers, rng, record_count):
    for round_number, key_count in enumerate((50, 2_000)):
        keep, drop = (f"compacted-{kind}-{round_number}" for kind in ("with-tombstones", "without"))

        load = Load(rng, key_count)
        load.add(record_count, tombstones=True)
        load.add_roll()
        expected = load.compacted(keep_tombstones=True)

        def keeps_the_latest(broker):
            create(broker, keep, 10 * DAY_MS)
            load.send(broker, keep)
            wait_until_left(broker, keep, expected)

        compare(report, brokers, f"{len(expected)} of {len(load.rows)} records with {key_count} keys are left", keeps_the_latest)

        first = Load(rng, key_count)
        first.add(record_count // 2, tombstones=True)
        first.add_roll()

        def sends_first_part(broker):
            create(broker, drop, 50)
            first.send(broker, drop)

        compare(report, brokers, f"tombstones among {key_count} keys", sends_first_part)
        # Both have set their horizons by the time the second part is compacted, or let the tombstones go at once.
        time.sleep(3)
        first.runs.clear()
        first.add(record_count // 4, tombstones=False)
        first.add_roll()
        without = first.compacted(keep_tombstones=False)

        def lets_tombstones_go(broker):
            first.send(broker, drop)
            wait_until_left(broker, drop, without)

        compare(report, brokers, f"{len(without)} of {len(first.rows)} records and no tombstone are left", lets_tombstones_go)


def compact_and_delete(report, brokers, rng, record_count):
    """Both policies at once: what is too old goes whole, the latest record of a key too, and what is left is compacted."""
    topic = "deleted-and-compacted"
    load = Load(rng, 200)
    load.timestamp -= 3 * DAY_MS
    load.add(record_count // 2, tombstones=True)
    young = len(load.rows)
    load.timestamp = int(time.time() * 1000) - HOUR_MS
    load.add(record_count // 2, tombstones=True)
    load.add_roll()
    expected = [row for row in load.compacted(keep_tombstones=True) if row[0] >= young]

    def deletes_and_compacts(broker):
        create(broker, topic, 10 * DAY_MS, "1", **{"cleanup.policy": "compact,delete", "retention.ms": str(DAY_MS)})
        load.send(broker, topic)
        eventually(lambda: log_start(broker, topic) == young, "what is older than a day is gone")
        alter(broker, topic, "min.cleanable.dirty.ratio", "0")
        wait_until_left(broker, topic, expected)
        alter(broker, topic, "retention.ms", str(HOUR_MS // 4))
        eventually(lambda: log_start(broker, topic) == len(load.rows), "all is gone")

    compare(report, brokers, f"of {len(load.rows)} records {young} are deleted and {len(expected)} left by compaction", deletes_and_compacts)


def log_start(broker, topic):
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    partition = TopicPartition(topic, 0)
    return admin.list_offsets({partition: OffsetSpec.earliest()})[partition].result(TIMEOUT_S).offset


def crash_while_cleaning(report, corelog, rng, record_count, crash_count=6):
    """kill -9 again and again while a log is compacted, slowly: no start may lose what stays, and the work gets done in the end."""
    topic = "compacted-through-crashes"
    load = Load(rng, 300)
    load.add(record_count, tombstones=True)
    load.add_roll()
    expected = load.compacted(keep_tombstones=True)
    must_stay = set(expected)
    try:
        create(corelog, topic, 10 * DAY_MS, "1")
        load.send(corelog, topic)
        seen = []
        for _ in range(crash_count):
            # Slow enough that the kills come in the middle; no log is more dirty than 1, so until here it waited.
            alter(corelog, None, "log.cleaner.io.max.bytes.per.second", "3000000")
            alter(corelog, topic, "min.cleanable.dirty.ratio", "0")
            time.sleep(rng.uniform(0.05, 1.5))
            corelog.kill9()
            corelog.start()
            rows = read(corelog, topic)
            if not must_stay <= set(rows):
                raise BrokerError(f"{len(must_stay - set(rows))} records that stay are gone")
            seen.append(len(rows))
        alter(corelog, None, "log.cleaner.io.max.bytes.per.second", None)
        wait_until_left(corelog, topic, expected)
        report.ok(f"{crash_count} kills while {len(load.rows)} records became {len(expected)}; after each: {seen}")
    except (BrokerError, KafkaException) as error:
        report.fail("kills while a log is compacted", str(error))


def delete_while_cleaning(report, corelog, rng, record_count):
    """A topic that is deleted, or no longer compacted, while the cleaner is at it; another takes its name."""
    topic = "deleted-while-compacted"
    admin = AdminClient({"bootstrap.servers": corelog.bootstrap})
    try:
        alter(corelog, None, "log.cleaner.io.max.bytes.per.second", "1000000")
        for change in ("delete", "reconfigure"):
            load = Load(rng, 100)
            load.add(record_count, tombstones=False)
            load.add_roll()
            create(corelog, topic, DAY_MS)
            load.send(corelog, topic)
            cleaned = corelog.data_dir / f"{topic}-0"
            eventually(lambda: list(cleaned.glob("*.cleaned")), "the cleaner is at work")
            if change == "reconfigure":
                alter(corelog, topic, "cleanup.policy", "delete")
                eventually(lambda: not list(cleaned.glob("*.cleaned")), "the cleaner has let go")
                rows = read(corelog, topic)
                if not set(load.compacted(keep_tombstones=True)) <= set(rows):
                    raise BrokerError("records that stay are gone")
            for future in admin.delete_topics([topic]).values():
                future.result(TIMEOUT_S)
            eventually(lambda: not cleaned.exists(), "the directory is gone")
        create(corelog, topic, DAY_MS)
        if read(corelog, topic):
            raise BrokerError("the new topic of that name is not empty")
        alter(corelog, None, "log.cleaner.io.max.bytes.per.second", None)
        report.ok("a topic that is deleted or reconfigured while it is compacted")
    except (BrokerError, KafkaException) as error:
        report.fail("a topic that is deleted or reconfigured while it is compacted", str(error))


def eventually(is_so, what):
    deadline = time.monotonic() + TIMEOUT_S
    while not is_so():
        if time.monotonic() > deadline:
            raise BrokerError(f"it never was so that {what}")
        time.sleep(0.01)


def check_files(report, corelog, libs):
    """Our cleaned files as Corelog's own check and Kafka's tool see them."""
    verified = subprocess.run(
        [corelog.binary, "log", "verify", "--records", str(corelog.data_dir)], capture_output=True, text=True
    )
    if verified.returncode == 0:
        report.ok(f"corelog log verify: {verified.stdout.strip()}")
    else:
        report.fail("corelog log verify", verified.stdout.strip())
    for folder in sorted(corelog.data_dir.glob("compacted-*")):
        logs = sorted(folder.glob("*.log"))[:-1]
        files = [path for log in logs for path in (log, log.with_suffix(".index"), log.with_suffix(".timeindex"))]
        dumped = subprocess.run(
            [
                "java",
                "-Xmx256m",
                "-cp",
                f"{libs}/*",
                "org.apache.kafka.tools.DumpLogSegments",
                "--deep-iteration",
                "--files",
                ",".join(map(str, files)),
            ],
            capture_output=True,
            text=True,
        )
        text = dumped.stdout + dumped.stderr
        complaint = next((line for line in text.splitlines() if "Found" in line or "Exception" in line), None)
        if dumped.returncode == 0 and complaint is None and "isvalid: false" not in text and "baseOffset" in text:
            report.ok(f"Kafka's tool reads the {len(logs)} cleaned segments of {folder.name}")
        else:
            report.fail(f"Kafka's tool on {folder.name}", complaint or text[-300:])


def main(doc):
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    binary = os.environ.get("CORELOG_BIN", CHECKOUT / "target/debug/corelog")
    parser.add_argument("--binary", default=binary, help="the corelog binary (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    parser.add_argument("--records", type=int, default=6000)
    parser.add_argument("--tmp", metavar="DIR", help="where the temporary directory is made (default: the system's)")
    options = parser.parse_args()
    libs = CACHE / "kafka/libs"
    for path in (pathlib.Path(options.binary), libs):
        if not path.exists():
            sys.exit(f"{path} is missing: build the binary, run scripts/install-test-peers")
    report, stopwatch = Report(), Stopwatch()
    report.say(f"        seed {options.seed}")
    with tempfile.TemporaryDirectory(prefix="corelog-compaction-", dir=options.tmp) as folder:
        corelog = Corelog(str(options.binary), make(folder, "corelog"), BROKER_SETTINGS)
        brokers = [corelog]
        try:
            corelog.start()
            # Made only now: the first one's ports are taken.
            brokers.append(ApacheKafka(libs, make(folder, "kafka"), KAFKA_SETTINGS))
            brokers[1].start()
            run(report, brokers, random.Random(options.seed), options.records)
            compact_and_delete(report, brokers, random.Random(options.seed + 3), options.records)
            brokers[1].stop()
            delete_while_cleaning(report, corelog, random.Random(options.seed + 1), options.records // 2)
            crash_while_cleaning(report, corelog, random.Random(options.seed + 2), options.records // 2)
            corelog.stop()
            check_files(report, corelog, libs)
        except (BrokerError, OSError) as error:
            report.fail("brokers", str(error))
        finally:
            for broker in brokers:
                if broker.is_running():
                    broker.kill9()
        if report.failed:
            report.say(f"--- the end of Corelog's log\n{log_tail(corelog)}\n---")
    report.say(f"        took {stopwatch}")
    sys.exit(report.close())


def make(folder, name):
    path = pathlib.Path(folder, name)
    path.mkdir()
    return path
