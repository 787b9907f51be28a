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


class BenchKafka(ApacheKafka):
    name = "kafka"

    def java(self, main, *arguments):
        return ["java", *KAFKA_JVM, "-cp", f"{self.libs}/*", main, *map(str, arguments)]


def start(name, folder, corelog_binary, kafka_libs):
    folder = folder / name
    folder.mkdir(parents=True)
    if name == "corelog":
        broker = Corelog(str(corelog_binary), folder)
    else:
        broker = BenchKafka(kafka_libs(), folder, KAFKA_SETTINGS)
    broker.start()
    return broker
