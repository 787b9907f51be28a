"""One line per check, a count at the end."""

import sys
import threading
import time


class Report:
    """Checks as they end. A suite that said nothing, or stopped before its end, is itself a failed check."""

    def __init__(self, out=sys.stdout):
        self.out = out
        self.passed = 0
        self.failed = []
        self.skipped = []
        self.lock = threading.Lock()

    def ok(self, name):
        with self.lock:
            self.passed += 1
        self.say(f"ok      {name}")

    def fail(self, name, reason):
        with self.lock:
            self.failed.append(name)
        self.say(f"FAILED  {name}: {reason}")

    def skip(self, name, reason):
        with self.lock:
            self.skipped.append(name)
        self.say(f"skipped {name}: {reason}")

    def say(self, line):
        print(line, file=self.out, flush=True)

    def close(self):
        """Prints the totals; gives the exit code."""
        if self.failed:
            self.say("failed: " + "; ".join(self.failed))
        skipped = f", {len(self.skipped)} skipped" if self.skipped else ""
        self.say(f"{self.passed} passed, {len(self.failed)} failed{skipped}")
        return 1 if self.failed or not self.passed else 0


class Stopwatch:
    def __init__(self):
        self.start = time.monotonic()

    def __str__(self):
        return f"{time.monotonic() - self.start:.1f} s"
