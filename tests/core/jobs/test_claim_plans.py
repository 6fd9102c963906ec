"""Every write of a claim and of a queue, with pools, policies, admissions, backfills and inherited priority (C9, E3,
W3, W14).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.instants import DAY, HOUR, MINUTE, SECOND
from chalicelib.core.jobs import claim
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.limits.permits import Pace, RateWindow, Slots
from chalicelib.core.limits.policies import Policy
from chalicelib.core.limits.route import Route
from chalicelib.core.limits.writes import AcquirePermit, JoinQueue, RecordStart, ReleasePermit
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.limit import LimitState, Waiter
from chalicelib.core.rows.sort_keys import GATHERING
from chalicelib.core.writes import (
    Create,
    DeleteJob,
    ExpectBackfillRunning,
    ExpectDefinition,
    ExpectMode,
    ExpectNoneGathering,
    RemoveWaiter,
    Replace,
)
from tests.core.builders import (
    EMR_LIMIT,
    LIMIT,
    NAME,
    NOON,
    SQS,
    concurrency,
    facts,
    job,
    met,
    run,
    schedule,
    schedule_state,
    workflow,
)
from tests.support.reasons import says

OPEN = ("enabled", "drain", "completed")
WHATEVER_STANDS = ("enabled", "hold", "backlog", "drain", "completed", "disabled")
RUN = f"{NAME}.7.first#001"
NIGHT, ADMISSION, POOL = "policy:demo.night", "admission:demo.night:pool:demo.big", "pool:demo.big"
LOG = RateWindow(f"rate:{NAME}:2/{HOUR}", 2, HOUR)
SLOT, NEXT, UNITS = Slots(LIMIT, 1), Slots(ADMISSION, 5), Slots(POOL, 10, units=4, unit="slots")
# The policy allows one start a second, and a start may begin 50 ms late: so permits are 1,050 ms apart.
EMR_PACE, NIGHT_PACE = Pace(EMR_LIMIT, SECOND, 20), Pace(NIGHT, 1_050, 1, 50, "at most 1 starts in any 1s")
POOL_ROW = Definition("pool", "demo.big", {"size": 10}, 3, NOON)
LINE_READ = LimitState(LIMIT, active=1, rev=8, numbered=4)
NIGHT_READ = LimitState(NIGHT, head=NOON + MINUTE, waiters=2, rev=6)
ADMISSION_READ = LimitState(ADMISSION, active=5, waiters=1)


def throttled(*states: LimitState, **fields: Any) -> Facts:
    """The facts about a job of a schedule with a limit, a policy and a pool."""
    known = {
        "schedule": schedule(constraints=[concurrency(1, "wait")], policy="demo.night"),
        "policy": Policy(max_events=1, interval="1s"),
        "pool": UNITS,
        "pool_row": POOL_ROW,
        "limit_states": {state.limit_name: state for state in states},
    }
    return facts(**{**known, **fields})


# -- claim ---------------------------------------------------------------------------------------------------------


def test_e3_a_claim_from_a_policy_queue_passes_on_its_admission() -> None:
    queued = met(queued_in=NIGHT, rank="4#x", held=(LIMIT, ADMISSION, POOL, "group:demo.gone"), units=4)
    route = Route((EMR_PACE, NIGHT_PACE), None, appointment=NOON + 300)

    assert claim.claim(queued, run(), throttled(LINE_READ, NIGHT_READ, ADMISSION_READ), route, NOON) == [
        DeleteJob(queued),
        Create(run()),
        ExpectMode(schedule_state(), OPEN),
        ExpectDefinition(POOL_ROW),
        AcquirePermit(EMR_PACE, NOON + 300, LimitState(EMR_LIMIT), from_queue=False, begins=RUN, passing=True),
        AcquirePermit(NIGHT_PACE, NOON + 300, NIGHT_READ, from_queue=True, begins=RUN),
        # No write for the pool, nor for the group that the schedule has left: the run keeps these permits as they are.
        RecordStart(SLOT, NOON, LINE_READ, RUN, numbers=True),
        RemoveWaiter(Waiter(NIGHT, "4#x", NAME, 7, GATHERING, queued.job_id)),
        ReleasePermit(ADMISSION, NOON),
    ]


def test_w3_claim_without_queue_takes_all_permits_but_admission() -> None:
    route = Route((LOG, SLOT, NEXT, UNITS, EMR_PACE), None, appointment=NOON + 300)

    assert claim.claim(met(), run(), throttled(LINE_READ), route, NOON)[4:] == [
        AcquirePermit(LOG, NOON, LimitState(LOG.limit_name), from_queue=False, begins=RUN),
        AcquirePermit(SLOT, NOON, LINE_READ, from_queue=False, begins=RUN, numbers=True),
        AcquirePermit(UNITS, NOON, LimitState(POOL), from_queue=False),
        AcquirePermit(EMR_PACE, NOON + 300, LimitState(EMR_LIMIT), from_queue=False, begins=RUN),
    ]


def test_w3_a_claim_expects_the_pool_it_takes_of_a_delivery_none() -> None:
    through = Route((), None)
    assert claim.claim(met(), run(), throttled(), through, NOON)[3:] == [ExpectDefinition(POOL_ROW)]
    assert claim.claim(met(), run(), throttled(pool_row=None), through, NOON)[3:] == []
    assert claim.claim(met(), run(), throttled(workflow=workflow(SQS)), through, NOON)[3:] == []


def test_l12_a_backfill_retry_is_claimed_wherever_backfill_runs() -> None:
    again = job("retry", backfill="b1", attempt=2)
    assert claim.claim(again, run(), facts(), Route((), None), NOON) == [
        DeleteJob(again),
        Create(run()),
        ExpectMode(schedule_state(), WHATEVER_STANDS),
        ExpectBackfillRunning(NAME, "b1"),
    ]


def test_c11_a_separate_fire_is_claimed_beside_a_gathering_job() -> None:
    known = facts(schedule=schedule(coalesce=False))
    assert ExpectNoneGathering(NAME, 7) not in claim.claim(job("fire"), run(), known, Route((), None), NOON)


# -- queue ---------------------------------------------------------------------------------------------------------


def test_e3_job_blocked_by_another_pace_queues_with_its_permits() -> None:
    waiting = met(
        held=(LOG.limit_name,), met_at=NOON - 9, rev=3, inherited="priority 8, inherited from demo.flights", priority=8
    )
    paused = schedule_state(pauses=((NOON + 1, NOON + 1 + HOUR),))
    emr = LimitState(EMR_LIMIT, head=NOON + 30 * SECOND)
    route = Route((SLOT, NEXT, UNITS), NIGHT_PACE, behind=EMR_PACE)

    plan = claim.queue(waiting, throttled(LINE_READ, NIGHT_READ, emr, schedule_state=paused), route, NOON)

    rank = f"1#~#2026-03-02T12:00:00.000Z#{waiting.job_id}"
    start_rate = "the EMR start rate of this account: one start every 1s, burst 20"
    queued = replace(
        waiting,
        state="PENDING_LAUNCH",
        held=(LOG.limit_name, LIMIT, ADMISSION, POOL),
        units=4,
        queued_in=NIGHT,
        rank=rank,
        reason=says(f"waits for a permit of {start_rate}; priority 8, inherited from demo.flights"),
        rev=4,
        wake_at=NOON + DAY + HOUR,  # its timeout is stopped while the schedule is paused
    )
    assert plan == [
        Replace(queued),
        ExpectMode(paused, OPEN),
        ExpectDefinition(POOL_ROW),
        AcquirePermit(SLOT, NOON, LINE_READ, from_queue=False),
        AcquirePermit(NEXT, NOON, LimitState(ADMISSION), from_queue=False),
        AcquirePermit(UNITS, NOON, LimitState(POOL), from_queue=False),
        # A new job could have acquired a permit up to 200 ms ahead: a start needs 250 ms and may be 50 ms late. The
        # queue is served 600 ms before the other pace has a permit, 11 s from now.
        JoinQueue(NIGHT_PACE, NOON + 200, NOON + 11 * SECOND - 600, rev=6, behind=True),
        Create(Waiter(NIGHT, rank, NAME, 7, GATHERING, waiting.job_id)),
    ]


def test_c9_a_job_without_a_trigger_is_met_when_it_queues() -> None:
    asked = job("run_now", units=2, held=(POOL,))
    [queued, expected_mode, *_] = claim.queue(asked, facts(), Route((), SLOT), NOON + 5)
    assert queued == Replace(
        replace(
            asked,
            state="PENDING_LAUNCH",
            units=2,
            queued_in=LIMIT,
            rank=f"4#~#2026-03-02T12:00:00.000Z#{asked.job_id}",
            met_at=NOON + 5,
            reason=says(f"waits for a slot of workflow {NAME}: 0 of 1 in use"),
            rev=2,
            wake_at=NOON + DAY,
        )
    )
    assert expected_mode == ExpectMode(schedule_state(), WHATEVER_STANDS)


def test_l12_a_backfill_retry_queues_in_any_mode_of_the_backfill() -> None:
    again = job("retry", backfill="b1")
    assert claim.queue(again, facts(), Route((), SLOT), NOON)[1] == ExpectMode(schedule_state(), WHATEVER_STANDS)
    assert claim.queue(replace(again, backfill=None), facts(), Route((), SLOT), NOON)[1] == ExpectMode(
        schedule_state(), ("enabled", "hold", "backlog", "drain", "completed")
    )


def test_a_job_says_why_it_waits_where_it_is_blocked() -> None:
    known = throttled(LINE_READ, NIGHT_READ)
    assert claim.why_blocked(Route((), SLOT), known).text == f"waits for a slot of workflow {NAME}: 1 of 1 in use"
    behind = claim.why_blocked(Route((), EMR_PACE, behind=NIGHT_PACE), known)
    assert behind.text == "waits for a permit of policy demo.night: at most 1 starts in any 1s"
    assert not claim.why_blocked(Route((), None), known)


# -- facts that are missing ----------------------------------------------------------------------------------------


def test_queueing_a_free_route_is_refused() -> None:
    with pytest.raises(
        ValueError, match="^expected a route that a limit blocks, got one without; claim the job instead$"
    ):
        claim.queue(met(), facts(), Route((SLOT,), None), NOON)


@pytest.mark.parametrize("gone", ["schedule_state", "schedule", "workflow"])
def test_a_claim_needs_a_state_a_schedule_and_a_workflow(gone: str) -> None:
    expected = "^expected a schedule state, a schedule and a workflow, got None for one; drop the job instead$"
    with pytest.raises(ValueError, match=expected):
        claim.claim(met(), run(), facts(**{gone: None}), Route((), None), NOON)
