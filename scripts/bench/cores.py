"""Which cores the brokers run on, and which the load."""

import contextlib
import os


@contextlib.contextmanager
def of_brokers(one_core):
    """What is started inside runs on the last core, where `one_core` says so and there are more, and everything after it on the others."""
    cores = sorted(os.sched_getaffinity(0))
    if not one_core or len(cores) == 1:
        yield
        return
    os.sched_setaffinity(0, cores[-1:])
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores[:-1])
