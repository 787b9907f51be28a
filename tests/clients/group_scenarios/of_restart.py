"""kill -9 of the broker: what was confirmed is there after it, and groups go on from where they were."""

import random
import threading
import time

from group_scenarios.scene import eventually, settled
from harness import group_wire as wire
from harness.client import Mismatch, expect
from harness.group_load import Stream

COMMITTING_GROUPS = 8


def killed_under_load(scene, clients, seed):
    """One group of two members per client handles a stream, and others commit as fast as they may, while it is killed."""
    rng = random.Random(f"{seed}/restart")
    topic = scene.topic("t", 4)
    kept = commit_all_sorts(scene, topic)
    groups = {
        client: [scene.member(client, [topic], f"{scene.name}-{client.name}") for _ in range(2)] for client in clients
    }
    stream = Stream(topic, 100)
    stream.start()
    for members in groups.values():
        settled(members, topic.places())
        eventually(lambda: all(member.committed for member in members), "first commits", members[0].story)
    committers = [Committer(scene, f"{scene.name}-commits-{n}", topic.name) for n in range(COMMITTING_GROUPS)]
    for committer in committers:
        committer.start()
    time.sleep(rng.uniform(0.3, 1.2))
    before = {member: (len(member.handled), list(member.committed)) for members in groups.values() for member in members}
    scene.broker.kill9()
    for committer in committers:
        committer.join()
    scene.broker.start()
    check_kept(scene, kept)
    for committer in committers:
        committer.check()
    time.sleep(1)
    stream.stop()
    for members in groups.values():
        topic.wait_until_handled(members)
        settled(members, topic.places())
        check_no_step_back(members, before)
        for member in members:
            member.leave()


def commit_all_sorts(scene, topic):
    """{group: what OffsetFetch gives}, each commit confirmed."""
    connection, kept = scene.wire(), {}
    for number in range(40):
        group = f"{scene.name}-kept-{number}"
        places = [(p, number * 1000 + p, number % 5 - 1, f"metadata {number} äöü") for p in range(topic.partitions)]
        for places_then in (places[:1], places):
            answer = wire.commit(connection, group, {topic.name: places_then})
            expect(set(answer.values()), {wire.NONE}, f"errors of commits of {group}")
        if number % 4 == 3:
            expect(wire.delete_offsets(connection, group, topic.name, 1), (wire.NONE, {1: wire.NONE}), "OffsetDelete")
            del places[1]
        kept[group] = {(topic.name, p): (offset, epoch, text, wire.NONE) for p, offset, epoch, text in places}
    return kept


def check_kept(scene, kept):
    connection = scene.wire()
    for group, want in kept.items():
        got = eventually(lambda: loaded(connection, group), f"the coordinator of {group}")
        expect(got, want, f"what {group} had committed")
        expect(wire.describe(connection, group)[:2], (wire.NONE, "Empty"), f"{group} described")


def loaded(connection, group):
    answer, error = wire.fetch_offsets(connection, group)
    return answer if error == wire.NONE else None


class Committer(threading.Thread):
    """Commits 1, 2, 3... as one member of its group, until the broker is gone."""

    def __init__(self, scene, group, topic):
        super().__init__(daemon=True)
        self.scene = scene
        self.group = group
        self.topic = topic
        self.sent = 0
        self.confirmed = 0
        self.failure = None

    def run(self):
        connection = self.scene.wire()
        try:
            while True:
                self.sent += 1
                places = [(0, self.sent, 2, f"number {self.sent}")]
                error = wire.commit(connection, self.group, {self.topic: places})[self.topic, 0]
                if error != wire.NONE:
                    self.failure = f"{self.group}: the commit of {self.sent} gave error {error}"
                    return
                self.confirmed = self.sent
        except (Mismatch, OSError):
            pass  # the broker was killed

    def check(self):
        expect(self.failure, None, "a commit's failure")
        connection = self.scene.wire()
        got = eventually(lambda: loaded(connection, self.group), f"the coordinator of {self.group}")
        offset, epoch, text, _ = got[self.topic, 0]
        expect(self.confirmed <= offset <= self.sent, True, f"{offset} is within {self.confirmed} confirmed, {self.sent} sent")
        expect((epoch, text), (2, f"number {offset}"), "epoch and metadata")


def check_no_step_back(members, before):
    """Nothing that was committed before the kill is handled again after it."""
    places = {}
    for member in members:
        for handled in before[member][1]:
            places[handled.partition] = max(places.get(handled.partition, 0), handled.offset + 1)
    for member in members:
        for handled in member.handled[before[member][0] :]:
            expect(handled.offset >= places.get(handled.partition, 0), True, f"{member.name}: {handled}, committed {places}")
