"""What the suites written in Python share: the lines they print and the comparison of what was read with the corpus."""

import contextlib
import json
import os
import pathlib
import struct
import sys
import traceback
from collections import namedtuple

from . import corpus

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

# How long one read of a whole topic, or one wait for acknowledgements, may take.
TIMEOUT_S = 60

# headers: a list of (name, value), in order.
Record = namedtuple("Record", "partition offset timestamp key value headers")


class Mismatch(Exception):
    pass


class ClientSuite:
    def __init__(self, arguments):
        self.bootstrap, corpus_path, self.prefix = arguments
        with open(corpus_path, encoding="utf-8") as file:
            content = json.load(file)
        self.partitions = content["partitions"]
        self.by_time = content["by_time"]
        self.by_offset = content["by_offset"]
        self.records = [
            Record(
                r["partition"],
                r["offset"],
                r["timestamp"],
                corpus.decode(r["key"]),
                corpus.decode(r["value"]),
                [(name, corpus.decode(value)) for name, value in r["headers"]],
            )
            for r in content["records"]
        ]

    def topic(self, name):
        return f"{self.prefix}-{name}"

    @contextlib.contextmanager
    def check(self, name):
        try:
            yield
        except Exception as error:  # whatever the client raises is this check's failure, and the next ones still run
            place = traceback.extract_tb(error.__traceback__)[-1]
            reason = f"{type(error).__name__}: {error} ({place.filename.rpartition('/')[2]}:{place.lineno})"
            print(f"not ok {name} # {reason}".replace("\n", " "), flush=True)
        else:
            print(f"ok {name}", flush=True)

    def done(self):
        print("done", flush=True)

    def check_stored_codec(self, codec):
        """A client that believes a broker cannot take a codec sends without it, and reads back every byte all the same."""
        data_dir = os.environ.get("CORELOG_DATA_DIR")
        if not data_dir:
            return
        with self.check(f"{codec}: stored with that codec"):
            logs = pathlib.Path(data_dir).glob(f"{self.topic(codec)}-*/*.log")
            found = {batch_codec for log in logs for batch_codec in codecs_of_batches(log.read_bytes())}
            # A batch that compression would only enlarge is sent without it.
            expect(found - {"none"}, {codec} - {"none"}, "codecs in the log")

    def in_partition(self, partition, records=None):
        return [r for r in (self.records if records is None else records) if r.partition == partition]

    def expect_all(self, got, want=None):
        """Every record, per partition in order, every field."""
        want = self.records if want is None else want
        for partition in range(self.partitions):
            expect_same(self.in_partition(partition, got), self.in_partition(partition, want))


def expect_same(got, want):
    for g, w in zip(got, want):
        for field in Record._fields:
            if getattr(g, field) != getattr(w, field):
                raise Mismatch(
                    f"partition {w.partition} offset {w.offset}: {field} is {short(getattr(g, field))}, "
                    f"sent was {short(getattr(w, field))}"
                )
    if len(got) != len(want):
        raise Mismatch(f"{len(got)} records were read, {len(want)} were sent")


def expect(got, want, what):
    if got != want:
        raise Mismatch(f"{what}: {short(got)}, wanted {short(want)}")


def short(value):
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:80]}... ({len(text)} characters)"


def arguments():
    if len(sys.argv) != 4:
        sys.exit(f"usage: {sys.argv[0]} BOOTSTRAP CORPUS_JSON TOPIC_PREFIX")
    return sys.argv[1:]


def codecs_of_batches(log):
    """The codec of each record batch of a .log file, from the three low bits of its attributes."""
    position = 0
    while position + 61 <= len(log):
        length, attributes = struct.unpack_from(">i", log, position + 8)[0], log[position + 22]
        if length <= 0:
            return  # space that is reserved and not yet written
        yield CODECS[attributes & 7]
        position += 12 + length
