"""Two brokers that take turns: one runs, the other is stopped (SIGSTOP), so that it keeps its JIT and its memory warm and takes nothing."""

import os
import signal
import time

# Files that were deleted go in the background, and a broker that was stopped has timers to catch up with.
SETTLE_S = 3

# Kafka's controller would take a broker that was stopped for so long for dead.
KAFKA_SETTINGS = ["broker.session.timeout.ms=3600000"]

SWITCH = """#!/bin/sh
# Lets one broker run and stops the other.
case "$1" in
{cases}
*) echo "no broker is called $1" >&2; exit 1 ;;
esac
sync
sleep {settle_s}
"""


def write_switch(path, started):
    """The same as a program, for `corelog-perf versus --switch`."""
    cases = []
    for broker in started:
        others = " ".join(str(other.process.pid) for other in started if other is not broker)
        stop = f"kill -STOP {others} && " if others else ""
        cases.append(f"{broker.name}) {stop}kill -CONT {broker.process.pid} ;;")
    path.write_text(SWITCH.format(cases="\n".join(cases), settle_s=SETTLE_S))
    path.chmod(0o755)


def switch_to(broker, started):
    for other in started:
        if other is not broker:
            os.kill(other.process.pid, signal.SIGSTOP)
    os.kill(broker.process.pid, signal.SIGCONT)
    os.sync()
    time.sleep(SETTLE_S)


def end(started):
    for broker in started:
        if broker.is_running():
            broker.process.kill()
            broker.process.wait()
