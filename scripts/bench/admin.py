"""Creates and deletes topics with hand-written Kafka requests, so that no peer's tool is needed for it."""

import socket
import struct
import time

CREATE_TOPICS, CREATE_TOPICS_VERSION = 19, 4
DELETE_TOPICS, DELETE_TOPICS_VERSION = 20, 3
METADATA, METADATA_VERSION = 3, 4
TIMEOUT_MS = 60_000
READY_TIMEOUT_S = 60


class AdminError(Exception):
    pass


def create_topics(bootstrap, names, partitions):
    topics = b"".join(text(name) + struct.pack(">ihii", partitions, 1, 0, 0) for name in names)
    body = struct.pack(">i", len(names)) + topics + struct.pack(">i?", TIMEOUT_MS, False)
    answer = call(bootstrap, CREATE_TOPICS, CREATE_TOPICS_VERSION, body)
    answer.take(">i")  # throttle time
    for _ in range(answer.take(">i")):
        name, error, message = answer.text(), answer.take(">h"), answer.text()
        if error != 0:
            raise AdminError(f"creating {name}: error {error} {message or ''}")
    await_leaders(bootstrap, names, partitions)


def delete_topics(bootstrap, names):
    body = struct.pack(">i", len(names)) + b"".join(map(text, names)) + struct.pack(">i", TIMEOUT_MS)
    answer = call(bootstrap, DELETE_TOPICS, DELETE_TOPICS_VERSION, body)
    answer.take(">i")
    for _ in range(answer.take(">i")):
        name, error = answer.text(), answer.take(">h")
        if error != 0:
            raise AdminError(f"deleting {name}: error {error}")


def await_leaders(bootstrap, names, partitions):
    deadline = time.monotonic() + READY_TIMEOUT_S
    while not all(leader_count(bootstrap, name) == partitions for name in names):
        if time.monotonic() > deadline:
            raise AdminError(f"{names} had no leaders within {READY_TIMEOUT_S} s")
        time.sleep(0.05)


def leader_count(bootstrap, name):
    answer = call(bootstrap, METADATA, METADATA_VERSION, struct.pack(">i", 1) + text(name) + b"\0")
    answer.take(">i")
    for _ in range(answer.take(">i")):
        answer.take(">i"), answer.text(), answer.take(">i"), answer.text()
    answer.text(), answer.take(">i"), answer.take(">i")  # cluster, controller, one topic
    if answer.take(">h") != 0:
        return 0
    answer.text(), answer.take(">?")
    leaders = 0
    for _ in range(answer.take(">i")):
        error, _partition, leader = answer.take(">h"), answer.take(">i"), answer.take(">i")
        leaders += error == 0 and leader >= 0
        for _ in range(2):
            for _ in range(answer.take(">i")):
                answer.take(">i")
    return leaders


def call(bootstrap, api, version, body):
    host, _, port = bootstrap.rpartition(":")
    request = struct.pack(">hhi", api, version, 1) + text("bench") + body
    with socket.create_connection((host, int(port)), timeout=TIMEOUT_MS / 1000) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        size = struct.unpack(">i", receive(connection, 4))[0]
        answer = Answer(receive(connection, size))
    answer.take(">i")  # correlation id
    return answer


def receive(connection, size):
    parts = []
    while size > 0:
        part = connection.recv(size)
        if not part:
            raise AdminError("the broker closed the connection")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def text(value):
    encoded = value.encode()
    return struct.pack(">h", len(encoded)) + encoded


class Answer:
    def __init__(self, content):
        self.content = content
        self.at = 0

    def take(self, form):
        value = struct.unpack_from(form, self.content, self.at)[0]
        self.at += struct.calcsize(form)
        return value

    def text(self):
        size = self.take(">h")
        if size < 0:
            return None
        self.at += size
        return self.content[self.at - size : self.at].decode()
