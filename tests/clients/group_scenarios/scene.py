"""What a scenario is given: the broker, topics, members and connections of its own, all of which end with it."""

import concurrent.futures
import time
import traceback

from harness.client import Mismatch
from harness.group_load import Topic
from harness.group_member import Member
from harness.group_wire import Wire

WAIT_S = 60


class Scene:
    def __init__(self, broker, name):
        self.broker = broker
        self.name = name
        self.members = []
        self.wires = []

    @property
    def bootstrap(self):
        return self.broker.bootstrap

    def topic(self, word, partitions, **settings):
        return Topic(self.bootstrap, f"{self.name}-{word}", partitions, **settings)

    def member(self, client, topics, group=None, **options):
        names = [topic if isinstance(topic, str) else topic.name for topic in topics]
        member = Member(client, self.bootstrap, group or self.name, names, **options)
        self.members.append(member)
        return member

    def wire(self):
        wire = Wire(self.bootstrap)
        self.wires.append(wire)
        return wire

    def close(self):
        for end in [*(member.end for member in self.members), *(wire.close for wire in self.wires)]:
            end()


def eventually(condition, what, stories=lambda: ""):
    """For what comes about by itself, in whatever time."""
    deadline = time.monotonic() + WAIT_S
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise Mismatch(f"{what} did not come about\n{stories()}")
        time.sleep(0.02)


def settled(members, places):
    """Waits until every place has exactly one owner among the members, and every member has one."""

    def is_settled():
        owned = [place for member in members for place in member.owned]
        return sorted(owned) == sorted(places) and all(member.owned for member in members)

    eventually(is_settled, f"one owner for each of {sorted(places)}", lambda: "\n".join(m.story() for m in members))


def play(report, broker, name, scenario):
    """Runs one scenario as one check."""
    scene = Scene(broker, "".join(c if c.isalnum() else "-" for c in name))
    started = time.monotonic()
    try:
        scenario(scene)
    except Exception as error:  # whatever a client raises is this check's failure, and the next ones still run
        places = [f"{place.filename.rpartition('/')[2]}:{place.lineno}" for place in traceback.extract_tb(error.__traceback__)]
        report.fail(name, f"{type(error).__name__}: {error} ({' '.join(places[-3:])})")
    else:
        report.ok(f"{name} ({time.monotonic() - started:.1f} s)")
    finally:
        scene.close()


def play_together(report, broker, scenarios, at_once=6):
    """Each with its own topics and groups; (name, scenario) pairs."""
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for done in [pool.submit(play, report, broker, name, scenario) for name, scenario in scenarios]:
            done.result()
