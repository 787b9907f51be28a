"""Many members, many groups, and one group that never comes to rest."""

import multiprocessing
import resource
import time

from confluent_kafka import Producer

from group_scenarios.of_rules import form
from harness import group_wire as wire
from harness.client import expect

# What one more member may cost a broker, its metadata and its share included. All of a group is one record, which must fit
# into a batch of the topic: 1,000 members of 400 bytes do.
MEMBER_BYTES_MAX = 48 * 1024
METADATA_BYTES = 400

# What one more group with a commit may cost, its records in the log's cache included.
GROUP_BYTES_MAX = 8 * 1024

# A broker that does something else at the same time may be so much slower, on a machine that both share with the test.
SLOWER_MAX = 12


def resident_bytes(broker):
    with open(f"/proc/{broker.process.pid}/status", encoding="ascii") as file:
        (line,) = [line for line in file if line.startswith("VmRSS:")]
    return int(line.split()[1]) * 1024


def allow_connections(count):
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, count), hard))


def many_members(scene, count, is_bounded):
    """All in one generation, each with its share; then all silent at once, and the group is empty again."""
    allow_connections(2 * count + 200)
    connections = [scene.wire() for _ in range(count)]
    for connection in connections:
        wire.served(connection)
    before = resident_bytes(scene.broker)
    metadata = b"m" * METADATA_BYTES
    joined = []
    for connection in connections:
        wire.send_join(connection, scene.name, metadata=metadata, session_ms=300_000, rebalance_ms=60_000)
    joined = [wire.Joined(connection.receive()) for connection in connections]
    rounds = 0
    while True:
        rounds += 1
        for connection, j in zip(connections, joined):
            options = {"member": j.member, "metadata": metadata, "session_ms": 300_000, "rebalance_ms": 60_000}
            wire.send_join(connection, scene.name, **options)
        joined = [wire.Joined(connection.receive()) for connection in connections]
        expect({j.error for j in joined}, {wire.NONE}, "answers")
        if len({j.generation for j in joined}) == 1:
            break
        expect(rounds < 10, True, "one generation within ten rounds")
    (leader,) = [j for j in joined if j.is_leader()]
    expect(len(leader.members), count, "members that the leader sees")
    shares = {j.member: b"share of " + j.member.encode() for j in joined}
    for connection, j in zip(connections, joined):
        wire.send_sync(connection, scene.name, j, shares.items() if j.is_leader() else ())
    for connection, j in zip(connections, joined):
        expect(wire.receive_sync(connection), (wire.NONE, shares[j.member]), "a member's share")
    for connection, j in zip(connections, joined):
        expect(wire.heartbeat(connection, scene.name, j.generation, j.member), wire.NONE, "a member's heartbeat")
    each = (resident_bytes(scene.broker) - before) // count
    if is_bounded:
        expect(each <= MEMBER_BYTES_MAX, True, f"{each} bytes for each member are within {MEMBER_BYTES_MAX}")
    for connection, j in zip(connections, joined):
        wire.leave(connection, scene.name, j.member)
    expect(wire.describe(connections[0], scene.name)[1], "Empty", "its state once all have left")
    return f"{each} bytes each"


def many_groups(scene, count, is_bounded):
    """Each with one commit, all from one client; then each is asked for."""
    topic, connection = scene.topic("t", 1), scene.wire()
    for_each(connection, count, 64, lambda n: commit_of(connection, scene, topic, n), lambda _: check_commit(connection))
    names = [f"{scene.name}-{number}" for number in range(count)]
    listed = wire.list_groups(connection)[1]
    expect([name for name in names if name not in listed], [], "groups that are not listed")
    for number in range(0, count, max(1, count // 200)):
        got, _ = wire.fetch_offsets(connection, names[number])
        expect(got[topic.name, 0][0], number, f"the commit of {names[number]}")


def commit_of(connection, scene, topic, number):
    body = wire.commit_body(f"{scene.name}-{number}", {topic.name: [(0, number, -1, "")]})
    connection.send(wire.OFFSET_COMMIT, 7, body)


def check_commit(connection):
    expect(set(wire.receive_commit(connection).values()), {wire.NONE}, "errors of a commit")


def for_each(connection, count, in_flight, send, receive):
    """Sends ahead of the answers, by so many."""
    for number in range(count):
        send(number)
        if number >= in_flight:
            receive(number - in_flight)
    for number in range(max(0, count - in_flight), count):
        receive(number)


def memory_of_groups(scene, count, is_bounded):
    few = max(1, count // 10)
    many_groups(scene, few, is_bounded)
    before = resident_bytes(scene.broker)
    scene.name += "-more"
    many_groups(scene, count, is_bounded)
    each = (resident_bytes(scene.broker) - before) // count
    if is_bounded:
        expect(each <= GROUP_BYTES_MAX, True, f"{each} bytes for each group are within {GROUP_BYTES_MAX}")


def storm(scene):
    """A group that rebalances without end beside one that heartbeats and commits, and a producer."""
    topic = scene.topic("t", 2)
    alone = work(scene, topic, "alone")
    stop, rebalances = multiprocessing.Event(), multiprocessing.Value("i", 0)
    process = multiprocessing.get_context("fork").Process(
        target=rebalance_for_ever, args=(scene.bootstrap, f"{scene.name}-storm", stop, rebalances)
    )
    process.start()
    try:
        deadline = time.monotonic() + 30
        while rebalances.value < 3 and process.is_alive() and time.monotonic() < deadline:
            time.sleep(0.05)
        seen = rebalances.value
        expect(seen >= 3, True, "the storm blows")
        beside = work(scene, topic, "beside")
        expect(rebalances.value > seen, True, f"the storm went on: {rebalances.value} rebalances")
    finally:
        stop.set()
        process.join(30)
        if process.is_alive():
            process.kill()
    for name, count in alone.items():
        expect(beside[name] * SLOWER_MAX >= count, True, f"{name}: {count} alone, {beside[name]} beside the storm")


def work(scene, topic, name, seconds=3):
    """What one client gets done, one request after another: {what: count}. Any error fails."""
    group, connection = f"{scene.name}-{name}", scene.wire()
    joined = wire.join(connection, group)
    wire.sync(connection, group, joined, [(joined.member, b"all")])
    producer = Producer({"bootstrap.servers": scene.bootstrap, "linger.ms": 0})
    counts = {"heartbeats": 0, "commits": 0, "produced": 0}
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        error = wire.heartbeat(connection, group, joined.generation, joined.member)
        expect(error, wire.NONE, "a heartbeat of the other group")
        counts["heartbeats"] += 1
        places = {topic.name: [(0, counts["commits"], -1, "")]}
        answer = wire.commit(connection, group, places, generation=joined.generation, member=joined.member)
        expect(answer[topic.name, 0], wire.NONE, "a commit of the other group")
        counts["commits"] += 1
        producer.produce(topic.name, value=b"x", on_delivery=lambda error, _: expect(error, None, "a produced record"))
        expect(producer.flush(30), 0, "records left")
        counts["produced"] += 1
    wire.leave(connection, group, joined.member)
    return counts


def rebalance_for_ever(bootstrap, group, stop, rebalances, members=40):
    connections = [wire.Wire(bootstrap) for _ in range(members)]
    joined = form(connections, group)
    while not stop.is_set():
        for connection, j in zip(connections, joined):
            wire.send_sync(connection, group, j, [(o.member, b"x" * 200) for o in joined] if j.is_leader() else ())
        for connection in connections:
            wire.receive_sync(connection)
        # Other metadata each time: a member that only asks again is given the generation that stands.
        content = str(rebalances.value).encode()
        for connection, j in zip(connections, joined):
            wire.send_join(connection, group, member=j.member, metadata=content)
        joined = [wire.Joined(connection.receive()) for connection in connections]
        with rebalances.get_lock():
            rebalances.value += 1
