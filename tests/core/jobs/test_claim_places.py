"""The sort key of a waiting job, and how it changes: detached, kept beside another, out of a queue, or deleted (C8,
C11, C13, O3).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.instants import DAY, HOUR, SECOND
from chalicelib.core.jobs import claim
from chalicelib.core.limits.writes import Ended, LeaveQueue, ReleasePermit
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState, Waiter
from chalicelib.core.rows.run import Record
from chalicelib.core.rows.sort_keys import GATHERING
from chalicelib.core.writes import Create, DeleteJob, ExpectNoRun, ExpectOpen, Put, RemoveWaiter, Replace
from tests.core.builders import EMR_LIMIT, LIMIT, NAME, NOON, facts, job, met, schedule, schedule_state, workflow
from tests.support.reasons import says

FIRE_PLACE = "FIRE#2026-03-02T12:00:00.000Z#0#0"
DETACHED = "JOB#2026-03-02T12:00:00.000Z#first"
RATE_LIMIT = f"rate:{NAME}:2/{HOUR}"
POOL = "pool:demo.big"
HELD = (RATE_LIMIT, LIMIT, POOL)
QUEUED = met(state="PENDING_LAUNCH", queued_in=EMR_LIMIT, rank="4#x", held=HELD, units=4, rev=5, leases=3)
WAITER = Waiter(EMR_LIMIT, "4#x", NAME, 7, GATHERING, QUEUED.job_id)
LOG_READ = LimitState(RATE_LIMIT, rev=3, waiters=1)
STATES = {RATE_LIMIT: LOG_READ, POOL: LimitState(POOL, active=4, waiters=2), LIMIT: LimitState(LIMIT, active=1)}
# If the queue has waiters, a released permit wakes it.
GIVEN_BACK = [
    ReleasePermit(RATE_LIMIT, NOON, Ended(f"{NAME}.7.first#001", LOG_READ)),
    ReleasePermit(LIMIT, None),
    ReleasePermit(POOL, NOON, units=4),
]
RECORD = Record(f"{NAME}.7.first", "DROPPED", NAME, 7, says("the schedule was deleted"), NOON)
APPROVAL: dict[str, Any] = {"type": "approval", "role": "owner"}

# -- the key of a waiting job --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("waiting", "fields", "mode", "place"),
    [
        (job("fire"), {}, "enabled", GATHERING),
        (job("fire"), {"coalesce": False}, "enabled", DETACHED),
        (job("fire"), {}, "backlog", DETACHED),
        (job("fire"), {}, "drain", DETACHED),
        (job("fire", sort_key=DETACHED), {}, "enabled", DETACHED),
        (job("fire", sort_key=GATHERING), {"coalesce": False}, "enabled", GATHERING),
        (met(), {}, "enabled", GATHERING),
        (met(), {"coalesce": False}, "enabled", DETACHED),
        (met(), {}, "backlog", DETACHED),
        (met(), {"coalesce": False}, "drain", GATHERING),
        (met(queued_in=LIMIT), {"coalesce": False}, "enabled", GATHERING),
        (job("run_now"), {"coalesce": False}, "enabled", "RUNNOW#1"),
    ],
)
def test_c11_a_waiting_job_coalesces_or_is_detached(
    waiting: Job, fields: dict[str, Any], mode: Any, place: str
) -> None:
    assert claim.waiting_key(waiting, schedule(**fields), schedule_state(mode=mode)) == place


@pytest.mark.parametrize(
    ("due_at", "fields", "places"),
    [
        (NOON, {}, (GATHERING,)),
        (NOON - 5 * SECOND + 1, {}, (GATHERING,)),
        (NOON - 5 * SECOND, {}, (GATHERING, DETACHED)),
        (NOON - DAY, {}, (GATHERING, DETACHED)),
        (None, {}, (GATHERING,)),
        (NOON, {"constraints": [APPROVAL]}, (GATHERING, DETACHED)),
        (None, {"constraints": [APPROVAL]}, (GATHERING, DETACHED)),
        (NOON, {"coalesce": False}, (DETACHED,)),
        (NOON - DAY, {"coalesce": False}, (DETACHED,)),
    ],
)
def test_c11_a_duplicate_fire_is_searched_where_it_may_wait(
    due_at: int | None, fields: dict[str, Any], places: tuple[str, ...]
) -> None:
    assert claim.keys_of_copy(job("fire", due_at=due_at), schedule(**fields), schedule_state(), NOON) == places


@pytest.mark.parametrize(("due_at", "places"), [(NOON, (DETACHED,)), (NOON - 5 * SECOND, (DETACHED, GATHERING))])
def test_c11_a_late_fire_may_wait_where_an_earlier_mode_put_it(due_at: int, places: tuple[str, ...]) -> None:
    assert claim.keys_of_copy(job("fire", due_at=due_at), schedule(), schedule_state(mode="backlog"), NOON) == places


def test_c11_a_tried_fire_is_detached_from_the_emitter_key() -> None:
    fire, later = job("fire"), job("fire", tries=1, rev=2)
    assert claim.detached_from_emitter(fire, later) == replace(later, sort_key=DETACHED)
    assert claim.detached_from_emitter(replace(fire, sort_key=GATHERING), later) == later


# -- a job whose key changes ---------------------------------------------------------------------------------------


def test_a_job_that_keeps_its_sort_key_is_replaced() -> None:
    later = met(reason="waits", rev=2)
    assert claim.moved(met(), later) == [Replace(later)]


def test_c11_a_job_that_changes_its_sort_key_is_moved_as_read() -> None:
    fire = job("fire", rev=4)
    later = replace(fire, sort_key=DETACHED, tries=1, rev=5)
    assert claim.moved(fire, later) == [DeleteJob(fire, exact=True), Create(replace(later, rev=1))]


def test_c11_a_detached_match_belongs_to_the_backlog() -> None:
    later = met(sort_key=DETACHED, reason="waits", rev=2)
    detached = replace(later, kind="detached", rev=1)
    assert claim.moved(met(), later) == [DeleteJob(met(), exact=True), Create(detached)]


def test_c13_a_correlated_match_is_detached_only_while_open() -> None:
    keyed = met(sort_key=f"{GATHERING}#2013", correlation={"year": "2013"})
    assert claim.moved(keyed, replace(keyed, sort_key=DETACHED, rev=2)) == [
        DeleteJob(keyed, exact=True),
        Create(replace(keyed, sort_key=DETACHED, kind="detached", rev=1)),
        ExpectOpen(NAME, 7),
    ]


def test_c11_a_detached_job_keeps_its_rank_in_the_queue() -> None:
    detached = replace(QUEUED, sort_key=DETACHED, kind="detached", rev=1)
    assert claim.beside(QUEUED, detached) == [Create(detached), Put(replace(WAITER, job_sort_key=DETACHED))]
    assert claim.beside(met(), detached) == [Create(detached)]


# -- out of a queue ------------------------------------------------------------------------------------------------


def test_c8_a_job_that_yields_releases_waiter_permits_and_units() -> None:
    later = replace(QUEUED, state="PENDING_CONSTRAINTS", rev=6, wake_at=NOON + HOUR)
    assert claim.yield_queue(QUEUED, later, STATES, NOON) == [
        Replace(replace(later, held=(), units=0, queued_in=None, rank=None)),
        RemoveWaiter(WAITER),
        LeaveQueue(EMR_LIMIT),
        *GIVEN_BACK,
    ]


def test_c1_job_whose_limits_changed_asks_for_all_permits_again() -> None:
    why = "limits changed; requesting permits again from the first"
    restarted = replace(QUEUED, state="PENDING_CONSTRAINTS", reason=says(why), wake_at=NOON, leases=0, rev=6)
    assert claim.request_again(QUEUED, STATES, NOON) == (
        restarted,
        [
            Replace(replace(restarted, held=(), units=0, queued_in=None, rank=None)),
            RemoveWaiter(WAITER),
            LeaveQueue(EMR_LIMIT),
            *GIVEN_BACK,
        ],
    )


RANK_8 = f"1#~#2026-03-02T12:00:00.000Z#{QUEUED.job_id}"
PAUSED = facts(schedule_state=schedule_state(pauses=((NOON + 1, NOON + 1 + HOUR),)))


def test_w14_a_job_that_inherits_priority_moves_forward_in_queue() -> None:
    lifted = replace(QUEUED, priority=8, inherited=says("priority 8, inherited from demo.flights"))
    assert claim.rank_again(QUEUED, lifted, PAUSED) == [
        Replace(replace(lifted, rank=RANK_8, leases=0, rev=6, wake_at=NOON + DAY + HOUR)),
        RemoveWaiter(WAITER),
        Create(replace(WAITER, rank=RANK_8)),
    ]


def test_w2_a_job_with_an_unchanged_rank_stays_where_it_is() -> None:
    ranked = replace(QUEUED, rank=RANK_8, priority=8)
    assert claim.rank_again(ranked, ranked, PAUSED) == [
        Replace(replace(ranked, leases=0, rev=6, wake_at=NOON + DAY + HOUR))
    ]


@pytest.mark.parametrize("fields", [{"queued_in": None, "rank": None}, {"rank": None}])
def test_w2_a_job_not_queued_is_ranked_for_its_next_queue(fields: dict[str, Any]) -> None:
    placeless = replace(QUEUED, **fields)
    rank = f"4#~#2026-03-02T12:00:00.000Z#{QUEUED.job_id}"
    assert claim.rank_again(placeless, placeless, facts()) == [
        Replace(replace(placeless, rank=rank, leases=0, rev=6, wake_at=NOON + DAY))
    ]


def test_w2_a_job_is_ranked_by_present_definition_of_workflow() -> None:
    [_, _, placed] = claim.rank_again(QUEUED, QUEUED, facts(workflow=workflow(priority=8)))
    assert placed == Create(replace(WAITER, rank=RANK_8))


# -- deleted -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exact", [True, False])
def test_l3_a_dropped_job_leaves_a_record_and_releases_permits(exact: bool) -> None:
    away = [RemoveWaiter(WAITER), LeaveQueue(EMR_LIMIT), *GIVEN_BACK]
    assert claim.drop_plan(QUEUED, [Put(RECORD)], STATES, NOON, exact) == [DeleteJob(QUEUED, exact), Put(RECORD), *away]
    assert claim.delete_plan(QUEUED, STATES, NOON) == [DeleteJob(QUEUED), *away]


def test_l3_a_job_is_dropped_with_all_that_it_gathered_meanwhile() -> None:
    assert claim.drop_plan(met(), [Put(RECORD)], {}, NOON)[0] == DeleteJob(met(), exact=False)
    assert claim.delete_plan(met(), {}, NOON) == [DeleteJob(met(), exact=False)]


def test_o3_a_prepared_fire_leaves_record_only_if_it_has_not_run() -> None:
    fire = job("fire")
    assert claim.drop_plan(fire, [Put(RECORD)], {}, NOON) == [DeleteJob(fire), Put(RECORD), ExpectNoRun(fire)]
    assert claim.delete_plan(fire, {}, NOON) == [DeleteJob(fire)]
