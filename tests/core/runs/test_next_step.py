"""The step of a run that has not started, and what becomes of a recorded call, for every combination of facts (C13)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from chalicelib.core.access.grants import ForeignUse
from chalicelib.core.instants import MINUTE, SECOND
from chalicelib.core.limits.permits import Pace
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.run import Run
from chalicelib.core.runs import launch
from chalicelib.core.runs.launch import Call, GiveBack, Hold, Leave, Offer, Queue, Seen, Span, Step, Withdraw
from tests.support import rows
from tests.support.clock import NOON

NIGHT = Pace("policy:demo.night", MINUTE, 1, tolerance=100)
PAST, AHEAD = NOON - SECOND, NOON + SECOND
MISSING = (ForeignUse("pools", "other.crawlers", "demo"),)
WORKER: dict[str, Any] = {"type": "worker", "pool": "crawlers", "heartbeat": "1m"}
# The permits of the run: it needs none, its own may be taken now, others come first, or its own were not used in time.
PERMITS: dict[str, tuple[tuple[Pace, ...] | None, LimitState]] = {
    "none needed": (None, LimitState(NIGHT.limit_name)),
    "no pace left": ((), LimitState(NIGHT.limit_name)),
    "free": ((NIGHT,), LimitState(NIGHT.limit_name)),
    "taken": ((NIGHT,), LimitState(NIGHT.limit_name, head=NOON + MINUTE, rev=7)),
    "unused": ((NIGHT,), LimitState(NIGHT.limit_name, head=PAST + MINUTE, rev=7)),
}


def cases() -> Iterator[tuple[Run, Seen, str]]:
    """Every combination of what the step depends on."""
    for lease, unknown, cancel, is_open, missing, queued, calls, target, permit in product(
        (None, PAST, AHEAD),
        (False, True),
        (False, True),
        (False, True),
        ((), MISSING),
        (None, NIGHT.limit_name, "emr:app-1"),
        (0, 1),
        (rows.run().request.target, WORKER),
        PERMITS,
    ):
        paces, state = PERMITS[permit]
        run = rows.run(lease_until=lease, unknown_answer=unknown, cancel=cancel, queued_in=queued, calls=calls)
        run = replace(run, request=replace(run.request, target=target))
        if permit == "unused":
            run = replace(run, paced_from=PAST, paced_until=PAST + 100)
        states = {NIGHT.limit_name: state}
        yield run, Seen(rows.schedule_state(), is_open, missing, NIGHT.limit_name, paces, states), permit


def step_of(run: Run, seen: Seen) -> Step:
    return launch.next_step(run, seen, NOON)


def has_lease(run: Run) -> bool:
    return run.lease_until == AHEAD


def test_c13_only_an_open_run_with_its_grants_is_started() -> None:
    for run, seen, permit in cases():
        step = step_of(run, seen)
        may_start = seen.is_open and not run.cancel and not seen.missing and not has_lease(run)
        own_turn = run.queued_in in (None, seen.serving)
        free = permit not in ("taken", "unused")
        pulled = run.request.target is WORKER
        recalled = has_lease(run) and run.unknown_answer and seen.is_open and not run.cancel and not seen.missing
        begins = (may_start or recalled) and own_turn and (free or (pulled and run.calls > 0))
        assert isinstance(step, Call | Offer) is begins, (run, seen, step)
        if begins:
            assert step == (Offer(again=run.calls > 0) if pulled else Call())


def test_w10_a_call_under_way_is_left_alone() -> None:
    for run, seen, _ in cases():
        if has_lease(run) and not run.unknown_answer:
            assert step_of(run, seen) == Leave()


def test_w10_an_unanswered_call_ends_only_after_its_lease() -> None:
    for run, seen, _ in cases():
        closed = run.cancel or not seen.is_open
        if has_lease(run) and run.unknown_answer and (closed or seen.missing):
            assert step_of(run, seen) == Leave(off_queue=True)
        elif not has_lease(run) and closed:
            assert step_of(run, seen) == Withdraw()
        elif not has_lease(run) and seen.missing:
            assert step_of(run, seen) == Hold(MISSING)
        else:
            assert not isinstance(step_of(run, seen), Withdraw | Hold)


def test_e3_a_run_waits_for_the_turn_of_its_queue_and_its_pace() -> None:
    for run, seen, permit in cases():
        step = step_of(run, seen)
        turn = not isinstance(step, Withdraw | Hold | Call) and step not in (Leave(), Leave(off_queue=True))
        if turn and run.queued_in == "emr:app-1":
            assert step == Leave(waits=True)
        elif turn and not isinstance(step, Offer):
            assert isinstance(step, GiveBack if permit == "unused" else Queue)
            assert not isinstance(step, Queue) or step.route.blocked == NIGHT


def test_facts_behind_one_that_decides_change_nothing() -> None:
    """So the flow reads nothing more once a fact decides the step."""
    for run, seen, _ in cases():
        if launch.is_being_called(run, NOON):
            assert step_of(run, seen) == step_of(run, Seen())
        elif not seen.is_open or run.cancel:
            assert step_of(run, seen) == step_of(run, Seen(seen.schedule_state))
        elif seen.missing or run.queued_in == "emr:app-1" or isinstance(step_of(run, seen), Offer):
            assert step_of(run, seen) == step_of(run, replace(seen, paces=None, states={}))


@pytest.mark.parametrize(
    ("late", "is_open", "missing", "updated"),
    [*product((None, False, True), (False, True), ((), MISSING), (False, True))],
)
def test_c13_a_recorded_call_is_made_if_nothing_has_changed(
    late: bool | None, is_open: bool, missing: tuple[ForeignUse, ...], updated: bool
) -> None:
    run = rows.run()
    newest = replace(run, version=run.version + 1) if updated else run
    span = None if late is None else Span(PAST, NOON - 1 if late else NOON)
    found = launch.still_going(run, Seen(rows.schedule_state(), is_open, missing), newest, span, NOON)
    assert (found == "withdraw") is not is_open
    assert (found == "call") is (is_open and not missing and not updated and not late)


def test_e3_a_call_begins_with_own_or_with_new_permits() -> None:
    run, own = rows.run(paced_from=PAST, paced_until=AHEAD), Span(PAST, AHEAD)
    assert launch.span_of(run, Seen(paces=None), NOON) == own
    assert launch.span_of(run, Seen(paces=()), NOON) is None
    assert launch.span_of(run, Seen(paces=(NIGHT,)), NOON) == Span(NOON + NIGHT.room, NOON + NIGHT.room + 100)
