"""Runs one client's program and turns its lines into checks."""

import os
import pathlib
import signal
import subprocess
import tempfile
import threading
import time

from .report import Stopwatch

HERE = pathlib.Path(__file__).resolve().parent.parent
CHECKOUT = HERE.parent.parent
CACHE = pathlib.Path(os.environ.get("CORELOG_CACHE", CHECKOUT / ".cache"))


class Missing(Exception):
    """A client that is not installed: that fails the run, it is never skipped."""


class Suite:
    def __init__(self, name, timeout_s, command, needs, environment=None):
        self.name = name
        self.timeout_s = timeout_s
        self.command = command
        self.needs = needs
        self.environment = environment or {}

    def check_installed(self):
        for path in self.needs:
            if not pathlib.Path(path).exists():
                raise Missing(f"{path} is missing: run scripts/install-test-peers")


def all_suites():
    """Every client, the quick ones first."""
    python = CACHE / "python/bin/python"
    old_python = CACHE / "python-old/bin/python"
    corelog = os.environ.get("CORELOG_BIN", CHECKOUT / "target/debug/corelog")
    libs = CACHE / "kafka/libs"
    classes = CACHE / "kafka/classes"
    java = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{classes}:{libs}/*"]
    return [
        Suite("franz-go", 120, [CACHE / "bin/franz-go-suite"], [CACHE / "bin/franz-go-suite"]),
        Suite("kafka-python", 120, [python, "-m", "suites.kafka_python"], [python]),
        Suite("kafka-python-2.0.2", 120, [old_python, "-m", "suites.kafka_python"], [old_python]),
        Suite(
            "kafkajs",
            120,
            ["node", HERE / "kafkajs/suite.js"],
            [CACHE / "node/node_modules/kafkajs"],
            {"CORELOG_NODE_MODULES": CACHE / "node/node_modules"},
        ),
        Suite("confluent-kafka", 120, [python, "-m", "suites.confluent"], [python]),
        Suite("kcat", 120, [python, "-m", "suites.kcat"], [python, "/usr/bin/kcat"]),
        Suite("corelog-cli", 120, [python, "-m", "suites.corelog_cli"], [python, corelog], {"CORELOG_BIN": corelog}),
        Suite("kafka-java", 180, [*java, "RoundTrip"], [libs, classes / "RoundTrip.class"]),
        Suite(
            "kafka-tools",
            300,
            [python, "-m", "suites.java_tools"],
            [libs, classes / "ToolRunner.class"],
            {"CORELOG_KAFKA_LIBS": libs, "CORELOG_KAFKA_CLASSES": classes},
        ),
    ]


def run_suite(suite, broker, corpus_path, prefix, report):
    try:
        suite.check_installed()
    except Missing as missing:
        report.fail(suite.name, str(missing))
        return
    environment = {**os.environ, **{name: str(value) for name, value in suite.environment.items()}}
    if broker.data_dir:
        environment["CORELOG_DATA_DIR"] = str(broker.data_dir)
    command = [*map(str, suite.command), broker.bootstrap, str(corpus_path), prefix]
    stopwatch = Stopwatch()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command,
            cwd=HERE,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            encoding="utf-8",
            start_new_session=True,  # so that a time-out ends its children too
        )
        watchdog = Watchdog(suite, broker, process)
        watchdog.start()
        try:
            reached_end = read_lines(suite, process.stdout, report)
            process.wait()
        finally:
            watchdog.stop()
            end_group(process)
        if watchdog.reason:
            report.fail(suite.name, watchdog.reason)
        elif not reached_end or process.returncode != 0:
            errors.seek(0)
            tail = errors.read().decode(errors="replace").strip().splitlines()[-15:]
            report.fail(suite.name, f"it stopped before its end with {process.returncode}\n" + "\n".join(tail))
    report.say(f"        {suite.name} took {stopwatch}")


class Watchdog(threading.Thread):
    """Ends a suite that takes too long, or whose broker has died: its clients would only run into their time-outs."""

    def __init__(self, suite, broker, process):
        super().__init__(daemon=True)
        self.suite = suite
        self.broker = broker
        self.process = process
        self.reason = None
        self.stopped = threading.Event()

    def run(self):
        deadline = time.monotonic() + self.suite.timeout_s
        while not self.stopped.wait(0.2):
            if time.monotonic() > deadline:
                self.reason = f"it was ended after {self.suite.timeout_s} s"
            elif not self.broker.is_running():
                self.reason = "the broker ended"
            if self.reason:
                end_group(self.process)
                return

    def stop(self):
        self.stopped.set()
        self.join()


def read_lines(suite, lines, report):
    reached_end = False
    for line in map(str.rstrip, lines):
        if line == "done":
            reached_end = True
        elif line.startswith("ok "):
            report.ok(f"{suite.name}: {line.removeprefix('ok ')}")
        elif line.startswith("not ok "):
            name, _, reason = line.removeprefix("not ok ").partition(" # ")
            report.fail(f"{suite.name}: {name}", reason)
        elif line.startswith("skip "):
            name, _, reason = line.removeprefix("skip ").partition(" # ")
            report.skip(f"{suite.name}: {name}", reason)
        else:
            report.say(f"        {suite.name} says: {line}")
    return reached_end


def end_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
