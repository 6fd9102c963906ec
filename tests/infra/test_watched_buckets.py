"""Existing buckets: one rule sends their new objects to the queue, and only those of listed buckets (T20)."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

from moto.events.models import EventPattern

from tests.support import s3_notifications as reported

RULE = "arn:${AWS::Partition}:events:${AWS::Region}:${AWS::AccountId}:rule/${AWS::StackName}-watched-buckets"
LISTED = {"Ref": "WatchedBuckets"}
DEAD = {"Fn::GetAtt": ["ObjectsDeadLetters", "Arn"]}


def statement(resources: dict[str, Any], policy: str, sid: str) -> dict[str, Any]:
    [found] = [
        each for each in resources[policy]["Properties"]["PolicyDocument"]["Statement"] if each.get("Sid") == sid
    ]
    return dict(found)


def test_t20_the_buckets_are_a_parameter_and_none_by_default(template: dict[str, Any]) -> None:
    parameter = template["Parameters"]["WatchedBuckets"]
    assert (parameter["Type"], parameter["Default"]) == ("CommaDelimitedList", "")
    joined = {"Fn::Join": ["", LISTED]}
    assert template["Conditions"]["WatchesBuckets"] == {"Fn::Not": [{"Fn::Equals": [joined, ""]}]}


def test_t20_a_rule_sends_new_objects_of_listed_buckets_to_queue(resources: dict[str, Any]) -> None:
    rule = resources["WatchedBucketsRule"]
    assert rule["Condition"] == "WatchesBuckets"
    assert rule["Properties"]["EventPattern"] == {
        "source": ["aws.s3"],
        "detail-type": ["Object Created"],
        "detail": {"bucket": {"name": LISTED}},
    }
    [target] = rule["Properties"]["Targets"]
    assert target["Arn"] == {"Fn::GetAtt": ["ObjectsQueue", "Arn"]}
    assert not {"Input", "InputPath", "InputTransformer"} & set(target), "the event must come as S3 wrote it"


def test_t20_the_rule_matches_only_new_objects_of_listed_bucket(resources: dict[str, Any]) -> None:
    """Events as AWS documents them; the local cloud's own events for the same rule differ."""
    filled = deepcopy(resources["WatchedBucketsRule"]["Properties"]["EventPattern"])
    filled["detail"]["bucket"]["name"] = ["acme-landing", "acme.drop-2"]
    pattern = EventPattern(None, filled)
    for bucket in ("acme-landing", "acme.drop-2"):
        for how in (reported.PUT, reported.COPY, reported.PARTS):
            assert pattern.matches_event(reported.event(bucket, "in/day=1/a b", how=how))
    new = reported.event("acme-landing", "in/day=1/x")
    assert not pattern.matches_event(reported.event("acme-landing-2", "in/day=1/x"))
    assert not pattern.matches_event(new | {"detail-type": "Object Deleted"})
    assert not pattern.matches_event(new | {"source": "acme.s3"})


def test_t20_an_undeliverable_event_is_tried_for_a_day_then_kept(resources: dict[str, Any]) -> None:
    [target] = resources["WatchedBucketsRule"]["Properties"]["Targets"]
    assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 86_400, "MaximumRetryAttempts": 185}
    assert target["DeadLetterConfig"] == {"Arn": DEAD}


def test_t20_only_the_rule_may_send_and_before_it_exists(resources: dict[str, Any]) -> None:
    """EventBridge does not retry an event that a policy forbids. The ARN is written out, so that the policies come
    first.
    """
    rule = resources["WatchedBucketsRule"]
    assert rule["Properties"]["Name"] == {"Fn::Sub": "${AWS::StackName}-watched-buckets"}
    assert set(rule["DependsOn"]) == {"ObjectsQueuePolicy", "ObjectsDeadLettersPolicy"}
    for queue, policy in (("ObjectsQueue", "ObjectsQueuePolicy"), ("ObjectsDeadLetters", "ObjectsDeadLettersPolicy")):
        assert "Condition" not in resources[policy]
        assert statement(resources, policy, "WatchedBucketsRuleMaySend") == {
            "Sid": "WatchedBucketsRuleMaySend",
            "Effect": "Allow",
            "Principal": {"Service": "events.amazonaws.com"},
            "Action": "sqs:SendMessage",
            "Resource": {"Fn::GetAtt": [queue, "Arn"]},
            "Condition": {
                "StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}},
                "ArnEquals": {"aws:SourceArn": {"Fn::Sub": RULE}},
            },
        }


def test_t20_only_the_lambda_of_the_queue_reads_listed_buckets(resources: dict[str, Any]) -> None:
    policy = resources["ReadWatchedBuckets"]
    assert policy["Condition"] == "WatchesBuckets"
    assert policy["Properties"]["Roles"] == [{"Ref": "ObjectsRole"}]
    granted = {
        each["Action"]: listed(each["Resource"], ["one", "two.x"])
        for each in policy["Properties"]["PolicyDocument"]["Statement"]
    }
    assert granted == {
        "s3:GetObject": ["arn:*:s3:::one/*", "arn:*:s3:::two.x/*"],
        "s3:ListBucket": ["arn:*:s3:::one", "arn:*:s3:::two.x"],
    }
    apart = ("ReadWatchedBuckets", "AssumeTargetRoles", "UseTargetKeys", "ReadTargetExecutions")
    others = {name: each for name, each in resources.items() if name not in apart}
    assert [name for name, each in others.items() if each["Type"] == "AWS::IAM::Policy"] == []


def test_t20_what_checks_datasets_has_the_bucket_list(template: dict[str, Any], resources: dict[str, Any]) -> None:
    """The API puts documents; `check` and `burst` work off the uploaded ones."""
    functions = {name: each for name, each in resources.items() if each["Type"].startswith("AWS::Serverless::Function")}
    having = {name for name, each in functions.items() if "WatchedBuckets" in json.dumps(each)}
    assert having == {"APIHandler", "Check", "Burst"}
    for name in having:
        reported = functions[name]["Properties"]["Environment"]["Variables"]
        assert reported["SLUICE_WATCHED_BUCKETS"] == {"Fn::Join": [",", LISTED]}
    assert "WatchedBuckets" not in json.dumps(template["Globals"])


def listed(value: Any, buckets: list[str]) -> list[str]:
    """The result of CloudFormation for an expression over the parameter."""
    if value == LISTED:
        return buckets
    [(function, arguments)] = value.items()
    if function == "Fn::Split":
        return text(arguments[1], buckets).split(arguments[0])
    raise AssertionError(f"expected a list, got {value}")


def text(value: Any, buckets: list[str]) -> str:
    if isinstance(value, str):
        return value
    [(function, (between, parts))] = value.items()
    assert function == "Fn::Join"
    return str(between).join(listed(parts, buckets) if isinstance(parts, dict) else [text(p, buckets) for p in parts])
