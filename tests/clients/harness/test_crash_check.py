"""A checker that finds nothing proves nothing: one planted anomaly of each kind, each found, and no other."""

import unittest

from harness.crash_check import History, Id, Stored, check

PARTITIONS = 2
PER_PRODUCER = 20


def clean():
    """Two producers, taking turns in two partitions; all acknowledged, all seen."""
    history = History()
    log = {partition: [] for partition in range(PARTITIONS)}
    for number in range(PER_PRODUCER):
        for producer in (0, 1):
            partition = number % PARTITIONS
            id_ = Id(producer, number)
            offset = len(log[partition])
            history.sent[partition][producer].append(id_)
            history.acks[id_] = (partition, offset)
            history.seen[partition].append((offset, id_))
            log[partition].append(Stored(offset, id_, True))
    return history, log


def renumber(records):
    return [record._replace(offset=offset) for offset, record in enumerate(records)]


class CrashCheck(unittest.TestCase):
    def expect_only(self, history, log, *kinds, **options):
        found = check(history, log, **options)
        self.assertEqual({anomaly.kind for anomaly in found}, set(kinds), found)

    def test_a_clean_history_has_no_anomaly(self):
        self.expect_only(*clean())

    def test_a_lost_record_at_the_end_is_found(self):
        history, log = clean()
        history.seen.clear()
        log[1].pop()
        self.expect_only(history, log, "lost")

    def test_a_lost_record_in_the_middle_moves_all_behind_it(self):
        history, log = clean()
        history.seen.clear()
        del log[0][3]
        log[0] = renumber(log[0])
        self.expect_only(history, log, "lost", "wrong offset")

    def test_an_offset_that_is_left_out_is_found(self):
        history, log = clean()
        history.seen.clear()
        lost = log[0].pop(3)
        del history.acks[lost.id]
        history.failures[lost.id] = "planted"
        self.expect_only(history, log, "hole", "failed")

    def test_a_duplicate_is_found(self):
        history, log = clean()
        log[0].append(log[0][-1]._replace(offset=len(log[0])))
        self.expect_only(history, log, "duplicate")

    def test_a_duplicate_of_a_producer_without_idempotence_is_allowed(self):
        history, log = clean()
        history.may_repeat = {0}
        repeated = next(record for record in log[0] if record.id.producer == 0)
        log[0].append(repeated._replace(offset=len(log[0])))
        self.expect_only(history, log)

    def test_two_records_in_the_wrong_order_are_found(self):
        history, log = clean()
        history.seen.clear()
        a, b = (i for i, record in enumerate(log[0]) if record.id in (Id(0, 4), Id(0, 6)))
        log[0][a], log[0][b] = log[0][b]._replace(offset=a), log[0][a]._replace(offset=b)
        # As a broker would that acknowledges what it did.
        history.acks[Id(0, 4)], history.acks[Id(0, 6)] = (0, b), (0, a)
        self.expect_only(history, log, "reordered")

    def test_an_acknowledgement_with_the_wrong_offset_is_found(self):
        history, log = clean()
        partition, offset = history.acks[Id(1, 5)]
        history.acks[Id(1, 5)] = (partition, offset + 1)
        self.expect_only(history, log, "wrong offset")

    def test_an_acknowledgement_for_the_wrong_partition_is_found(self):
        history, log = clean()
        _, offset = history.acks[Id(1, 5)]
        history.acks[Id(1, 5)] = (0, offset)
        self.expect_only(history, log, "wrong offset")

    def test_an_acknowledgement_without_offset_is_found_where_offsets_are_known(self):
        history, log = clean()
        history.acks[Id(1, 5)] = (1, -1)
        self.expect_only(history, log, "no offset")
        self.expect_only(history, log, offsets_are_known=False)

    def test_a_record_that_nobody_sent_is_found(self):
        history, log = clean()
        log[1].append(Stored(len(log[1]), Id(7, 0), True))
        self.expect_only(history, log, "unknown")

    def test_a_record_in_the_wrong_partition_is_found(self):
        history, log = clean()
        history.seen.clear()
        moved = log[0].pop()
        log[1].append(moved._replace(offset=len(log[1])))
        self.expect_only(history, log, "unknown", "wrong offset")

    def test_damaged_bytes_are_found(self):
        history, log = clean()
        log[0][2] = log[0][2]._replace(intact=False)
        self.expect_only(history, log, "damaged")

    def test_a_record_that_was_seen_and_is_gone_is_found(self):
        history, log = clean()
        gone = log[1].pop()
        del history.acks[gone.id]
        history.failures[gone.id] = "planted"
        self.expect_only(history, log, "vanished", "failed")

    def test_an_offset_that_changed_after_it_was_seen_is_found(self):
        history, log = clean()
        history.seen[0][4] = (4, Id(0, 99))
        self.expect_only(history, log, "changed")

    def test_a_consumer_that_skipped_or_went_back_is_found(self):
        history, log = clean()
        del history.seen[0][4]
        self.expect_only(history, log, "poll skip")
        history, log = clean()
        history.seen[0].append(history.seen[0][0])
        self.expect_only(history, log, "poll skip")

    def test_a_send_without_an_answer_is_found(self):
        history, log = clean()
        del history.acks[Id(0, 0)]
        self.expect_only(history, log, "unanswered")

    def test_a_failed_send_and_a_failed_client_are_found(self):
        history, log = clean()
        history.sent[0][0].append(Id(0, 1000))
        history.failures[Id(0, 1000)] = "planted"
        history.client_errors.append("planted")
        self.expect_only(history, log, "failed", "client")


if __name__ == "__main__":
    unittest.main()
