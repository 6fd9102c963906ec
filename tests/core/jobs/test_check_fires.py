"""Decisions about fires: retried later, outside their window, coalesced with a waiting job, or cancelled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.instants import HOUR, MINUTE, iso
from chalicelib.core.jobs.check import Coalesce, End, Launch, MakeRoom, Wait, decide, is_unseen
from chalicelib.core.rows.backfill import Backfill
from tests.core.builders import NAME, NOON, TICK, facts, job, met, schedule, schedule_state
from tests.support.reasons import says

FIRE = job("fire", nominal_at=NOON, due_at=NOON)
BROAD: dict[str, Any] = {"count": 4, "over": "1h", "overflow": "drop"}
LATE = f"not started within its window, which ended at {iso(NOON)}: it was not checked in time"


def test_e6_a_delivery_tried_later_waits_and_keeps_its_reason() -> None:
    again = job(
        "fire", due_at=NOON, retry_at=NOON + MINUTE, tries=1, reason="the queue said 503", state="PENDING_LAUNCH"
    )
    assert decide(again, facts(), NOON) == Wait(NOON + MINUTE, "PENDING_LAUNCH", says("the queue said 503"))
    assert isinstance(decide(again, facts(), NOON + MINUTE), Launch)


def test_e2_a_fire_whose_window_has_ended_is_dropped_with_time() -> None:
    outside = replace(FIRE, window_end=NOON)
    known = facts(schedule=schedule(TICK, spread=BROAD))
    assert decide(outside, known, NOON) == End("DROPPED", says(LATE))
    assert isinstance(decide(replace(outside, window_end=NOON + 1), known, NOON), Launch)


@pytest.mark.parametrize(
    ("seen", "unseen"),
    [
        (FIRE, True),
        (replace(FIRE, sort_key="JOB#1"), True),
        (replace(FIRE, sort_key="JOB#1", met_at=NOON), False),
        (replace(FIRE, sort_key="JOB#1", tries=1), False),
        (replace(FIRE, met_at=NOON, tries=1), True),  # with the emitter's sort key it is a schedule event
        (met(), False),
        (job("run_now"), False),
    ],
)
def test_c11_an_emitted_fire_is_unseen_until_met_or_tried(seen: Any, unseen: bool) -> None:
    assert is_unseen(seen) is unseen


def test_l6_a_fire_of_a_closed_generation_is_dropped_with_reason() -> None:
    ended = schedule(TICK, ttl=iso(NOON - HOUR))
    why = f"the schedule was updated to end at {iso(NOON - HOUR)}, before this fire of {iso(NOON)}"
    assert decide(FIRE, facts(schedule=ended), NOON) == End("DROPPED", says(why))


def test_c11_fire_detaches_job_that_timed_out_before_it_was_due() -> None:
    waiting = met(created_at=NOON - HOUR)
    known = facts(schedule=schedule(TICK, timeout={"after": "1h", "then": "abort"}), gathering=waiting)
    why = f"job {waiting.job_id} timed out before this fire was due"
    assert decide(replace(FIRE, job_id=f"{NAME}.7.next"), known, NOON) == MakeRoom(waiting, says(why))


def test_c11_a_timeout_stopped_by_a_pause_does_not_detach() -> None:
    waiting = met(created_at=NOON - HOUR)
    paused = schedule_state(pauses=((NOON - 30 * MINUTE, NOON - 10 * MINUTE),))
    timed = schedule(TICK, timeout={"after": "1h", "then": "abort"})
    decision = decide(
        replace(FIRE, job_id=f"{NAME}.7.next"), facts(schedule_state=paused, schedule=timed, gathering=waiting), NOON
    )
    assert decision == Coalesce(says(f"joined job {waiting.job_id}, which was still waiting"))


@pytest.mark.parametrize("state", ["PAUSED", "CANCELLED", "SUCCEEDED"])
def test_l12_job_of_backfill_not_running_is_dropped_with_reason(state: Any) -> None:
    kept = {"plan": "p", "total": 3, "first": "1", "last": "3", "order": "oldest", "concurrency": 1}
    stopped = Backfill(NAME, "b1", 7, 1, state, **kept, created_at=NOON, reason="stopped by ada")
    part = job("backfill", backfill="b1")
    assert decide(part, facts(backfill=stopped), NOON) == End("DROPPED", says("stopped by ada"))
    assert isinstance(decide(part, facts(backfill=replace(stopped, state="RUNNING")), NOON), Launch)
