"""What each client does as a member: resume, repeat and never skip, share, be static, fall silent, see topics grow and go."""

import pathlib
import random
import time
from collections import Counter

from confluent_kafka.admin import AdminClient, NewPartitions

from group_scenarios.scene import eventually, settled
from harness import group_wire as wire
from harness.client import TIMEOUT_S, Mismatch, expect
from harness.group_load import Stream

SESSION_MS = 3_000


def scenarios(clients, seed):
    """In the order in which they start: those that wait for most come first."""
    for client in clients:
        yield f"{client.name}: members come and go under load, all is handled", lambda s, c=client: come_and_go(
            s, [c], None, random.Random(f"{seed}/{c.name}")
        )
    mixed = [client for client in clients if "range" in client.assignors]
    yield "five clients in one group: members come and go under load", lambda s: come_and_go(
        s, mixed, "range", random.Random(f"{seed}/mixed")
    )
    for client in clients:
        yield f"{client.name}: killed between handling and commit, repeats and skips none", lambda s, c=client: killed(s, c)
        yield f"{client.name}: a silent member is removed, and comes back", lambda s, c=client: silent(s, c)
    for client in clients:
        if client.can_be_static:
            yield f"{client.name}: a static member restarts without a rebalance", lambda s, c=client: static_restart(s, c)
            yield f"{client.name}: a second member of one instance id fences the first", lambda s, c=client: fenced(s, c)
    for client in clients:
        for assignor in client.assignors:
            yield f"{client.name}: {assignor or 'its assignor'} shares among 1, 2, 3 and 2 members", (
                lambda s, c=client, a=assignor: shares(s, c, a)
            )
    for client in clients:
        yield f"{client.name}: resumes where it committed", lambda s, c=client: resumes(s, c)
        yield f"{client.name}: added partitions are picked up", lambda s, c=client: partitions_added(s, c)
        if client.follows_deletion:
            yield f"{client.name}: goes on when one of its topics is deleted", lambda s, c=client: topic_deleted(s, c)


def resumes(scene, client):
    topic = scene.topic("t", 3)
    topic.send(300)
    first = scene.member(client, [topic], ask=True)
    for number in range(3):
        first.wait_for(lambda: first.asked > number, "the next commit")
        first.commit()
    first.leave()
    expect(0 < first.committed_count < 300, True, "it left in the middle")
    second = scene.member(client, [topic])
    topic.wait_until_handled([first, second])
    expect(set(repeated([first, second])), set(first.handled) - set(first.committed), "handled twice")
    second.wait_for(lambda: second.committed_count == len(second.handled), "its last commit")
    second.leave()
    topic.send(60)
    third = scene.member(client, [topic])
    topic.wait_until_handled([first, second, third])
    expect(len(third.handled), 60, "what the third handled")
    third.leave()


def repeated(members):
    counts = Counter(handled for member in members for handled in member.handled)
    return [handled for handled, count in counts.items() if count > 1]


def killed(scene, client):
    topic = scene.topic("t", 2)
    topic.send(200)
    first = scene.member(client, [topic], ask=True, session_ms=SESSION_MS)
    first.wait_for(lambda: first.asked >= 1, "the first commit")
    first.commit()
    first.wait_for(lambda: first.asked >= 2, "the second commit")
    first.kill9()
    uncommitted = set(first.handled) - set(first.committed)
    expect(bool(uncommitted), True, "something was handled and not committed")
    second = scene.member(client, [topic], session_ms=SESSION_MS)
    topic.wait_until_handled([first, second])
    expect(uncommitted <= set(second.handled), True, "all that was not committed is seen again")
    expect(set(first.committed) & set(second.handled), set(), "committed and seen again")
    second.leave()


def come_and_go(scene, clients, assignor, rng):
    topic = scene.topic("t", 6)
    stream = Stream(topic, 200)
    stream.start()
    everybody = []

    def start():
        client = clients[len(everybody) % len(clients)]
        everybody.append(scene.member(client, [topic], assignor=assignor, session_ms=SESSION_MS))
        return everybody[-1]

    present = [start() for _ in range(max(2, len(clients)))]
    for action in ["join", "kill", "leave", *rng.sample(["join", "kill", "leave", "join"], 3)]:
        eventually(lambda: all(member.handled for member in present[:1]), "handling", present[0].story)
        time.sleep(rng.uniform(0.2, 1.5))
        if action == "join" or len(present) < 2:
            present.append(start())
        elif action == "kill":
            present.pop(rng.randrange(len(present))).kill9()
        else:
            present.pop(rng.randrange(len(present))).leave()
    stream.stop()
    topic.wait_until_handled(everybody)
    settled(present, topic.places())
    check_commits(scene, topic, present)
    for member in present:
        member.leave()


def check_commits(scene, topic, present):
    """The group's commits reach the ends of the partitions once all is handled."""
    ends = Counter(partition for partition, _ in topic.sent)

    def at_the_ends():
        answer, _ = wire.fetch_offsets(connection, scene.name, {topic.name: range(topic.partitions)})
        return {partition: answer[topic.name, partition][0] for partition in ends} == ends

    connection = scene.wire()
    eventually(at_the_ends, "commits at the ends of all partitions", lambda: "\n".join(m.story() for m in present))


def silent(scene, client):
    topic = scene.topic("t", 4)
    first, second = (scene.member(client, [topic], session_ms=SESSION_MS) for _ in range(2))
    settled([first, second], topic.places())
    first.freeze()
    topic.send(80)
    eventually(lambda: second.owned == topic.places(), "the other one takes all", second.story)
    topic.wait_until_handled([second])
    first.thaw()
    settled([first, second], topic.places())
    topic.send(80)
    topic.wait_until_handled([first, second])
    for member in (first, second):
        member.leave()


def shares(scene, client, assignor):
    wide, narrow = scene.topic("wide", 4), scene.topic("narrow", 2)
    places = wide.places() | narrow.places()
    members = []

    def expect_shares(*counts):
        settled(members, places)
        expect(sorted(len(member.owned) for member in members), sorted(counts), "partitions per member")

    for counts in ([6], [3, 3], [1, 2, 3] if assignor == "range" else [2, 2, 2]):
        gave_before = {member: len(member.given) for member in members}
        members.append(scene.member(client, [wide, narrow], assignor=assignor))
        expect_shares(*counts)
        if assignor == "cooperative-sticky":
            for member, count in gave_before.items():
                given = set().union(*member.given[count:])
                expect(given & member.owned, set(), f"{member.name}: given up and owned all the same")
    members.pop(1).leave()
    settled(members, places)
    for topic in (wide, narrow):
        topic.send(40)
        topic.wait_until_handled(members)
    for member in members:
        member.leave()


def static_restart(scene, client):
    topic = scene.topic("t", 4)
    leader = scene.member(client, [topic], instance="one", session_ms=60_000)
    settled([leader], topic.places())
    follower = scene.member(client, [topic], instance="two", session_ms=60_000)
    settled([leader, follower], topic.places())
    # A leader of franz-go's that restarts may compare its topics with others before it knows any, and then asks for a rebalance itself.
    restarts, stays = (follower, leader) if client.name == "franz-go" else (leader, follower)
    share, quiet = restarts.owned, len(lines_of_ownership(stays))
    restarts.kill9()
    again = scene.member(client, [topic], instance=restarts.options["instance"], session_ms=60_000)
    again.wait_for(lambda: again.owned == share, f"its share {sorted(share)}")
    topic.send(80)
    topic.wait_until_handled([again, stays])
    expect(lines_of_ownership(stays)[quiet:], [], "rebalances that the other one saw")
    expect(stays.owned | again.owned, topic.places(), "the shares together")


def lines_of_ownership(member):
    return [line for _, line in member.lines if line.startswith(("owns", "gave"))]


def fenced(scene, client):
    topic = scene.topic("t", 2)
    first = scene.member(client, [topic], instance="one", session_ms=60_000)
    settled([first], topic.places())
    second = scene.member(client, [topic], instance="one", session_ms=60_000)
    second.wait_for(lambda: second.owned == topic.places(), "all partitions")
    # Some learn of it with a heartbeat, some not before they commit.
    topic.send(40)
    first.wait_for_line("fenced")
    topic.wait_until_handled([second])
    second.leave()


def partitions_added(scene, client):
    topic = scene.topic("t", 2)
    member = scene.member(client, [topic])
    settled([member], topic.places())
    topic.send(40)
    topic.wait_until_handled([member])
    admin = AdminClient({"bootstrap.servers": scene.bootstrap})
    admin.create_partitions([NewPartitions(topic.name, 5)])[topic.name].result(TIMEOUT_S)
    settled([member], topic.places(5))
    # The producer learns of them in its own time too.
    topic.producer.list_topics(topic.name, TIMEOUT_S)
    topic.send(50, range(5))
    topic.wait_until_handled([member])
    expect({handled.partition for handled in member.handled}, set(range(5)), "partitions handled")
    expect(repeated([member]), [], "handled twice")
    member.leave()


def topic_deleted(scene, client):
    stays, goes = scene.topic("stays", 2), scene.topic("goes", 2)
    member = scene.member(client, [stays, goes])
    settled([member], stays.places() | goes.places())
    for topic in (stays, goes):
        topic.send(40)
        topic.wait_until_handled([member])
    member.wait_for(lambda: member.committed_count == len(member.handled), "its commits")
    admin = AdminClient({"bootstrap.servers": scene.bootstrap})
    admin.delete_topics([goes.name])[goes.name].result(TIMEOUT_S)
    stays.send(40)
    stays.wait_until_handled([member])
    connection = scene.wire()

    def forgotten():
        answer, error = wire.fetch_offsets(connection, scene.name)
        expect(error, wire.NONE, "OffsetFetch")
        return {topic for topic, _ in answer} == {stays.name}

    eventually(forgotten, "the commits of the deleted topic gone", member.story)
    member.leave()


def consumer_protocol(scene, clients):
    """KIP-848 is served whole, or its requests are not advertised, so that clients say so and nobody half works."""
    ranges = wire.served(scene.wire())
    advertised = [key for key in (wire.CONSUMER_GROUP_HEARTBEAT, wire.CONSUMER_GROUP_HEARTBEAT + 1) if key in ranges]
    if not advertised:
        return
    expect(len(advertised), 2, "both requests are served")
    for client in clients:
        if client.has_consumer_protocol:
            topic = scene.topic(client.name, 4)
            group = f"{scene.name}-{client.name}"
            members = [
                scene.member(client, [topic], group, protocol="consumer", assignor="range") for _ in range(2)
            ]
            settled(members, topic.places())
            topic.send(80)
            topic.wait_until_handled(members)
            members[0].leave()
            settled(members[1:], topic.places())
            members[1].leave()


def check_installed(clients):
    needs = [pathlib.Path(need) for client in clients for need in client.needs]
    missing = sorted({str(need) for need in needs if not need.exists()})
    if missing:
        raise Mismatch(f"{', '.join(missing)}: missing, run scripts/install-test-peers")
