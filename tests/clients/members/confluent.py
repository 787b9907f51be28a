"""librdkafka as a member of a group."""

from confluent_kafka import Consumer, KafkaError, KafkaException

from members.console import Console


def run(console):
    options = console.options
    settings = {
        "bootstrap.servers": options["bootstrap"],
        "group.id": options["group"],
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "max.poll.interval.ms": max(options["rebalance_ms"], options["session_ms"]),
        "topic.metadata.refresh.interval.ms": 500,
        "fetch.wait.max.ms": 100,
        "reconnect.backoff.max.ms": 500,
    }
    if options["protocol"] == "consumer":
        settings["group.protocol"] = "consumer"
    else:
        settings["session.timeout.ms"] = options["session_ms"]
        settings["heartbeat.interval.ms"] = options["session_ms"] // 6
    if options["assignor"]:
        strategy = "group.remote.assignor" if options["protocol"] == "consumer" else "partition.assignment.strategy"
        settings[strategy] = options["assignor"]
    if options["instance"]:
        settings["group.instance.id"] = options["instance"]
    consumer = Consumer(settings)
    consumer.subscribe(
        options["topics"],
        on_assign=lambda _, places: console.gains(names(places)),
        on_revoke=lambda _, places: console.gives(names(places)),
        on_lost=lambda _, places: console.gives(names(places)),
    )
    while not console.leaves.is_set():
        messages = consumer.consume(options["batch"], 0.1)
        handled = 0
        for message in messages:
            error = message.error()
            if error is None:
                console.handled(message.topic(), message.partition(), message.offset(), message.value())
                handled += 1
            elif error.code() in FENCED:
                raise Fenced(error)
            elif error.code() not in PASSING:
                console.say("error", error)
        if handled and console.may_commit():
            commit(console, consumer)
    consumer.close()
    console.say("left")


# Being fenced is the one fatal error of a consumer without transactions.
FENCED = (KafkaError.FENCED_INSTANCE_ID, KafkaError._FATAL, KafkaError._FENCED)

# A topic that was deleted, a broker that is away.
PASSING = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
)


class Fenced(Exception):
    pass


def names(places):
    return [(place.topic, place.partition) for place in places]


def commit(console, consumer):
    try:
        for place in consumer.commit(asynchronous=False):
            if place.error:
                console.say("commit failed", place.error)
                return
    except KafkaException as error:
        if error.args[0].code() in FENCED:
            raise Fenced(error) from error
        console.say("commit failed", error)
    else:
        console.say("committed")


if __name__ == "__main__":
    console = Console()
    try:
        run(console)
    except Fenced:
        console.say("fenced")
