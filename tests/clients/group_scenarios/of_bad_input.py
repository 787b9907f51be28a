"""What no client sends. It costs its sender an error or the connection, and nobody else anything."""

import struct

from group_scenarios.of_scale import for_each, resident_bytes
from harness import group_wire as wire
from harness.client import expect

# What a group id that was only asked to join may cost while its member id waits to be used.
ASKED_BYTES_MAX = 4 * 1024


def scenarios(group_ids):
    return [
        ("group requests whose lengths lie cost only their connection", lying_lengths),
        ("blobs whose inside lies are kept, and nobody stumbles over them", lying_blobs),
        ("ids and metadata of megabytes are refused or kept, within bounded memory", megabytes),
        (f"{group_ids} group ids from one client leave nothing behind", lambda s: many_ids(s, group_ids)),
    ]


class Bystander:
    """A member of a group of its own, with whom all must be well afterwards."""

    def __init__(self, scene):
        self.connection = scene.wire()
        self.group = f"{scene.name}-bystander"
        self.topic = scene.topic("bystander", 1)
        # Long enough for whatever the others do on a slow machine.
        self.joined = wire.join(self.connection, self.group, session_ms=900_000)
        wire.sync(self.connection, self.group, self.joined, [(self.joined.member, b"all")])
        self.offset = 0

    def check(self):
        at = {"generation": self.joined.generation, "member": self.joined.member}
        error = wire.heartbeat(self.connection, self.group, self.joined.generation, self.joined.member)
        expect(error, wire.NONE, "the bystander's heartbeat")
        self.offset += 1
        answer = wire.commit(self.connection, self.group, {self.topic.name: [(0, self.offset, -1, "")]}, **at)
        expect(set(answer.values()), {wire.NONE}, "the bystander's commit")
        got, _ = wire.fetch_offsets(self.connection, self.group)
        expect(got[self.topic.name, 0][0], self.offset, "the bystander's offset")


def lying_lengths(scene):
    bystander = Bystander(scene)
    huge, negative = struct.pack(">i", 2**31 - 1), struct.pack(">i", -2)
    group, times = wire.string(scene.name), wire.int32(10_000) * 2
    head = group + times + wire.string("") + wire.string(None) + wire.string("consumer")
    one_protocol = wire.int32(1) + wire.string("range")
    member = wire.int32(1) + wire.string("m") + wire.string(None)
    one_topic = wire.int32(1) + wire.string("t")
    lies = [
        (wire.JOIN_GROUP, 5, head + huge),
        (wire.JOIN_GROUP, 5, head + one_protocol + huge),
        (wire.JOIN_GROUP, 5, head + one_protocol + negative),
        (wire.JOIN_GROUP, 5, struct.pack(">h", 32767) + b"short"),
        (wire.SYNC_GROUP, 3, group + member + huge),
        (wire.SYNC_GROUP, 3, group + member + wire.int32(1) + wire.string("m") + huge),
        (wire.HEARTBEAT, 3, struct.pack(">h", 500)),
        (wire.LEAVE_GROUP, 3, group + huge),
        (wire.OFFSET_COMMIT, 7, group + member + huge),
        (wire.OFFSET_COMMIT, 7, group + member + one_topic + huge),
        (wire.OFFSET_FETCH, 5, group + one_topic + huge),
        (wire.DESCRIBE_GROUPS, 3, huge),
        (wire.DELETE_GROUPS, 1, huge),
        (wire.OFFSET_DELETE, 0, group + one_topic + huge),
    ]
    before = resident_bytes(scene.broker)
    for key, version, body in lies:
        connection = wire.Wire(scene.bootstrap)
        connection.send(key, version, body)
        expect(connection.is_closed(), True, f"the connection after the lie {body!r} to API {key}")
        connection.close()
    bystander.check()
    grown = resident_bytes(scene.broker) - before
    expect(grown < 64 * 1024 * 1024, True, f"{grown} bytes grown are little")


def lying_blobs(scene):
    """To the broker the inside of metadata is the clients' affair, except that it looks for the topics subscribed to."""
    bystander, connection, topic = Bystander(scene), scene.wire(), scene.topic("t", 1)
    honest = wire.subscription(topic.name)
    lies = [
        b"",
        b"\0",
        b"\xff" * 40,
        wire.int16(0) + wire.int32(2**31 - 1),
        wire.int16(0) + wire.int32(-5),
        wire.int16(0) + wire.int32(1) + struct.pack(">h", 32767) + b"t",
        wire.int16(3) + honest[2:],
        wire.int16(-1) + honest[2:],
        honest[:-1],
    ]
    for number, lie in enumerate(lies):
        group = f"{scene.name}-{number}"
        joined = wire.join(connection, group, metadata=lie)
        expect(joined.error, wire.NONE, f"JoinGroup with {lie!r}")
        expect(wire.sync(connection, group, joined, [(joined.member, lie)]), (wire.NONE, lie), f"SyncGroup with {lie!r}")
        _, state, _, members = wire.describe(connection, group)
        expect((state, [(m[3], m[4]) for m in members]), ("Stable", [(lie, lie)]), f"the description with {lie!r}")
        at = {"generation": joined.generation, "member": joined.member}
        answer = wire.commit(connection, group, {topic.name: [(0, 3, -1, "")]}, **at)
        expect(answer[topic.name, 0], wire.NONE, f"a commit with {lie!r}")
        error, _ = wire.delete_offsets(connection, group, topic.name, 0)
        expect(error, wire.NONE, f"OffsetDelete with {lie!r}")
        expect(wire.leave(connection, group, joined.member), wire.NONE, f"LeaveGroup with {lie!r}")
    bystander.check()


def megabytes(scene):
    bystander, topic = Bystander(scene), scene.topic("t", 1)
    before = resident_bytes(scene.broker)
    for number in range(5):
        connection, group = wire.Wire(scene.bootstrap), f"{scene.name}-{number}"
        long_id = b"i" * 32_000
        expect(wire.heartbeat(connection, group, 1, long_id), wire.UNKNOWN_MEMBER_ID, "a heartbeat with a long member id")
        expect(wire.join(connection, group, member=long_id).error, wire.UNKNOWN_MEMBER_ID, "JoinGroup with a long member id")
        answer = wire.commit(connection, group, {topic.name: [(0, 1, -1, long_id)]})
        expect(answer[topic.name, 0], wire.OFFSET_METADATA_TOO_LARGE, "a commit with long metadata")
        # More than a record of the topic may hold: a group that could not be written is not confirmed.
        joined = wire.join(connection, group, metadata=b"m" * 8_000_000)
        if joined.error == wire.NONE:
            error, _ = wire.sync(connection, group, joined, [(joined.member, b"a" * 8_000_000)])
            expect(error != wire.NONE, True, "SyncGroup of what cannot be written fails")
        wire.leave(connection, group, joined.member)
        connection.close()
        bystander.check()
    grown = resident_bytes(scene.broker) - before
    expect(grown < 512 * 1024 * 1024, True, f"{grown} bytes grown are within 512 MiB")


def many_ids(scene, count):
    """Each is asked to join once, and never again: the member ids given out run out with their sessions."""
    bystander, connection = Bystander(scene), scene.wire()
    before = resident_bytes(scene.broker)
    errors = set()
    for_each(
        connection,
        count,
        64,
        lambda n: wire.send_join(connection, f"{scene.name}-{n}", session_ms=1_000, rebalance_ms=1_000),
        lambda _: errors.add(wire.Joined(connection.receive()).error),
    )
    expect(errors, {wire.MEMBER_ID_REQUIRED}, "answers to JoinGroup")
    bystander.check()
    grown = resident_bytes(scene.broker) - before
    # A JVM's heap has a bound of its own and grows to it as it likes.
    if scene.broker.name == "corelog":
        expect(grown < count * ASKED_BYTES_MAX + 32 * 1024 * 1024, True, f"{grown} bytes grown for {count} ids are bounded")
    errors.clear()
    for_each(
        connection,
        count,
        64,
        lambda n: connection.send(
            wire.HEARTBEAT, 3, wire.string(f"{scene.name}-never-{n}") + wire.int32(1) + wire.string("m") + wire.string(None)
        ),
        lambda _: errors.add(connection.receive().content[8:10]),
    )
    expect(errors, {wire.int16(wire.UNKNOWN_MEMBER_ID)}, "answers to Heartbeat")
    listed = wire.list_groups(connection)[1]
    made = [name for name in listed if name.startswith(f"{scene.name}-never-")]
    expect(made, [], "groups that came into being by a heartbeat")
    bystander.check()
