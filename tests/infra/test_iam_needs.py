"""The needs of a call in terms of IAM, and the decision of a policy: Allow and Deny, wildcards, conditions."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from infra.local.permissions import OPEN, Grant, Need, Place, Policy, covers, needs

PLACE = Place("us-east-1", "123456789012")
TABLE = "arn:aws:dynamodb:us-east-1:123456789012:table/jobs"
APPLICATION = "arn:aws:emr-serverless:us-east-1:123456789012:/applications/00app"
FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:f"
ROLE = "arn:aws:iam::123456789012:role/job"
PUT = {"Put": {"TableName": "jobs", "Item": {}}}
DELETE = {"Delete": {"TableName": "jobs", "Key": {}}}
CHECK = {"ConditionCheck": {"TableName": "runs", "Key": {}}}


def reported(service: str, operation: str, **parameters: Any) -> list[tuple[str, str]]:
    return [(need.action, need.resource) for need in needs(service, operation, parameters, PLACE)]


def allow(*actions: str, on: Any = "*", **more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": list(actions), "Resource": on, **more}


def test_a_transaction_needs_the_actions_of_each_of_its_items() -> None:
    assert reported("dynamodb", "TransactWriteItems", TransactItems=[PUT, DELETE, CHECK]) == [
        ("dynamodb:PutItem", TABLE),
        ("dynamodb:DeleteItem", TABLE),
        ("dynamodb:ConditionCheckItem", TABLE.replace("jobs", "runs")),
    ]


def test_a_batch_needs_one_action_on_each_table() -> None:
    assert reported("dynamodb", "BatchGetItem", RequestItems={"jobs": {}, "runs": {}}) == [
        ("dynamodb:BatchGetItem", TABLE),
        ("dynamodb:BatchGetItem", TABLE.replace("jobs", "runs")),
    ]


def test_a_query_of_an_index_needs_the_index_and_not_its_table() -> None:
    assert reported("dynamodb", "Query", TableName="jobs", IndexName="wake") == [
        ("dynamodb:Query", f"{TABLE}/index/wake")
    ]


def test_a_start_needs_its_role_passed_on_and_its_tags_set() -> None:
    sent = {"applicationId": "00app", "executionRoleArn": ROLE}
    assert reported("emr-serverless", "StartJobRun", **sent) == [
        ("emr-serverless:StartJobRun", APPLICATION),
        ("iam:PassRole", ROLE),
    ]
    tagged = reported("emr-serverless", "StartJobRun", **sent, tags={"a": "b"})
    assert tagged[2:] == [
        ("emr-serverless:TagResource", APPLICATION),
        ("emr-serverless:TagResource", f"{APPLICATION}/jobruns/new"),
    ]


@pytest.mark.parametrize("resource", [APPLICATION, f"{APPLICATION}/jobruns/*"])
def test_a_policy_with_one_of_several_open_resources_is_refused(resource: str) -> None:
    """IAM's reference lists application and job run for TagResource, and requires neither."""
    sent = {"applicationId": "00app", "executionRoleArn": ROLE, "tags": {"a": "b"}}
    asked = needs("emr-serverless", "StartJobRun", sent, PLACE)
    start, passed = allow("emr-serverless:StartJobRun", on=APPLICATION), allow("iam:PassRole", on=ROLE)
    tag = allow("emr-serverless:TagResource", on=resource)
    refused = [need for need in asked if not Policy([start, passed, tag]).allows(need)]
    assert [need.action for need in refused] == ["emr-serverless:TagResource"]
    both = allow("emr-serverless:TagResource", on=[APPLICATION, f"{APPLICATION}/jobruns/*"])
    assert all(Policy([start, passed, both]).allows(need) for need in asked)


def test_an_open_action_is_needed_on_each_resource_type() -> None:
    sent = {"applicationId": "00app", "executionRoleArn": ROLE, "tags": {"a": "b"}}
    found = Counter(need.action for need in needs("emr-serverless", "StartJobRun", sent, PLACE))
    assert {action: found[action] for action in OPEN} == {action: len(types) for action, types in OPEN.items()}


KEY = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
ENCRYPTED = {
    "arn:aws:sqs:us-east-1:123456789012:orders": KEY,
    "arn:aws:sns:us-east-1:123456789012:orders": KEY,
    "arn:aws:states:us-east-1:123456789012:execution:etl:*": KEY,
    "arn:aws:ssm:us-east-1:123456789012:parameter/a": KEY,
}
MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:etl"
EXECUTION = "arn:aws:states:us-east-1:123456789012:execution:etl:sluice-a"
BOTH = ["kms:GenerateDataKey", "kms:Decrypt"]


@pytest.mark.parametrize(
    ("service", "operation", "parameters", "actions"),
    [
        ("sqs", "SendMessageBatch", {"QueueUrl": "https://sqs.us-east-1.amazonaws.com/123456789012/orders"}, BOTH),
        ("sns", "PublishBatch", {"TopicArn": "arn:aws:sns:us-east-1:123456789012:orders"}, BOTH),
        ("stepfunctions", "StartExecution", {"stateMachineArn": MACHINE}, []),
        ("stepfunctions", "StopExecution", {"executionArn": EXECUTION}, []),
        ("stepfunctions", "DescribeExecution", {"executionArn": EXECUTION}, ["kms:Decrypt"]),
        ("ssm", "GetParameter", {"Name": "/a"}, ["kms:Decrypt"]),
    ],
)
def test_a_call_of_an_encrypted_target_needs_its_key(
    service: str, operation: str, parameters: dict[str, Any], actions: list[str]
) -> None:
    place = replace(PLACE, keys=ENCRYPTED)
    first, *asked = needs(service, operation, parameters, place)
    through = f"{first.action.partition(':')[0]}.us-east-1.amazonaws.com"
    assert asked == [Need(action, KEY, (("kms:ViaService", through),)) for action in actions]
    assert needs(service, operation, parameters, PLACE) == [first]


def test_reading_a_queue_and_other_targets_need_no_key() -> None:
    place = replace(PLACE, keys=ENCRYPTED)
    other = {"QueueUrl": "https://sqs.us-east-1.amazonaws.com/123456789012/plain"}
    assert len(needs("sqs", "SendMessage", other, place)) == 1
    own = {"QueueUrl": "https://sqs.us-east-1.amazonaws.com/123456789012/orders"}
    assert len(needs("sqs", "ChangeMessageVisibility", own, place)) == 1


@pytest.mark.parametrize(
    ("service", "operation", "parameters", "action", "resource"),
    [
        ("sqs", "SendMessageBatch", {"QueueUrl": "https://q/1/h"}, "sqs:SendMessage", "sqs:us-east-1:123456789012:h"),
        ("sqs", "GetQueueUrl", {"QueueName": "h"}, "sqs:GetQueueUrl", "sqs:us-east-1:123456789012:h"),
        ("s3", "HeadObject", {"Bucket": "b", "Key": "k"}, "s3:GetObject", "s3:::b/k"),
        ("s3", "UploadPart", {"Bucket": "b", "Key": "k"}, "s3:PutObject", "s3:::b/k"),
        ("s3", "ListObjectsV2", {"Bucket": "b", "Prefix": "p"}, "s3:ListBucket", "s3:::b"),
        ("lambda", "Invoke", {"FunctionName": FUNCTION}, "lambda:InvokeFunction", FUNCTION[8:]),
        ("ssm", "GetParameter", {"Name": "/a/b"}, "ssm:GetParameter", "ssm:us-east-1:123456789012:parameter/a/b"),
    ],
)  # fmt: skip
def test_actions_are_not_named_as_operations(
    service: str, operation: str, parameters: dict[str, Any], action: str, resource: str
) -> None:
    assert reported(service, operation, **parameters) == [(action, f"arn:aws:{resource}")]


def test_an_alias_needs_the_actions_of_its_state_machine() -> None:
    machine = "arn:aws:states:us-east-1:123456789012:stateMachine:etl"
    for qualifier in ("", ":PROD", ":7"):
        named = {"stateMachineArn": f"{machine}{qualifier}", "name": "a"}
        assert reported("stepfunctions", "StartExecution", **named) == [("states:StartExecution", machine)]
    execution = machine.replace("stateMachine", "execution") + ":a"
    for operation in ("DescribeExecution", "StopExecution"):
        assert reported("stepfunctions", operation, executionArn=execution) == [(f"states:{operation}", execution)]


def test_a_table_of_glue_needs_its_catalog_and_its_database_too() -> None:
    found = reported("glue", "GetTable", DatabaseName="sales", Name="orders")
    assert [resource.split(":")[-1] for _, resource in found] == ["catalog", "database/sales", "table/sales/orders"]


@pytest.mark.parametrize(
    ("service", "operation"), [("kinesis", "PutRecord"), ("s3", "DeleteObject"), ("glue", "GetTables")]
)
def test_an_operation_no_lambda_calls_is_not_guessed(service: str, operation: str) -> None:
    with pytest.raises(LookupError, match="add a rule with the actions that it needs"):
        reported(service, operation, Bucket="b", Key="k")


def test_an_action_without_a_statement_is_not_allowed() -> None:
    policy = Policy([allow("sqs:SendMessage", on="arn:aws:sqs:*:*:a-*")])
    assert policy.allows(Need("sqs:SendMessage", "arn:aws:sqs:us-east-1:1:a-b"))
    assert not policy.allows(Need("sqs:SendMessage", "arn:aws:sqs:us-east-1:1:b"))
    assert not policy.allows(Need("sqs:ReceiveMessage", "arn:aws:sqs:us-east-1:1:a-b"))


def test_a_deny_is_stronger_than_any_allow() -> None:
    deny = {"Effect": "Deny", "Action": "s3:PutObject", "Resource": "arn:aws:s3:::b/closed/*"}
    policy = Policy([allow("s3:PutObject"), deny])
    assert policy.allows(Need("s3:PutObject", "arn:aws:s3:::b/open/k"))
    assert not policy.allows(Need("s3:PutObject", "arn:aws:s3:::b/closed/k"))


def test_a_condition_is_checked_against_the_request() -> None:
    passed = {"StringEquals": {"iam:PassedToService": "emr-serverless.amazonaws.com"}}
    policy = Policy([allow("iam:PassRole", on=ROLE, Condition=passed)])
    start = needs("emr-serverless", "StartJobRun", {"applicationId": "a", "executionRoleArn": ROLE}, PLACE)[1]
    assert policy.allows(start)
    assert not policy.allows(Need("iam:PassRole", ROLE, (("iam:PassedToService", "lambda.amazonaws.com"),)))
    assert not policy.allows(Need("iam:PassRole", ROLE))

    listing = Policy([allow("s3:ListBucket", Condition={"StringLike": {"s3:prefix": "reports/*"}})])
    assert listing.allows(Need("s3:ListBucket", "arn:aws:s3:::b", (("s3:prefix", "reports/day=1/"),)))
    assert not listing.allows(Need("s3:ListBucket", "arn:aws:s3:::b", (("s3:prefix", "raw/"),)))


def test_grants_are_listed_singly_and_cover_what_they_allow() -> None:
    policy = Policy(
        [allow("s3:GetObject", "s3:PutObject", on=["arn:aws:s3:::b/x/*", "arn:aws:s3:::b/y/*"], Sid="Files")]
    )
    assert len(list(policy.grants())) == 4
    covering = [grant for grant in policy.grants() if covers(grant, Need("s3:GetObject", "arn:aws:s3:::b/y/k"))]
    assert covering == [Grant("Files", "s3:GetObject", "arn:aws:s3:::b/y/*")]


ECS = "arn:aws:ecs:us-east-1:123456789012"


@pytest.mark.parametrize("cluster", ["jobs", f"{ECS}:cluster/jobs"])
@pytest.mark.parametrize("definition", ["etl", "etl:3", f"{ECS}:task-definition/etl:3"])
def test_a_task_needs_its_definition_in_its_cluster(cluster: str, definition: str) -> None:
    start, tag = needs("ecs", "RunTask", {"cluster": cluster, "taskDefinition": definition, "tags": [{}]}, PLACE)
    assert start.action == "ecs:RunTask" and start.resource.startswith(f"{ECS}:task-definition/etl:")
    assert start.keys == (("ecs:cluster", f"{ECS}:cluster/jobs"),)
    assert (tag.action, tag.resource) == ("ecs:TagResource", f"{ECS}:task/jobs/new")


def test_a_list_of_tasks_needs_the_action_in_its_cluster() -> None:
    assert reported("ecs", "ListTasks", cluster="jobs") == [("ecs:ListTasks", "*")]
    with pytest.raises(LookupError, match="add a rule with the actions that it needs"):
        reported("ecs", "DeleteCluster", cluster="jobs")
