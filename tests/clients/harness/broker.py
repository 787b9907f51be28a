"""The broker under test: a Corelog process of our own, or one that somebody else runs."""

import http.client
import os
import pathlib
import signal
import socket
import subprocess
import time

READY_TIMEOUT_S = 60
STOP_TIMEOUT_S = 60


class BrokerError(Exception):
    """The broker did not start or stop as it should; the message ends with the tail of its log."""


class Corelog:
    """A Corelog process on free loopback ports. It keeps its ports and its data directory over restarts, so that clients
    which were connected before a kill find it again."""

    name = "corelog"

    def __init__(self, binary, folder, settings=()):
        self.binary = binary
        self.data_dir = pathlib.Path(folder, "data")
        self.log_path = pathlib.Path(folder, "broker.log")
        self.port, self.admin_port = free_ports(2)
        self.settings = [
            f"listeners=PLAINTEXT://127.0.0.1:{self.port}",
            f"admin.listener=127.0.0.1:{self.admin_port}",
            *settings,
        ]
        self.process = None

    @property
    def bootstrap(self):
        return f"127.0.0.1:{self.port}"

    def start(self):
        self.spawn()
        self.wait_until_ready()

    def spawn(self):
        command = [self.binary, "broker", "--data", str(self.data_dir)]
        for setting in self.settings:
            command += ["--set", setting]
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def wait_until_ready(self):
        wait_until_ready(self, self.is_ready)

    def is_ready(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.admin_port, timeout=2)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def is_running(self):
        return is_running(self)

    def stop(self):
        stop(self)

    def kill9(self):
        kill9(self)


class External:
    """A broker that runs already. Its files are checked only where its data directory was named."""

    name = "external"
    process = None
    log_path = None

    def __init__(self, bootstrap, data_dir=None):
        self.bootstrap = bootstrap
        self.data_dir = pathlib.Path(data_dir) if data_dir else None

    def start(self):
        host, _, port = self.bootstrap.rpartition(":")
        socket.create_connection((host, int(port)), timeout=5).close()

    def is_running(self):
        return True

    def stop(self):
        pass


def wait_until_ready(broker, is_ready):
    deadline = time.monotonic() + READY_TIMEOUT_S
    while not is_ready():
        if broker.process.poll() is not None:
            raise BrokerError(f"{broker.name} ended with {broker.process.returncode} at start\n{log_tail(broker)}")
        if time.monotonic() > deadline:
            kill9(broker)
            raise BrokerError(f"{broker.name} was not ready within {READY_TIMEOUT_S} s\n{log_tail(broker)}")
        time.sleep(0.02)


def is_running(broker):
    return broker.process is not None and broker.process.poll() is None


def stop(broker):
    """Asks with SIGTERM; a broker that does not go, or goes with an error, fails the run."""
    if broker.process is None:
        return
    process, broker.process = broker.process, None
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise BrokerError(f"{broker.name} did not stop within {STOP_TIMEOUT_S} s\n{log_tail(broker)}") from None
    # A JVM that obeys SIGTERM exits with 128 + 15.
    if process.returncode not in (0, 143):
        raise BrokerError(f"{broker.name} stopped with {process.returncode}\n{log_tail(broker)}")


def kill9(broker):
    if broker.process is None:
        return
    process, broker.process = broker.process, None
    if process.poll() is not None:
        raise BrokerError(f"{broker.name} had ended by itself with {process.returncode}\n{log_tail(broker)}")
    process.kill()
    process.wait()


def free_ports(count):
    """Ports from the range in CORELOG_TEST_PORTS ("21500-21599"), else whatever the kernel gives. They are bound all at
    once, so that they differ."""
    first, _, last = os.environ.get("CORELOG_TEST_PORTS", "").partition("-")
    candidates = iter(range(int(first), int(last) + 1)) if last else iter(lambda: 0, None)
    sockets = []
    while len(sockets) < count:
        sock = socket.socket()
        try:
            sock.bind(("127.0.0.1", next(candidates)))
        except OSError:
            sock.close()
            continue
        sockets.append(sock)
    ports = [sock.getsockname()[1] for sock in sockets]
    for sock in sockets:
        sock.close()
    return ports


def log_tail(broker, count=40):
    """The end of the broker's log; from its panic on where there was one."""
    try:
        lines = broker.log_path.read_text(errors="replace").splitlines()
    except OSError:
        return "(no log)"
    panic = next((number for number, line in enumerate(lines) if "panicked at" in line), None)
    return "\n".join(lines[-count:] if panic is None else lines[panic : panic + count])
