"""The load of the crash test: producers and a consumer that live through the broker's deaths, all librdkafka.

A record is 20 bytes of identity and a filler, all under a CRC:

    0        4          6           8        16       20
    | crc32  | producer | partition | number | length | filler ...
      big-endian; the CRC covers everything behind it
"""

import os
import random
import struct
import threading
import zlib

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from .crash_check import History, Id, Stored

IDENTITY = struct.Struct(">IHHQI")
BEHIND_CRC = 4

# How many records of one producer may wait for their acknowledgement. It bounds what a round sends, not the broker.
IN_FLIGHT_MAX = 1_500
FLUSH_TIMEOUT_S = 60
READ_TIMEOUT_S = 60

FILLER = os.urandom(1 << 20)


class Load:
    """Producers that send to every partition of a topic until told to stop, and a consumer that follows them."""

    def __init__(self, bootstrap, topic, partitions, producer_ids, rng):
        self.topic = topic
        self.partitions = partitions
        self.history = History()
        self.bootstrap = bootstrap
        self.senders = [self.make_sender(id_, rng) for id_ in producer_ids]
        self.consumer_stop = threading.Event()
        self.consumer = threading.Thread(target=self.follow, daemon=True)
        self.consumer.start()

    def make_sender(self, id_, rng):
        # Every third producer is a plain one: acks=1, no idempotence. It may repeat, but it may lose nothing either: an
        # acknowledgement of one broker is worth the same.
        plain = id_ % 3 == 2
        if plain:
            self.history.may_repeat.add(id_)
        return Sender(self, id_, plain, rng)

    def start(self):
        for sender in self.senders:
            sender.start()

    def stop_and_flush(self):
        for sender in self.senders:
            sender.stop.set()
        for sender in self.senders:
            sender.thread.join()

    def close(self):
        self.consumer_stop.set()
        self.consumer.join()

    def follow(self):
        consumer = make_consumer(self.bootstrap)
        consumer.assign([TopicPartition(self.topic, p, 0) for p in range(self.partitions)])
        while not self.consumer_stop.is_set():
            for message in consumer.consume(1_000, timeout=0.1):
                error = message.error()
                if error is None:
                    id_, _ = identify(message.value(), message.partition())
                    self.history.seen[message.partition()].append((message.offset(), id_))
                elif error.code() not in (KafkaError._PARTITION_EOF, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN):
                    # Above all OFFSET_OUT_OF_RANGE: what it had read is no longer there.
                    self.history.client_errors.append(f"consumer: {error}")
                    self.consumer_stop.set()
        consumer.close()


class Sender:
    """One producer, which lives until its load is closed: over several deaths of the broker."""

    def __init__(self, load, id_, plain, rng):
        self.load = load
        self.id = id_
        # Its own generator: it runs in a thread of its own.
        self.rng = random.Random(rng.random())
        self.number = 0
        self.in_flight = 0
        self.stop = threading.Event()
        self.thread = None
        settings = {
            "bootstrap.servers": load.bootstrap,
            "client.id": f"crash-{id_}",
            "linger.ms": rng.choice((0, 1, 5)),
            "batch.num.messages": rng.choice((1, 20, 500)),
            "compression.type": rng.choice(("none", "none", "lz4", "zstd")),
            "message.timeout.ms": 300_000,
            "reconnect.backoff.ms": 5,
            "reconnect.backoff.max.ms": 50,
            "retry.backoff.ms": 10,
            # Librdkafka's log of every connection that a kill -9 breaks is noise here.
            "log_level": 0,
            "error_cb": self.on_error,
        }
        if plain:
            settings |= {"acks": 1, "enable.idempotence": False, "max.in.flight": 1}
        else:
            settings |= {"acks": -1, "enable.idempotence": True, "max.in.flight": 5}
        self.producer = Producer(settings)

    def start(self):
        self.stop.clear()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.stop.is_set():
            if self.in_flight >= IN_FLIGHT_MAX:
                self.producer.poll(0.005)
                continue
            for _ in range(20):
                self.send()
            self.producer.poll(0.001)
        self.producer.flush(FLUSH_TIMEOUT_S)

    def send(self):
        partition = self.rng.randrange(self.load.partitions)
        id_ = Id(self.id, self.number)
        self.number += 1
        length = self.rng.choice((0, 10, 100, 1_000, 1_000, 5_000)) if self.rng.random() < 0.99 else 200_000
        value = encode(id_, partition, length, self.rng.randrange(1 << 19))
        self.load.history.sent[partition][self.id].append(id_)
        self.in_flight += 1
        self.producer.produce(
            self.load.topic,
            value=value,
            partition=partition,
            on_delivery=lambda error, message: self.on_delivery(id_, error, message),
        )

    def on_delivery(self, id_, error, message):
        self.in_flight -= 1
        if error is not None:
            self.load.history.failures[id_] = str(error)
        elif id_ in self.load.history.acks:
            self.load.history.client_errors.append(f"{id_} was acknowledged twice")
        else:
            self.load.history.acks[id_] = (message.partition(), message.offset())

    def on_error(self, error):
        if error.fatal():
            self.load.history.client_errors.append(f"producer {self.id}: {error}")


def make_consumer(bootstrap):
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "check.crcs": True,
            "fetch.wait.max.ms": 50,
            "reconnect.backoff.ms": 5,
            "reconnect.backoff.max.ms": 50,
            "log_level": 0,
        }
    )


def read_all(bootstrap, topic, partitions):
    """partition -> [Stored], from the first offset to the end, as a consumer that starts now finds them."""
    log = {partition: [] for partition in range(partitions)}
    consumer = make_consumer(bootstrap)
    try:
        left = {}
        for partition in range(partitions):
            place = TopicPartition(topic, partition)
            low, high = consumer.get_watermark_offsets(place, timeout=READ_TIMEOUT_S)
            if low < high:
                left[partition] = high
        consumer.assign([TopicPartition(topic, partition, 0) for partition in left])
        idle_polls = 0
        while left:
            messages = consumer.consume(5_000, timeout=0.05)
            idle_polls = 0 if messages else idle_polls + 1
            if idle_polls * 0.05 > READ_TIMEOUT_S:
                raise TimeoutError(f"partitions {left} were not read to their ends within {READ_TIMEOUT_S} s")
            for message in messages:
                if message.error() is None:
                    partition = message.partition()
                    id_, intact = identify(message.value(), partition)
                    log[partition].append(Stored(message.offset(), id_, intact))
                    if message.offset() + 1 >= left.get(partition, 0):
                        left.pop(partition, None)
                elif message.error().code() != KafkaError._PARTITION_EOF:
                    raise RuntimeError(f"reading {topic}: {message.error()}")
        return log
    finally:
        consumer.close()


def encode(id_, partition, length, start):
    body = IDENTITY.pack(0, id_.producer, partition, id_.number, length)[BEHIND_CRC:] + FILLER[start : start + length]
    return struct.pack(">I", zlib.crc32(body)) + body


def identify(value, partition):
    """The record's identity, and whether its bytes are whole and in their partition."""
    if len(value) < IDENTITY.size:
        return Id(-1, 0), False
    crc, producer, sent_to, number, length = IDENTITY.unpack_from(value)
    intact = zlib.crc32(value[BEHIND_CRC:]) == crc and len(value) == IDENTITY.size + length and sent_to == partition
    return Id(producer, number), intact
