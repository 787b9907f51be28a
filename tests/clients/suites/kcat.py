"""kcat, as Debian ships it (librdkafka 2.0.2): every check is a command line as a person would type it.

kcat cannot create a topic; its first use does (auto.create.topics.enable). It sends one set of headers per run and no
timestamps of its own, so the records here are made for it, not the corpus.
"""

import json
import random
import re
import subprocess

from harness.client import CODECS, TIMEOUT_S, ClientSuite, Mismatch, Record, arguments, expect, expect_same

KEY_END = b"<|key|>"
RECORD_END = b"<|end|>\n"
HEADERS = [("trace", b"0af7651916cd43dd"), ("Kopfzeile", "äöü 値".encode()), ("empty", b"")]


def run(suite):
    with suite.check("metadata of the cluster"):
        lines = kcat(suite, "-L").decode()
        expect(f"at {suite.bootstrap} (controller)" in lines, True, f"the broker is listed and the controller: {lines}")
    with suite.check("metadata as JSON"):
        content = json.loads(kcat(suite, "-L", "-J"))
        expect([broker["name"] for broker in content["brokers"]], [suite.bootstrap], "brokers")
    for codec in CODECS:
        topic = suite.topic(codec)
        sent = records(codec)
        with suite.check(f"{codec}: produce with the idempotent producer into a topic that this creates"):
            produce(suite, topic, codec, sent)
        with suite.check(f"{codec}: read back every byte"):
            got = consume(suite, topic, "beginning")
            expect_same([r._replace(timestamp=0) for r in got], sent)
        suite.check_stored_codec(codec)
        with suite.check(f"{codec}: seek by offset"):
            for offset in (0, 1, 57, len(sent) - 1):
                got = consume(suite, topic, str(offset))
                expect_same([r._replace(timestamp=0) for r in got], sent[offset:])
            got = consume(suite, topic, "-7")
            expect_same([r._replace(timestamp=0) for r in got], sent[-7:])
        with suite.check(f"{codec}: seek by time"):
            seek_by_time(suite, topic)
        with suite.check(f"{codec}: query earliest and latest"):
            expect(query(suite, topic, -2), 0, "earliest")
            expect(query(suite, topic, -1), len(sent), "latest")
    with suite.check("a second run appends"):
        produce(suite, suite.topic("none"), "none", records("none"))
        expect(query(suite, suite.topic("none"), -1), 2 * len(records("none")), "latest")
        again = consume(suite, suite.topic("none"), str(len(records("none"))))
        expect([r.value for r in again], [r.value for r in records("none")], "values")
    with suite.check("acks=0, 1 and all"):
        for acks in ("0", "1", "all"):
            kcat(suite, "-P", "-t", suite.topic("acks"), "-p", "0", "-X", f"acks={acks}", stdin=f"acks {acks}".encode())
        got = kcat(suite, "-C", "-t", suite.topic("acks"), "-o", "beginning", "-e", "-q")
        expect(got, b"acks 0\nacks 1\nacks all\n", "what is read")
    with suite.check("tombstones: -Z sends empty values as null"):
        stdin = b"key" + KEY_END + RECORD_END
        kcat(suite, "-P", "-Z", *delimiters(), "-t", suite.topic("null"), "-p", "0", stdin=stdin)
        line = kcat(suite, "-C", "-t", suite.topic("null"), "-o", "beginning", "-e", "-q", "-f", "%K %S")
        expect(line, b"3 -1", "lengths of key and value")
    with suite.check("the newest offset of an unknown partition is refused"):
        expect("Unknown partition" in failing(suite, "-Q", "-t", f"{suite.topic('none')}:99:-1"), True, "the error")
    suite.done()


def kcat(suite, *options, stdin=b""):
    done = run_kcat(suite, options, stdin)
    if done.returncode != 0:
        raise Mismatch(f"kcat {' '.join(options)} ended with {done.returncode}: {done.stderr.decode().strip()}")
    return done.stdout


def failing(suite, *options):
    done = run_kcat(suite, options, b"")
    expect(done.returncode != 0, True, f"kcat {' '.join(options)} fails")
    return done.stderr.decode()


def run_kcat(suite, options, stdin):
    # fetch.wait.max.ms: the end of a topic is an empty fetch, half a second by default.
    command = ["kcat", "-b", suite.bootstrap, "-X", "fetch.wait.max.ms=20", *options]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=TIMEOUT_S, check=False)


def delimiters():
    return "-K", KEY_END.decode(), "-D", RECORD_END.decode()


def records(codec):
    rng = random.Random(codec)
    values = [b"x"] + [rng.randbytes(rng.choice((1, 10, 300))) for _ in range(100)]
    values += [rng.randbytes(100_000), b"a long run of the same words " * 5_000, "Wörter 値 🔑".encode()]
    values += [f"value {number} ".encode() * 50 for number in range(100)]
    values = [value.replace(b"<", b".") for value in values]
    return [
        Record(0, offset, 0, f"key-{codec}-{offset}-ü".encode(), value, HEADERS) for offset, value in enumerate(values)
    ]


def produce(suite, topic, codec, sent):
    headers = [option for name, value in HEADERS for option in ("-H", f"{name}={value.decode()}")]
    stdin = b"".join(r.key + KEY_END + r.value + RECORD_END for r in sent)
    settings = "-X", "enable.idempotence=true", "-X", "acks=all", "-X", "linger.ms=10"
    kcat(suite, "-P", "-t", topic, "-p", "0", "-z", codec, *settings, *headers, *delimiters(), stdin=stdin)


def consume(suite, topic, offset):
    """Lengths first, so that any byte may stand in keys and values."""
    out = kcat(
        suite, "-C", "-t", topic, "-p", "0", "-o", offset, "-e", "-q", "-f", "%p %o %T %K %S %h\n%k%s\n"
    )
    records = []
    position = 0
    while position < len(out):
        line = re.compile(rb"(\d+) (\d+) (\d+) (\d+) (\d+) ([^\n]*)\n").match(out, position)
        if not line:
            raise Mismatch(f"kcat printed {out[position : position + 80]!r}")
        partition, offset, timestamp, key_bytes, value_bytes = (int(line[n]) for n in range(1, 6))
        key_end = line.end() + key_bytes
        value_end = key_end + value_bytes
        headers = [(n.decode(), v) for n, _, v in (header.partition(b"=") for header in line[6].split(b","))]
        records.append(
            Record(partition, offset, timestamp, out[line.end() : key_end], out[key_end:value_end], headers)
        )
        position = value_end + 1
    return records


def seek_by_time(suite, topic):
    """The timestamps are the producer's clock, so the expectations come from what was read."""
    log = consume(suite, topic, "beginning")
    for target in {log[0].timestamp, log[len(log) // 2].timestamp, log[-1].timestamp, log[0].timestamp - 1}:
        first = next(r.offset for r in log if r.timestamp >= target)
        expect(query(suite, topic, target), first, f"offset for {target}")
        expect_same(consume(suite, topic, f"s@{target}"), log[first:])


def query(suite, topic, target):
    """`kcat -Q` prints "topic [partition] offset N"."""
    return int(kcat(suite, "-Q", "-t", f"{topic}:0:{target}").split()[-1])


if __name__ == "__main__":
    run(ClientSuite(arguments()))
