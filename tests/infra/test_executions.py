"""Executions of Step Functions in the template: which may be started and read, and whose events arrive (W16)."""

from __future__ import annotations

from typing import Any

import pytest
from moto.events.models import EventPattern

from chalicelib.core.targets.step_functions import execution_arn
from chalicelib.core.targets.target import PREFIX
from tests.core.targets.test_step_functions import execution, run
from tests.support.clock import NOON
from tests.support.state_machines import event_of

from .resolve import Resolver
from .test_emr_lists import granted
from .test_policies import LAMBDAS, allowed

TWO = "arn:aws:states:eu-west-1:123456789012:stateMachine:etl,arn:aws:states:*:*:stateMachine:sales-*"


@pytest.fixture
def pattern(template: dict[str, Any]) -> EventPattern:
    """The rule's pattern, as CloudFormation resolves it."""
    event = template["Resources"]["RunState"]["Properties"]["Events"]["ExecutionStateEvent"]
    assert event["Type"] == template["Resources"]["RunState"]["Properties"]["Events"]["RunStateEvent"]["Type"]
    return EventPattern(None, Resolver(template, {})(event["Properties"]["Pattern"]))


@pytest.mark.parametrize(
    ("function", "action"),
    [
        ("Check", "states:DescribeExecution"),
        ("Check", "states:StopExecution"),
        ("RunState", "states:DescribeExecution"),
    ],
)
def test_executions_of_the_listed_state_machines_are_read(template: dict[str, Any], function: str, action: str) -> None:
    assert granted(template, function, action) == [f"arn:aws:states:*:123456789012:execution:sluice-target-*:{PREFIX}*"]
    assert granted(template, function, action, TargetStateMachineArns=TWO) == [
        f"arn:aws:states:eu-west-1:123456789012:execution:etl:{PREFIX}*",
        f"arn:aws:states:*:*:execution:sales-*:{PREFIX}*",
    ]
    assert execution_arn(run()).rpartition(":")[2].startswith(PREFIX)


def test_no_other_lambda_has_rights_on_executions(template: dict[str, Any]) -> None:
    using = {f: {a for a in allowed(template["Resources"], f) if a.startswith("states:")} for f in LAMBDAS}
    assert {function: actions for function, actions in using.items() if actions} == {
        "Check": {"states:StartExecution", "states:DescribeExecution", "states:StopExecution"},
        "RunState": {"states:DescribeExecution"},
    }


@pytest.mark.parametrize(
    "wrong",
    [
        "*",
        "etl",
        "arn:aws:states:eu-west-1:123456789012:stateMachine:etl:PROD",
        "arn:aws:states:eu-west-1:123456789012:execution:etl:*",
        f"{TWO},",
    ],
)
def test_an_invalid_list_of_state_machines_is_refused(template: dict[str, Any], wrong: str) -> None:
    with pytest.raises(AssertionError, match="does not allow"):
        Resolver(template, {}, TargetStateMachineArns=wrong)


@pytest.mark.parametrize("status", ["RUNNING", "SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"])
def test_statuses_that_change_a_run_match(pattern: EventPattern, status: str) -> None:
    assert pattern.matches_event(event_of(execution(status), NOON))


def test_intermediate_statuses_do_not_match(pattern: EventPattern) -> None:
    event = event_of(execution("SUCCEEDED"), NOON)
    assert pattern.matches_event(event)
    assert not pattern.matches_event(event_of(execution("PENDING_REDRIVE"), NOON))
    assert not pattern.matches_event(event_of(execution("SUCCEEDED"), NOON, name="by-hand"))
    assert not pattern.matches_event({**event, "detail-type": "AWS API Call via CloudTrail"})
    assert not pattern.matches_event({**event, "source": "aws.emr-serverless"})
