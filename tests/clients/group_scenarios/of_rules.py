"""The protocol's rules, request by request: who may commit, who is waited for, and for how long."""

import time

from group_scenarios.scene import eventually
from harness import group_wire as wire
from harness.client import expect

# As the settings of the broker in tests/clients/groups have it.
SESSION_MS_MIN, SESSION_MS_MAX = 1_000, 1_800_000


def scenarios():
    return [
        ("a commit keeps its metadata and leader epoch", commit_round_trip),
        ("a commit from an old generation, or of a stranger, is refused", commits_are_fenced),
        ("a member that does not rejoin is left behind after the rebalance time-out", rebalance_timeout),
        ("a session time-out outside the bounds is refused", session_bounds),
        ("two members without a protocol in common do not form a group", inconsistent_protocols),
        ("the leader sees all, and each member gets its own assignment", assignments),
        ("commits of a subscribed topic cannot be deleted, others can", offset_delete),
        ("an unknown group is described as dead and holds no offsets", unknown_group),
        ("commits to unknown partitions are refused one by one", unknown_partitions),
    ]


def wait_for_coordinators(bootstrap):
    """The topic of the commits is made by the first question after a coordinator, and its partitions are ready one by one.
    So many names meet every one of 50 partitions."""
    with wire.Wire(bootstrap) as connection:
        for number in range(600):
            name = f"is-there-{number}"
            eventually(lambda: wire.find_coordinator(connection, name)[0] == wire.NONE, "a coordinator")
            eventually(
                lambda: wire.heartbeat(connection, name, 1, "nobody") == wire.UNKNOWN_MEMBER_ID, f"the coordinator of {name}"
            )


def commit_round_trip(scene):
    topic, connection = scene.topic("t", 3), scene.wire()
    text = "Anmerkung äöü 値 " * 20
    places = [(0, 7, 3, text), (1, 1 << 40, -1, ""), (2, 0, 0, None)]
    answer = wire.commit(connection, scene.name, {topic.name: places})
    expect(set(answer.values()), {wire.NONE}, "errors")
    got, _ = wire.fetch_offsets(connection, scene.name)
    # A commit without metadata reads as one with empty metadata, as in Kafka.
    want = {(topic.name, p): (offset, epoch, metadata or "", wire.NONE) for p, offset, epoch, metadata in places}
    expect(got, want, "offsets, epochs and metadata")
    too_long = "m" * 4097
    answer = wire.commit(connection, scene.name, {topic.name: [(0, 8, -1, too_long), (1, 9, -1, "short")]})
    expect(answer[topic.name, 0], wire.OFFSET_METADATA_TOO_LARGE, "metadata above offset.metadata.max.bytes")
    expect(answer[topic.name, 1], wire.NONE, "the other partition of that request")
    got, _ = wire.fetch_offsets(connection, scene.name, {topic.name: [0, 1]})
    expect([got[topic.name, p][0] for p in (0, 1)], [7, 9], "offsets")


def commits_are_fenced(scene):
    topic, group = scene.topic("t", 1), scene.name
    first, second = scene.wire(), scene.wire()
    one = wire.join(first, group)
    expect(wire.sync(first, group, one, [(one.member, b"x")]), (wire.NONE, b"x"), "SyncGroup")

    def commit(connection, offset, **options):
        return wire.commit(connection, group, {topic.name: [(0, offset, -1, "")]}, **options)[topic.name, 0]

    expect(commit(first, 1, generation=one.generation, member=one.member), wire.NONE, "a member's commit")
    expect(commit(second, 2, generation=one.generation, member="stranger"), wire.UNKNOWN_MEMBER_ID, "a stranger's commit")
    expect(commit(second, 2), wire.UNKNOWN_MEMBER_ID, "a commit without a member while the group has members")
    wrong = one.generation + 1
    expect(commit(first, 3, generation=wrong, member=one.member), wire.ILLEGAL_GENERATION, "a commit from the future")
    expect(wire.heartbeat(first, group, wrong, one.member), wire.ILLEGAL_GENERATION, "a heartbeat from the future")
    expect(wire.heartbeat(first, group, one.generation, one.member), wire.NONE, "a heartbeat")
    wire.send_join(second, group)
    two = wire.Joined(second.receive())
    expect(two.error, wire.MEMBER_ID_REQUIRED, "the first JoinGroup of the second")
    wire.send_join(second, group, member=two.member)
    eventually(
        lambda: wire.heartbeat(first, group, one.generation, one.member) == wire.REBALANCE_IN_PROGRESS,
        "the rebalance",
    )
    again = wire.join(first, group, member=one.member)
    two = wire.Joined(second.receive())
    expect((again.error, two.error), (wire.NONE, wire.NONE), "both have joined")
    expect(again.generation, two.generation, "one generation")
    expect(again.generation > one.generation, True, "a later generation")
    old = commit(first, 4, generation=one.generation, member=one.member)
    expect(old, wire.ILLEGAL_GENERATION, "a commit from the old generation")
    got, _ = wire.fetch_offsets(first, group)
    expect(got[topic.name, 0][0], 1, "the committed offset")
    expect(wire.leave(second, group, "stranger"), wire.UNKNOWN_MEMBER_ID, "a stranger leaves")


def rebalance_timeout(scene):
    """The first member goes on with heartbeats but never joins again."""
    group = scene.name
    first, second = scene.wire(), scene.wire()
    one = wire.join(first, group, rebalance_ms=1_500, session_ms=60_000)
    wire.sync(first, group, one, [(one.member, b"x")])
    wire.send_join(second, group, rebalance_ms=1_500)
    pending = wire.Joined(second.receive())
    wire.send_join(second, group, member=pending.member, rebalance_ms=1_500, session_ms=60_000)
    seen = set()
    deadline = time.monotonic() + 30
    while wire.UNKNOWN_MEMBER_ID not in seen and time.monotonic() < deadline:
        seen.add(wire.heartbeat(first, group, one.generation, one.member))
        time.sleep(0.05)
    expect(wire.REBALANCE_IN_PROGRESS in seen, True, f"heartbeats told of the rebalance: {seen}")
    expect(wire.UNKNOWN_MEMBER_ID in seen, True, f"the one that did not rejoin is out: {seen}")
    two = wire.Joined(second.receive())
    expect((two.error, [member for member, _, _ in two.members]), (wire.NONE, [two.member]), "who is left")


def session_bounds(scene):
    connection = scene.wire()
    for session_ms in (SESSION_MS_MIN - 1, SESSION_MS_MAX + 1, 0, -1, 2**31 - 1):
        joined = wire.join(connection, scene.name, session_ms=session_ms)
        expect(joined.error, wire.INVALID_SESSION_TIMEOUT, f"JoinGroup with a session of {session_ms} ms")


def inconsistent_protocols(scene):
    first, second = scene.wire(), scene.wire()
    one = wire.join(first, scene.name, name="range")
    wire.sync(first, scene.name, one, [(one.member, b"")])
    for options in ({"name": "other"}, {"type_": "connect"}):
        joined = wire.join(second, scene.name, **options)
        expect(joined.error, wire.INCONSISTENT_GROUP_PROTOCOL, f"JoinGroup with {options}")
    expect(wire.join(second, "").error, wire.INVALID_GROUP_ID, "JoinGroup without a group id")
    expect(wire.heartbeat(first, scene.name, one.generation, one.member), wire.NONE, "the first one's heartbeat")


def assignments(scene):
    group, connections = scene.name, [scene.wire() for _ in range(3)]
    joined = form(connections, group)
    (leader,) = [j for j in joined if j.is_leader()]
    expect(sorted(m for m, _, _ in leader.members), sorted(j.member for j in joined), "members that the leader sees")
    expect({metadata for _, _, metadata in leader.members}, {b"about 0", b"about 1", b"about 2"}, "their metadata")
    shares = {j.member: f"share of {j.member}".encode() for j in joined}
    for connection, j in zip(connections, joined):
        wire.send_sync(connection, group, j, shares.items() if j.is_leader() else ())
    for connection, j in zip(connections, joined):
        expect(wire.receive_sync(connection), (wire.NONE, shares[j.member]), "the assignment of one")
    error, state, protocol, members = wire.describe(connections[0], group)
    expect((error, state, protocol), (wire.NONE, "Stable", "range"), "the group described")
    expect({member: assignment for member, _, _, _, assignment in members}, shares, "assignments described")
    expect({client for _, client, _, _, _ in members}, {"wire"}, "client ids")
    expect(wire.list_groups(connections[0])[1].get(group), "consumer", "the group's protocol type in the list")


def form(connections, group, **options):
    """All are in one generation; each has other metadata."""
    joined = []
    for connection in connections:
        wire.send_join(connection, group, **options)
        joined.append(wire.Joined(connection.receive()))
    expect({j.error for j in joined}, {wire.MEMBER_ID_REQUIRED}, "first answers")
    while True:
        for number, (connection, j) in enumerate(zip(connections, joined)):
            wire.send_join(connection, group, member=j.member, metadata=f"about {number}".encode(), **options)
        joined = [wire.Joined(connection.receive()) for connection in connections]
        expect({j.error for j in joined}, {wire.NONE}, "second answers")
        if len({j.generation for j in joined}) == 1 and any(len(j.members) == len(connections) for j in joined):
            return joined


def offset_delete(scene):
    subscribed, other, group = scene.topic("subscribed", 2), scene.topic("other", 2), scene.name
    connection = scene.wire()
    places = [(0, 1, -1, ""), (1, 2, -1, "")]
    wire.commit(connection, group, {subscribed.name: places, other.name: places})
    joined = wire.join(connection, group, metadata=wire.subscription(subscribed.name))
    wire.sync(connection, group, joined, [(joined.member, wire.assignment(subscribed.name, 0, 1))])
    answer = wire.delete_offsets(connection, group, subscribed.name, 0)
    expect(answer, (wire.NONE, {0: wire.GROUP_SUBSCRIBED_TO_TOPIC}), "OffsetDelete of a subscribed topic")
    expect(wire.delete_offsets(connection, group, other.name, 0), (wire.NONE, {0: wire.NONE}), "OffsetDelete of another")
    got, _ = wire.fetch_offsets(connection, group)
    want = {(subscribed.name, 0), (subscribed.name, 1), (other.name, 1)}
    expect({place for place, answer in got.items() if answer[0] >= 0}, want, "what is left")


def unknown_group(scene):
    connection = scene.wire()
    expect(wire.describe(connection, scene.name), (wire.NONE, "Dead", "", []), "the description")
    expect(wire.fetch_offsets(connection, scene.name), ({}, wire.NONE), "all offsets")
    got, _ = wire.fetch_offsets(connection, scene.name, {"no-such-topic": [5]})
    expect(got, {("no-such-topic", 5): (-1, -1, "", wire.NONE)}, "the offset of one partition")
    expect(wire.delete_offsets(connection, scene.name, "t", 0)[0], wire.GROUP_ID_NOT_FOUND, "OffsetDelete")
    expect(wire.heartbeat(connection, scene.name, 1, "nobody"), wire.UNKNOWN_MEMBER_ID, "Heartbeat")
    expect(scene.name in wire.list_groups(connection)[1], False, "it came into being by being asked for")
    error, node, port = wire.find_coordinator(connection, scene.name)
    expect((error, node >= 0, str(port)), (wire.NONE, True, scene.bootstrap.rpartition(":")[2]), "its coordinator")


def unknown_partitions(scene):
    topic, connection = scene.topic("t", 2), scene.wire()
    offsets = {topic.name: [(0, 4, -1, ""), (2, 4, -1, ""), (-1, 4, -1, ""), (2**31 - 1, 4, -1, "")]}
    offsets["no-such-topic"] = [(0, 4, -1, "")]
    answer = wire.commit(connection, scene.name, offsets)
    wrong = [place for place, error in answer.items() if error != wire.NONE]
    expect(len(answer), 5, "answers")
    expect(answer[topic.name, 0], wire.NONE, "the partition that exists")
    expect({answer[place] for place in wrong}, {wire.UNKNOWN_TOPIC_OR_PARTITION}, "the errors of the others")
    expect(len(wrong), 4, "refused")
    expect(set(wire.fetch_offsets(connection, scene.name)[0]), {(topic.name, 0)}, "what was kept")


def initial_delay(scene, delay_ms):
    """A new group waits, so that those who start together are in its first generation together."""
    group, connections = scene.name, [scene.wire() for _ in range(3)]
    started = time.monotonic()
    joined = []
    for connection in connections:
        wire.send_join(connection, group)
        joined.append(wire.Joined(connection.receive()))
    for connection, j in zip(connections, joined):
        wire.send_join(connection, group, member=j.member)
        time.sleep(0.1)
    joined = [wire.Joined(connection.receive()) for connection in connections]
    expect({(j.error, j.generation) for j in joined}, {(wire.NONE, 1)}, "all are in the first generation")
    expect(time.monotonic() - started >= delay_ms / 1000, True, f"the group waited {delay_ms} ms")


def group_max_size(scene, size):
    group, connections = scene.name, [scene.wire() for _ in range(size)]
    form(connections, group)
    surplus = scene.wire()
    expect(wire.join(surplus, group).error, wire.GROUP_MAX_SIZE_REACHED, f"JoinGroup of member {size + 1}")
    expect(wire.join(surplus, f"{group}-other").error, wire.NONE, "JoinGroup of another group")
