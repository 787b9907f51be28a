"""Where results go, and what is known of the machine that made them."""

import json
import os
import pathlib
import platform
import signal
import statistics
import subprocess
import sys
import time

from . import CHECKOUT


def clean_up_on_sigterm():
    """SIGTERM ends a script as Ctrl-C does, by way of its `finally`: no broker stays behind."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def folder(name):
    path = CHECKOUT / "results" / f"{time.strftime('%Y-%m-%d')}-{name}"
    number = 2
    while path.exists():
        path = path.with_name(f"{time.strftime('%Y-%m-%d')}-{name}-{number}")
        number += 1
    path.mkdir(parents=True)
    return path


def provenance():
    return {
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "argv": sys.argv,
        "commit": output(["git", "describe", "--always", "--dirty", "--abbrev=40"]),
        "rustc": output(["rustc", "--version"]),
        "java": output(["java", "-version"]).splitlines()[:1],
        "kernel": platform.release(),
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "congestion_control": read("/proc/sys/net/ipv4/tcp_congestion_control"),
        "load_before": os.getloadavg(),
    }


def output(command):
    try:
        done = subprocess.run(command, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except FileNotFoundError:
        return ""
    return done.stdout.strip()


def read(path):
    try:
        return pathlib.Path(path).read_text().strip()
    except OSError:
        return ""


def cpu_model():
    lines = read("/proc/cpuinfo").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def write_json(path, content):
    """Paths in the checkout are given from its root: where it lies says nothing about a result."""
    text = json.dumps(content, indent=1).replace(f"{CHECKOUT}/", "")
    path.write_text(text + "\n")


def without_checkout(folder):
    """The same for every file below that somebody else wrote."""
    for path in folder.rglob("*"):
        if path.suffix in {".json", ".txt", ".html"}:
            path.write_text(path.read_text().replace(f"{CHECKOUT}/", "").replace(str(CHECKOUT), "."))


def without_pages_of_runs(folder):
    """Of a series that is kept here one page is enough: it links to the text of each run, which has the same figures."""
    for page in folder.glob("*/*/report.html"):
        page.unlink()
    summary = folder / "report.html"
    summary.write_text(summary.read_text().replace('/report.html">', '/report.txt">'))


def spread(values):
    """Median with the lowest and the highest, as text."""
    if not values:
        return "-"
    middle = statistics.median(values)
    form = "{:.0f}" if middle >= 100 else "{:.1f}" if middle >= 10 else "{:.2f}"
    text = form.format(middle)
    if len(values) > 1:
        text += f" ({form.format(min(values))}-{form.format(max(values))})"
    return text


def table(rows):
    """Columns of text, the first to the left, the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
