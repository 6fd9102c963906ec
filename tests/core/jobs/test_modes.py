"""The effect of each mode of a schedule on each kind of job, and the skipped occurrences (L3, L4, L10, L19, C11)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest

from chalicelib.core.instants import HOUR, MINUTE
from chalicelib.core.jobs import claim
from chalicelib.core.jobs.check import Coalesce, Duplicate, End, Launch, Wait, decide
from chalicelib.core.limits.permits import Slots
from chalicelib.core.limits.route import Route
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.sort_keys import GATHERING
from chalicelib.core.states import CLAIMABLE, JobKind, Mode, may_start
from chalicelib.core.writes import Create, DeleteJob, ExpectNoneGathering, Replace
from tests.core.builders import (
    LIMIT,
    NAME,
    NOON,
    PARTITION,
    QUIET,
    TICK,
    concurrency,
    end_of,
    facts,
    job,
    met,
    run,
    schedule,
    schedule_state,
)
from tests.support.reasons import says

MODES: tuple[Mode, ...] = get_args(Mode)
KINDS: tuple[JobKind, ...] = get_args(JobKind)
GOES, STAYS, GONE = "goes", "stays", "gone"
DETACHED = "JOB#2026-03-02T12:00:00.000Z#first"

# Jobs that were there before the mode was set, each ready to be launched.
TABLE: dict[Mode, dict[JobKind, str]] = {
    "enabled": dict.fromkeys(KINDS, GOES),
    "hold": dict.fromkeys(KINDS, GOES) | dict.fromkeys(("gathering", "fire", "detached"), STAYS),
    "backlog": dict.fromkeys(KINDS, GOES) | dict.fromkeys(("gathering", "fire", "detached"), STAYS),
    "drain": dict.fromkeys(KINDS, GOES),
    "completed": dict.fromkeys(KINDS, GOES),
    "disabled": dict.fromkeys(KINDS, GONE) | dict.fromkeys(("run_now", "redrive", "backfill"), GOES),
    "deleted": dict.fromkeys(KINDS, GONE),
}


def ready(kind: JobKind) -> Job:
    return met() if kind == "gathering" else job(kind, due_at=NOON if kind == "fire" else None)


def outcome(kind: JobKind, mode: Mode) -> str:
    known = facts(
        schedule_state=schedule_state(mode=mode, mode_at=NOON + MINUTE),
        schedule=schedule(TICK if kind == "fire" else None),
    )
    decision = decide(ready(kind), known, NOON + MINUTE)
    return GONE if end_of(decision) == "DROPPED" else {Launch: GOES, Wait: STAYS}[type(decision)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_l4_each_mode_launches_keeps_or_drops_each_kind_of_job(mode: Mode, kind: JobKind) -> None:
    assert outcome(kind, mode) == TABLE[mode][kind]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_c13_a_claim_expects_a_mode_that_permits_its_job(mode: Mode, kind: JobKind) -> None:
    assert (mode in CLAIMABLE[kind]) is (TABLE[mode][kind] == GOES)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_l4_a_claimed_run_is_stopped_by_closing_but_not_by_pause(mode: Mode, kind: JobKind) -> None:
    assert may_start(kind, mode) is (TABLE[mode][kind] != GONE)


# -- hold and backlog ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["hold", "backlog"])
def test_l4_a_held_job_says_so_and_since_when(mode: Mode) -> None:
    """A later change of the description does not change the beginning of the pause."""
    held = facts(
        schedule_state=schedule_state(mode=mode, mode_at=NOON, updated_at=NOON + HOUR, reason="3 runs failed in a row")
    )
    why = f"the schedule has been paused ({mode}) since 2026-03-02T12:00:00.000Z (3 runs failed in a row)"
    assert decide(met(), held, NOON) == Wait(NOON + 24 * HOUR, "PENDING_CONSTRAINTS", says(why))


def test_l4_a_queued_job_leaves_its_queue_when_it_is_held() -> None:
    decision = decide(met(queued_in=LIMIT, rank="5"), facts(schedule_state=schedule_state(mode="hold")), NOON)
    assert isinstance(decision, Wait)
    assert decision.yields


def test_l4_an_unmet_job_goes_on_gathering_with_its_own_reason() -> None:
    two = facts(schedule_state=schedule_state(mode="hold"), schedule=schedule(PARTITION | {"count": 2}))
    decision = decide(met(met_at=None), two, NOON)
    assert isinstance(decision, Wait)
    assert decision.state == "PENDING_TRIGGER"
    assert decision.why.text.startswith("waits for 1 partition of demo.flights")


def test_l4_timeouts_go_on_counting_on_hold_unless_stopped() -> None:
    going = facts(schedule_state=schedule_state(mode="hold"), schedule=schedule(timeout={"after": "1h"}))
    assert end_of(decide(met(), going, NOON + HOUR)) == "ABORTED"
    stopped = replace(going, schedule_state=schedule_state(mode="hold", pauses=((NOON + MINUTE, None),)))
    decision = decide(met(), stopped, NOON + 9 * HOUR)
    assert isinstance(decision, Wait)
    assert decision.until is None


def test_l4_run_anyway_does_not_override_a_hold() -> None:
    held = facts(schedule_state=schedule_state(mode="hold"), schedule=schedule(timeout={"after": "1h", "then": "run"}))
    decision = decide(met(), held, NOON + HOUR)
    assert isinstance(decision, Wait)
    assert decision.until is None


def test_c11_fires_coalesce_on_hold_and_wait_alone_in_backlog() -> None:
    waiting, ticking = job("fire", sort_key=GATHERING, job_id="first"), schedule(TICK)
    hold = facts(schedule_state=schedule_state(mode="hold"), schedule=ticking, gathering=waiting)
    assert isinstance(decide(job("fire"), hold, NOON), Coalesce)
    backlog = facts(schedule_state=schedule_state(mode="backlog"), schedule=ticking)
    assert isinstance(decide(job("fire"), backlog, NOON), Wait)


@pytest.mark.parametrize(
    ("fields", "mode", "place"),
    [
        ({}, "enabled", GATHERING),
        ({}, "hold", GATHERING),
        ({}, "backlog", DETACHED),
        ({}, "drain", DETACHED),
        ({}, "completed", DETACHED),
        ({"coalesce": False}, "enabled", DETACHED),
        ({"coalesce": False}, "hold", DETACHED),
    ],
)
def test_c11_a_fire_that_must_wait_is_coalesced_or_detached(fields: dict[str, Any], mode: Mode, place: str) -> None:
    busy = facts(
        schedule_state=schedule_state(mode=mode),
        schedule=schedule(TICK, constraints=[concurrency(1, "wait")], **fields),
    )
    out, into, *_ = claim.queue(job("fire"), busy, Route((), Slots(LIMIT, 1)), NOON)
    assert out == DeleteJob(job("fire"), exact=True)
    assert isinstance(into, Create)
    assert isinstance(into.row, Job)
    assert into.row.sort_key == place


def test_c11_a_detached_fire_joins_none_and_blocks_none() -> None:
    """It was detached in a backlog. Now, after the resume, another job of its schedule gathers, or queues
    for a slot.
    """
    detached = job("fire", sort_key=DETACHED, due_at=NOON, met_at=NOON)
    resumed = facts(schedule=schedule(TICK, constraints=[concurrency(1, "wait")]), gathering=met())
    assert isinstance(decide(detached, resumed, NOON + HOUR), Launch)
    [stays, *_] = claim.queue(detached, resumed, Route((), Slots(LIMIT, 1)), NOON + HOUR)
    assert isinstance(stays, Replace)
    assert ExpectNoneGathering(NAME, 7) not in claim.claim(detached, run(), resumed, Route((), None), NOON + HOUR)


@pytest.mark.parametrize(("fields", "mode"), [({}, "backlog"), ({"coalesce": False}, "enabled")])
def test_c11_a_match_completed_by_time_is_detached_when_it_waits(fields: dict[str, Any], mode: Mode) -> None:
    """Time completed the match, so no event could detach it."""
    known = facts(
        schedule_state=schedule_state(mode=mode),
        schedule=schedule(QUIET, constraints=[concurrency(1, "wait")], **fields),
    )
    out, into, *_ = claim.queue(met(), known, Route((), Slots(LIMIT, 1)), NOON)
    assert out == DeleteJob(met(), exact=True), "another chunk may have come, and ended the quiet"
    assert isinstance(into, Create)
    assert isinstance(into.row, Job)
    assert (into.row.sort_key, into.row.kind, into.row.state) == (DETACHED, "detached", "PENDING_LAUNCH")


def test_o3_a_fire_written_again_while_detached_is_a_duplicate() -> None:
    detached = job("fire", sort_key=DETACHED)
    assert isinstance(
        decide(job("fire"), facts(schedule_state=schedule_state(mode="backlog"), gathering=detached), NOON), Duplicate
    )


# -- drain and completed -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("due", "goes"), [(NOON - 1, True), (NOON, False), (NOON + 1, False)])
def test_l4_a_drain_launches_the_fires_that_were_due_before_it(due: int, goes: bool) -> None:
    """This means before the drain began, and not before the last change of the description."""
    draining = facts(
        schedule_state=schedule_state(mode="drain", mode_at=NOON, updated_at=NOON + MINUTE), schedule=schedule(TICK)
    )
    decision = decide(job("fire", due_at=due), draining, NOON + MINUTE)
    assert isinstance(decision, Launch) is goes
    assert goes or decision == End("DROPPED", says("the fire was due after the schedule was paused to drain"))


def test_l10_prepared_fires_of_a_completed_schedule_go_on() -> None:
    completed = facts(schedule_state=schedule_state(mode="completed", mode_at=NOON), schedule=schedule(TICK))
    assert isinstance(decide(job("fire", due_at=NOON + MINUTE), completed, NOON + MINUTE), Launch)


@pytest.mark.parametrize("mode", ["drain", "completed"])
def test_l4_a_fire_that_only_gathers_is_dropped_while_closing(mode: Mode) -> None:
    parts: dict[str, Any] = {"type": "all", "triggers": [TICK, PARTITION]}
    closing = facts(schedule_state=schedule_state(mode=mode, mode_at=NOON + HOUR), schedule=schedule(parts))
    decision = decide(job("fire", due_at=NOON), closing, NOON)
    assert decision == End("DROPPED", says(f"the schedule takes no new fires: its mode is {mode}"))


# -- skipped occurrences (L19) -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["enabled", "hold", "backlog", "drain", "completed"])
def test_l19_an_occurrence_is_skipped_on_record_in_any_mode(mode: Mode) -> None:
    skipping = facts(schedule_state=schedule_state(mode=mode, skips=(NOON,), mode_at=NOON + 1), schedule=schedule(TICK))
    decision = decide(job("fire", due_at=NOON), skipping, NOON)
    assert decision == End("SKIPPED", says("the occurrence of 2026-03-02T12:00:00.000Z was skipped on request"))


def test_l19_a_skip_names_one_instant_and_only_a_fire_has_one() -> None:
    skipping = facts(schedule_state=schedule_state(skips=(NOON,)), schedule=schedule(TICK))
    assert isinstance(decide(job("fire", due_at=NOON + 1), skipping, NOON + 1), Launch)
    assert isinstance(decide(job("run_now"), skipping, NOON), Launch)
    assert isinstance(decide(job("retry", due_at=NOON), skipping, NOON), Launch)


def test_l19_a_skipped_occurrence_is_not_dropped_before_its_time() -> None:
    skipping = facts(schedule_state=schedule_state(skips=(NOON,)), schedule=schedule(TICK))
    assert isinstance(decide(job("fire", due_at=NOON), skipping, NOON - 1), Wait)
