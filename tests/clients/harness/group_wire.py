"""Group requests as bytes, so that a test may send what no client sends and be many members in one process.

Only versions before the flexible ones: a string is a two-byte length and its bytes, bytes and arrays have a four-byte one.
"""

import socket
import struct

from .client import Mismatch

TIMEOUT_S = 60

PRODUCE, FETCH, METADATA = 0, 1, 3
OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 8, 9, 10
JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP = 11, 12, 13, 14
DESCRIBE_GROUPS, LIST_GROUPS, API_VERSIONS = 15, 16, 18
DELETE_GROUPS, OFFSET_DELETE, CONSUMER_GROUP_HEARTBEAT = 42, 47, 68

NONE = 0
UNKNOWN_TOPIC_OR_PARTITION = 3
OFFSET_METADATA_TOO_LARGE = 12
COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR = 14, 15, 16
ILLEGAL_GENERATION = 22
INCONSISTENT_GROUP_PROTOCOL = 23
INVALID_GROUP_ID = 24
UNKNOWN_MEMBER_ID = 25
INVALID_SESSION_TIMEOUT = 26
REBALANCE_IN_PROGRESS = 27
GROUP_ID_NOT_FOUND = 69
MEMBER_ID_REQUIRED = 79
FENCED_INSTANCE_ID = 82
GROUP_MAX_SIZE_REACHED = 81
GROUP_SUBSCRIBED_TO_TOPIC = 86


def int16(value):
    return struct.pack(">h", value)


def int32(value):
    return struct.pack(">i", value)


def int64(value):
    return struct.pack(">q", value)


def string(text):
    if text is None:
        return int16(-1)
    encoded = text if isinstance(text, bytes) else text.encode()
    return int16(len(encoded)) + encoded


def blob(content):
    return int32(len(content)) + content


def array(items):
    items = list(items)
    return int32(len(items)) + b"".join(items)


class Reader:
    def __init__(self, content):
        self.content = content
        self.position = 0

    def take(self, layout):
        values = struct.unpack_from(layout, self.content, self.position)
        self.position += struct.calcsize(layout)
        return values[0] if len(values) == 1 else values

    def int16(self):
        return self.take(">h")

    def int32(self):
        return self.take(">i")

    def int64(self):
        return self.take(">q")

    def bytes_(self, length):
        if length < 0:
            return None
        self.position += length
        return self.content[self.position - length : self.position]

    def string(self):
        content = self.bytes_(self.int16())
        return None if content is None else content.decode()

    def blob(self):
        return self.bytes_(self.int32())

    def array(self, read):
        return [read() for _ in range(self.int32())]


class Wire:
    """One connection. A request may be sent and its answer taken later."""

    def __init__(self, bootstrap):
        host, _, port = bootstrap.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")
        self.sent = 0
        self.received = 0

    def send(self, key, version, body):
        self.sent += 1
        header = struct.pack(">hhih", key, version, self.sent, 4) + b"wire"
        self.socket.sendall(int32(len(header) + len(body)) + header + body)

    def receive(self):
        self.received += 1
        size = self.file.read(4)
        if len(size) < 4:
            raise Mismatch("the broker closed the connection in place of an answer")
        reader = Reader(self.file.read(struct.unpack(">i", size)[0]))
        if reader.int32() != self.received:
            raise Mismatch("an answer out of order")
        return reader

    def ask(self, key, version, body):
        self.send(key, version, body)
        return self.receive()

    def is_closed(self):
        """Waits for the end of the connection, which nothing may precede."""
        return self.file.read(1) == b""

    def close(self):
        self.file.close()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def subscription(*topics):
    """What a consumer says with JoinGroup: version, topics, user data."""
    return int16(0) + array(map(string, topics)) + int32(-1)


def assignment(topic, *partitions):
    return int16(0) + array([string(topic) + array(map(int32, partitions))]) + int32(-1)


class Joined:
    def __init__(self, reader):
        reader.int32()  # throttle
        self.error = reader.int16()
        self.generation = reader.int32()
        self.protocol = reader.string()
        self.leader = reader.string()
        self.member = reader.string()
        self.members = reader.array(lambda: (reader.string(), reader.string(), reader.blob()))

    def is_leader(self):
        return self.error == NONE and self.leader == self.member


def join_body(
    group, member="", instance=None, session_ms=10_000, rebalance_ms=10_000, metadata=b"", name="range", type_="consumer"
):
    """JoinGroup of version 5."""
    protocols = array([string(name) + blob(metadata)])
    timeouts = int32(session_ms) + int32(rebalance_ms)
    return string(group) + timeouts + string(member) + string(instance) + string(type_) + protocols


def send_join(wire, group, **options):
    wire.send(JOIN_GROUP, 5, join_body(group, **options))


def join(wire, group, **options):
    """As clients do: the first answer brings the member id, the second the generation."""
    send_join(wire, group, **options)
    first = Joined(wire.receive())
    if first.error != MEMBER_ID_REQUIRED:
        return first
    send_join(wire, group, **{**options, "member": first.member})
    return Joined(wire.receive())


def send_sync(wire, group, joined, assignments=()):
    """SyncGroup of version 3; assignments: (member, bytes), from the leader."""
    parts = array(string(member) + blob(content) for member, content in assignments)
    wire.send(SYNC_GROUP, 3, string(group) + int32(joined.generation) + string(joined.member) + string(None) + parts)


def receive_sync(wire):
    reader = wire.receive()
    reader.int32()
    return reader.int16(), reader.blob()


def sync(wire, group, joined, assignments=()):
    send_sync(wire, group, joined, assignments)
    return receive_sync(wire)


def heartbeat(wire, group, generation, member, instance=None):
    """Of version 3."""
    reader = wire.ask(HEARTBEAT, 3, string(group) + int32(generation) + string(member) + string(instance))
    reader.int32()
    return reader.int16()


def leave(wire, group, member):
    """Of version 1; gives the error."""
    reader = wire.ask(LEAVE_GROUP, 1, string(group) + string(member))
    reader.int32()
    return reader.int16()


def commit_body(group, offsets, generation=-1, member="", instance=None):
    """OffsetCommit of version 7; offsets: {topic: [(partition, offset, leader epoch, metadata)]}."""
    topics = array(
        string(topic) + array(int32(p) + int64(offset) + int32(epoch) + string(text) for p, offset, epoch, text in places)
        for topic, places in offsets.items()
    )
    return string(group) + int32(generation) + string(member) + string(instance) + topics


def receive_commit(wire):
    """{(topic, partition): error}."""
    reader = wire.receive()
    reader.int32()
    answer = {}
    for _ in range(reader.int32()):
        topic = reader.string()
        for _ in range(reader.int32()):
            partition = reader.int32()
            answer[topic, partition] = reader.int16()
    return answer


def send_commit(wire, group, offsets, **options):
    wire.send(OFFSET_COMMIT, 7, commit_body(group, offsets, **options))


def commit(wire, group, offsets, **options):
    send_commit(wire, group, offsets, **options)
    return receive_commit(wire)


def fetch_offsets(wire, group, places=None):
    """OffsetFetch of version 5: {(topic, partition): (offset, leader epoch, metadata, error)}; all where no places are named."""
    if places is None:
        topics = int32(-1)
    else:
        topics = array(string(topic) + array(map(int32, partitions)) for topic, partitions in places.items())
    reader = wire.ask(OFFSET_FETCH, 5, string(group) + topics)
    reader.int32()
    answer = {}
    for _ in range(reader.int32()):
        topic = reader.string()
        for _ in range(reader.int32()):
            partition = reader.int32()
            offset, epoch, text = reader.int64(), reader.int32(), reader.string()
            answer[topic, partition] = offset, epoch, text, reader.int16()
    return answer, reader.int16()


def describe(wire, group):
    """DescribeGroups of version 3: (error, state, protocol, [(member, client id, host, metadata, assignment)])."""
    reader = wire.ask(DESCRIBE_GROUPS, 3, array([string(group)]) + b"\0")
    reader.int32()
    reader.int32()
    error, _, state, _, protocol = reader.int16(), reader.string(), reader.string(), reader.string(), reader.string()
    members = reader.array(
        lambda: (reader.string(), reader.string(), reader.string(), reader.blob(), reader.blob())
    )
    return error, state, protocol, members


def list_groups(wire):
    """ListGroups of version 2: (error, {group: protocol type})."""
    reader = wire.ask(LIST_GROUPS, 2, b"")
    reader.int32()
    error = reader.int16()
    return error, dict(reader.array(lambda: (reader.string(), reader.string())))


def delete_offsets(wire, group, topic, *partitions):
    """OffsetDelete: (error, {partition: error})."""
    reader = wire.ask(OFFSET_DELETE, 0, string(group) + array([string(topic) + array(map(int32, partitions))]))
    error = reader.int16()
    reader.int32()
    answer = {}
    for _ in range(reader.int32()):
        reader.string()
        for _ in range(reader.int32()):
            partition = reader.int32()
            answer[partition] = reader.int16()
    return error, answer


def find_coordinator(wire, group):
    """Of version 1: (error, node id, port)."""
    reader = wire.ask(FIND_COORDINATOR, 1, string(group) + b"\0")
    reader.int32()
    error, _ = reader.int16(), reader.string()
    node, _, port = reader.int32(), reader.string(), reader.int32()
    return error, node, port


def served(wire):
    """ApiVersions of version 0: {key: (min, max)}."""
    reader = wire.ask(API_VERSIONS, 0, b"")
    if reader.int16() != NONE:
        raise Mismatch("ApiVersions was refused")
    return {key: (least, most) for key, least, most in reader.array(lambda: reader.take(">hhh"))}
