"""The rule for the state changes of ECS's tasks (W22)."""

from __future__ import annotations

from typing import Any

import pytest
from moto.events.models import EventPattern

from chalicelib.core.targets.target import PREFIX
from tests.core.targets.test_ecs import task
from tests.support.clock import NOON
from tests.support.ecs_tasks import event_of

from .resolve import Resolver
from .test_policies import LAMBDAS, allowed


@pytest.fixture
def pattern(template: dict[str, Any]) -> EventPattern:
    event = template["Resources"]["RunState"]["Properties"]["Events"]["ExecutionStateEvent"]
    return EventPattern(None, Resolver(template, {})(event["Properties"]["Pattern"]))


def test_w22_states_that_change_a_run_match(pattern: EventPattern) -> None:
    assert event_of(task(), NOON)["detail"]["startedBy"].startswith(PREFIX)
    assert [status for status in ("PROVISIONING", "PENDING", "ACTIVATING", "RUNNING", "DEPROVISIONING", "STOPPED")
            if pattern.matches_event(event_of(task(), NOON, lastStatus=status))] == ["RUNNING", "STOPPED"]  # fmt: skip


def test_w22_tasks_of_others_do_not_match(pattern: EventPattern) -> None:
    event = event_of(task(), NOON)
    assert not pattern.matches_event(event_of(task(), NOON, startedBy="ecs-svc/9223370545345641169"))
    assert not pattern.matches_event({**event, "detail-type": "ECS Container Instance State Change"})
    assert not pattern.matches_event({**event, "source": "aws.batch"})


def test_w22_no_lambda_has_rights_on_tasks(template: dict[str, Any]) -> None:
    """They are called with the target role of a namespace alone."""
    assert not [f for f in LAMBDAS if any(each.startswith("ecs:") for each in allowed(template["Resources"], f))]
