"""A run that may not call yet: how long its permits last, how it queues for new ones, and the writes when it is served
(E3, E8).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.instants import MINUTE, SECOND
from chalicelib.core.limits.permits import Pace
from chalicelib.core.limits.route import Route
from chalicelib.core.limits.writes import AcquirePermit, AdvancePace, JoinQueue, LeaveQueue
from chalicelib.core.rows.limit import LimitState, Waiter
from chalicelib.core.runs import launch
from chalicelib.core.runs.launch import Span
from chalicelib.core.targets.answers import NotNow
from chalicelib.core.why import Why, joined
from chalicelib.core.writes import Create, RemoveWaiter, Replace, Write
from tests.support import rows
from tests.support.clock import NOON
from tests.support.reasons import says

EMR = Pace("emr:app-1", SECOND, 20)
NIGHT = Pace("policy:demo.night", MINUTE, 1, tolerance=100)
PACES = (EMR, NIGHT)
PACED = ("workflow:demo.flights.w", "emr:app-1", "policy:demo.night")
LATER = NOON + 10 * MINUTE  # when the sweep checks a queued run, also one whose row in the queue is lost
NIGHT_HELD = LimitState("policy:demo.night", waiters=3, head=NOON + MINUTE, rev=7)
EMR_HELD = LimitState("emr:app-1", waiters=2, head=NOON + 30 * SECOND, rev=5)
NIGHT_WORDS = "waits for a permit of policy demo.night: one start every 1m, burst 1"
RANK = "4#~#2026-03-02T12:00:00.000Z#r1"


def place(line: str) -> Waiter:
    return Waiter(line, RANK, rows.SCHEDULE, rows.GENERATION, "A#001", "r1")


# -- permits -------------------------------------------------------------------------------------------------------


def test_e3_permits_are_valid_from_their_instant_or_from_claim() -> None:
    assert launch.granted(rows.run(paced_from=NOON + 1, paced_until=NOON + 2)) == Span(NOON + 1, NOON + 2)
    assert launch.granted(rows.run(paced_until=NOON + 2)) == Span(NOON, NOON + 2)
    assert launch.granted(rows.run(paced_from=NOON + 1)) is None


def test_e3_the_next_permits_are_when_every_pace_has_one() -> None:
    states = {"emr:app-1": EMR_HELD, "policy:demo.night": NIGHT_HELD}
    assert launch.next_span(PACES, states, NOON) == Span(NOON + MINUTE, NOON + MINUTE + 100)
    assert launch.next_span((EMR,), states, NOON) == Span(NOON + 11 * SECOND, NOON + 13 * SECOND)
    assert launch.next_span((), states, NOON) is None


def test_e3_free_permits_begin_when_a_start_can_be_prepared() -> None:
    assert launch.next_span(PACES, {}, NOON) == Span(NOON + 150, NOON + 250)


@pytest.mark.parametrize(
    ("fields", "needed"),
    [
        ({"permits": PACED}, True),
        ({"permits": PACED, "paced_until": NOON - 1}, True),
        ({"permits": PACED, "paced_until": NOON}, False),
        ({"permits": ("workflow:demo.flights.w",)}, False),
        ({"permits": ("workflow:demo.flights.w",), "paced_until": NOON - 1}, False),
    ],
)
def test_e8_a_run_with_paces_needs_new_permits_once_used_or_old(fields: dict[str, Any], needed: bool) -> None:
    assert launch.needs_permit(rows.run(**fields), NOON) is needed


# -- the queue -----------------------------------------------------------------------------------------------------


WAITS = "waits for a permit of the EMR start rate: one start every 1s"


def said(answer: str, *more: str) -> Why:
    """The reason of a run whose call got this answer."""
    reason = launch.answered(rows.run(), NotNow(answer), NOON).reason
    return joined([reason, *(says(text) for text in more)])


def test_e3_run_that_may_not_call_yet_queues_at_its_slowest_pace() -> None:
    waits = rows.run(rev=4, reason="as planned")

    plan = launch.queue(waits, Route((), NIGHT), {"policy:demo.night": NIGHT_HELD, "emr:app-1": EMR_HELD}, NOON)

    queued = replace(waits, queued_in="policy:demo.night", rank=RANK, reason=says(NIGHT_WORDS), rev=5, wake_at=LATER)
    assert plan == [
        Replace(queued),
        # A new run could have acquired a permit up to NOON + 150, so that it could be prepared in time. The queue is
        # served 600 ms before the next one.
        JoinQueue(NIGHT, NOON + 150, NOON + MINUTE - 600, rev=7, behind=False),
        Create(place("policy:demo.night")),
    ]


def test_e3_run_blocked_by_another_pace_says_so_and_is_rechecked() -> None:
    plan = launch.queue(rows.run(), Route((), NIGHT, behind=EMR), {"emr:app-1": EMR_HELD}, NOON)

    why = "waits for a permit of the EMR start rate of this account: one start every 1s, burst 20"
    queued = rows.run(queued_in="policy:demo.night", rank=RANK, reason=why, rev=2, wake_at=LATER)
    assert plan == [
        Replace(queued),
        JoinQueue(NIGHT, NOON + 150, NOON + 11 * SECOND - 600, rev=0, behind=True),
        Create(place("policy:demo.night")),
    ]


@pytest.mark.parametrize(
    ("reason", "calls", "why"),
    [
        (said("throttled", WAITS), 1, f"throttled; {NIGHT_WORDS}"),
        (said("no; no", WAITS), 2, f"no; no; {NIGHT_WORDS}"),
        (says(WAITS), 1, NIGHT_WORDS),
        (says(WAITS), 0, NIGHT_WORDS),
    ],
)
def test_e3_a_run_that_waits_elsewhere_moves_to_its_slowest_pace(reason: Why, calls: int, why: str) -> None:
    waits = rows.run(queued_in="emr:app-1", rank=RANK, reason=reason, calls=calls)
    plan = launch.queue(waits, Route((), NIGHT), {"policy:demo.night": NIGHT_HELD}, NOON)
    assert plan == [
        Replace(replace(waits, queued_in="policy:demo.night", reason=says(why), rev=2, wake_at=LATER)),
        RemoveWaiter(place("emr:app-1")),
        LeaveQueue("emr:app-1"),
        JoinQueue(NIGHT, NOON + 150, NOON + MINUTE - 600, rev=7, behind=False),
        Create(place("policy:demo.night")),
    ]


@pytest.mark.parametrize(("asked", "stored", "behind"), [(0, 0, False), (1, 0, True), (0, 1, True), (3, 3, True)])
def test_e3_a_run_may_always_join_a_queue_in_parts(asked: int, stored: int, behind: bool) -> None:
    """Of a divided queue no single row shows whether others wait, so nobody takes a permit without joining it."""
    pace, state = replace(NIGHT, parts=asked), LimitState("policy:demo.night", parts=stored)
    [_, join, _] = launch.queue(rows.run(), Route((), pace), {"policy:demo.night": state}, NOON)
    assert isinstance(join, JoinQueue)
    assert join.behind is behind


@pytest.mark.parametrize(
    ("fields", "waits"),
    [
        ({"lease_until": LATER, "wake_at": LATER}, True),
        ({"lease_until": LATER, "wake_at": NOON}, False),
        ({"lease_until": None, "wake_at": None}, False),
        ({"lease_until": LATER, "wake_at": LATER, "target_id": "app/job"}, False),
        ({"lease_until": LATER, "wake_at": LATER, "state": "RUNNING"}, False),
    ],
)
def test_w10_only_a_call_without_an_answer_waits_for_its_lease(fields: dict[str, Any], waits: bool) -> None:
    assert launch.is_on_record(replace(rows.run(), **fields)) is waits


def test_e3_a_run_may_be_blocked_by_a_pace_without_a_limit_row() -> None:
    [queued, join, _] = launch.queue(rows.run(), Route((), NIGHT, behind=EMR), {}, NOON)
    assert isinstance(queued, Replace)
    assert queued.row == rows.run(
        queued_in="policy:demo.night",
        rank=RANK,
        reason="waits for a permit of the EMR start rate of this account: one start every 1s, burst 20",
        rev=2,
        wake_at=LATER,
    )
    assert join == JoinQueue(NIGHT, NOON + 150, NOON, rev=0, behind=True)


def test_w2_the_rank_of_a_run_is_priority_latest_start_and_age() -> None:
    urgent = rows.run(priority=7, latest_start=NOON + 1, created_at=NOON - 1)
    *_, placed = launch.queue(urgent, Route((), NIGHT), {}, NOON)
    rank = "2#2026-03-02T12:00:00.001Z#2026-03-02T11:59:59.999Z#r1"
    assert placed == Create(replace(place("policy:demo.night"), rank=rank))


@pytest.mark.parametrize(
    ("fields", "reported"),
    [
        ({"calls": 1, "reason": said("throttled")}, f"throttled; {NIGHT_WORDS}"),
        ({"calls": 1, "reason": ""}, NIGHT_WORDS),
        ({"calls": 0, "reason": said("throttled")}, NIGHT_WORDS),
    ],
)
def test_w10_the_answer_of_target_is_shown_before_its_meaning(fields: dict[str, Any], reported: str) -> None:
    [queued, *_] = launch.queue(rows.run(**fields), Route((), NIGHT), {}, NOON)
    assert isinstance(queued, Replace)
    assert queued.row == rows.run(
        **{**fields, "reason": reported}, queued_in="policy:demo.night", rank=RANK, rev=2, wake_at=LATER
    )


def test_a_run_with_a_free_route_is_not_queued() -> None:
    with pytest.raises(ValueError, match="^expected a route that a limit blocks, got one without$"):
        launch.queue(rows.run(), Route(PACES, None), {}, NOON)


# -- when it is served ---------------------------------------------------------------------------------------------


def turn(queued: str | None, **states: LimitState) -> list[Write]:
    run = rows.run(queued_in=queued, rank=RANK if queued else None)
    read = {state.limit_name: state for state in states.values()}
    return launch.take_permits(run, launch.calling(run, NOON), PACES, read, NOON + 8)


def test_e3_a_served_run_records_the_call_and_takes_all_permits() -> None:
    called = rows.run(
        calls=1, lease_until=NOON + 50 * SECOND, start_requested_at=NOON, rev=2, wake_at=NOON + 50 * SECOND
    )
    assert turn("policy:demo.night", night=NIGHT_HELD, emr=EMR_HELD) == [
        Replace(called),
        AcquirePermit(EMR, NOON + 8, EMR_HELD, from_queue=False, passing=True),
        AcquirePermit(NIGHT, NOON + 8, NIGHT_HELD, from_queue=True),
        RemoveWaiter(place("policy:demo.night")),
    ]


def test_e3_a_served_run_that_was_not_queued_removes_no_waiter() -> None:
    assert turn(None)[1:] == [
        AcquirePermit(EMR, NOON + 8, LimitState("emr:app-1"), from_queue=False, passing=True),
        AcquirePermit(NIGHT, NOON + 8, LimitState("policy:demo.night"), from_queue=False),
    ]


def test_e3_a_served_run_leaves_a_queue_that_it_no_longer_needs() -> None:
    assert turn("policy:demo.before")[3:] == [
        RemoveWaiter(place("policy:demo.before")),
        LeaveQueue("policy:demo.before"),
    ]


# -- when it has missed its instant --------------------------------------------------------------------------------

MISSED = {"paced_from": NOON, "paced_until": NOON + 100}


def given_back(now: int, head: int, burst: int = 1, **fields: Any) -> list[Write]:
    pace = replace(NIGHT, burst=burst)
    read = replace(NIGHT_HELD, head=head)
    return launch.unused_permits(rows.run(**{**MISSED, **fields}), (EMR, pace), {"policy:demo.night": read}, now)


def test_e3_a_permit_that_is_too_old_is_given_back_if_last() -> None:
    assert given_back(NOON + 101, head=NOON + MINUTE) == [
        Replace(rows.run(rev=2)),
        AdvancePace("policy:demo.night", replace(NIGHT_HELD, head=NOON + MINUTE), NOON),
    ]


@pytest.mark.parametrize("head", [NOON + MINUTE - 1, NOON + MINUTE + 1, NOON + 2 * MINUTE, NOON])
def test_e3_a_permit_is_kept_if_the_pace_has_moved_since(head: int) -> None:
    assert given_back(NOON + 101, head) == []


def test_e3_a_permit_that_may_still_be_used_is_kept() -> None:
    assert given_back(NOON + 100, head=NOON + MINUTE) == []


def test_e3_a_run_without_an_unused_permit_gives_none_back() -> None:
    assert given_back(NOON + 101, head=NOON + MINUTE, paced_from=None, paced_until=None) == []
    assert launch.unused_permits(rows.run(**MISSED), PACES, {}, NOON + 101) == []


def test_e8_a_permit_of_a_pace_with_a_burst_is_not_given_back() -> None:
    """Its appointment does not say where the head was."""
    assert given_back(NOON + 101, head=NOON + MINUTE, burst=2) == []
