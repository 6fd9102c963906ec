"""The rule for the states of engines lets those of Athena's queries in (W22)."""

from __future__ import annotations

from typing import Any

import pytest
from moto.events.models import EventPattern

from tests.support.clock import NOON
from tests.support.eks_runs import EksRun
from tests.support.eks_runs import event_of as eks_event
from tests.support.queries import Query, event_of

from .resolve import Resolver
from .test_policies import LAMBDAS, allowed


@pytest.fixture
def pattern(template: dict[str, Any]) -> EventPattern:
    event = template["Resources"]["RunState"]["Properties"]["Events"]["ExecutionStateEvent"]
    return EventPattern(None, Resolver(template, {})(event["Properties"]["Pattern"]))


def event(state: str) -> dict[str, Any]:
    return event_of(Query("q-1", {"WorkGroup": "primary"}, NOON, state), NOON)


def test_w22_states_of_queries_that_change_a_run_match(pattern: EventPattern) -> None:
    states = ("QUEUED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED")
    assert [state for state in states if pattern.matches_event(event(state))] == list(states[1:])
    assert not pattern.matches_event({**event("FAILED"), "detail-type": "Athena Engine Version Change"})
    assert not pattern.matches_event({**event("FAILED"), "source": "aws.glue"})


def test_w22_states_of_job_runs_on_eks_match(pattern: EventPattern) -> None:
    """Of those that Sluice has started, by their names."""
    ours = EksRun("r1", {"virtualClusterId": "0b1c", "name": "sluice-clean-1"}, NOON)
    states = ("PENDING", "SUBMITTED", "RUNNING", "CANCEL_PENDING", "COMPLETED", "FAILED", "CANCELLED")
    matched = [each for each in states if pattern.matches_event(eks_event(ours, NOON, state=each))]
    assert matched == ["RUNNING", "COMPLETED", "FAILED", "CANCELLED"]
    assert not pattern.matches_event(eks_event(ours, NOON, state="FAILED", name="of-somebody-else"))


def test_w22_no_lambda_has_rights_on_queries(template: dict[str, Any]) -> None:
    """They are called with the target role of a namespace alone."""
    assert not [f for f in LAMBDAS if any(each.startswith("athena:") for each in allowed(template["Resources"], f))]
