"""corelog topic, config, produce, consume and group, as a person would type them: what they print and how they exit. They speak Kafka's
protocol, so all of it holds on Apache Kafka too."""

import json
import os
import re
import signal
import subprocess
import time

from harness.client import CODECS, TIMEOUT_S, ClientSuite, Mismatch, arguments, expect

DONE, REFUSED, USAGE = 0, 1, 2


def run(suite):
    topics(suite)
    settings(suite)
    records(suite)
    groups(suite)
    errors(suite)
    suite.done()


def topics(suite):
    name = suite.topic("topic")
    with suite.check("topic create"):
        expect(corelog(suite, "topic", "create", name, "--partitions", "3"), f"{name}: created", "what it prints")
        refused(suite, "TOPIC_ALREADY_EXISTS", "topic", "create", name)
        again = corelog(suite, "topic", "create", name, "--if-not-exists", "--json")
        expect(json.loads(again), [{"name": name, "result": "exists already"}], "the second time")
        refused(suite, "INVALID_CONFIG", "topic", "create", suite.topic("bad"), "--set", "no.such.setting=1")
    with suite.check("topic list, as a table and as JSON"):
        (listed,) = (topic for topic in as_json(suite, "topic", "list") if topic["name"] == name)
        expect((listed["partitions"], listed["replication"], listed["internal"]), (3, 1, False), "what is listed")
        expect(re.search(rf"^{name} +3 +1$", corelog(suite, "topic", "list"), re.MULTILINE) is not None, True, "its line")
    with suite.check("topic alter: partitions and settings"):
        corelog(suite, "topic", "alter", name, "--partitions", "4", "--set", "retention.ms=86400000")
        (described,) = described_with(suite, name, partitions=4)
        expect(described["settings"]["retention.ms"], "86400000", "the setting")
        refused(suite, "INVALID_PARTITIONS", "topic", "alter", name, "--partitions", "2")
        fails(suite, USAGE, "topic", "alter", name)
    with suite.check("topic describe, as a table"):
        text = corelog(suite, "topic", "describe", name)
        expect(text.startswith(f"{name}: 4 partitions, 1 copy, id "), True, text)
        expect("\n    retention.ms=86400000\n" in text, True, text)
        expect(len(re.findall(r"^ +\d+ +\d+ +\d+ +\d+ +0 +0$", text, re.MULTILINE)), 4, f"lines of partitions: {text}")
    with suite.check("topic delete, and what is not there"):
        expect(corelog(suite, "topic", "delete", name), f"{name}: deleted", "what it prints")
        wait_for(lambda: name not in [topic["name"] for topic in as_json(suite, "topic", "list")])
        refused(suite, "UNKNOWN_TOPIC_OR_PARTITION", "topic", "delete", name)
        expect(corelog(suite, "topic", "delete", name, "--if-exists"), f"{name}: does not exist", "with --if-exists")
        refused(suite, "UNKNOWN_TOPIC_OR_PARTITION", "topic", "describe", name)


def settings(suite):
    name = suite.topic("config")
    with suite.check("config describe and alter of a topic"):
        corelog(suite, "topic", "create", name)
        corelog(suite, "config", "alter", "--topic", name, "--set", "retention.ms=5000", "--set", "segment.bytes=1048576")
        wait_for(lambda: setting(suite, "retention.ms", "--topic", name) == ("5000", "DYNAMIC_TOPIC_CONFIG"))
        corelog(suite, "config", "alter", "--topic", name, "--unset", "retention.ms")
        wait_for(lambda: setting(suite, "retention.ms", "--topic", name)[1] == "DEFAULT_CONFIG")
        expect(setting(suite, "segment.bytes", "--topic", name)[0], "1048576", "the other setting")
        refused(suite, "INVALID_CONFIG", "config", "alter", "--topic", name, "--set", "retention.ms=soon")
        refused(suite, "UNKNOWN_TOPIC_OR_PARTITION", "config", "describe", "--topic", suite.topic("nowhere"))
    with suite.check("config describe and alter of a broker"):
        node = as_json(suite, "topic", "describe", name)[0]["partitions"][0]["leader"]
        corelog(suite, "config", "alter", "--broker", str(node), "--set", "log.retention.ms=172800000")
        broker = ("--broker", str(node))
        wait_for(lambda: setting(suite, "log.retention.ms", *broker) == ("172800000", "DYNAMIC_BROKER_CONFIG"))
        corelog(suite, "config", "alter", "--broker", str(node), "--unset", "log.retention.ms")
        expect("has no broker 99" in fails(suite, REFUSED, "config", "describe", "--broker", "99"), True, "the error")
    with suite.check("config lists what there is without a broker"):
        run_ = subprocess.run([os.environ["CORELOG_BIN"], "config", "list", "--json"], capture_output=True, check=True)
        expect(len(json.loads(run_.stdout)) > 50, True, "settings")


def records(suite):
    lines = [f"key {number % 7}:value {number} äöü" for number in range(500)]
    for codec in CODECS:
        name = suite.topic(codec)
        with suite.check(f"{codec}: produce with keys and headers, consume all"):
            corelog(suite, "topic", "create", name, "--partitions", "3")
            options = ("--key-separator", ":", "--header", "trace=1", "--compression", codec)
            out = corelog(suite, "produce", name, *options, stdin="\n".join(lines) + "\n")
            expect(out, f"{name}: 500 records confirmed", "what it prints")
            read = corelog(suite, "consume", name, "--until-end", "--format", "%k:%v").splitlines()
            expect(sorted(read), sorted(lines), "the records")
        suite.check_stored_codec(codec)
    name = suite.topic("none")
    with suite.check("records of a key are in one partition, in order, where Kafka's clients put them"):
        read = as_lines(suite, "consume", name, "--until-end", "--json")
        for key in {record["key"] for record in read}:
            of_key = [record for record in read if record["key"] == key]
            expect(len({record["partition"] for record in of_key}), 1, f"partitions of {key}")
            sent = [line.split(":")[1] for line in lines if line.startswith(f"{key}:")]
            expect([record["value"] for record in of_key], sent, f"values of {key}")
            expect(of_key[0]["headers"], [{"name": "trace", "value": "1"}], "headers")
        theirs = partitions_by_librdkafka(suite, {record["key"] for record in read})
        expect({record["key"]: record["partition"] for record in read}, theirs, "partitions by key")
    with suite.check("consume from offsets, the last ones, a time, latest; some partitions; a number of records"):
        whole = as_lines(suite, "consume", name, "--partition", "0", "--until-end", "--json")
        for options, wanted in (
            (("--from", "20"), whole[20:]),
            (("--from", "-3"), whole[-3:]),
            (("--from", "earliest", "--max-messages", "5"), whole[:5]),
            (("--from-time", "1h"), whole),
            (("--from", "latest"), []),
        ):
            got = as_lines(suite, "consume", name, "--partition", "0", "--until-end", "--json", *options)
            expect(got, wanted, " ".join(options))
        in_an_hour = str(int(time.time() + 3600) * 1000)
        expect(corelog(suite, "consume", name, "-e", "--from-time", in_an_hour), "", "records of the future")
        expect(corelog(suite, "consume", name, "--from", "latest", "--idle-timeout", "200ms"), "", "what never comes")
    with suite.check("acks 0 and 1, a partition, a tombstone, a null key"):
        name = suite.topic("small")
        corelog(suite, "topic", "create", name, "--partitions", "2")
        for acks in ("0", "1"):
            corelog(suite, "produce", name, "--acks", acks, "--partition", "1", stdin=f"acks {acks}\n")
        corelog(suite, "produce", name, "-p", "1", "-k", "=", "--null-marker", "NULL", stdin="gone=NULL\n")
        wait_for(lambda: as_json(suite, "topic", "describe", name)[0]["partitions"][1]["end_offset"] == 3)
        read = as_lines(suite, "consume", name, "--until-end", "--json")
        expect([(r["key"], r["value"]) for r in read], [(None, "acks 0"), (None, "acks 1"), ("gone", None)], "records")
    with suite.check("what is null is seen as such"):
        shown = corelog(suite, "consume", name, "-e", "--format", "%k=%v")
        expect(shown.splitlines(), ["null=acks 0", "null=acks 1", "gone=null"], "as text")
        shown = corelog(suite, "consume", name, "-e", "--format", "%k=%v", "--null-marker", "-")
        expect(shown.splitlines()[-1], "gone=-", "with a marker")
    with suite.check("a start past the end is told, and reading begins at the end"):
        error = run_corelog(["consume", name, "-p", "1", "--from", "100", "-e", "-b", suite.bootstrap]).stderr
        expect(f"{name}-1 ends at 3, before 100; beginning at 3" in error, True, error)
    with suite.check("a pipe that is closed ends it, though nothing more comes"):
        command = f"'{os.environ['CORELOG_BIN']}' consume {name} --bootstrap {suite.bootstrap} | head -n 1"
        piped = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=TIMEOUT_S)
        expect((piped.stdout, piped.stderr), ("acks 0\n", ""), "what is printed")
    with suite.check("a topic that is not there is created only with --create"):
        mistyped = suite.topic("mistyped")
        error = fails(suite, REFUSED, "produce", mistyped, stdin="x\n")
        expect("UNKNOWN_TOPIC_OR_PARTITION" in error and "--create" in error, True, error)
        expect(mistyped in [topic["name"] for topic in as_json(suite, "topic", "list")], False, "it was created")
        for _ in range(2):
            corelog(suite, "produce", mistyped, "--create", stdin="x\n")
        expect(corelog(suite, "consume", mistyped, "-e"), "x\nx", "its records")
    with suite.check("CORELOG_BOOTSTRAP names the brokers"):
        environment = {**os.environ, "CORELOG_BOOTSTRAP": suite.bootstrap}
        command = [os.environ["CORELOG_BIN"], "consume", name, "-e", "-p", "1", "-n", "1"]
        told = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S)
        expect((told.returncode, told.stdout), (DONE, "acks 0\n"), told.stderr)
    with suite.check("a line without a key ends it; what came before is sent"):
        error = fails(suite, REFUSED, "produce", name, "-p", "0", "-k", ":", stdin="a:1\nbroken\nb:2\n")
        expect("line 2 has no ':'" in error, True, error)
        expect(corelog(suite, "consume", name, "-p", "0", "-e", "-f", "%k:%v"), "a:1", "what was sent")


def groups(suite):
    name, group = suite.topic("grouped"), suite.topic("group")
    with suite.check("a group reads everything once and goes on where it committed"):
        corelog(suite, "topic", "create", name, "--partitions", "4")
        first = [f"first {number}" for number in range(200)]
        corelog(suite, "produce", name, "-k", " ", stdin="\n".join(first))
        read = consume_as(suite, name, group)
        expect(sorted(read), sorted(first), "the first run")
        corelog(suite, "produce", name, stdin="second\n")
        expect(consume_as(suite, name, group), ["second"], "the second run")
    with suite.check("group list and describe of one without members"):
        expect(group in [listed["group"] for listed in as_json(suite, "group", "list")], True, "it is listed")
        corelog(suite, "produce", name, "-p", "2", stdin="a\nb\nc\n")
        (described,) = as_json(suite, "group", "describe", group)
        expect((described["state"], described["lag"], described["members"]), ("Empty", 3, []), "the group")
        expect(described["type"], "classic", "its type")
        (listed,) = (listed for listed in as_json(suite, "group", "list") if listed["group"] == group)
        expect((listed["type"], listed["protocol_type"]), ("classic", "consumer"), "how it is listed")
        lags = {row["partition"]: row["lag"] for row in described["partitions"]}
        expect(lags.pop(2), 3, "lag of the partition")
        expect(set(lags.values()) <= {0}, True, f"lag of the others: {lags}")
        expect(corelog(suite, "group", "describe", group).startswith(f"{group}: Empty, classic, 0 members, lag 3\n"), True, "text")
    with suite.check("group reset-offsets: shown first, done with --yes"):
        options = ("group", "reset-offsets", group, "--topic", f"{name}:2", "--json")
        before = committed(suite, group)[2]
        (shown,) = as_json(suite, *options[:-1], "--to-earliest")
        expect((shown["current"], shown["new"]), (before, 0), "what is shown")
        expect(committed(suite, group)[2], before, "what is committed still")
        text = corelog(suite, *options[:-1], "--to-earliest")
        expect(text.endswith("nothing is changed yet; add --yes to do it"), True, text)
        for target, wanted in (
            (("--to-offset", "1"), 1),
            (("--shift-by", "1"), 2),
            (("--shift-by", "-2"), 0),
            (("--to-current",), 0),
            (("--to-latest",), before + 3),
            (("--to-time", "1h"), 0),
            (("--to-offset", "1000000"), before + 3),
            (("--to-earliest",), 0),
        ):
            corelog(suite, *options, *target, "--yes")
            expect(committed(suite, group)[2], wanted, " ".join(target))
        fails(suite, USAGE, *options)
        fails(suite, USAGE, *options, "--to-time", "yesterday")
    with suite.check("two members share the partitions; lag by member; nothing is reset or deleted under them"):
        members = [Member(suite, name, group) for _ in range(2)]
        try:
            described = wait_for(lambda: shared(suite, group))
            expect(sum(member["partitions"] for member in described["members"]), 4, "partitions of all members")
            error = fails(suite, REFUSED, "group", "reset-offsets", group, "--topic", name, "--to-earliest", "--yes")
            expect("2 members" in error, True, error)
            refused(suite, "NON_EMPTY_GROUP", "group", "delete", group)
            refused(suite, "GROUP_SUBSCRIBED_TO_TOPIC", "group", "delete-offsets", group, "--topic", name)
            text = corelog(suite, "group", "describe", group)
            expect(len(re.findall(r"^corelog-\S+ +corelog +\S+ +2 +\d+$", text, re.MULTILINE)), 2, f"members: {text}")
        finally:
            ends = [member.stop() for member in members]
        expect(ends, [DONE, DONE], "how they end when they are interrupted")
        (described,) = as_json(suite, "group", "describe", group)
        expect((described["state"], described["lag"]), ("Empty", 0), "the group behind them")
    with suite.check("group delete-offsets and delete"):
        corelog(suite, "group", "delete-offsets", group, "--topic", f"{name}:2")
        expect(2 in committed(suite, group), False, "the offset is still there")
        expect(corelog(suite, "group", "delete", group), f"{group}: deleted", "what it prints")
        expect(group in [listed["group"] for listed in as_json(suite, "group", "list")], False, "it is still listed")
        refused(suite, "GROUP_ID_NOT_FOUND", "group", "describe", group)
        refused(suite, "GROUP_ID_NOT_FOUND", "group", "delete", group)


def errors(suite):
    with suite.check("wrong arguments exit with 2"):
        for options in (
            ("topic", "frobnicate"),
            ("config", "describe"),
            ("consume", "t", "--from", "yesterday"),
            ("consume", "t", "--format", "%q"),
            ("produce",),
            ("topic", "list", "--timeout", "soon"),
        ):
            fails(suite, USAGE, *options)
    with suite.check("a topic or partition that is not there"):
        nowhere = suite.topic("nowhere")
        refused(suite, "UNKNOWN_TOPIC_OR_PARTITION", "consume", nowhere, "-e")
        error = fails(suite, REFUSED, "consume", suite.topic("none"), "-p", "7", "-e")
        expect("no partition 7" in error, True, error)
        error = fails(suite, REFUSED, "produce", suite.topic("none"), "-p", "7", stdin="x\n")
        expect("no partition 7" in error, True, error)
    with suite.check("of several brokers the first that answers is taken; none is an error soon"):
        run_ = run_corelog(["topic", "list", "-b", f"127.0.0.1:1,{suite.bootstrap}"])
        expect(run_.returncode, DONE, "with one that answers")
        began = time.monotonic()
        run_ = run_corelog(["topic", "list", "-b", "127.0.0.1:1"])
        expect((run_.returncode, "127.0.0.1:1" in run_.stderr), (REFUSED, True), f"the error: {run_.stderr}")
        expect(time.monotonic() - began < 10, True, "within ten seconds")


class Member:
    """corelog consume in a group, until it is interrupted."""

    def __init__(self, suite, topic, group):
        command = [os.environ["CORELOG_BIN"], "consume", topic, "--group", group, "--bootstrap", suite.bootstrap]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(TIMEOUT_S)


def shared(suite, group):
    (described,) = as_json(suite, "group", "describe", group)
    sizes = [member["partitions"] for member in described["members"]]
    return described if described["state"] == "Stable" and sizes == [2, 2] and described["lag"] == 0 else None


def consume_as(suite, topic, group):
    out = corelog(suite, "consume", topic, "--group", group, "--until-end", "--null-marker", "", "--format", "%k %v")
    return [line.strip() for line in out.splitlines()]


def committed(suite, group):
    (described,) = as_json(suite, "group", "describe", group)
    return {row["partition"]: row["committed"] for row in described["partitions"]}


def described_with(suite, topic, partitions):
    def described():
        found = as_json(suite, "topic", "describe", topic)
        return found if len(found[0]["partitions"]) == partitions else None

    return wait_for(described)


def setting(suite, name, *resource):
    (found,) = (entry for entry in as_json(suite, "config", "describe", *resource, "--all") if entry["name"] == name)
    return found["value"], found["source"]


def partitions_by_librdkafka(suite, keys):
    """Where another client puts the same keys."""
    from confluent_kafka import Producer

    partitions = {}

    def delivered(error, message):
        if error is not None:
            raise Mismatch(str(error))
        partitions[message.key().decode()] = message.partition()

    topic = suite.topic("theirs")
    corelog(suite, "topic", "create", topic, "--partitions", "3")
    producer = Producer({"bootstrap.servers": suite.bootstrap, "partitioner": "murmur2"})
    for key in keys:
        producer.produce(topic, b"", key.encode(), on_delivery=delivered)
    producer.flush(TIMEOUT_S)
    return partitions


def corelog(suite, *options, stdin=""):
    run_ = run_corelog([*options, "--bootstrap", suite.bootstrap], stdin)
    if run_.returncode != DONE:
        raise Mismatch(f"corelog {' '.join(options)} ended with {run_.returncode}: {run_.stderr.strip()}")
    return run_.stdout.rstrip("\n")


def as_json(suite, *options):
    return json.loads(corelog(suite, *options, "--json") if "--json" not in options else corelog(suite, *options))


def as_lines(suite, *options):
    return [json.loads(line) for line in corelog(suite, *options).splitlines()]


def refused(suite, code, *options):
    error = fails(suite, REFUSED, *options)
    expect(code in error, True, f"{code} in: {error}")


def fails(suite, status, *options, stdin=""):
    run_ = run_corelog([*options, "--bootstrap", suite.bootstrap], stdin)
    expect(run_.returncode, status, f"corelog {' '.join(options)} ends with; {run_.stderr.strip()}")
    expect("panicked" in run_.stderr, False, run_.stderr)
    return run_.stderr


def run_corelog(options, stdin=""):
    command = [os.environ["CORELOG_BIN"], *options]
    return subprocess.run(command, input=stdin, capture_output=True, encoding="utf-8", timeout=TIMEOUT_S, check=False)


def wait_for(condition):
    """For what a broker may do a moment after its answer, as Kafka does."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise Mismatch(f"it did not come about within {TIMEOUT_S} s")
        time.sleep(0.1)


if __name__ == "__main__":
    run(ClientSuite(arguments()))
