"""The steps of the retention test; tests/clients/retention says what it is about."""

import argparse
import os
import pathlib
import sys
import tempfile
import time

from confluent_kafka import KafkaException, Producer, TopicPartition
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
from .report import Report, Stopwatch
from .suite import CACHE, CHECKOUT

TIMEOUT_S = 60

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

# Two values do not fit into the smallest segment, so that each record has a segment of its own.
SEGMENT_BYTES = 1 << 20
VALUE = b"v" * 600_000

LOOK_OFTEN = ["log.retention.check.interval.ms=200"]
# Kafka waits half a minute before its first look, and looks at logs that are compacted and deleted in its cleaner.
LOOK_OFTEN_KAFKA = [*LOOK_OFTEN, "log.initial.task.delay.ms=200", "log.cleaner.backoff.ms=200"]

EVERYTHING = {"retention.ms": "-1"}


def main(description):
    options = parse(description)
    report = Report()
    stopwatch = Stopwatch()
    with tempfile.TemporaryDirectory(prefix="corelog-retention-", dir=options.tmp) as folder:
        broker = make_broker(options, folder)
        try:
            broker.start()
            run(Topics(broker.bootstrap), report)
            broker.stop()
        except (BrokerError, OSError) as error:
            report.fail(broker.name, str(error))
        finally:
            if broker.process and broker.is_running():
                broker.kill9()
        if report.failed:
            report.say(f"--- the end of the broker's log\n{log_tail(broker)}\n---")
    report.say(f"        took {stopwatch}")
    sys.exit(report.close())


def run(topics, report):
    for step in (
        by_age,
        to_the_end,
        the_future_keeps,
        by_size,
        nothing_by_age_without_the_policy,
        compact_and_delete,
        records_of_long_ago_roll_a_segment,
        after_delete_records,
    ):
        name = step.__name__.replace("_", " ")
        try:
            step(topics)
        except (KafkaException, Mismatch) as error:
            report.fail(name, str(error))
        else:
            report.ok(name)


def by_age(topics):
    topics.create("age", **EVERYTHING)
    topics.produce("age", 9 * DAY_MS, 5 * DAY_MS, 2 * DAY_MS, 0)
    topics.expect_stays("age", 0, 4)
    for limit_ms, start in ((6 * DAY_MS, 1), (3 * DAY_MS, 2), (HOUR_MS, 3)):
        topics.alter("age", **{"retention.ms": str(limit_ms)})
        topics.expect("age", start, 4)
    topics.expect_stays("age", 3, 4)


def to_the_end(topics):
    topics.create("end")
    topics.produce("end", 10 * DAY_MS, 9 * DAY_MS, 8 * DAY_MS)
    topics.expect("end", 3, 3)
    topics.produce("end", 0)
    topics.expect_stays("end", 3, 4)


def the_future_keeps(topics):
    topics.create("future", **{"retention.ms": "1000", "message.timestamp.after.max.ms": str(2**63 - 1)})
    topics.produce("future", -DAY_MS, 9 * DAY_MS, 8 * DAY_MS)
    topics.expect_stays("future", 0, 3)
    # By size the first one goes, and what was behind it is old.
    topics.alter("future", **{"retention.bytes": str(2 * len(VALUE))})
    topics.expect("future", 3, 3)


def by_size(topics):
    topics.create("size", **EVERYTHING)
    topics.produce("size", *[0] * 6)
    for segments, start in ((3, 3), (1, 5)):
        topics.alter("size", **{"retention.bytes": str(segments * len(VALUE))})
        topics.expect("size", start, 6)
    topics.expect_stays("size", 5, 6)
    topics.alter("size", **{"retention.bytes": "0"})
    topics.expect("size", 6, 6)


def nothing_by_age_without_the_policy(topics):
    topics.create("compact", **{"cleanup.policy": "compact", "retention.ms": "1000", "min.compaction.lag.ms": str(2**63 - 1)})
    topics.produce("compact", 9 * DAY_MS, 8 * DAY_MS)
    topics.expect_stays("compact", 0, 2)
    topics.alter("compact", **{"cleanup.policy": "delete"})
    topics.expect("compact", 2, 2)


def compact_and_delete(topics):
    policy = {"cleanup.policy": "compact,delete", "min.compaction.lag.ms": str(2**63 - 1)}
    topics.create("both", **policy, **EVERYTHING)
    topics.produce("both", 9 * DAY_MS, 5 * DAY_MS, 0)
    topics.expect_stays("both", 0, 3)
    topics.alter("both", **{"retention.ms": str(6 * DAY_MS)})
    topics.expect("both", 1, 3)


def records_of_long_ago_roll_a_segment(topics):
    topics.create("roll", **EVERYTHING, **{"segment.ms": str(HOUR_MS)})
    for age_ms in (9 * DAY_MS, 9 * DAY_MS - 1_000, 8 * DAY_MS, 0, 1_000):
        topics.produce("roll", age_ms, value=b"small")
    topics.alter("roll", **{"retention.ms": str(DAY_MS)})
    topics.expect("roll", 3, 5)


def after_delete_records(topics):
    topics.create("deleted", **EVERYTHING)
    topics.produce("deleted", 9 * DAY_MS, 8 * DAY_MS, 0)
    topics.delete_before("deleted", 1)
    topics.expect("deleted", 1, 3)
    topics.delete_before("deleted", 3)
    topics.expect_stays("deleted", 3, 3)
    topics.alter("deleted", **{"retention.ms": str(DAY_MS)})
    topics.produce("deleted", 0)
    topics.expect_stays("deleted", 3, 4)


class Mismatch(Exception):
    pass


class Topics:
    """Topics of one partition, made, written and looked at."""

    def __init__(self, bootstrap):
        self.admin = AdminClient({"bootstrap.servers": bootstrap})
        self.producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
        self.probes = 0

    def create(self, name, **settings):
        settings = {"segment.bytes": str(SEGMENT_BYTES), **settings}
        wait(self.admin.create_topics([NewTopic(name, 1, 1, config=settings)]))

    def alter(self, name, **settings):
        entries = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in settings.items()
        ]
        wait(self.admin.incremental_alter_configs([ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)]))

    def produce(self, name, *ages_ms, value=VALUE):
        failed = []
        for age_ms in ages_ms:
            # One by one: a batch is never cut, and each record is to have its own.
            timestamp = int(time.time() * 1000) - age_ms
            on_delivery = lambda error, _: failed.append(error) if error else None
            self.producer.produce(name, value, key=b"key", partition=0, timestamp=timestamp, on_delivery=on_delivery)
            self.producer.flush(TIMEOUT_S)
        if failed:
            raise Mismatch(f"{name}: {failed[0]}")

    def delete_before(self, name, offset):
        wait(self.admin.delete_records([TopicPartition(name, 0, offset)]))

    def offset(self, name, spec):
        partition = TopicPartition(name, 0)
        return self.admin.list_offsets({partition: spec})[partition].result(TIMEOUT_S).offset

    def range(self, name):
        return self.offset(name, OffsetSpec.earliest()), self.offset(name, OffsetSpec.latest())

    def expect(self, name, start, end):
        """The log comes to start there; it never starts behind it."""
        deadline = time.monotonic() + TIMEOUT_S
        while (found := self.range(name)) != (start, end):
            if found[0] > start or time.monotonic() > deadline:
                raise Mismatch(f"{name} has the offsets {found}, wanted {(start, end)}")
            time.sleep(0.05)

    def expect_stays(self, name, start, end):
        """The log has these offsets also after the broker has looked for what is due, as two other topics show."""
        for _ in range(2):
            self.probes += 1
            probe = f"probe-{self.probes}"
            self.create(probe, **{"retention.ms": "1000"})
            self.produce(probe, DAY_MS)
            self.expect(probe, 1, 1)
        found = self.range(name)
        if found != (start, end):
            raise Mismatch(f"{name} has the offsets {found}, wanted {(start, end)}")


def wait(futures):
    for future in futures.values():
        future.result(TIMEOUT_S)


def make_broker(options, folder):
    if options.peer == "kafka":
        return ApacheKafka(CACHE / "kafka/libs", folder, LOOK_OFTEN_KAFKA)
    if not pathlib.Path(options.binary).is_file():
        sys.exit(f"{options.binary} is missing: build it, or name another with --binary")
    return Corelog(options.binary, folder, LOOK_OFTEN)


def parse(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    binary = os.environ.get("CORELOG_BIN", CHECKOUT / "target/debug/corelog")
    parser.add_argument("--binary", default=binary, help="the corelog binary (default: %(default)s)")
    parser.add_argument("--peer", choices=["kafka"], help="another broker instead, from .cache")
    parser.add_argument("--tmp", metavar="DIR", help="where the temporary directory is made (default: the system's)")
    return parser.parse_args()
