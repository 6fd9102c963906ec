"""The decisions of a backfill: the entries of its plan, and the results of its checks (L12)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.backfills import backfill
from chalicelib.core.backfills.backfill import EntryState
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.instants import DAY, iso
from chalicelib.core.jobs import check, facts, permits, timeout
from chalicelib.core.limits import policies
from chalicelib.core.limits.permits import RateWindow, Slots
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.states import CLAIMABLE, claimable
from tests.support import rows
from tests.support.clock import NOON
from tests.support.reasons import says

KEYS = ("year", "month", "day")


def schedule(trigger: Any, **fields: Any) -> Schedule:
    return Schedule.model_validate({"workflow": "clean", "trigger": trigger} | fields).resolved("demo", "flights")


def workflow() -> Workflow:
    return Workflow.model_validate({"target": {"type": "emr_serverless", "entry_point": "s3://code/job.py"}})


def at(expression: str, **fields: Any) -> dict[str, Any]:
    return {"type": "time", "expression": expression} | fields


# -- steps -------------------------------------------------------------------------------------------------------------


def advanced(row: Backfill, ended: str | None = None, **seen: EntryState) -> backfill.Step:
    known = {entry.removeprefix("e"): standing for entry, standing in seen.items()}
    return backfill.advance(row, known, rows.GENERATION, ended, NOON)


def test_l12_a_backfill_dispatches_up_to_its_concurrency() -> None:
    first = advanced(rows.backfill())
    assert (first.hand_out, first.row.next, set(first.row.live)) == ((0, 1), 2, {"0", "1"})
    assert (first.row.rev, first.row.wake_at) == (2, None)
    one_ended = advanced(first.row, e0="running", e1="succeeded")
    assert (one_ended.hand_out, one_ended.row.succeeded, set(one_ended.row.live)) == ((2,), 1, {"0", "2"})


def test_l12_a_hundred_entries_are_dispatched_in_transactions() -> None:
    first = advanced(rows.backfill(total=500, concurrency=100))
    assert (len(first.hand_out), first.row.wake_at) == (50, NOON)
    rest = advanced(first.row, **{f"e{entry}": "waiting" for entry in first.row.live})
    assert (rest.hand_out[0], len(rest.row.live), rest.row.wake_at) == (50, 100, None)


def test_l12_a_backfill_is_completed_when_all_jobs_have_ended() -> None:
    last = rows.backfill(next=5, live={"3": NOON, "4": NOON}, succeeded=3)
    assert advanced(last, e3="failed", e4="running").row.state == "RUNNING"
    done = advanced(last, e3="failed", e4="cancelled").row
    assert (done.state, done.succeeded, done.failed, done.cancelled, done.ended_at) == ("DONE", 3, 1, 1, NOON)
    assert done.expires_at is not None


@pytest.mark.parametrize("state", ["CANCELLED", "ENDED"])
def test_l12_a_backfill_that_is_over_dispatches_nothing(state: Any) -> None:
    row = rows.backfill(state=state, next=2, live={"0": NOON, "1": NOON - 1})
    step = advanced(row, e0="running", e1="again")
    assert (step.hand_out, set(step.row.live), step.row.dropped, step.row.ended_at) == ((), {"0"}, 1, None)
    assert advanced(step.row, e0="succeeded").row.ended_at == NOON


def test_l12_c13_backfill_of_replaced_schedule_ends_with_reason() -> None:
    row = rows.backfill(next=2, live={"0": NOON, "1": NOON})
    step = advanced(row, "the schedule was replaced", e0="running", e1="waiting")
    assert (step.row.state, step.row.reason, step.hand_out) == ("ENDED", "the schedule was replaced", ())
    assert step.row.wake_at == NOON, "what waits is to be taken off"


def test_l12_enable_dispatches_dropped_entries_in_new_generation() -> None:
    row = rows.backfill(next=2, live={"0": NOON - 9, "1": NOON - 9})
    step = advanced(row, e0="again", e1="running")
    assert (step.hand_out, step.row.next) == ((0,), 2)
    assert step.row.live == {"0": rows.GENERATION, "1": NOON - 9}


@pytest.mark.parametrize(
    ("states", "waits", "recorded", "current", "standing"),
    [
        ([], True, False, True, "waiting"),
        ([], False, False, True, "waiting"),
        ([], False, True, True, "dropped"),
        ([], False, True, False, "again"),
        (["STARTING"], False, False, True, "running"),
        (["RETRYING"], False, False, True, "running"),
        (["RETRYING", "RUNNING"], False, False, False, "running"),
        (["RETRYING", "FAILED"], False, False, True, "failed"),
        (["SUCCEEDED"], False, False, False, "succeeded"),
        (["CANCELLED"], False, False, True, "cancelled"),
        (["ABORTED"], False, False, True, "dropped"),
        (["ABORTED"], False, False, False, "again"),
    ],
)
def test_l12_the_state_of_an_entry_follows_from_its_job_or_run(
    states: list[Any], waits: bool, recorded: bool, current: bool, standing: str
) -> None:
    attempts = [rows.run(attempt=number, state=state) for number, state in enumerate(states, 1)]
    assert backfill.entry_state(attempts, waits, recorded, current) == standing


@given(st.data(), st.integers(1, 60), st.integers(1, 7))
def test_l12_each_entry_is_dispatched_once_within_concurrency(data: st.DataObject, total: int, most: int) -> None:
    row, handed_out = rows.backfill(total=total, concurrency=most), []
    for _ in range(4 * total + 4):
        ends = st.sampled_from(["waiting", "running", "succeeded", "failed", "cancelled", "dropped"])
        seen = {entry: data.draw(ends) for entry in row.live} if row.state == "RUNNING" else {}
        step = backfill.advance(row, seen, rows.GENERATION, None, NOON)
        handed_out += step.hand_out
        assert len(step.row.live) <= most
        assert len(step.row.live) == most or step.row.next == total, "what may be under way is"
        row = step.row
        settled = row.succeeded + row.failed + row.cancelled + row.dropped
        assert settled + len(row.live) == row.next
        if row.state == "DONE":
            break
    assert handed_out == list(range(row.next))


# -- its jobs ----------------------------------------------------------------------------------------------------------


def test_l12_a_job_and_its_event_follow_from_the_entry() -> None:
    row = rows.backfill()
    event = backfill.fire_event(row, "2026-01-01T02:00:00.000Z")
    job = backfill.job_of(row, 7, event, (), NOON - 1, NOON)
    assert job == backfill.job_of(row, 7, event, (), NOON - 1, NOON)
    assert job.job_id != backfill.job_of(replace(row, id="other"), 7, event, (), NOON - 1, NOON).job_id
    assert (job.kind, job.backfill, job.sort_key) == ("backfill", "b1", "JOB#BACKFILL#b1#000007")
    assert (iso(event.instant), event.kind) == ("2026-01-01T02:00:00.000Z", "time")


def test_l12_t19_a_partition_job_has_its_correlation_values() -> None:
    row = rows.backfill(dataset="demo.flights", keys=KEYS, base="s3://lake/raw/")
    event = backfill.partition_event(row, "2013/1/5")
    assert event.path == "s3://lake/raw/year=2013/month=1/day=5/"
    job = backfill.job_of(row, 0, event, ("day",), NOON, NOON)
    assert (job.correlation, job.event) == ({"day": "5"}, event)


def test_l12_a_backfill_job_asks_for_slots_and_paces_not_rates() -> None:
    rules = [
        {"type": "concurrency", "max": 1},
        {"type": "since_last_run", "at_least": "1d"},
        {"type": "rate", "max": 1, "per": "day"},
    ]
    made = schedule(at("@daily"), constraints=rules)
    asked = permits.asks_of(made, workflow(), policies.StartRate("app", 1000, 3), "demo")
    known = facts.Facts(
        rows.schedule_state(), made, workflow(), policies.StartRate("app", 1000, 3), backfill=rows.backfill()
    )
    mine = known.asks("demo")
    assert [ask.limit_name for ask in mine] == [ask.limit_name for ask in asked]
    assert [ask.gap for ask in asked if isinstance(ask, Slots)] == [DAY]
    assert [(ask.limit, ask.gap) for ask in mine if isinstance(ask, Slots)] == [(1, None)]
    assert [ask.binding for ask in mine if isinstance(ask, RateWindow)] == [False]
    job = rows.job(kind="backfill", backfill="b1", sort_key="JOB#BACKFILL#b1#000000")
    assert [each.constraint.type for each in check.conditions_of(job, known, made, NOON)] == ["concurrency"]
    busy = replace(
        known, limit_states={"workflow:demo.flights.clean": LimitState("workflow:demo.flights.clean", active=1)}
    )
    assert isinstance(check.decide(job, busy, NOON), check.Launch), "no abort: at the line it will find its place"
    assert timeout.deadline_of(job, made) is None


@pytest.mark.parametrize("state", ["CANCELLED", "ENDED", "DONE"])
def test_l12_a_job_of_a_finished_backfill_is_dropped_with_reason(state: Any) -> None:
    row = rows.backfill(state=state, reason="backfill b1 was cancelled by ada")
    made = schedule(at("@daily"))
    known = facts.Facts(rows.schedule_state(), made, workflow(), policies.StartRate("app", 1000, 3), backfill=row)
    job = rows.job(kind="retry", backfill="b1", attempt=2)
    assert check.decide(job, known, NOON) == check.End("DROPPED", says("backfill b1 was cancelled by ada"))


def test_l12_a_retry_goes_on_wherever_its_backfill_does() -> None:
    assert "disabled" not in claimable("retry")
    assert claimable("retry", "b1") == claimable("backfill", "b1") == CLAIMABLE["backfill"]
