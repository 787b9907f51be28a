"""The checker of the crash test: what was sent, acknowledged and seen against what the log holds in the end.

One pass per partition, no search. Each kind of anomaly has a planted case in test_crash_check.py.
"""

from collections import defaultdict, namedtuple

# A record's identity, unique over a run: which producer sent it and as its how-manieth record.
Id = namedtuple("Id", "producer number")

# One record of the log as the final read found it. `intact`: its bytes are those that were sent.
Stored = namedtuple("Stored", "offset id intact")

Anomaly = namedtuple("Anomaly", "kind text")


class History:
    """What the clients know about one topic. Filled from callbacks, read by `check` when the clients are at rest."""

    def __init__(self):
        # Per partition and producer the ids in the order of sending.
        self.sent = defaultdict(lambda: defaultdict(list))
        # Where a record lies by its acknowledgement: id -> (partition, offset). An offset of -1: acknowledged as a repeat
        # without saying where the first one lies.
        self.acks = {}
        # Sends that failed, with the error. Whether their records are in the log is open.
        self.failures = {}
        # What a consumer saw while the broker died and came back: partition -> [(offset, id)] in the order of polling.
        self.seen = defaultdict(list)
        # Errors that ended a client.
        self.client_errors = []
        # Producers without idempotence: their repeats are allowed.
        self.may_repeat = set()


def check(history, log, offsets_are_known=True):
    """`log`: partition -> [Stored] in the order of the log, from offset 0 to the end."""
    anomalies = []
    places = defaultdict(list)
    for partition, records in log.items():
        anomalies += check_order_of_log(history, partition, records)
        for record in records:
            places[record.id].append((partition, record.offset))
    anomalies += check_acks(history, log, places, offsets_are_known)
    anomalies += check_repeats(history, places)
    for partition, polls in history.seen.items():
        anomalies += check_polls(partition, polls, log.get(partition, []))
    anomalies += [Anomaly("failed", f"{id_}: {error}") for id_, error in history.failures.items()]
    anomalies += [Anomaly("client", error) for error in history.client_errors]
    return anomalies


def check_order_of_log(history, partition, records):
    """Offsets without holes; each producer's records in its order of sending; no record that nobody sent."""
    anomalies = []
    order = {
        id_: position for ids in history.sent[partition].values() for position, id_ in enumerate(ids)
    }
    newest = {}
    for expected_offset, record in enumerate(records):
        if record.offset != expected_offset:
            anomalies.append(Anomaly("hole", f"{partition}: offset {record.offset} stands where {expected_offset} should"))
            break
    for record in records:
        if not record.intact:
            anomalies.append(Anomaly("damaged", f"{partition}/{record.offset}: not the bytes that were sent as {record.id}"))
        position = order.get(record.id)
        if position is None:
            anomalies.append(Anomaly("unknown", f"{partition}/{record.offset}: nobody sent {record.id} here"))
            continue
        producer = record.id.producer
        last = newest.get(producer, -1)
        # A repeat of an old record is check_repeats' business.
        if position < last and producer not in history.may_repeat:
            anomalies.append(Anomaly("reordered", f"{partition}/{record.offset}: {record.id} stands behind a later one"))
        newest[producer] = max(last, position)
    return anomalies


def check_acks(history, log, places, offsets_are_known):
    anomalies = []
    for id_, (partition, offset) in history.acks.items():
        if id_ not in places:
            anomalies.append(Anomaly("lost", f"{id_} was acknowledged at {partition}/{offset}"))
        elif offset < 0:
            if offsets_are_known:
                anomalies.append(Anomaly("no offset", f"{id_} was acknowledged without its offset"))
        elif (partition, offset) not in places[id_]:
            anomalies.append(
                Anomaly("wrong offset", f"{id_} was acknowledged at {partition}/{offset}, it lies at {places[id_]}")
            )
    unanswered = [
        id_
        for producers in history.sent.values()
        for ids in producers.values()
        for id_ in ids
        if id_ not in history.acks and id_ not in history.failures
    ]
    anomalies += [Anomaly("unanswered", f"{id_} was neither acknowledged nor refused") for id_ in unanswered]
    return anomalies


def check_repeats(history, places):
    return [
        Anomaly("duplicate", f"{id_} lies at {found}")
        for id_, found in places.items()
        if len(found) > 1 and id_.producer not in history.may_repeat
    ]


def check_polls(partition, polls, records):
    """A consumer sees every offset once and in order, and what it saw stays."""
    anomalies = []
    last = None
    for offset, id_ in polls:
        if last is not None and offset != last + 1:
            anomalies.append(Anomaly("poll skip", f"{partition}: offset {offset} was polled after {last}"))
        last = offset
        if offset >= len(records):
            anomalies.append(Anomaly("vanished", f"{partition}/{offset}: {id_} was seen, the log ends at {len(records)}"))
        elif records[offset].id != id_:
            anomalies.append(Anomaly("changed", f"{partition}/{offset}: {id_} was seen, {records[offset].id} is there"))
    return anomalies
