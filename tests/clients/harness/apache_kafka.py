"""Apache Kafka as the broker under test. The suites and the crash test were written against it: what Kafka itself fails is
a wrong check, not a fault of Corelog."""

import pathlib
import socket
import subprocess

from .broker import free_ports, is_running, kill9, stop, wait_until_ready

CLUSTER_ID = "Y29yZWxvZy10ZXN0LXBlZQ"


class ApacheKafka:
    """One node, broker and controller in one process (KRaft)."""

    name = "apache-kafka"

    def __init__(self, libs, folder, settings=()):
        folder = pathlib.Path(folder)
        self.libs = libs
        self.data_dir = folder / "data"
        self.log_path = folder / "broker.log"
        self.config_path = folder / "server.properties"
        self.port, controller_port = free_ports(2)
        self.process = None
        self.config_path.write_text(
            "\n".join(
                [
                    "process.roles=broker,controller",
                    "node.id=1",
                    f"controller.quorum.bootstrap.servers=127.0.0.1:{controller_port}",
                    f"listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller_port}",
                    "controller.listener.names=CONTROLLER",
                    f"log.dirs={self.data_dir}",
                    "offsets.topic.replication.factor=1",
                    "transaction.state.log.replication.factor=1",
                    "transaction.state.log.min.isr=1",
                    *settings,
                    "",
                ]
            )
        )

    @property
    def bootstrap(self):
        return f"127.0.0.1:{self.port}"

    def start(self):
        self.spawn()
        self.wait_until_ready()

    def spawn(self):
        if not self.data_dir.exists():
            subprocess.run(
                self.java("kafka.tools.StorageTool", "format", "--standalone", "-t", CLUSTER_ID, "-c", self.config_path),
                check=True,
                capture_output=True,
                timeout=60,
            )
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                self.java("kafka.Kafka", self.config_path), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def wait_until_ready(self):
        wait_until_ready(self, self.is_ready)

    def java(self, main, *arguments):
        return ["java", "-Xmx512m", "-cp", f"{self.libs}/*", main, *map(str, arguments)]

    def is_ready(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def is_running(self):
        return is_running(self)

    def stop(self):
        stop(self)

    def kill9(self):
        kill9(self)
