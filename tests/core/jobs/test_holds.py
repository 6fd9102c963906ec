"""What holds a waiting job, in kinds, for the reason that the decision stores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.access.grants import ForeignUse
from chalicelib.core.definitions.foreign import UsedGrants
from chalicelib.core.instants import HOUR, MINUTE
from chalicelib.core.jobs import check, holds
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.rows.job import Job
from tests.core.builders import LIMIT, NAME, NOON, facts, job, met, schedule, schedule_state, workflow
from tests.support.reasons import says

NIGHT = {"type": "time_window", "start": "22:00", "end": "06:00", "on_unmet": "wait"}
LEAD = {"type": "approval", "role": "Lead"}
LATER = {"type": "delay", "after": "2h"}
FOREIGN = UsedGrants(
    missing=(
        ForeignUse("run", "lake.core.clean", "demo"),
        ForeignUse("follow", "lake.core.clean", "demo"),
        ForeignUse("datasets", "emr.spark", "demo"),
    )
)


def kinds(of: Job, known: Facts) -> list[tuple[str, str]]:
    """The kinds and the words of what holds a job, once the decision to wait is stored with it."""
    decision = check.decide(of, known, NOON)
    assert isinstance(decision, check.Wait)
    stored = replace(of, reason=decision.why, state=decision.state, wake_at=decision.until)
    return [(hold.kind, hold.of) for hold in holds.holds_of(stored, known.schedule_state, known.schedule, NOON)]


@pytest.mark.parametrize(
    ("constraints", "expected"),
    [
        ([NIGHT], [("window", "between 22:00 and 06:00 in UTC")]),
        ([LEAD], [("approval", "approved by a Lead")]),
        ([LEAD, LATER], [("approval", "approved by a Lead"), ("window", "2h after the job was created")]),
        ([NIGHT, LEAD], [("window", "between 22:00 and 06:00 in UTC"), ("approval", "approved by a Lead")]),
    ],
)
def test_each_unmet_constraint_holds_the_job(
    constraints: list[dict[str, Any]], expected: list[tuple[str, str]]
) -> None:
    assert kinds(met(), facts(schedule=schedule(constraints=constraints))) == expected


def test_the_approval_of_the_workflow_is_an_approval() -> None:
    known = facts(schedule=schedule(), workflow=workflow(approval=LEAD))
    assert kinds(met(), known) == [("approval", f"approved for workflow {NAME}")]


def test_a_job_of_a_paused_schedule_waits_for_its_resume_alone() -> None:
    known = facts(schedule=schedule(constraints=[LEAD]), schedule_state=schedule_state(mode="hold"))
    assert kinds(met(), known) == [("pause", f"schedule {NAME}")]


def test_each_namespace_that_lacks_a_grant_holds_the_job() -> None:
    assert kinds(met(), facts(granted=FOREIGN)) == [("grant", "a grant of lake"), ("grant", "a grant of emr")]


def test_the_free_text_of_a_pause_is_no_grant_or_approval() -> None:
    """A pause may have any text as its reason, such as the words of an approval or of a grant."""
    words = "on hold until a Lead approved; waits for a grant of lake to run"
    known = facts(schedule=schedule(constraints=[NIGHT]), schedule_state=schedule_state(mode="hold", reason=words))
    assert kinds(met(), known) == [("pause", f"schedule {NAME}")]
    after = replace(met(), reason=says(f"the schedule has been on hold ({words})"))
    assert [hold.kind for hold in holds.holds_of(after, schedule_state(), known.schedule, NOON)] == ["condition"]


@pytest.mark.parametrize(
    ("of", "kind"),
    [
        (job(), "data"),
        (job("fire", due_at=NOON + HOUR), "clock"),
        (job("redrive", retry_at=NOON + MINUTE), "clock"),
        (met(queued_in=LIMIT), "limit"),
    ],
)
def test_the_row_alone_says_what_holds_most_jobs(of: Job, kind: str) -> None:
    found = holds.by_row(of, NOON)
    assert found is not None and found.kind == kind
    assert holds.holds_of(of, schedule_state(mode="hold"), schedule(constraints=[LEAD]), NOON) == (found,)


def test_a_met_trigger_takes_the_schedule_too() -> None:
    assert holds.by_row(met(), NOON) is None
