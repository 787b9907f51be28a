"""The order of things; tests/clients/groups says what they are."""

import argparse
import os
import pathlib
import random
import sys
import tempfile

from group_scenarios import of_bad_input, of_clients, of_compaction, of_restart, of_rules, of_scale, of_tools
from group_scenarios.scene import play, play_together
from harness.apache_kafka import ApacheKafka
from harness.broker import BrokerError, Corelog, log_tail
from harness.client import Mismatch
from harness.group_member import all_clients
from harness.report import Report, Stopwatch
from harness.suite import CACHE, CHECKOUT
from suites.java_tools import ToolProcess

# Sessions short enough that a test may wait for their end.
SETTINGS = [f"group.min.session.timeout.ms={of_rules.SESSION_MS_MIN}"]

INITIAL_DELAY_MS = 2_000
GROUP_MAX_SIZE = 3


def main(description):
    options = parse(description)
    report = Report()
    report.say(f"        seed {options.seed}")
    stopwatch = Stopwatch()
    with tempfile.TemporaryDirectory(prefix="corelog-groups-", dir=options.tmp) as folder:
        clients = all_clients()
        try:
            of_clients.check_installed(clients)
            Course(options, report, folder, clients).run()
        except (BrokerError, Mismatch, OSError) as error:
            report.fail("the course", str(error))
    report.say(f"        groups took {stopwatch}")
    sys.exit(report.close())


class Course:
    def __init__(self, options, report, folder, clients):
        self.options = options
        self.report = report
        self.folder = folder
        self.clients = clients
        os.environ["CORELOG_KAFKA_LIBS"] = str(CACHE / "kafka/libs")
        os.environ["CORELOG_KAFKA_CLASSES"] = str(CACHE / "kafka/classes")

    def run(self):
        self.tools = ToolProcess()
        try:
            self.on_broker("clients", ["group.initial.rebalance.delay.ms=0"], *self.with_clients())
            delay_and_size = [f"group.initial.rebalance.delay.ms={INITIAL_DELAY_MS}", f"group.max.size={GROUP_MAX_SIZE}"]
            self.on_broker("limits", delay_and_size, [], self.with_limits())
            is_kafka = self.options.peer == "kafka"
            cleaning = of_compaction.KAFKA_SETTINGS if is_kafka else of_compaction.SETTINGS
            self.on_broker("compaction", cleaning, [], self.with_compaction())
            self.on_broker("scale", ["group.initial.rebalance.delay.ms=0"], [], self.at_scale())
        finally:
            self.tools.close()

    def on_broker(self, name, settings, together, in_turn):
        """A broker of its own for each part, whose settings are read at its start only."""
        together, in_turn = ([play for play in plays if self.is_wanted(play[0])] for plays in (together, in_turn))
        if not together and not in_turn:
            return
        folder = pathlib.Path(self.folder, name)
        folder.mkdir()
        broker = self.make_broker(folder, [*SETTINGS, *settings])
        failed_before = len(self.report.failed)
        try:
            broker.start()
            of_rules.wait_for_coordinators(broker.bootstrap)
            self.report.say(f"        {broker.name} on {broker.bootstrap}: {name}")
            play_together(self.report, broker, together)
            for check, scenario in in_turn:
                play(self.report, broker, check, scenario)
            broker.stop()
        finally:
            if broker.process and broker.is_running():
                broker.kill9()
            if len(self.report.failed) > failed_before:
                self.report.say(f"--- the end of the broker's log\n{log_tail(broker)}\n---")

    def make_broker(self, folder, settings):
        if self.options.peer == "kafka":
            return ApacheKafka(CACHE / "kafka/libs", folder, settings)
        if not pathlib.Path(self.options.binary).is_file():
            sys.exit(f"{self.options.binary} is missing: build it, or name another with --binary")
        return Corelog(self.options.binary, folder, settings)

    def with_clients(self):
        clients, seed = self.clients, self.options.seed
        together = [*of_rules.scenarios(), *of_clients.scenarios(clients, seed), *of_tools.scenarios(clients, self.tools)]
        in_turn = [
            ("the consumer protocol is served whole or not advertised", lambda s: of_clients.consumer_protocol(s, clients)),
            *(
                (
                    f"kill -9 of the broker under load, {number + 1}: commits are there and groups go on",
                    lambda s, n=number: of_restart.killed_under_load(s, clients, f"{seed}/{n}"),
                )
                for number in range(5 if self.options.long else 1)
            ),
            (
                "kafka-dump-log --offsets-decoder prints commits and groups",
                lambda s: of_tools.dump_offsets(s.broker, self.tools),
            ),
        ]
        return together, in_turn

    def with_limits(self):
        return [
            ("a new group waits for those who start with it", lambda s: of_rules.initial_delay(s, INITIAL_DELAY_MS)),
            ("a full group takes no further member", lambda s: of_rules.group_max_size(s, GROUP_MAX_SIZE)),
        ]

    def with_compaction(self):
        seed = self.options.seed
        return [
            ("the topic of offsets is compacted, and all commits are there after kill -9", lambda s: of_compaction.compacted(s, seed))
        ]

    def at_scale(self):
        groups, group_ids = (10_000, 100_000) if self.options.long else (2_000, 10_000)
        is_bounded = self.options.peer is None
        return [
            ("1000 members in one group", lambda s: of_scale.many_members(s, 1_000, is_bounded)),
            (f"{groups} groups with commits", lambda s: of_scale.memory_of_groups(s, groups, is_bounded)),
            ("a group that never rests delays no other and no produce", of_scale.storm),
            *of_bad_input.scenarios(group_ids),
        ]

    def is_wanted(self, name):
        return not self.options.only or any(word in name for word in self.options.only.split(","))


def parse(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    binary = os.environ.get("CORELOG_BIN", CHECKOUT / "target/debug/corelog")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--binary", default=binary, help="the corelog binary (default: %(default)s)")
    parser.add_argument("--peer", choices=["kafka"], help="another broker instead, from .cache")
    parser.add_argument("--long", action="store_true", help="the larger numbers, and more restarts")
    parser.add_argument("--only", metavar="WORD,...", help="the checks whose names hold one of the words")
    parser.add_argument("--tmp", metavar="DIR", help="where the temporary directory is made (default: the system's)")
    return parser.parse_args()
