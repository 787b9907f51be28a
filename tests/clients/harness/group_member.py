"""One member of a consumer group: a program of tests/clients/members, KafkaJS's, franz-go's or Java's, and what it has said."""

import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections import namedtuple

from .client import Mismatch
from .suite import CACHE, HERE

WAIT_S = 60

Handled = namedtuple("Handled", "topic partition offset value")


class Client:
    """A client library: how its member is started, and what it can do."""

    def __init__(self, name, command, assignors, can_be_static=True, follows_deletion=True, has_consumer_protocol=False):
        self.name = name
        self.command = [str(word) for word in command]
        self.assignors = assignors
        self.can_be_static = can_be_static
        self.follows_deletion = follows_deletion
        self.has_consumer_protocol = has_consumer_protocol

    @property
    def needs(self):
        """The files it cannot do without."""
        return [path for word in self.command for path in word.split(":") if path.startswith(str(CACHE)) and "*" not in path]


def all_clients():
    python, old_python = CACHE / "python/bin/python", CACHE / "python-old/bin/python"
    libs, classes = CACHE / "kafka/libs", CACHE / "kafka/classes"
    java = ["java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"]
    every = ["range", "roundrobin", "sticky", "cooperative-sticky"]
    return [
        Client(
            "librdkafka",
            [python, "-m", "members.confluent"],
            ["range", "roundrobin", "cooperative-sticky"],
            has_consumer_protocol=True,
        ),
        Client("java", [*java, "-cp", f"{classes}:{libs}/*", "GroupMember"], every, has_consumer_protocol=True),
        Client("franz-go", [CACHE / "bin/franz-go-member"], every, has_consumer_protocol=True),
        # When a topic that it subscribed to is deleted, KafkaJS ends, and kafka-python makes the topic anew by asking for it.
        Client("kafkajs", ["node", HERE / "kafkajs/member.js"], [None], can_be_static=False, follows_deletion=False),
        Client("kafka-python", [python, "-m", "members.kafka_python"], every, follows_deletion=False),
        # Its sticky assignor fails in today's Python.
        Client(
            "kafka-python-2.0.2",
            [old_python, "-m", "members.kafka_python"],
            ["range", "roundrobin"],
            can_be_static=False,
            follows_deletion=False,
        ),
    ]


class Member:
    def __init__(self, client, bootstrap, group, topics, **options):
        self.client = client
        self.name = f"{client.name}'s member of {group}"
        self.options = {
            "bootstrap": bootstrap,
            "group": group,
            "topics": topics,
            "batch": 20,
            "assignor": None,
            "instance": None,
            "session_ms": 6_000,
            "rebalance_ms": 20_000,
            "ask": False,
            "protocol": "classic",
            **options,
        }
        self.errors = tempfile.TemporaryFile()
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [*client.command, json.dumps(self.options)],
            cwd=HERE,
            env={**os.environ, "CORELOG_NODE_MODULES": str(CACHE / "node/node_modules")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        self.changed = threading.Condition()
        self.lines = []
        self.owned = set()
        self.owned_ever = False
        self.given = []
        self.handled = []
        self.committed_count = 0
        self.asked = 0
        self.ended = False
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in map(str.strip, self.process.stdout):
            with self.changed:
                self.lines.append((time.monotonic() - self.started, line))
                self.take(line)
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def take(self, line):
        word, *rest = line.split(" ")
        if word == "record":
            topic, partition, offset, value = rest
            self.handled.append(Handled(topic, int(partition), int(offset), value))
        elif word == "owns":
            self.owned = {place for place in rest if place}
            self.owned_ever = True
        elif word == "gave":
            self.given.append({place for place in rest if place})
        elif word == "commit?":
            self.asked += 1
        elif line == "committed":
            self.committed_count = len(self.handled)

    @property
    def committed(self):
        """What it had handled when a commit of it was confirmed."""
        return self.handled[: self.committed_count]

    def wait_for(self, condition, what, timeout_s=WAIT_S):
        with self.changed:
            if self.changed.wait_for(lambda: condition() or self.ended, timeout_s) and condition():
                return
        raise Mismatch(f"{self.name}: {what} did not come about\n{self.story()}")

    def wait_for_line(self, wanted):
        self.wait_for(lambda: any(line == wanted for _, line in self.lines), f"the line {wanted!r}")

    def tell(self, order):
        self.process.stdin.write(order + "\n")
        self.process.stdin.flush()

    def commit(self):
        """Lets it commit what it asked for, and waits until that is confirmed."""
        count = len(self.handled)
        self.tell("commit")
        self.wait_for(lambda: self.committed_count >= count, "a commit")

    def leave(self):
        self.tell("leave")
        self.wait_for_line("left")
        self.process.wait(WAIT_S)

    def kill9(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.reader.join()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def end(self):
        """Whatever state it is in."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdin.close()
        self.reader.join()
        self.errors.close()

    def story(self):
        """Its last lines, without the many records, and what it wrote to stderr."""
        said = [f"  {at:7.2f} {line}" for at, line in self.lines if not line.startswith("record ")]
        self.errors.seek(0)
        errors = self.errors.read().decode(errors="replace").strip().splitlines()
        state = f"it ended with {self.process.poll()}" if self.ended else "it runs"
        head = f"--- {self.name}, started with {json.dumps(self.options)}: {len(self.handled)} records; {state}"
        return "\n".join([head, *said[-25:], *(f"  stderr: {line}" for line in errors[-15:]), "---"])
