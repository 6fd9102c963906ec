"""Jobs of AWS Batch in the template: whose events arrive, and that no Lambda has rights of its own (W22)."""

from __future__ import annotations

from typing import Any

import pytest
from moto.events.models import EventPattern

from chalicelib.core.targets.batch import job_name
from chalicelib.core.targets.target import PREFIX
from tests.core.targets.test_batch import job, run

from .resolve import Resolver
from .test_policies import LAMBDAS, allowed


@pytest.fixture
def pattern(template: dict[str, Any]) -> EventPattern:
    """The rule's pattern, as CloudFormation resolves it."""
    event = template["Resources"]["RunState"]["Properties"]["Events"]["ExecutionStateEvent"]
    return EventPattern(None, Resolver(template, {})(event["Properties"]["Pattern"]))


def envelope(status: str, **detail: Any) -> dict[str, Any]:
    return {
        "source": "aws.batch",
        "detail-type": "Batch Job State Change",
        "detail": {**job(status), **detail},
    }


@pytest.mark.parametrize("status", ["RUNNING", "SUCCEEDED", "FAILED"])
def test_w22_states_of_a_batch_job_that_move_a_run_match(pattern: EventPattern, status: str) -> None:
    assert pattern.matches_event(envelope(status))


@pytest.mark.parametrize("status", ["SUBMITTED", "PENDING", "RUNNABLE", "STARTING"])
def test_w22_intermediate_states_of_batch_do_not_match(pattern: EventPattern, status: str) -> None:
    assert not pattern.matches_event(envelope(status))


def test_w22_other_events_of_batch_do_not_match(pattern: EventPattern) -> None:
    assert job_name(run()).startswith(PREFIX)
    assert not pattern.matches_event(envelope("FAILED", jobName="by-hand"))
    assert not pattern.matches_event({**envelope("FAILED"), "detail-type": "Batch Job Queue Blocked"})
    assert not pattern.matches_event({**envelope("FAILED"), "source": "aws.ecs"})


def test_w22_no_lambda_calls_batch_with_its_own_role(template: dict[str, Any]) -> None:
    found = {name: {each for each in allowed(template["Resources"], name) if "batch" in each} for name in LAMBDAS}
    assert not any(found.values()), found
