"""The rounds of the crash test; tests/clients/crash says what they are."""

import argparse
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import unittest
from collections import Counter

from confluent_kafka.admin import AdminClient, NewTopic

from .apache_kafka import ApacheKafka
from .broker import BrokerError, Corelog, log_tail
from .crash_check import check
from .crash_load import Load, read_all
from .report import Report, Stopwatch
from .suite import CACHE, CHECKOUT

PARTITIONS = 4
PRODUCERS = 3

# Kafka's smallest: many segments roll, close and are recovered.
SEGMENT_BYTES = 1 << 20

# A topic is read whole after every round, so it is replaced before that takes long.
ROUNDS_PER_TOPIC = 8

# At most this many anomalies of one round are printed.
ANOMALIES_PRINTED_MAX = 20


def main(description):
    options = parse(description)
    report = Report()
    test_the_checker(report)
    stopwatch = Stopwatch()
    report.say(f"        seed {options.seed}")
    with tempfile.TemporaryDirectory(prefix="corelog-crash-", dir=options.tmp) as folder:
        broker = make_broker(options, folder)
        try:
            broker.start()
            run_rounds(options, broker, report)
            broker.stop()
            verify_files(options, broker, report)
        except (BrokerError, TimeoutError, RuntimeError, OSError) as error:
            report.fail(broker.name, str(error))
        finally:
            if broker.process and broker.is_running():
                broker.kill9()
        if report.failed and options.keep:
            kept = pathlib.Path(tempfile.mkdtemp(prefix="corelog-crash-kept-", dir=options.tmp))
            os.rename(folder, kept / "run")
            os.mkdir(folder)
            report.say(f"        the broker's files and log are kept in {kept}")
        elif report.failed:
            report.say(f"--- the end of the broker's log\n{log_tail(broker)}\n---")
    report.say(f"        crash rounds took {stopwatch}")
    sys.exit(report.close())


def test_the_checker(report):
    suite = unittest.defaultTestLoader.loadTestsFromName("harness.test_crash_check")
    result = unittest.TextTestRunner(stream=open(os.devnull, "w", encoding="utf-8")).run(suite)
    if result.wasSuccessful() and result.testsRun:
        report.ok(f"the checker finds each of {result.testsRun} planted cases")
    else:
        report.fail("the checker", "\n".join(text for _, text in result.failures + result.errors))


def run_rounds(options, broker, report):
    load = None
    for number in range(options.rounds):
        # One generator per round: a round can be repeated without those before it.
        rng = random.Random(f"{options.seed}/{number}")
        if number % ROUNDS_PER_TOPIC == 0:
            if load:
                load.close()
                delete_topic(broker, load.topic)
            load = make_load(broker, f"crash-{number}", rng)
        stopwatch = Stopwatch()
        what = run_round(number, broker, load, rng)
        log = read_all(broker.bootstrap, load.topic, PARTITIONS)
        anomalies = check(load.history, log, offsets_are_known=broker.name == "corelog")
        name = f"round {number}: {what}"
        count = sum(map(len, log.values()))
        if anomalies:
            kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(a.kind for a in anomalies).items())
            lines = [f"{a.kind}: {a.text}" for a in anomalies[:ANOMALIES_PRINTED_MAX]]
            report.fail(name, "\n".join([f"{kinds} of {count} records", *lines]))
            if options.keep:
                broker.stop()
                break
            # Its history is spoilt for the next rounds.
            load.close()
            load = make_load(broker, f"crash-after-{number}", rng)
        else:
            report.ok(f"{name}; {count} records, {len(load.history.acks)} acknowledged, {stopwatch}")
    if load:
        load.close()


def run_round(number, broker, load, rng):
    """Says what was done. Afterwards the broker is up and every send has its answer."""
    load.start()
    time.sleep(rng.uniform(0.05, 0.8))
    if number % 5 == 4:
        broker.stop()
        what = "SIGTERM"
    else:
        broker.kill9()
        what = "kill -9"
        while rng.random() < 0.25:
            broker.spawn()
            time.sleep(rng.uniform(0.0, 0.3))
            broker.kill9()
            what += ", kill -9 at start"
    broker.start()
    time.sleep(rng.uniform(0.0, 0.3))
    load.stop_and_flush()
    return what


def make_load(broker, topic, rng):
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    new = NewTopic(topic, PARTITIONS, 1, config={"segment.bytes": str(SEGMENT_BYTES)})
    admin.create_topics([new])[topic].result(60)
    return Load(broker.bootstrap, topic, PARTITIONS, range(PRODUCERS), rng)


def delete_topic(broker, topic):
    # Held until the answer is there: the answer goes with its client.
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics([topic])[topic].result(60)


def verify_files(options, broker, report):
    """The broker's own verifier finds no fault in what all the crashes left."""
    if broker.name != "corelog":
        return
    done = subprocess.run(
        [options.binary, "log", "verify", str(broker.data_dir)], capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode == 0:
        report.ok("corelog log verify on the data directory")
    else:
        report.fail("corelog log verify on the data directory", (done.stdout + done.stderr)[-2_000:])


def make_broker(options, folder):
    if options.peer == "kafka":
        return ApacheKafka(CACHE / "kafka/libs", folder)
    if not pathlib.Path(options.binary).is_file():
        sys.exit(f"{options.binary} is missing: build it, or name another with --binary")
    return Corelog(options.binary, folder)


def parse(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    binary = os.environ.get("CORELOG_BIN", CHECKOUT / "target/debug/corelog")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--binary", default=binary, help="the corelog binary (default: %(default)s)")
    parser.add_argument("--peer", choices=["kafka"], help="another broker instead, from .cache")
    parser.add_argument("--keep", action="store_true", help="stop at the first anomaly and keep the broker's files")
    parser.add_argument("--tmp", metavar="DIR", help="where the temporary directory is made (default: the system's)")
    return parser.parse_args()
