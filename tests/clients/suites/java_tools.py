"""Apache Kafka's command line tools, with the options that a person would type.

CORELOG_KAFKA_LIBS names their jars, CORELOG_KAFKA_CLASSES the compiled kafka/*.java. With CORELOG_DATA_DIR, the broker's data directory, its sealed segments are read with
Kafka's own dump tool. kafka-consumer-perf-test and kafka-e2e-latency are not among them: both need consumer groups.
"""

import json
import os
import pathlib
import re
import subprocess
import threading
import time

from harness.client import CODECS, TIMEOUT_S, ClientSuite, Mismatch, arguments, expect

JVM_OPTIONS = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]

# Kafka's smallest segment. The perf producer below fills several.
SEGMENT_BYTES = 1 << 20


def run(suite):
    main = suite.topic("main")
    with suite.check("kafka-broker-api-versions"):
        out = tool(suite, "BrokerApiVersionsCommand")
        expect(f"{suite.bootstrap} (id: " in out, True, "the broker is listed")
        expect(re.search(r"Produce\(0\): 0 to \d+ \[usable: \d+\]", out) is not None, True, f"Produce from 0: {out}")
        expect("ERROR" in out, False, "an error is in the list")
    with suite.check("kafka-cluster cluster-id"):
        expect(re.search(r"Cluster ID: \S{22}", tool(suite, "ClusterTool", "cluster-id")) is not None, True, "an id")
    topics(suite, main)
    configs(suite, main)
    console(suite, main)
    offsets(suite, main)
    log_dirs(suite, main)
    for codec in CODECS:
        with suite.check(f"kafka-producer-perf-test, {codec}"):
            perf(suite, codec)
    dump_log(suite)
    with suite.check("kafka-topics --delete"):
        for topic in [main] + [suite.topic(codec) for codec in CODECS]:
            tool(suite, "TopicCommand", "--delete", "--topic", topic)
        wait_for(lambda: suite.prefix not in tool(suite, "TopicCommand", "--list"))
    suite.done()


def topics(suite, topic):
    with suite.check("kafka-topics --create"):
        options = "--create", "--topic", topic, "--partitions", "2", "--config", "segment.ms=3600000"
        expect(f"Created topic {topic}." in tool(suite, "TopicCommand", *options), True, "its word for success")
    with suite.check("kafka-topics --create of one that exists fails, and --if-not-exists lets it pass"):
        error = failing(suite, "TopicCommand", "--create", "--topic", topic)
        expect(f"topic '{topic}' already exists" in error.lower(), True, f"the error: {error}")
        tool(suite, "TopicCommand", "--create", "--if-not-exists", "--topic", topic)
    with suite.check("kafka-topics --create with a setting that does not exist fails"):
        options = "--create", "--topic", suite.topic("bad"), "--config", "no.such.setting=1"
        expect("no.such.setting" in failing(suite, "TopicCommand", *options), True, "the error names the setting")
    with suite.check("kafka-topics --list"):
        expect(topic in tool(suite, "TopicCommand", "--list").split(), True, "the topic is listed")
    with suite.check("kafka-topics --alter --partitions"):
        tool(suite, "TopicCommand", "--alter", "--topic", topic, "--partitions", "3")
        error = failing(suite, "TopicCommand", "--alter", "--topic", topic, "--partitions", "2")
        expect("Error while executing topic command" in error, True, f"fewer partitions are refused: {error}")
    with suite.check("kafka-topics --describe"):
        lines = wait_for(lambda: described(suite, topic, partitions=3))
        expect(re.search(r"PartitionCount: 3\s+ReplicationFactor: 1\s", lines[0]) is not None, True, lines[0])
        expect("segment.ms=3600000" in lines[0], True, f"the setting of the topic is shown: {lines[0]}")
        for number, line in enumerate(lines[1:]):
            place = re.search(r"Partition: (\d+)\s+Leader: (\d+)\s+Replicas: (\d+)\s+Isr: (\d+)\s", line)
            expect(place is not None, True, f"leader, replicas, ISR in: {line}")
            expect((int(place[1]), place[2] == place[3] == place[4]), (number, True), line)
    with suite.check("kafka-topics --describe of an unknown topic fails"):
        error = failing(suite, "TopicCommand", "--describe", "--topic", suite.topic("unknown"))
        expect("does not exist" in error, True, f"the error: {error}")


def configs(suite, topic):
    of_topic = "--entity-type", "topics", "--entity-name", topic
    with suite.check("kafka-configs --describe --all of a topic"):
        settings = configs_of(tool(suite, "ConfigCommand", "--describe", "--all", *of_topic))
        for name, value in (
            ("cleanup.policy", "delete"),
            ("max.message.bytes", "1048588"),
            ("message.timestamp.type", "CreateTime"),
            ("retention.ms", "604800000"),
            ("segment.bytes", "1073741824"),
            ("segment.ms", "3600000"),
        ):
            expect(settings.get(name, ("", ""))[0], value, name)
        expect("DYNAMIC_TOPIC_CONFIG:segment.ms=3600000" in settings["segment.ms"][1], True, "the source of segment.ms")
        expect("log.segment.bytes" in settings["segment.bytes"][1], True, "the synonym of segment.bytes")
    with suite.check("kafka-configs --alter of a topic, and back"):
        tool(suite, "ConfigCommand", "--alter", *of_topic, "--add-config", "retention.ms=86400000,max.message.bytes=900000")
        wait_for(lambda: "retention.ms=86400000" in tool(suite, "ConfigCommand", "--describe", *of_topic))
        tool(suite, "ConfigCommand", "--alter", *of_topic, "--delete-config", "retention.ms,max.message.bytes")
        wait_for(lambda: "retention.ms" not in tool(suite, "ConfigCommand", "--describe", *of_topic))
    with suite.check("kafka-configs --alter with a bad value fails and says why"):
        error = failing(suite, "ConfigCommand", "--alter", *of_topic, "--add-config", "retention.ms=-7")
        expect("InvalidConfigurationException" in error and "retention.ms" in error, True, f"the error: {error}")
    node = re.search(r"\(id: (\d+)", tool(suite, "BrokerApiVersionsCommand"))[1]
    of_broker = "--entity-type", "brokers", "--entity-name", node
    with suite.check("kafka-configs --describe --all of a broker"):
        settings = configs_of(tool(suite, "ConfigCommand", "--describe", "--all", *of_broker))
        expect("log.segment.bytes" in settings and "listeners" in settings, True, f"settings: {sorted(settings)}")
        expect("DEFAULT_CONFIG:log.segment.bytes=1073741824" in settings["log.segment.bytes"][1], True, "the source")
    with suite.check("kafka-configs --alter of a broker, and back"):
        tool(suite, "ConfigCommand", "--alter", *of_broker, "--add-config", "log.retention.ms=172800000")
        wait_for(lambda: "log.retention.ms=172800000" in tool(suite, "ConfigCommand", "--describe", *of_broker))
        wait_for(lambda: "retention.ms=172800000" in tool(suite, "ConfigCommand", "--describe", "--all", *of_topic))
        tool(suite, "ConfigCommand", "--alter", *of_broker, "--delete-config", "log.retention.ms")
        wait_for(lambda: "retention.ms=604800000" in tool(suite, "ConfigCommand", "--describe", "--all", *of_topic))
    with suite.check("kafka-configs --alter of a setting that only a restart changes fails"):
        error = failing(suite, "ConfigCommand", "--alter", *of_broker, "--add-config", "socket.request.max.bytes=1000000")
        expect("socket.request.max.bytes" in error, True, f"the error: {error}")


def console(suite, topic):
    lines = [f"key {number}\tvalue {number} äöü" for number in range(500)]
    with suite.check("kafka-console-producer, keys, zstd, idempotent"):
        keyed = "--reader-property", "parse.key=true", "--command-property", "enable.idempotence=true"
        options = "--topic", topic, "--compression-codec", "zstd", *keyed
        tool(suite, "ConsoleProducer", *options, stdin="\n".join(lines) + "\n")
    with suite.check("kafka-console-consumer --partition --offset earliest, all partitions"):
        got = []
        counts = latest(suite, topic)
        for partition, count in counts.items():
            got += consume(suite, topic, partition, "earliest", count)
        expect(sorted(got), sorted(lines), "the lines")
    with suite.check("kafka-console-consumer --offset in the middle"):
        whole = consume(suite, topic, 0, "earliest", counts[0])
        expect(consume(suite, topic, 0, "20", counts[0] - 20), whole[20:], "the lines from offset 20")


def consume(suite, topic, partition, offset, count):
    options = "--partition", str(partition), "--offset", offset, "--max-messages", str(count), "--timeout-ms", "30000"
    out = tool(suite, "consumer.ConsoleConsumer", "--topic", topic, *options, "--formatter-property", "print.key=true")
    return out.splitlines()


def offsets(suite, topic):
    with suite.check("kafka-get-offsets, every special time"):
        ends = latest(suite, topic)
        expect(sum(ends.values()), 500, "records by --time latest")
        zeros = dict.fromkeys(ends, 0)
        # The default of --time is latest. earliest-local is earliest without tiered storage, and latest-tiered is then
        # nothing at all, which the tool leaves out.
        for time_, wanted in (
            (None, ends),
            ("-1", ends),
            ("earliest", zeros),
            ("-2", zeros),
            ("earliest-local", zeros),
            ("-4", zeros),
            ("latest-tiered", {}),
            ("-5", {}),
            ("0", zeros),
        ):
            expect(get_offsets(suite, topic, time_), wanted, f"--time {time_}")
        newest = get_offsets(suite, topic, "max-timestamp")
        expect(newest, get_offsets(suite, topic, "-3"), "max-timestamp by name and by number")
        expect(all(0 <= newest[p] < ends[p] for p in ends), True, f"{newest} lies inside {ends}")
        in_an_hour = str(int(time.time() + 3600) * 1000)
        expect(get_offsets(suite, topic, in_an_hour), {}, "offsets of records from the future")
    with suite.check("kafka-delete-records"):
        path = pathlib.Path(os.environ.get("TMPDIR", "/tmp"), f"{suite.prefix}-delete.json")
        path.write_text(
            json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 30}]}), encoding="utf-8"
        )
        try:
            out = tool(suite, "DeleteRecordsCommand", "--offset-json-file", str(path))
        finally:
            path.unlink()
        expect(re.search(r"low_watermark: 30", out) is not None, True, f"low watermark 30: {out}")
        expect(get_offsets(suite, topic, "earliest")[0], 30, "earliest")
        expect(consume(suite, topic, 0, "earliest", 1) != [], True, "a record after the deleted ones is read")


def log_dirs(suite, topic):
    with suite.check("kafka-log-dirs --describe"):
        out = tool(suite, "LogDirsCommand", "--describe", "--topic-list", topic)
        (broker,) = json.loads(out.splitlines()[-1])["brokers"]
        (directory,) = broker["logDirs"]
        expect(directory["error"], None, "error")
        sizes = {p["partition"]: p["size"] for p in directory["partitions"]}
        expect(sorted(sizes), [f"{topic}-{p}" for p in range(3)], "partitions")
        expect(min(sizes.values()) > 0, True, f"every partition has bytes: {sizes}")
    with suite.check("kafka-transactions describe-producers"):
        out = tool(suite, "TransactionsCommand", "describe-producers", "--topic", topic, "--partition", "0")
        expect(re.search(r"^\d+\s+0\s", out, re.MULTILINE) is not None, True, f"the console producer is listed: {out}")


def perf(suite, codec):
    topic = suite.topic(codec)
    tool(
        suite,
        "TopicCommand",
        *("--create", "--topic", topic, "--partitions", "1", "--config", f"segment.bytes={SEGMENT_BYTES}"),
    )
    count = 6_000
    out = tool(
        suite,
        "ProducerPerformance",
        *("--topic", topic, "--num-records", str(count), "--record-size", "1000", "--throughput", "-1"),
        *("--command-property", f"compression.type={codec}", "acks=all", "enable.idempotence=true"),
    )
    expect(f"{count} records sent" in out, True, f"its count: {out}")
    expect(get_offsets(suite, topic, "latest"), {0: count}, "records in the topic")


def dump_log(suite):
    """A sealed segment is an Apache Kafka segment: their tool finds nothing to complain about in it or its indexes."""
    name = "kafka-dump-log on sealed segments and their indexes"
    data_dir = os.environ.get("CORELOG_DATA_DIR")
    if not data_dir:
        print(f"skip {name} # the broker's data directory was not given", flush=True)
        return
    for codec in CODECS:
        with suite.check(f"{name}, {codec}"):
            folder = pathlib.Path(data_dir, f"{suite.topic(codec)}-0")
            logs = sorted(folder.glob("*.log"))[:-1]
            expect(len(logs) >= 2, True, f"{len(logs)} sealed segments in {folder}")
            dump = tool(suite, "DumpLogSegments", "--deep-iteration", "--files", ",".join(map(str, logs)))
            check_dump(dump, logs, codec)
            indexes = [log.with_suffix(suffix) for log in logs for suffix in (".index", ".timeindex")]
            files = ",".join(map(str, indexes))
            check_complaints(tool(suite, "DumpLogSegments", "--index-sanity-check", "--files", files))
            dump = tool(suite, "DumpLogSegments", "--verify-index-only", "--files", files)
            check_complaints(dump)
            expect(all(path.stat().st_size > 0 for path in indexes), True, "the indexes hold entries")


def check_dump(dump, logs, codec):
    check_complaints(dump)
    batches = [
        tuple(map(int, match.groups()[:4])) + (match[5],)
        for match in re.finditer(
            r"baseOffset: (\d+) lastOffset: (\d+) count: (\d+) .*? size: (\d+) magic: 2 compresscodec: (\w+) .*isvalid: true",
            dump,
        )
    ]
    expect(dump.count("baseOffset: "), len(batches), "valid batches")
    next_offset = 0
    for base, last, count, _, batch_codec in batches:
        expect(base, next_offset, "base offset")
        expect(last, base + count - 1, "last offset")
        expect(batch_codec, codec, "codec")
        next_offset = last + 1
    expect(sum(batch[3] for batch in batches), sum(log.stat().st_size for log in logs), "bytes of batches and of files")
    expect(len(re.findall(r"^\| offset: ", dump, re.MULTILINE)), next_offset, "records by deep iteration")


def check_complaints(dump):
    for word in ("mismatch", "Exception", "not valid", "isvalid: false", "out of order", "corrupt", "Found", "failed"):
        if word.lower() in dump.lower():
            line = next(line for line in dump.splitlines() if word.lower() in line.lower())
            raise Mismatch(f"the dump says: {line}")


def latest(suite, topic):
    return get_offsets(suite, topic, "latest")


def get_offsets(suite, topic, time_):
    options = ["--topic", topic] + (["--time", time_] if time_ is not None else [])
    lines = tool(suite, "GetOffsetShell", *options).split()
    return {int(partition): int(offset) for _, partition, offset in (line.split(":") for line in lines)}


def described(suite, topic, partitions):
    lines = tool(suite, "TopicCommand", "--describe", "--topic", topic).splitlines()
    return lines if len(lines) == partitions + 1 else None


def configs_of(text):
    """ "  name=value sensitive=false synonyms={...}" by name."""
    found = re.findall(r"^  (\S+?)=(.*?) sensitive=\w+ synonyms=\{(.*)\}$", text, re.MULTILINE)
    return {name: (value, synonyms) for name, value, synonyms in found}


def tool(suite, name, *options, stdin=None):
    done = run_tool(suite, name, options, stdin)
    if done.returncode != 0:
        raise Mismatch(f"{name} {' '.join(options)} ended with {done.returncode}: {(done.stderr + done.stdout).strip()}")
    return done.stdout


def failing(suite, name, *options):
    done = run_tool(suite, name, options, None)
    expect(done.returncode != 0, True, f"{name} {' '.join(options)} fails")
    return done.stdout + done.stderr


def run_tool(suite, name, options, stdin):
    # Tools differ in whether their first word must be an action; the server may stand last for all but one of them.
    server = [] if name == "DumpLogSegments" else ["--bootstrap-server", suite.bootstrap]
    options = [*server, *options] if name == "TransactionsCommand" else [*options, *server]
    return suite.tools.call(f"org.apache.kafka.tools.{name}", options, stdin or "")


class ToolProcess:
    """kafka/ToolRunner.java, which calls the tools' main methods one after another. A tool that does not end takes the
    process with it, and so fails every check after it."""

    def __init__(self):
        jars = sorted(pathlib.Path(os.environ["CORELOG_KAFKA_LIBS"]).glob("*.jar"))
        (tools,) = (jar for jar in jars if re.fullmatch(r"kafka-tools-\d.*\.jar", jar.name))
        classpath = ":".join([os.environ["CORELOG_KAFKA_CLASSES"], *(str(jar) for jar in jars if jar != tools)])
        self.process = subprocess.Popen(
            ["java", *JVM_OPTIONS, "-cp", classpath, "ToolRunner", str(tools)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def call(self, main, options, stdin):
        watchdog = threading.Timer(TIMEOUT_S, self.process.kill)
        watchdog.start()
        try:
            self.process.stdin.write(json.dumps({"main": main, "arguments": options, "stdin": stdin}) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        finally:
            watchdog.cancel()
        if not answer:
            raise Mismatch(f"{main} {' '.join(options)} did not end within {TIMEOUT_S} s, or one before it")
        answer = json.loads(answer)
        return subprocess.CompletedProcess([main, *options], answer["exit"], answer["stdout"], answer["stderr"])

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def wait_for(condition):
    """For what a broker may do a moment after its answer, as Kafka does."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise Mismatch(f"it did not come about within {TIMEOUT_S} s")


if __name__ == "__main__":
    suite = ClientSuite(arguments())
    suite.tools = ToolProcess()
    try:
        run(suite)
    finally:
        suite.tools.close()
