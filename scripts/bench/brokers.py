"""The brokers that are measured, each started as its own documentation says."""

from harness.apache_kafka import ApacheKafka
from harness.broker import Corelog

# What Kafka's own start script gives a broker.
KAFKA_JVM = [
    "-Xms1g",
    "-Xmx1g",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
]

# What Kafka's own server.properties sets beyond the defaults.
KAFKA_SETTINGS = ["num.network.threads=3", "num.io.threads=8", "group.initial.rebalance.delay.ms=0"]


# Kafka leaves fdatasync to the operator; Corelog's default is one each second, of which the second peer does without. The third leaves
# the records of compressed batches to their producers.
CORELOG_SETTINGS = {
    "corelog": [],
    "corelog-unflushed": ["log.flush.interval.ms=9223372036854775807"],
    "corelog-header": ["corelog.record.validation=header"],
}

NAMES = [*CORELOG_SETTINGS, "kafka"]


class BenchKafka(ApacheKafka):
    name = "kafka"

    def java(self, main, *arguments):
        return ["java", *KAFKA_JVM, "-cp", f"{self.libs}/*", main, *map(str, arguments)]


def start(name, folder, corelog_binary, kafka_libs, settings=()):
    folder = folder / name
    folder.mkdir(parents=True)
    if name == "kafka":
        broker = BenchKafka(kafka_libs(), folder, [*KAFKA_SETTINGS, *settings])
    else:
        broker = Corelog(str(corelog_binary), folder, [*CORELOG_SETTINGS[name], *settings])
        broker.name = name
    broker.start()
    return broker
