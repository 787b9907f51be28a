"""One test of librdkafka's suite, in a process and a directory of its own, and what came of it."""

import os
import re
import resource
import signal
import subprocess
import time

# The suite asks for a version, to skip what an older broker has not got.
BROKER_VERSION = "4.0.0.0"
# -L and -E leave out what reaches no broker and what stands in its way.
ARGUMENTS = ["-p1", "-L", "-E", "-V", BROKER_VERSION]
# Fewer messages, and only those parts of a test that are marked as quick.
QUICK = "-Q"
# No part of these is marked as quick: with -Q they would pass without having done anything against the broker.
WHOLE = set("0018 0019 0026 0045 0050 0061 0089 0102 0122 0127 0132 0137 0150".split())
# Of these, some parts, by what their names have in common. 0061 and 0137: those without transactions, which are not served
# yet. 0127: that which allows a read of 10 KB half a second, not 30 ms, which Kafka too exceeds on two busy cores.
PARTS = {"0061": "without transactions", "0127": "backoff_ms = 500", "0137": "consume_batch_with_"}

# The programs out of Kafka's bin/ that tests start, with their classes in Kafka's jars.
KAFKA_TOOLS = {"kafka-topics.sh": "org.apache.kafka.tools.TopicCommand", "kafka-acls.sh": "org.apache.kafka.tools.AclCommand"}

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# | 0022_consume_batch          |     PASSED |   3.123s | why it failed or was skipped
SUMMARY_ROW = re.compile(r"^\| *(\d{4}_\w+) *\| *(\w+) *\| *([\d.]+)s *\|(.*)$", re.MULTILINE)
# ### Test "0022_consume_batch" failed at FILE:LINE:FUNCTION() at TIME: ###, and in the next line why
FAILURE = re.compile(r"^### Test .* failed at .*###\n(.*)$", re.MULTILINE)


class Outcome:
    """passed: it ran and nothing failed; skipped: nothing of it ran; failed: the rest."""

    def __init__(self, number, parts, exit_code, seconds, output):
        self.number = number
        self.parts = parts
        self.seconds = seconds
        self.output = output
        states = [part["state"] for part in parts]
        if exit_code == 0 and "FAILED" not in states:
            self.result = "passed" if "PASSED" in states else "skipped"
        else:
            self.result = "failed"
        self.reason = self.find_reason(exit_code)

    def find_reason(self, exit_code):
        if self.result == "passed":
            return ""
        reasons = [part["reason"] for part in self.parts if part["state"] != "PASSED" and part["reason"]]
        if self.result == "failed":
            reasons = [part["reason"] for part in self.parts if part["state"] == "FAILED" and part["reason"]]
            # Without a row in the summary: the whole of it came to an end, or what it left behind did.
            reasons = reasons or FAILURE.findall(self.output)
        if exit_code is None:
            reasons.append("ended by the time limit")
        return "; ".join(reasons) or f"exit code {exit_code}: {self.output.strip().splitlines()[-1:]}"

    def as_json(self):
        return {
            "test": self.number,
            "result": self.result,
            "seconds": round(self.seconds, 1),
            "reason": self.reason,
            "parts": self.parts,
        }


class TestRunner:
    def __init__(self, binary, folder, bootstrap, kafka_libs, whole):
        self.binary = binary
        self.folder = folder
        self.bootstrap = bootstrap
        self.whole = whole
        self.config = folder / "test.conf"
        self.config.write_text(f"bootstrap.servers={bootstrap}\n")
        self.kafka = folder / "kafka"
        (self.kafka / "bin").mkdir(parents=True)
        for name, main in KAFKA_TOOLS.items():
            script = self.kafka / "bin" / name
            script.write_text(f"#!/bin/sh\nexec java -cp '{kafka_libs}/*' {main} \"$@\"\n")
            script.chmod(0o755)

    def run(self, number, limit_s):
        """All parts of the test of this number. The suite has time limits too, mostly of 30 s; this one is for what hangs."""
        folder = self.folder / number
        folder.mkdir()
        environment = {
            **os.environ,
            "TESTS": number,
            "RDKAFKA_TEST_CONF": str(self.config),
            "LD_LIBRARY_PATH": str(self.binary.parent),
            "KAFKA_PATH": str(self.kafka),
            "BROKERS": self.bootstrap,
        }
        if number in PARTS:
            environment["SUBTESTS"] = PARTS[number]
        started = time.monotonic()
        process = subprocess.Popen(
            [str(self.binary), *ARGUMENTS, *([] if self.whole or number in WHOLE else [QUICK])],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # A test that failed ends with abort().
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)),
            # Some start other programs: at the limit all of them end.
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=limit_s)
            exit_code = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            exit_code = None
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        # The paths of this run's folder mean nothing to who reads the report.
        text = COLOUR.sub("", output.decode(errors="replace")).replace(f"{self.folder}/", "")
        return Outcome(number, summary(text, number), exit_code, time.monotonic() - started, text)


def summary(output, number):
    """The rows of the table that the suite prints at its end; where a test's thread gave up there may be none."""
    rows = SUMMARY_ROW.findall(output)
    return [
        {"name": name, "state": state, "seconds": float(seconds), "reason": reason.strip()}
        for name, state, seconds, reason in rows
        if name.startswith(f"{number}_")
    ]
