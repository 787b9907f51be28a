"""The records that every client sends with every codec and must read back to the byte, with the offsets that each look-up
must give. Made once here, written as JSON, and read by the suites in their own languages, so that no suite computes its
own expectations.

    {"partitions": 3,
     "records":  [{"partition", "offset", "timestamp", "key", "value", "headers": [[name, value], ...]}, ...],
     "by_time":  [{"partition", "timestamp", "offset"}, ...],          offset -1: no record is that late
     "by_offset": [{"partition", "offset"}, ...]}

Keys, values and header values are base64, or null. Records stand in the order of sending; "offset" is the one that the
record gets in a topic that holds nothing else.
"""

import base64
import json
import random
import time

PARTITIONS = 3
RECORDS_PER_PARTITION = 80
SEED = 20_260_101


def build():
    rng = random.Random(SEED)
    # A day ago, whole seconds: inside every retention, before every "now".
    start_ms = int(time.time() - 86_400) * 1000
    records = []
    offsets = [0] * PARTITIONS
    for number in range(PARTITIONS * RECORDS_PER_PARTITION):
        partition = number % PARTITIONS
        records.append(
            {
                "partition": partition,
                "offset": offsets[partition],
                "timestamp": start_ms + 1000 * number,
                "key": encode(key(rng, number)),
                "value": encode(value(rng, number)),
                "headers": [[name, encode(content)] for name, content in headers(rng, number)],
            }
        )
        offsets[partition] += 1
    # Producers do not always send in the order of time: three records late in the log are older than their neighbours,
    # and one in the middle is newer than those behind it.
    for number in (60, 61, 62):
        records[number]["timestamp"] -= 30_000
    records[120]["timestamp"] += 20_000
    return {
        "partitions": PARTITIONS,
        "records": records,
        "by_time": by_time(records, start_ms),
        "by_offset": [
            {"partition": partition, "offset": offset}
            for partition in range(PARTITIONS)
            for offset in (0, 1, 17, RECORDS_PER_PARTITION // 2, RECORDS_PER_PARTITION - 1)
        ],
    }


def write(path):
    corpus = build()
    with open(path, "w", encoding="utf-8") as file:
        json.dump(corpus, file)
    return corpus


def encode(content):
    return None if content is None else base64.b64encode(content).decode("ascii")


def decode(text):
    return None if text is None else base64.b64decode(text)


def key(rng, number):
    match number % 8:
        case 0:
            return None
        case 1:
            return b""
        case 2:
            return bytes(range(256))
        case 3:
            return "Schlüssel-鍵-🔑".encode()
        case 4:
            return rng.randbytes(2_000)
        case _:
            return f"key-{number:06}".encode()


def value(rng, number):
    # The large ones sit in every partition, so that batches of one record and of many stand side by side.
    if number in (30, 100, 170):
        return rng.randbytes(200_000)
    if number in (31, 101, 171):
        return b"the same words over and over, which every codec makes small. " * 4_000
    match number % 7:
        case 0:
            return b""
        case 1:
            return None
        case 2:
            return rng.randbytes(1 + number)
        case 3:
            return ("Wert mit Umlauten äöü und 値 " * (number % 40 + 1)).encode()
        case 4:
            return b"\x00" * 1_024
        case _:
            return (f"record {number} " * 60).encode()


def headers(rng, number):
    match number % 5:
        case 0:
            return []
        case 1:
            return [("trace", rng.randbytes(16))]
        case 2:
            return [("same", b"1"), ("same", b"2"), ("empty", b"")]
        case 3:
            return [("null", None), ("Kopfzeile-ü", b"\xff\xfe\x00")]
        case _:
            return [(f"h{i:02}", f"{number}/{i}".encode()) for i in range(20)]


def by_time(records, start_ms):
    """The first offset in a partition whose timestamp is not before the one asked for; -1 if there is none."""
    end_ms = start_ms + 1000 * len(records)
    targets = [0, start_ms, start_ms + 1, start_ms + 29_500, start_ms + 60_000, start_ms + 125_000]
    targets += [start_ms + 130_500, start_ms + 139_000, start_ms + 200_000, end_ms - 3_000, end_ms + 60_000]
    return [
        {
            "partition": partition,
            "timestamp": target,
            "offset": next(
                (r["offset"] for r in records if r["partition"] == partition and r["timestamp"] >= target), -1
            ),
        }
        for partition in range(PARTITIONS)
        for target in targets
    ]
