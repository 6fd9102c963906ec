"""What limits remember of starts, on both implementations: gaps, rates and successes hold as they were
read (C4, C5).
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from chalicelib.aws.tables.dynamo import Dynamo
from chalicelib.aws.tables.jobs import DynamoJobs
from chalicelib.core.limits import permits
from chalicelib.core.limits.permits import RateWindow, Slots
from chalicelib.core.limits.writes import AcquirePermit, Ended, JoinQueue, RecordStart, ReleasePermit, TrackRates
from chalicelib.core.rows import kinds
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.writes import Create, PutDefinition, TrackStarts, Write
from tests.support import rows
from tests.support.clock import NOON

LIMIT = "workflow:demo.flights.w"
RATE_LIMIT = "rate:demo.flights.w:2/1000"
FREE = Slots(LIMIT, None)
GAP = Slots(LIMIT, None, gap=1000)
TWO = RateWindow(RATE_LIMIT, 2, 1000)
NOT_BINDING = replace(TWO, binding=False)


def ok(dynamo: Dynamo, *writes: Write) -> bool:
    return dynamo.commit(writes) is None


def limit_state(dynamo: Dynamo, name: str = LIMIT) -> LimitState:
    return DynamoJobs(dynamo).limit_state(name)


def start(
    ask: Slots | RateWindow, run: str, read: LimitState, now: int = NOON, from_queue: bool = False
) -> AcquirePermit:
    return AcquirePermit(ask, now, read, from_queue, begins=run)


# -- active runs (C4) ----------------------------------------------------------------------------------------------


def test_c4_a_limit_remembers_who_started_when(dynamo: Dynamo) -> None:
    assert ok(dynamo, start(FREE, "a#001", limit_state(dynamo)))
    assert ok(dynamo, start(FREE, "b#001", limit_state(dynamo), NOON + 5))
    expected = LimitState(LIMIT, active=2, rev=2, starts={"a#001": NOON, "b#001": NOON + 5}, last_start=NOON + 5)
    assert limit_state(dynamo) == expected


def test_c9_a_gap_claim_fails_if_a_run_began_or_ended_since_read(dynamo: Dynamo) -> None:
    unused = limit_state(dynamo)
    assert ok(dynamo, start(FREE, "a#001", unused))
    assert not ok(dynamo, start(GAP, "b#001", unused)), "two schedules of one workflow at the same instant"
    one = limit_state(dynamo)
    assert ok(dynamo, ReleasePermit(LIMIT, None, Ended("a#001", one)))
    assert not ok(dynamo, start(GAP, "b#001", one))
    assert ok(dynamo, start(GAP, "b#001", limit_state(dynamo), NOON + 5000))


def test_e8_a_start_without_a_gap_does_not_block_another(dynamo: Dynamo) -> None:
    assert ok(dynamo, start(FREE, "a#001", limit_state(dynamo)))
    read = limit_state(dynamo)
    assert ok(dynamo, start(FREE, "b#001", read))
    assert ok(dynamo, start(FREE, "c#001", read))
    assert set(limit_state(dynamo).starts) == {"a#001", "b#001", "c#001"}


# -- numbers (H1) --------------------------------------------------------------------------------------------------


def test_h1_a_start_takes_the_next_number_unless_taken_since(dynamo: Dynamo) -> None:
    assert ok(dynamo, replace(start(FREE, "a#001", limit_state(dynamo)), numbers=True))
    read = limit_state(dynamo)
    assert ok(dynamo, replace(start(FREE, "b#001", read), numbers=True))
    assert not ok(dynamo, replace(start(FREE, "c#001", read), numbers=True))
    assert ok(dynamo, start(FREE, "c#001", read)), "who has a number takes none"
    assert (limit_state(dynamo).numbered, limit_state(dynamo).active) == (2, 3)


def test_h1_a_number_taken_alone_is_unique(dynamo: Dynamo) -> None:
    assert [dynamo.number(LIMIT) for _ in range(3)] == [1, 2, 3]
    read = limit_state(dynamo)
    assert (read.numbered, read.active) == (3, 0)
    assert dynamo.number(LIMIT) == 4
    assert not ok(dynamo, replace(start(FREE, "a#001", read), numbers=True))
    assert ok(dynamo, replace(start(FREE, "a#001", limit_state(dynamo)), numbers=True))
    assert limit_state(dynamo).numbered == 5


# -- active runs, and gaps -----------------------------------------------------------------------------------------


def test_c4_the_first_start_of_all_is_made_by_only_one(dynamo: Dynamo) -> None:
    unused = limit_state(dynamo)
    assert ok(dynamo, start(FREE, "a#001", unused))
    assert not ok(dynamo, start(FREE, "b#001", unused)), "the map of starts is there now"
    assert ok(dynamo, start(FREE, "b#001", limit_state(dynamo)))


def test_c9_a_held_permit_becomes_a_start_with_the_claim(dynamo: Dynamo) -> None:
    assert ok(dynamo, AcquirePermit(FREE, NOON, limit_state(dynamo), from_queue=False))
    assert limit_state(dynamo) == LimitState(LIMIT, active=1)
    assert ok(dynamo, RecordStart(FREE, NOON + 7, limit_state(dynamo), "a#001"))
    begun = limit_state(dynamo)
    assert begun == LimitState(LIMIT, active=1, rev=1, starts={"a#001": NOON + 7}, last_start=NOON + 7)
    assert ok(dynamo, start(FREE, "b#001", begun))
    assert not ok(dynamo, RecordStart(GAP, NOON + 8, begun, "c#001")), "a gap holds for what was held, too"


def test_c4_the_latest_start_represents_those_not_remembered(dynamo: Dynamo) -> None:
    for number in range(permits.MAX_STARTS):
        assert ok(dynamo, start(FREE, f"r{number:03d}#001", limit_state(dynamo), NOON + number))
    assert ok(dynamo, start(FREE, "more#001", limit_state(dynamo), NOON + 500))
    crowded = limit_state(dynamo)
    assert (crowded.active, len(crowded.starts), crowded.untracked_start) == (101, 100, NOON + 500)
    assert ok(dynamo, ReleasePermit(LIMIT, None, Ended("more#001", crowded)))
    assert (limit_state(dynamo).active, len(limit_state(dynamo).starts)) == (100, 100)


# -- ends ----------------------------------------------------------------------------------------------------------


def test_c4_the_end_of_a_run_is_forgotten_and_its_success_kept(dynamo: Dynamo) -> None:
    assert ok(dynamo, start(FREE, "a#001", limit_state(dynamo)))
    assert ok(dynamo, ReleasePermit(LIMIT, None, Ended("a#001", limit_state(dynamo), NOON, NOON + 60)))
    assert limit_state(dynamo) == LimitState(
        LIMIT, active=0, rev=2, starts={}, last_start=NOON, last_success_start=NOON, last_success_at=NOON + 60
    )


def test_c4_a_failure_leaves_the_last_success_unchanged(dynamo: Dynamo) -> None:
    for run, at in (("a#001", NOON), ("b#001", NOON + 10)):
        assert ok(dynamo, start(FREE, run, limit_state(dynamo), at))
    assert ok(dynamo, ReleasePermit(LIMIT, None, Ended("a#001", limit_state(dynamo), NOON, NOON + 20)))
    assert ok(dynamo, ReleasePermit(LIMIT, None, Ended("b#001", limit_state(dynamo))))
    after = limit_state(dynamo)
    assert (after.last_start, after.last_success_start, after.last_success_at) == (NOON + 10, NOON, NOON + 20)


def test_c4_the_latest_start_of_a_success_is_kept_in_any_order(dynamo: Dynamo) -> None:
    for run, at in (("a#001", NOON), ("b#001", NOON + 10)):
        assert ok(dynamo, start(FREE, run, limit_state(dynamo), at))
    both = limit_state(dynamo)
    assert ok(dynamo, ReleasePermit(LIMIT, None, Ended("b#001", both, NOON + 10, NOON + 20)))
    assert not ok(dynamo, ReleasePermit(LIMIT, None, Ended("a#001", both, NOON, NOON + 30))), (
        "read before the other ended"
    )
    assert ok(dynamo, ReleasePermit(LIMIT, None, Ended("a#001", limit_state(dynamo), NOON, NOON + 30)))
    after = limit_state(dynamo)
    assert (after.active, after.last_success_start, after.last_success_at) == (0, NOON + 10, NOON + 30)


def test_c8_the_end_of_a_run_wakes_waiters_in_the_same_write(dynamo: Dynamo) -> None:
    one = Slots(LIMIT, 1)
    assert ok(dynamo, start(one, "a#001", limit_state(dynamo)))
    assert ok(dynamo, JoinQueue(one, NOON, NOON + 60_000))
    ended = Ended("a#001", limit_state(dynamo), NOON, NOON + 9)
    assert not ok(dynamo, ReleasePermit(LIMIT, None, ended))
    assert ok(dynamo, ReleasePermit(LIMIT, NOON + 9, ended))
    after = limit_state(dynamo)
    assert (after.active, after.waiters, after.wake_at, after.last_success_start) == (0, 1, NOON + 9, NOON)
    assert ok(dynamo, start(one, "b#001", after, NOON + 10, from_queue=True))
    assert (limit_state(dynamo).active, limit_state(dynamo).waiters) == (1, 0)


# -- rates (C5) ----------------------------------------------------------------------------------------------------


def test_c5_a_workflow_keeps_its_rates_and_starts_expect_them(dynamo: Dynamo) -> None:
    assert ok(dynamo, start(FREE, "a#001", limit_state(dynamo)))
    before = limit_state(dynamo)
    assert ok(dynamo, TrackRates(LIMIT, ("2/1000",)))
    assert ok(dynamo, TrackRates(LIMIT, ("2/1000", "9/5000")))
    assert limit_state(dynamo).rates == ("2/1000", "9/5000")
    assert not ok(dynamo, start(FREE, "b#001", before)), "it would not be counted"
    assert ok(dynamo, start(FREE, "b#001", limit_state(dynamo)))


def test_c5_a_rate_may_be_tracked_before_the_first_start(dynamo: Dynamo) -> None:
    assert ok(dynamo, TrackRates(LIMIT, ("2/1000",)), Create(rows.run()))
    assert limit_state(dynamo) == LimitState(LIMIT, rates=("2/1000",))
    assert not ok(dynamo, start(FREE, "a#001", LimitState(LIMIT)))
    assert ok(dynamo, start(FREE, "a#001", limit_state(dynamo)))


def test_c5_a_workflow_records_that_its_starts_count(dynamo: Dynamo) -> None:
    assert not ok(dynamo, TrackStarts("demo.flights.w")), "there is no such workflow"
    put = Definition("workflow", "demo.flights.w", {"target": {}}, 3, NOON)
    assert ok(dynamo, PutDefinition(put, None))
    for _ in range(2):
        assert ok(dynamo, TrackStarts("demo.flights.w"))
    assert dynamo.get(kinds.key(Definition, "workflow", "demo.flights.w"), Definition) == replace(put, counted=True)
    later = replace(put, version=4)
    assert not ok(dynamo, PutDefinition(later, 3)), "who had read it before does not undo that"
    assert ok(dynamo, PutDefinition(replace(later, counted=True), 3))


@pytest.mark.parametrize("with_another", [False, True])
def test_c5_a_rate_window_is_entered_by_one_at_a_time(dynamo: Dynamo, with_another: bool) -> None:
    """As a single write and in a transaction: DynamoDB checks the two by different rules."""
    along = [Create(rows.run())] if with_another else []
    unused = limit_state(dynamo, RATE_LIMIT)
    assert ok(dynamo, start(TWO, "a#001", unused), *along)
    assert not ok(dynamo, start(TWO, "b#001", unused))
    assert ok(dynamo, start(TWO, "b#001", limit_state(dynamo, RATE_LIMIT), NOON + 5))
    assert limit_state(dynamo, RATE_LIMIT) == LimitState(RATE_LIMIT, rev=2, starts={"a#001": NOON, "b#001": NOON + 5})


def test_c5_a_start_that_is_only_counted_is_entered_as_well(dynamo: Dynamo) -> None:
    assert ok(dynamo, start(TWO, "a#001", limit_state(dynamo, RATE_LIMIT)))
    read = limit_state(dynamo, RATE_LIMIT)
    assert ok(dynamo, start(NOT_BINDING, "b#001", read))
    assert not ok(dynamo, start(TWO, "c#001", read)), "what it had read was not full yet"


def test_c5_a_rate_window_forgets_starts_that_no_longer_matter(dynamo: Dynamo) -> None:
    for number in range(7):
        assert ok(dynamo, start(TWO, f"r{number}#001", limit_state(dynamo, RATE_LIMIT), NOON + number * 1000))
    assert set(limit_state(dynamo, RATE_LIMIT).starts) == {"r3#001", "r4#001", "r5#001", "r6#001"}


def test_c8_a_full_rate_is_queued_at_if_none_was_released_since(dynamo: Dynamo) -> None:
    for run in ("a#001", "b#001"):
        assert ok(dynamo, start(TWO, run, limit_state(dynamo, RATE_LIMIT)))
    full = limit_state(dynamo, RATE_LIMIT)
    join = JoinQueue(TWO, NOON, permits.next_service(TWO, full, NOON), full.rev)
    assert ok(dynamo, ReleasePermit(RATE_LIMIT, None, Ended("b#001", full)))
    assert set(limit_state(dynamo, RATE_LIMIT).starts) == {"a#001"}
    assert not ok(dynamo, join), "a slot is free now"

    assert ok(dynamo, start(TWO, "c#001", limit_state(dynamo, RATE_LIMIT)))
    again = limit_state(dynamo, RATE_LIMIT)
    assert ok(dynamo, replace(join, rev=again.rev))
    waiting = limit_state(dynamo, RATE_LIMIT)
    assert (waiting.waiters, waiting.wake_at) == (1, NOON + 1000)
    assert not ok(dynamo, start(TWO, "d#001", waiting, NOON + 1000)), "unused overtakes"
    assert ok(dynamo, start(TWO, "d#001", waiting, NOON + 1000, from_queue=True))
    assert limit_state(dynamo, RATE_LIMIT).waiters == 0


@pytest.mark.parametrize("with_another", [False, True])
def test_c5_a_forgotten_rate_entry_can_still_be_returned(dynamo: Dynamo, with_another: bool) -> None:
    assert ok(dynamo, start(TWO, "a#001", limit_state(dynamo, RATE_LIMIT)))
    along = [Create(rows.run())] if with_another else []
    assert ok(dynamo, ReleasePermit(RATE_LIMIT, None, Ended("gone#001", limit_state(dynamo, RATE_LIMIT))), *along)
    assert set(limit_state(dynamo, RATE_LIMIT).starts) == {"a#001"}


def test_c5_a_held_entry_becomes_start_only_if_no_other_entered(dynamo: Dynamo) -> None:
    assert ok(dynamo, start(TWO, "held#001", limit_state(dynamo, RATE_LIMIT)))
    read = limit_state(dynamo, RATE_LIMIT)
    assert ok(dynamo, start(NOT_BINDING, "b#001", read, NOON + 900))
    assert not ok(dynamo, RecordStart(TWO, NOON + 950, read, "held#001"))
    assert ok(dynamo, RecordStart(TWO, NOON + 950, limit_state(dynamo, RATE_LIMIT), "held#001"))
    assert limit_state(dynamo, RATE_LIMIT).starts == {"held#001": NOON + 950, "b#001": NOON + 900}
