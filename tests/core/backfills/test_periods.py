"""Which period a job or run is for, and what became of each (L23)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.backfills import periods
from chalicelib.core.backfills.periods import MISSING, period_of, statuses
from chalicelib.core.instants import HOUR
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.run import Run
from tests.support import rows
from tests.support.clock import NOON

BY = ("dt", "hour")
SEVEN = {"dt": "2026-03-01", "hour": "07", "region": "eu"}


def attempt(name: str = "a", number: int = 1, state: Any = "SUCCEEDED", **fields: Any) -> Run:
    made = rows.run(run_id=name, attempt=number, state=state, correlation=SEVEN)
    return replace(made, event=None, **fields)


def fire(at: int) -> Event:
    return Event("e", "time", "time:s", at, at)


def test_l23_work_is_for_its_correlation_or_its_instant() -> None:
    job = rows.job()
    assert period_of(replace(job, correlation=SEVEN), BY) == ("2026-03-01", "07")
    assert period_of(replace(job, correlation={"dt": "2026-03-01"}), BY) is None
    assert period_of(replace(job, kind="gathering", event=None, correlation=None), ()) is None
    prepared = replace(job, kind="fire", event=None, nominal_at=None, due_at=NOON)
    assert period_of(prepared, ()) == ("2026-03-02T12:00:00.000Z",)
    assert period_of(replace(prepared, nominal_at=NOON - HOUR), ()) == ("2026-03-02T11:00:00.000Z",)
    assert period_of(replace(job, event=fire(NOON)), ()) == ("2026-03-02T12:00:00.000Z",)
    partition = replace(fire(NOON), kind="partition", partition={"day": "1"})
    assert period_of(replace(job, event=partition), ()) == ("1",)


def test_l23_an_entry_of_a_plan_is_for_its_values() -> None:
    assert periods.period_of_entry("2026-03-01/07%3A00/eu", ("dt", "hour", "region"), BY) == ("2026-03-01", "07:00")
    assert periods.period_of_entry("2026-03-01/07", BY, ()) == ("2026-03-01", "07")
    assert periods.period_of_entry("2026-03-02T12:00:00.000Z", (), ()) == ("2026-03-02T12:00:00.000Z",)
    assert periods.period_of_entry("2026-03-01", ("dt",), BY) is None


@pytest.mark.parametrize(
    ("attempts", "state", "count"),
    [
        ([attempt()], "succeeded", 1),
        ([attempt(state="CANCELLED")], "failed", 1),
        ([attempt(state="ABORTED")], None, 0),
        ([attempt("b", state="RUNNING"), attempt("a")], "running", 2),
        ([attempt("b"), attempt("a", state="STARTING")], "running", 2),
        ([attempt("b", 2, "FAILED"), attempt("b", 1, "RETRYING"), attempt("a")], "failed", 2),
        ([attempt("b", 1, "RETRYING"), attempt("a")], "running", 2),
        ([attempt("b"), attempt("a", state="FAILED")], "succeeded", 2),
        ([attempt("b", spread=(1, 2)), attempt("a", state="FAILED", spread=(0, 2))], "failed", 2),
        ([attempt("b", spread=(0, 2)), attempt("a", state="FAILED", spread=(0, 2))], "succeeded", 2),
    ],
)
def test_l23_the_newest_run_of_a_period_decides(attempts: list[Run], state: str | None, count: int) -> None:
    found = statuses((), attempts, {}, BY).get(("2026-03-01", "07"), MISSING)
    assert (found.state, found.revision) == (state or "missing", count)
    assert found.attempts == (attempts[0].attempt if count else 0)


def test_l23_a_job_waits_unless_a_run_of_its_period_is_active() -> None:
    period, job = ("2026-03-01", "07"), replace(rows.job(), correlation=SEVEN, event=None)
    waiting = statuses([job], [attempt()], {}, BY)[period]
    assert (waiting.state, waiting.job, waiting.runs, waiting.at) == ("waiting", job.job_id, ("a",), job.created_at)
    assert statuses([job], [attempt(state="RUNNING")], {}, BY)[period].state == "running"
    assert statuses([replace(job, closed=True)], [], {}, BY) == {}
    planned = statuses([], [attempt()], {period: "b1"}, BY)[period]
    assert (planned.state, planned.why.text) == ("waiting", "backfill b1")


def test_l23_a_backfill_has_yet_to_run_what_is_active_or_ahead() -> None:
    row = replace(rows.backfill(total=6), next=3, live={"1": 1, "2": 1})
    assert periods.entries_left(row) == [1, 2, 3, 4, 5]
    assert periods.entries_left(replace(row, state="CANCELLED")) == [1, 2]
