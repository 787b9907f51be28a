"""The topic of committed offsets is compacted under commits, and nothing of what counts is lost with what goes."""

import random

from group_scenarios.of_restart import check_kept
from group_scenarios.scene import eventually
from harness import group_wire as wire
from harness.client import expect

SEGMENT_BYTES = 1 << 20
# One partition, so that all groups write to one log; Kafka waits half a minute before its first cleaning.
SETTINGS = [
    "offsets.topic.num.partitions=1",
    f"offsets.topic.segment.bytes={SEGMENT_BYTES}",
    "log.cleaner.backoff.ms=100",
]
KAFKA_SETTINGS = [*SETTINGS, "log.initial.task.delay.ms=100"]

GROUPS = 30
ROUNDS = 600
PARTITIONS = 2
METADATA_BYTES = 400
# All that counts fits into a small part of one segment; the active one and what was sealed since the last cleaning come on top.
LEFT_BYTES_MAX = 4 * SEGMENT_BYTES


def compacted(scene, seed):
    rng = random.Random(f"{seed}/compaction")
    topic = scene.topic("t", PARTITIONS)
    groups = [f"{scene.name}-{number}" for number in range(GROUPS)]
    connection = scene.wire()
    kept = {}
    sent_bytes = 0
    for number in range(ROUNDS):
        for group in groups:
            metadata = f"{number} " + rng.choice("abc") * METADATA_BYTES
            places = [(partition, number * 10 + partition, 1, metadata) for partition in range(PARTITIONS)]
            wire.send_commit(connection, group, {topic.name: places})
            kept[group] = {(topic.name, p): (offset, epoch, text, wire.NONE) for p, offset, epoch, text in places}
            sent_bytes += len(metadata) * PARTITIONS
        for group in groups:
            expect(set(wire.receive_commit(connection).values()), {wire.NONE}, f"errors of commits of {group}")
    # Some lose one of their offsets, and some all of them: their tombstones count too.
    for group in groups[::5]:
        expect(wire.delete_offsets(connection, group, topic.name, 1), (wire.NONE, {1: wire.NONE}), "OffsetDelete")
        del kept[group][topic.name, 1]
    for group in groups[::10]:
        expect(wire.delete_offsets(connection, group, topic.name, 0), (wire.NONE, {0: wire.NONE}), "OffsetDelete")
        del kept[group][topic.name, 0]

    directory = scene.broker.data_dir / "__consumer_offsets-0"

    def log_bytes():
        # A file may go while it is looked at.
        sizes = []
        for path in directory.glob("*.log"):
            try:
                stat = path.stat()
            except FileNotFoundError:
                continue
            sizes.append(min(stat.st_size, stat.st_blocks * 512))
        return sum(sizes)

    expect(sent_bytes > 3 * LEFT_BYTES_MAX, True, "what was committed is far more than what may be left")
    eventually(lambda: log_bytes() < LEFT_BYTES_MAX, "a compacted log of offsets", lambda: f"{directory} has {log_bytes()} bytes")
    check_kept(scene, {group: places for group, places in kept.items() if places})
    scene.broker.kill9()
    scene.broker.start()
    check_kept(scene, {group: places for group, places in kept.items() if places})
    connection = scene.wire()
    for group in groups[::10]:
        answer = eventually(lambda: fetched(connection, group, topic.name), f"the coordinator of {group}")
        expect({place: offset for place, (offset, *_) in answer.items()}, {(topic.name, p): -1 for p in range(PARTITIONS)}, group)


def fetched(connection, group, topic):
    answer, error = wire.fetch_offsets(connection, group, {topic: range(PARTITIONS)})
    return answer if error == wire.NONE else None
