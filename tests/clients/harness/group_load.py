"""Records for groups to handle, each with a number of its own, and what must have been handled of them."""

import threading
import time

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from .client import TIMEOUT_S, Mismatch, expect


class Topic:
    def __init__(self, bootstrap, name, partitions, **settings):
        self.bootstrap = bootstrap
        self.name = name
        self.partitions = partitions
        self.sent = {}
        self.next = 0
        self.producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5})
        admin = AdminClient({"bootstrap.servers": bootstrap})
        new = NewTopic(name, partitions, 1, config={key: str(value) for key, value in settings.items()})
        admin.create_topics([new])[name].result(TIMEOUT_S)
        # Kafka answers before its metadata shows the topic.
        deadline = time.monotonic() + TIMEOUT_S
        while name not in admin.list_topics(timeout=TIMEOUT_S).topics:
            if time.monotonic() > deadline:
                raise Mismatch(f"the topic {name} does not appear")
            time.sleep(0.05)

    def places(self, partitions=None):
        return {f"{self.name}:{partition}" for partition in range(partitions or self.partitions)}

    def send(self, count, partitions=None):
        """Over the partitions by turns; all are acknowledged when this returns."""
        failures = []

        def on_delivery(error, message):
            if error:
                failures.append(str(error))
            else:
                self.sent[message.partition(), message.offset()] = message.value().decode()

        partitions = list(range(self.partitions) if partitions is None else partitions)
        for _ in range(count):
            value = str(self.next).encode()
            self.producer.produce(
                self.name, partition=partitions[self.next % len(partitions)], value=value, on_delivery=on_delivery
            )
            self.next += 1
        expect(self.producer.flush(TIMEOUT_S), 0, "records left unacknowledged")
        expect(failures, [], "failed deliveries")

    def lacks(self, members):
        """The (partition, offset) that none of the members has handled."""
        handled = {(h.partition, h.offset) for m in members for h in list(m.handled) if h.topic == self.name}
        return set(self.sent) - handled

    def check_values(self, members):
        for member in members:
            for handled in member.handled:
                if handled.topic == self.name:
                    place = handled.partition, handled.offset
                    expect(handled.value, self.sent.get(place), f"{member.name}: value at {place}")

    def wait_until_handled(self, members, timeout_s=TIMEOUT_S):
        deadline = time.monotonic() + timeout_s
        while self.lacks(members):
            ended = [member for member in members if member.ended and "left" not in (line for _, line in member.lines)]
            ended = [member for member in ended if member.process.poll() not in (-9, 0)]
            if time.monotonic() > deadline or ended:
                lacks = sorted(self.lacks(members))
                stories = "\n".join(member.story() for member in members)
                raise Mismatch(f"{len(lacks)} of {len(self.sent)} records were never handled: {lacks[:10]}\n{stories}")
            time.sleep(0.05)
        self.check_values(members)


class Stream(threading.Thread):
    """Sends to a topic at a steady pace until it is stopped, through whatever happens."""

    def __init__(self, topic, per_second):
        super().__init__(daemon=True)
        self.topic = topic
        self.per_second = per_second
        self.failure = None
        self.stopped = threading.Event()

    def run(self):
        try:
            while not self.stopped.wait(0.1):
                self.topic.send(self.per_second // 10)
        except (Mismatch, KafkaException) as failure:
            self.failure = failure

    def stop(self):
        self.stopped.set()
        self.join()
        if self.failure:
            raise self.failure
