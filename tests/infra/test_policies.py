"""Each Lambda has exactly the permissions for its work."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from .conftest import of_type
from .resolve import Resolver

# Those with a role. `Burst` has the role of `Check`.
LAMBDAS = ["APIHandler", "Tick", "Objects", "Check", "RunState", "Custom", "Lake", "Lineage"]
# Actions for which IAM has no resource type, so that a policy can only name "*".
# https://docs.aws.amazon.com/service-authorization/latest/reference/
NO_RESOURCE_TYPE = {
    *("cloudwatch:GetMetricData", "ec2:DescribeSubnets"),
    *("xray:PutTelemetryRecords", "xray:PutTraceSegments"),
}
# Not a role of Sluice: API Gateway uses it to write the logs of all APIs of the account, and AWS prescribes its policy.
OF_THE_ACCOUNT = "ApiLogAccountRole"


def statements(resources: dict[str, Any], role: str) -> Iterator[dict[str, Any]]:
    """The statements of a role's inline policies, conditional ones included."""
    for each in resources[role]["Properties"]["Policies"]:
        policy = each["Fn::If"][1] if "Fn::If" in each else each
        yield from policy["PolicyDocument"]["Statement"]


def actions(statement: dict[str, Any]) -> set[str]:
    """The actions of a statement, as a set."""
    value = statement["Action"]
    return {value} if isinstance(value, str) else set(value)


def allowed(resources: dict[str, Any], function: str) -> set[str]:
    """Every action that a Lambda may do on some resource."""
    return {a for s in statements(resources, f"{function}Role") for a in actions(s)}


def roles(resources: dict[str, Any]) -> list[str]:
    """All roles of Sluice in the template."""
    return [name for name, _ in of_type(resources, "AWS::IAM::Role") if name != OF_THE_ACCOUNT]


def test_no_action_is_a_wildcard(resources: dict[str, Any]) -> None:
    for role in roles(resources):
        assert not [a for s in statements(resources, role) for a in actions(s) if "*" in a]


def test_a_resource_is_a_wildcard_only_where_iam_needs_it(resources: dict[str, Any]) -> None:
    for role in roles(resources):
        for statement in statements(resources, role):
            if statement["Resource"] in ("*", ["*"]):
                assert actions(statement) <= NO_RESOURCE_TYPE, f"{role}: {statement}"


def test_no_aws_managed_policy_is_attached(resources: dict[str, Any]) -> None:
    assert not [r for r in roles(resources) if "ManagedPolicyArns" in resources[r]["Properties"]]


def test_each_lambda_writes_only_its_own_log(resources: dict[str, Any]) -> None:
    for function in LAMBDAS:
        logs = [s for s in statements(resources, f"{function}Role") if "logs:PutLogEvents" in actions(s)]
        assert [s["Resource"] for s in logs] == [{"Fn::GetAtt": [f"{function}Log", "Arn"]}]


def test_only_the_check_lambda_starts_anything(resources: dict[str, Any]) -> None:
    starting = {
        "emr-serverless:StartJobRun",
        "iam:PassRole",
        "sns:Publish",
        "lambda:InvokeFunction",
        "events:PutEvents",
        "states:StartExecution",
        "states:StopExecution",
    }
    assert starting < allowed(resources, "Check")
    for function in set(LAMBDAS) - {"Check"}:
        assert not starting & allowed(resources, function)


TARGETS = [
    ("sqs:SendMessage", "TargetQueueArns", "sqs", "sluice-target-*"),
    ("sns:Publish", "TargetTopicArns", "sns", "sluice-target-*"),
    ("lambda:InvokeFunction", "TargetFunctionArns", "lambda", "function:sluice-target-*"),
    ("events:PutEvents", "TargetBusArns", "events", "event-bus/sluice-target-*"),
    ("states:StartExecution", "TargetStateMachineArns", "states", "stateMachine:sluice-target-*"),
    ("secretsmanager:GetSecretValue", "TargetSecretArns", "secretsmanager", "secret:sluice-target-*"),
    ("ssm:GetParameter", "TargetParameterArns", "ssm", "parameter/sluice-target/*"),
]


def delivered_to(template: dict[str, Any], action: str, **parameters: str) -> list[str]:
    """The ARNs on which `check` may do an action, but those of the stack's own resources."""
    resolve = Resolver(template, {"HintsQueue.Arn": "own", "BurstHintsQueue.Arn": "own"}, **parameters)
    found = [s["Resource"] for s in statements(template["Resources"], "CheckRole") if action in actions(s)]
    resolved = [arn for each in map(resolve, found) for arn in (each if isinstance(each, list) else [each])]
    return [str(arn) for arn in resolved if arn != "own"]


@pytest.mark.parametrize(("action", "parameter", "service", "resource"), TARGETS)
def test_o14_the_default_targets_are_those_of_the_account(
    template: dict[str, Any], action: str, parameter: str, service: str, resource: str
) -> None:
    assert template["Parameters"][parameter]["Default"] == f"arn:*:{service}:*:*:{resource}"
    assert delivered_to(template, action) == [f"arn:aws:{service}:*:123456789012:{resource}"]


@pytest.mark.parametrize(("action", "parameter", "service", "resource"), TARGETS)
def test_e5_deliveries_may_reach_only_what_installation_names(
    template: dict[str, Any], action: str, parameter: str, service: str, resource: str
) -> None:
    named = f"arn:aws:{service}:eu-west-1:210987654321:{resource.replace('sluice-target', 'team')}"
    assert delivered_to(template, action, **{parameter: f"{named},{named}-b"}) == [named, f"{named}-b"]


def test_e5_only_the_lambda_that_signs_reads_the_callback_keys(resources: dict[str, Any]) -> None:
    reading = {"secretsmanager:GetSecretValue", "ssm:GetParameter"}
    assert [f for f in LAMBDAS if reading & allowed(resources, f)] == ["Check", "Lineage"]
    [own] = [s for s in statements(resources, "LineageRole") if reading & actions(s)]
    assert own["Resource"]["Fn::If"][1]["Fn::Sub"].endswith(":parameter${LineageSecret}")  # no key of a callback


def test_o1_no_lambda_may_scan(resources: dict[str, Any]) -> None:
    assert [f for f in LAMBDAS if "dynamodb:Scan" in allowed(resources, f)] == []


def test_burst_has_the_role_and_the_log_of_check(resources: dict[str, Any]) -> None:
    """Roles of namespaces trust the role of `check`, and users read one log of what was delivered."""
    for name in ("Role", "LoggingConfig"):
        assert resources["Burst"]["Properties"][name] == resources["Check"]["Properties"][name]
    assert "BurstRole" not in resources
    assert "BurstLog" not in resources


@pytest.mark.parametrize(
    ("function", "queue"), [("Objects", "ObjectsQueue"), ("Check", "HintsQueue"), ("Check", "BurstHintsQueue")]
)
def test_a_queue_is_read_only_by_its_lambda(resources: dict[str, Any], function: str, queue: str) -> None:
    readers = [f for f in LAMBDAS for s in statements(resources, f"{f}Role") if _reads(s, queue)]
    assert readers == [function]


def test_jobs_write_the_lake_but_no_contexts(resources: dict[str, Any]) -> None:
    allowing = [s for s in statements(resources, "EmrJobRole") if s["Effect"] == "Allow"]
    writes = [s for s in allowing if "s3:PutObject" in actions(s)]
    assert [s["Resource"] for s in writes] == [
        {"Fn::Sub": "${LakeBucket.Arn}/*"},
        [{"Fn::Sub": f"${{ControlBucket.Arn}}/{folder}/*"} for folder in ("logs", "results")],
    ]


def test_w5_a_claim_may_rewrite_all_of_the_context_of_a_run(resources: dict[str, Any]) -> None:
    """An update was carried after the run was offered, and the run has more events than a context holds."""
    written = [s["Resource"] for s in statements(resources, "APIHandlerRole") if "s3:PutObject" in actions(s)]
    texts = json.dumps(written)
    assert "${ControlBucket.Arn}/context/*" in texts
    assert "${ControlBucket.Arn}/manifests/*" in texts


def _reads(statement: dict[str, Any], queue: str) -> bool:
    return "sqs:ReceiveMessage" in actions(statement) and queue in json.dumps(statement["Resource"])


@pytest.mark.parametrize(
    ("function", "queue"), [("Objects", "ObjectsQueue"), ("Check", '"HintsQueue'), ("Check", "BurstHintsQueue")]
)
def test_a_queue_reader_may_change_the_visibility_of_messages(
    resources: dict[str, Any], function: str, queue: str
) -> None:
    [reading] = [s for s in statements(resources, f"{function}Role") if _reads(s, queue)]
    assert {"sqs:ChangeMessageVisibility", "sqs:GetQueueUrl"} <= actions(reading)
