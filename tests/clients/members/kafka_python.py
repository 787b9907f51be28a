"""kafka-python as a member of a group: the newest, and 2.0.2, which sends fixed old versions and knows no static members."""

import kafka
from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import KafkaError

from members.console import Console

IS_OLD = kafka.__version__.startswith("2.0.")

# When 3.0.12 rejoins because a topic's partitions changed, and poll() times out while its JoinGroup is under way, it never
# takes the assignment that SyncGroup then brings: need_rejoin() compares the snapshots, which are equal by then, and
# nobody awaits the join any more. A poll as long as such a join takes is the way around it; it returns early with records.
POLL_MS = 100 if IS_OLD else 2_000

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}
if not IS_OLD:
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.errors import FencedInstanceIdError

    ASSIGNORS["cooperative-sticky"] = CooperativeStickyAssignor
else:

    class FencedInstanceIdError(Exception):
        """2.0.2 has no static members, so nothing raises it."""


class Listener(ConsumerRebalanceListener):
    def __init__(self, console):
        self.console = console

    def on_partitions_assigned(self, assigned):
        self.console.gains(names(assigned))

    def on_partitions_revoked(self, revoked):
        self.console.gives(names(revoked))

    def on_partitions_lost(self, lost):
        self.console.gives(names(lost))


def run(console):
    options = console.options
    settings = {}
    if options["assignor"]:
        settings["partition_assignment_strategy"] = [ASSIGNORS[options["assignor"]]]
    if options["instance"]:
        settings["group_instance_id"] = options["instance"]
    consumer = KafkaConsumer(
        bootstrap_servers=options["bootstrap"],
        group_id=options["group"],
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=options["session_ms"],
        heartbeat_interval_ms=options["session_ms"] // 6,
        max_poll_interval_ms=max(options["rebalance_ms"], options["session_ms"]),
        max_poll_records=options["batch"],
        metadata_max_age_ms=500,
        fetch_max_wait_ms=100,
        reconnect_backoff_max_ms=500,
        **settings,
    )
    consumer.subscribe(options["topics"], listener=Listener(console))
    while not console.leaves.is_set():
        batches = consumer.poll(timeout_ms=POLL_MS)
        for batch in batches.values():
            for message in batch:
                console.handled(message.topic, message.partition, message.offset, message.value)
        if batches and console.may_commit():
            commit(console, consumer)
    consumer.close(autocommit=False)
    console.say("left")


def names(places):
    return [(place.topic, place.partition) for place in places]


def commit(console, consumer):
    try:
        consumer.commit()
    except FencedInstanceIdError:
        raise
    except KafkaError as error:
        console.say("commit failed", type(error).__name__)
    else:
        console.say("committed")


if __name__ == "__main__":
    console = Console()
    try:
        run(console)
    except FencedInstanceIdError:
        console.say("fenced")
