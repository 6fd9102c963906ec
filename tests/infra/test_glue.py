"""Job runs of AWS Glue in the template: whose events arrive, and who may call Glue (W22)."""

from __future__ import annotations

from typing import Any

import pytest
from moto.events.models import EventPattern

from tests.support.clock import NOON
from tests.support.glue import JOB, JobRun, event_of

from .resolve import Resolver
from .test_policies import LAMBDAS, allowed


@pytest.fixture
def pattern(template: dict[str, Any]) -> EventPattern:
    event = template["Resources"]["RunState"]["Properties"]["Events"]["ExecutionStateEvent"]
    assert event["Type"] == template["Resources"]["RunState"]["Properties"]["Events"]["RunStateEvent"]["Type"]
    return EventPattern(None, Resolver(template, {})(event["Properties"]["Pattern"]))


def ended(state: str) -> dict[str, Any]:
    return event_of(JobRun("jr_1", JOB, {}, NOON, {}, state, NOON), NOON)


@pytest.mark.parametrize("state", ["SUCCEEDED", "FAILED", "TIMEOUT", "STOPPED"])
def test_w22_ends_of_job_runs_arrive(pattern: EventPattern, state: str) -> None:
    assert pattern.matches_event(ended(state))


def test_w22_other_events_of_glue_do_not_arrive(pattern: EventPattern) -> None:
    assert not pattern.matches_event(ended("RUNNING"))
    assert not pattern.matches_event({**ended("FAILED"), "detail-type": "Glue Job Run Status"})
    assert not pattern.matches_event({**ended("FAILED"), "detail-type": "Glue Crawler State Change"})
    assert not pattern.matches_event({**ended("FAILED"), "source": "aws.states"})


def test_w22_no_lambda_may_run_glue_jobs_itself(template: dict[str, Any]) -> None:
    using = {action for function in LAMBDAS for action in allowed(template["Resources"], function)}
    assert not {action for action in using if action.startswith("glue:") and "Job" in action}
