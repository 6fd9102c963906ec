"""Changes of the account's alarms reach the queue of `custom` through a separate rule (T23)."""

from __future__ import annotations

from typing import Any

import pytest
from moto.events.models import EventPattern

from tests.infra.test_watched_buckets import statement
from tests.support import alarm_events

ARN = "arn:${AWS::Partition}:events:${AWS::Region}:${AWS::AccountId}:rule/${AWS::StackName}-"
HERE = {"AWS::AccountId": alarm_events.ACCOUNT, "AWS::Region": alarm_events.REGION}


@pytest.fixture
def pattern(resources: dict[str, Any]) -> Any:
    """The rule's pattern in an account and region."""
    written = resources["AlarmEventsRule"]["Properties"]["EventPattern"]
    filled = {
        name: [HERE[each["Ref"]] if isinstance(each, dict) else each for each in values]
        for name, values in written.items()
    }
    return EventPattern(None, filled)


def test_t23_the_rule_matches_alarms_of_this_account_and_region(pattern: Any) -> None:
    assert pattern.matches_event(alarm_events.event())
    assert pattern.matches_event(alarm_events.event(state="INSUFFICIENT_DATA"))
    assert pattern.matches_event(alarm_events.suppression_ends())
    for other in (
        {"account": "210987654321"},
        {"region": "eu-west-1"},
        {"source": "acme.cloudwatch"},
        {"detail-type": "CloudWatch Alarm Configuration Change"},
        {"detail-type": "CloudWatch Alarm Contributor State Change"},
    ):
        assert not pattern.matches_event(alarm_events.event() | other), other


def test_t23_the_rule_sends_events_unchanged_or_keeps_them(resources: dict[str, Any]) -> None:
    [target] = resources["AlarmEventsRule"]["Properties"]["Targets"]
    assert target == {
        "Id": "custom",
        "Arn": {"Fn::GetAtt": ["CustomQueue", "Arn"]},
        "RetryPolicy": {"MaximumEventAgeInSeconds": 86_400, "MaximumRetryAttempts": 185},
        "DeadLetterConfig": {"Arn": {"Fn::GetAtt": ["CustomDeadLetters", "Arn"]}},
    }


def test_t23_only_the_two_rules_may_send_to_the_queue(resources: dict[str, Any]) -> None:
    allowed = statement(resources, "CustomQueuePolicy", "RulesMaySend")
    named = {
        ARN.removesuffix("${AWS::StackName}-") + resources[rule]["Properties"]["Name"]["Fn::Sub"]
        for rule in ("CustomEventsRule", "AlarmEventsRule")
    }
    assert allowed["Principal"] == {"Service": "events.amazonaws.com"}
    assert allowed["Condition"]["StringEquals"] == {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    assert {each["Fn::Sub"] for each in allowed["Condition"]["ArnEquals"]["aws:SourceArn"]} == named
    assert named == {f"{ARN}custom-events", f"{ARN}alarm-events"}


def test_t23_the_rule_is_created_after_its_policies_and_code(resources: dict[str, Any]) -> None:
    """With older code each change of an alarm would become a dead letter."""
    assert resources["AlarmEventsRule"]["DependsOn"] == ["CustomQueuePolicy", "CustomDeadLettersPolicy", "Custom"]
