"""Groups as an operator sees them: Kafka's kafka-consumer-groups and kafka-dump-log, and the admin clients of libraries."""

import json
import re
import subprocess

from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from group_scenarios.scene import eventually, settled
from harness import group_wire as wire
from harness.client import TIMEOUT_S, Mismatch, expect
from harness.suite import CACHE, HERE
from suites.java_tools import tool

COMMAND = "consumer.group.ConsumerGroupCommand"


class Tools:
    """What suites.java_tools asks of a suite."""

    def __init__(self, bootstrap, process):
        self.bootstrap = bootstrap
        self.tools = process


def scenarios(clients, process):
    by_name = {client.name: client for client in clients}
    member = by_name["librdkafka"]
    return [
        ("kafka-consumer-groups: list, describe, reset, delete", lambda s: consumer_groups(s, member, process)),
        ("librdkafka's admin client: list, describe, alter, delete", lambda s: admin_client(s, member)),
        ("kafka-python's admin client: list, describe, delete", lambda s: other_admin(s, member, PYTHON_ADMIN)),
        ("kafkajs's admin client: list, describe, reset, delete", lambda s: other_admin(s, member, NODE_ADMIN)),
    ]


PYTHON_ADMIN = [CACHE / "python/bin/python", "-m", "members.kafka_python_admin"]
NODE_ADMIN = ["node", HERE / "kafkajs/group_admin.js"]


def consumer_groups(scene, client, process):
    suite, group = Tools(scene.bootstrap, process), scene.name
    topic = scene.topic("t", 3)
    topic.send(90)
    members = [scene.member(client, [topic]) for _ in range(2)]
    settled(members, topic.places())
    topic.wait_until_handled(members)
    eventually(lambda: committed(scene, topic) == [30, 30, 30], "commits at the ends", members[0].story)
    topic.send(30, partitions=[0])
    topic.wait_until_handled(members)
    eventually(lambda: committed(scene, topic) == [60, 30, 30], "commits at the ends", members[0].story)
    expect(group in tool(suite, COMMAND, "--list").split(), True, "the group is listed")
    for state, is_in in (("stable", True), ("empty", False)):
        listed = tool(suite, COMMAND, "--list", "--state", state)
        expect(group in listed, is_in, f"listed among {state}: {listed}")
    listed = tool(suite, COMMAND, "--list", "--type")
    expect(re.search(rf"^{group}\s+Classic", listed, re.M) is not None, True, f"its type: {listed}")
    of_group = "--group", group
    rows = table(tool(suite, COMMAND, "--describe", *of_group))
    expect([(r["PARTITION"], r["CURRENT-OFFSET"], r["LOG-END-OFFSET"], r["LAG"]) for r in rows],
           [("0", "60", "60", "0"), ("1", "30", "30", "0"), ("2", "30", "30", "0")], "offsets")  # fmt: skip
    expect(len({r["CONSUMER-ID"] for r in rows} - {"-"}), 2, "members that own")
    rows = table(tool(suite, COMMAND, "--describe", "--members", "--verbose", *of_group))
    expect(sorted(r["#PARTITIONS"] for r in rows), ["1", "2"], "partitions per member")
    expect(all(topic.name in str(r) for r in rows), True, f"assignments: {rows}")
    (row,) = table(tool(suite, COMMAND, "--describe", "--state", *of_group))
    expect((row["STATE"], row["#MEMBERS"], row["ASSIGNMENT-STRATEGY"]), ("Stable", "2", "range"), "the state")
    error = failing_or_output(suite, "--delete", *of_group)
    expect("GroupNotEmptyException" in error or "not empty" in error, True, f"a group with members is not deleted: {error}")
    of_topic = "--topic", topic.name
    reset = "--reset-offsets", *of_group, *of_topic
    error = failing_or_output(suite, *reset, "--to-earliest", "--execute")
    expect("inactive" in error, True, f"offsets of a group with members are not reset: {error}")
    for member in members:
        member.leave()
    topic.send(30, partitions=[1])
    for options, want, execute in (
        (["--to-earliest"], [0, 0, 0], False),
        (["--to-earliest"], [0, 0, 0], True),
        (["--to-latest"], [60, 60, 30], True),
        (["--shift-by", "-10"], [50, 50, 20], True),
        (["--to-offset", "15"], [15, 15, 15], True),
        (["--by-duration", "PT1H"], [0, 0, 0], True),
        (["--to-datetime", "2100-01-01T00:00:00.000"], [60, 60, 30], True),
        (["--to-current"], [60, 60, 30], True),
    ):
        before = committed(scene, topic)
        rows = table(tool(suite, COMMAND, *reset, *options, "--execute" if execute else "--dry-run"))
        expect([int(r["NEW-OFFSET"]) for r in sorted(rows, key=lambda r: r["PARTITION"])], want, f"{options}: what it says")
        expect(committed(scene, topic), want if execute else before, f"{options}: what is committed")
    rows = table(tool(suite, COMMAND, "--describe", *of_group))
    expect([(r["CURRENT-OFFSET"], r["LAG"], r["CONSUMER-ID"]) for r in rows],
           [("60", "0", "-"), ("60", "0", "-"), ("30", "0", "-")], "an empty group")  # fmt: skip
    tool(suite, COMMAND, "--delete-offsets", *of_group, "--topic", f"{topic.name}:1")
    expect(committed(scene, topic), [60, -1, 30], "after --delete-offsets")
    tool(suite, COMMAND, "--delete", *of_group)
    expect(group in tool(suite, COMMAND, "--list").split(), False, "the deleted group is listed")
    error = failing_or_output(suite, "--describe", *of_group)
    is_said = "does not exist" in error or "GroupIdNotFoundException" in error
    expect(is_said, True, f"the description of a deleted group: {error}")


def committed(scene, topic):
    with wire.Wire(scene.bootstrap) as connection:
        got, _ = wire.fetch_offsets(connection, scene.name, {topic.name: range(topic.partitions)})
    return [got[topic.name, partition][0] for partition in range(topic.partitions)]


def table(text):
    """The rows under the line of capitals, by their heads."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    start = next((n for n, words in enumerate(lines) if words[0] == "GROUP"), None)
    if start is None:
        raise Mismatch(f"no table in: {text}")
    return [dict(zip(lines[start], words)) for words in lines[start + 1 :] if words[0] != "GROUP"]


def failing_or_output(suite, *options):
    """Some refusals are printed by a tool that ends with 0."""
    done = suite.tools.call(f"org.apache.kafka.tools.{COMMAND}", [*options, "--bootstrap-server", suite.bootstrap], "")
    return done.stdout + done.stderr


def admin_client(scene, client):
    group, topic = scene.name, scene.topic("t", 2)
    admin = AdminClient({"bootstrap.servers": scene.bootstrap})
    topic.send(40)
    member = scene.member(client, [topic], instance="desk")
    topic.wait_until_handled([member])
    eventually(lambda: committed(scene, topic) == [20, 20], "its commits", member.story)
    for states, is_in in (({ConsumerGroupState.STABLE}, True), ({ConsumerGroupState.EMPTY}, False), (set(), True)):
        listed = admin.list_consumer_groups(states=states).result(TIMEOUT_S)
        expect(listed.errors, [], "errors of the list")
        expect(group in {g.group_id for g in listed.valid}, is_in, f"listed among {states}")
    described = admin.describe_consumer_groups([group])[group].result(TIMEOUT_S)
    expect((described.state, described.partition_assignor), (ConsumerGroupState.STABLE, "range"), "state and assignor")
    (of_member,) = described.members
    expect((of_member.group_instance_id, of_member.client_id), ("desk", "rdkafka"), "the member")
    places = {(p.topic, p.partition) for p in of_member.assignment.topic_partitions}
    expect(places, {(topic.name, 0), (topic.name, 1)}, "its assignment")
    member.leave()
    # A static member stays when its program ends: it is taken out by whoever runs the group.
    with wire.Wire(scene.bootstrap) as connection:
        reader = connection.ask(13, 3, wire.string(group) + wire.array([wire.string("") + wire.string("desk")]))
        reader.int32()
        expect(reader.int16(), wire.NONE, "LeaveGroup by instance id")
        eventually(lambda: wire.describe(connection, group)[1] == "Empty", "an empty group")
    moved = ConsumerGroupTopicPartitions(group, [TopicPartition(topic.name, 0, 5, metadata="by hand", leader_epoch=1)])
    for place in admin.alter_consumer_group_offsets([moved])[group].result(TIMEOUT_S).topic_partitions:
        expect(place.error, None, "the error of an altered offset")
    fetched = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(TIMEOUT_S)
    got = {p.partition: (p.offset, p.metadata or "") for p in fetched.topic_partitions}
    expect(got, {0: (5, "by hand"), 1: (20, "")}, "offsets and metadata")
    admin.delete_consumer_groups([group])[group].result(TIMEOUT_S)
    listed = admin.list_consumer_groups().result(TIMEOUT_S)
    expect(group in {g.group_id for g in listed.valid}, False, "the deleted group is listed")


def other_admin(scene, client, command):
    """A program of its own, told the group and the topic, of which the group has 20 records of each of 2 partitions."""
    topic = scene.topic("t", 2)
    topic.send(40)
    member = scene.member(client, [topic])
    topic.wait_until_handled([member])
    eventually(lambda: committed(scene, topic) == [20, 20], "its commits", member.story)
    process = subprocess.Popen(
        [*map(str, command), scene.bootstrap, scene.name, topic.name],
        cwd=HERE,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        # It looks at the group while it has its member, says so, and goes on once the member has left.
        said = process.stdout.readline()
        member.leave()
        rest, _ = process.communicate("\n", timeout=TIMEOUT_S)
    finally:
        process.kill()
    expect(process.returncode, 0, f"its end; it said: {said}{rest}")


def dump_offsets(broker, process):
    """Kafka's own tool reads every segment of __consumer_offsets that a stopped broker left, and what was written to it."""
    broker.stop()
    logs = [log for log in sorted(broker.data_dir.rglob("__consumer_offsets-*/*.log")) if log.stat().st_size]
    expect(bool(logs), True, "there are segments with records")
    check_dump(tool(Tools(None, process), "DumpLogSegments", "--offsets-decoder", "--files", ",".join(map(str, logs))))


def check_dump(dump):
    for word in ("isvalid: false", "mismatch", "Could not decode", "Unknown", "Exception"):
        lines = [line for line in dump.splitlines() if word in line]
        expect(lines[:3], [], f"lines with {word!r}")
    kinds = {"commit": 0, "group": 0, "tombstone": 0}
    for key, payload in re.findall(r"key: (\{.*?\})(?: payload: (.*))?$", dump, re.M):
        key = json.loads(key)
        if not payload or payload in ("null", "<DELETE>"):
            kinds["tombstone"] += 1
            continue
        value = json.loads(payload)
        if "topic" in key["data"]:
            expect({"offset", "metadata"} <= set(value["data"]), True, f"a commit's value: {value}")
            kinds["commit"] += 1
        else:
            expect({"protocolType", "generation", "members"} <= set(value["data"]), True, f"a group's value: {value}")
            kinds["group"] += 1
    expect(all(kinds.values()), True, f"there are some of each: {kinds}")
