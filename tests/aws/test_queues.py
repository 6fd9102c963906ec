"""When a hint arrives: shortly before its instant, for every fraction of a second of the sender's clock (O3)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from chalicelib.aws import hints as aw_hints
from chalicelib.aws.hints import HEAD_START, SqsHints
from chalicelib.core.instants import MINUTE, SECOND
from chalicelib.core.rows.ref import Ref, ShardPart, shard_ref
from chalicelib.core.system import bursts
from tests.support.clock import NOON, HandClock

A_JOB = Ref("job", ("demo.flights.clean", "1", "FIRE#x"))
FRACTIONS = (0, 1, 300, 799, 800, 801, 999)


class Queue:
    """Records when each message can be received, its content, and the number of calls."""

    def __init__(self, clock: HandClock) -> None:
        self.clock = clock
        self.comes: list[tuple[int, int, int]] = []  # received at, for which instant, the number of refs
        self.queues: list[str] = []  # the queue of each message
        self.calls = 0
        self.pings = 0
        self.fails: list[set[str]] = []  # for each call, the ids that it fails

    def send_message_batch(self, QueueUrl: str, Entries: Sequence[Any]) -> Any:
        self.calls += 1
        failing = self.fails.pop(0) if self.fails else set()
        for entry in Entries:
            if entry["Id"] in failing:
                continue
            hint = json.loads(entry["MessageBody"])
            at = self.clock.now() + 1000 * int(entry["DelaySeconds"])
            self.comes.append((at, hint["due"], len(hint["refs"])))
            self.queues.append(QueueUrl)
        return {"Failed": [{"Id": each, "Code": "InternalError"} for each in failing]}

    def send_message(self, **message: str) -> None:
        assert (message["QueueUrl"], json.loads(message["MessageBody"])["refs"]) == ("hints", [])
        self.pings += 1

    @property
    def early(self) -> list[int]:
        return [due - at for at, due, _ in self.comes]


def made(fraction: int = 0, warm: bool = True) -> tuple[SqsHints, Queue, HandClock]:
    clock = HandClock(NOON + fraction)
    queue = Queue(clock)
    hints = SqsHints(queue, "hints", clock, "bursts")
    if warm:
        hints.send([A_JOB], NOON, NOON)
        queue.comes, queue.queues, queue.calls = [], [], 0
    return hints, queue, clock


@pytest.mark.parametrize(("rows", "pings"), [(0, 1), (1, 0), (bursts.BURST - 1, 0), (bursts.BURST, 1)])
def test_a_hint_of_a_burst_does_not_keep_check_warm(rows: int, pings: int) -> None:
    hints, queue, clock = made()
    hints.keep_warm()
    if rows:
        hints.send([A_JOB] * rows, NOON + 40 * SECOND, clock.now())
    hints.keep_warm()
    assert queue.pings == pings
    hints.keep_warm()
    assert queue.pings == pings + 1


def test_a_hint_of_shards_alone_does_not_keep_check_warm() -> None:
    hints, queue, clock = made()
    hints.keep_warm()
    hints.send([shard_ref(ShardPart("jobs", 0, 5, None))], clock.now(), clock.now())
    hints.keep_warm()
    assert (queue.queues, queue.pings) == (["bursts"], 1)


def test_a_hint_after_a_burst_comes_early_for_a_cold_start() -> None:
    hints, queue, clock = made()
    due = NOON + aw_hints.COLD_AFTER + 30 * SECOND
    clock.wait_until(due - 30 * SECOND)
    hints.send([A_JOB] * bursts.BURST, due - SECOND, clock.now())
    hints.send([A_JOB], due, clock.now())
    assert queue.queues == ["bursts", "hints"]
    assert SECOND <= queue.early[-1] < 2 * SECOND


@pytest.mark.parametrize("fraction", FRACTIONS)
def test_t4_a_hint_arrives_less_than_a_second_before_its_instant(fraction: int) -> None:
    hints, queue, clock = made(fraction)
    for due in (NOON + 40 * SECOND, NOON + 41 * SECOND + 5):
        hints.send([A_JOB], due, clock.now())
    assert all(HEAD_START <= early < HEAD_START + SECOND for early in queue.early)


@pytest.mark.parametrize("fraction", FRACTIONS)
def test_t4_many_hints_of_a_tick_are_sent_for_whole_seconds(fraction: int) -> None:
    hints, queue, clock = made(fraction)
    dues = [NOON + second * SECOND for second in range(40, 60)]
    hints.send_all([(due, [A_JOB]) for due in dues], clock.now(), patient=True)
    assert queue.early == [HEAD_START] * len(dues)
    assert queue.calls == 2, "ten messages to a call, also with different instants"
    assert clock.now() - NOON - fraction < SECOND


def test_t4_few_or_awaited_hints_are_sent_at_once() -> None:
    several = [(NOON + second * SECOND, [A_JOB]) for second in (40, 41, 42)]
    odd, soon = ([(due + by, refs) for due, refs in several] for by in (7, -39 * SECOND))
    for answer, patient in ((several[:2], True), (several, False), (odd, True), (soon, True)):
        hints, queue, clock = made(fraction=300)
        hints.send_all(answer, clock.now(), patient=patient)
        assert clock.now() == NOON + 300
        assert len(queue.comes) == len(answer)


def test_t4_an_old_clock_reading_does_not_make_a_hint_late() -> None:
    hints, queue, clock = made()
    clock.pass_by("20s")
    hints.send([A_JOB], NOON + 40 * SECOND, now=NOON)
    assert queue.early == [SECOND]


def test_t4_the_first_hint_after_pause_starts_its_receiver_early() -> None:
    hints, queue, clock = made(fraction=300, warm=False)
    for minutes in (1, 2, 8, 9):
        hints.send([A_JOB], NOON + minutes * MINUTE, clock.now())
    assert queue.early == [1_700, 700, 1_700, 700]


def test_e2_a_hint_with_more_rows_comes_earlier() -> None:
    assert aw_hints.head_start(1) == aw_hints.head_start(50) < aw_hints.head_start(51) < aw_hints.head_start(500)
    hints, queue, clock = made()
    hints.send([A_JOB] * 120, NOON + 40 * SECOND, clock.now())
    assert queue.comes == [(NOON + 39 * SECOND, NOON + 40 * SECOND, count) for count in (50, 50, 20)]


def test_e9_a_burst_has_a_queue_of_its_own_and_equal_messages() -> None:
    hints, queue, clock = made()
    burst, few = NOON + 60 * SECOND, NOON + 61 * SECOND
    hints.send_all([(burst, [A_JOB] * 1_001), (few, [A_JOB])], clock.now())
    assert queue.comes == [(NOON + 52 * SECOND, burst, count) for count in (201, 201, 201, 201, 197)] + [
        (NOON + 60 * SECOND, few, 1)
    ]
    assert queue.queues == ["bursts"] * 5 + ["hints"]


def test_e9_no_message_of_a_burst_comes_too_early_to_be_handled() -> None:
    for count in (200, 251, 500, 1_001, 10_000):
        hints, queue, clock = made()
        due = NOON + 60 * SECOND
        hints.send([A_JOB] * count, due, clock.now())
        assert sum(refs for _, _, refs in queue.comes) == count
        assert all(aw_hints.MAX_REFS < refs <= bursts.LEAST for _, _, refs in queue.comes)
        assert not any(aw_hints.is_early(refs, due, at) for at, _, refs in queue.comes)
    # A part of a larger burst comes as early as the whole.
    hints, queue, clock = made()
    hints.send_all([(due, [A_JOB] * 1_000)], clock.now(), crowd=100_000)
    assert queue.comes == [(due - 26 * SECOND, due, 1_000)]
    assert not aw_hints.is_early(1_000, due, queue.comes[0][0])
    assert aw_hints.is_early(1, due, due - 3 * SECOND)
    assert not aw_hints.is_early(1, due, due - 2 * SECOND)


def test_e9_a_small_part_of_a_burst_is_an_ordinary_message() -> None:
    hints, queue, clock = made()
    due = NOON + 60 * SECOND
    hints.send_all([(due, [A_JOB] * 50)], clock.now(), crowd=100_000)
    hints.send_all([(due, [A_JOB] * 51)], clock.now(), crowd=100_000)
    assert queue.queues == ["hints", "bursts"]
    assert queue.comes[0] == (due - SECOND, due, 50)


def test_e9_a_larger_burst_has_larger_messages() -> None:
    sizes = {rows: bursts.rows_of_message(rows) for rows in (200, 25_000, 25_001, 60_000, 100_000, 1_000_000)}
    assert list(sizes.values()) == [250, 250, 251, 600, 1_000, 1_000]
    leads = [bursts.lead(rows) for rows in sizes]
    assert leads == sorted(leads)
    assert leads[-1] == bursts.LONGEST_LEAD


def test_e9_a_message_with_long_names_is_divided() -> None:
    hints, queue, clock = made()
    long = Ref("job", ("demo." + "a" * 200 + "." + "s" * 250, "1", "FIRE#x"))
    hints.send_all([(NOON, [long] * 1_000)], clock.now(), crowd=100_000)
    assert [refs for _, _, refs in queue.comes] == [250] * 4


def test_e9_without_a_queue_for_bursts_all_hints_take_one() -> None:
    clock = HandClock(NOON)
    queue = Queue(clock)
    SqsHints(queue, "hints", clock).send([A_JOB] * 500, NOON, NOON)
    assert queue.queues == ["hints", "hints"]


def test_o3_an_overdue_hint_is_not_delayed() -> None:
    hints, queue, clock = made(fraction=5)
    hints.send_all([(NOON - MINUTE, [A_JOB]), (NOON + 100, [A_JOB])], clock.now())
    assert [at for at, _, _ in queue.comes] == [NOON + 5, NOON + 5]


def test_o3_a_message_that_sqs_rejects_in_a_batch_is_sent_again() -> None:
    hints, queue, _ = made()
    queue.fails = [{"0", "2"}, {"2"}]
    hints.send_all([(NOON + MINUTE * number, [A_JOB]) for number in range(4)], NOON)
    assert queue.calls == 3
    assert sorted(due for _, due, _ in queue.comes) == [NOON + MINUTE * number for number in range(4)]


def test_o3_a_message_that_fails_each_time_is_left_to_the_sweep() -> None:
    hints, queue, _ = made()
    queue.fails = [{"0"}] * 3
    hints.send([A_JOB], NOON, NOON)
    assert (queue.calls, queue.comes) == (aw_hints.MAX_TRIES, [])


def test_e9_each_part_of_a_shard_is_a_message_of_the_burst_queue() -> None:
    hints, queue, clock = made()
    parts = [shard_ref(ShardPart("catalog", shard, NOON, "x" * 300)) for shard in range(3)]
    hints.send_all([(NOON, [*parts, A_JOB])], clock.now())
    assert sorted(queue.queues) == ["bursts", "bursts", "bursts", "hints"]
    assert queue.comes == [(clock.now(), NOON, 1)] * 4
