"""What a process used, from /proc; what a directory holds."""

import os
import pathlib
import time

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    """User and system time so far, threads that have ended included."""
    # The name in brackets may hold anything: count from the last bracket.
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def rss_bytes(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/{pid}/status has no VmRSS")


def open_files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def idle_cpu_percent(pid, seconds):
    """Of one core, over `seconds`."""
    before, begin = cpu_seconds(pid), time.monotonic()
    time.sleep(seconds)
    return 100 * (cpu_seconds(pid) - before) / (time.monotonic() - begin)


def allocated_bytes(folder):
    """Disk blocks, not lengths: a sparse or preallocated file counts what it really holds."""
    total = 0
    for parent, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            total += os.lstat(os.path.join(parent, name)).st_blocks * 512
    return total


def drop_cached_pages(folder):
    """Writes back and forgets the page cache of every file below, which needs no root."""
    for parent, _, files in os.walk(folder):
        for name in files:
            descriptor = os.open(os.path.join(parent, name), os.O_RDONLY)
            try:
                os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)
