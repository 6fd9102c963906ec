"""The role with which Sluice calls the targets of a namespace: its trust, its permissions, and who may assume it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.aws.targets.athena import AthenaTarget
from infra import target_role, yaml_tags
from infra.local.permissions import Need, Place, Policy, needs
from infra.target_role import BadRole, template
from tests.support import rows
from tests.support.clock import HandClock
from tests.support.queries import TARGET, Queries

ACCOUNT = "eu-west-1:123456789012"
GIVEN = {
    "queue": [f"arn:aws:sqs:{ACCOUNT}:demo-*"],
    "topic": [f"arn:aws:sns:{ACCOUNT}:demo-*"],
    "function": [f"arn:aws:lambda:{ACCOUNT}:function:demo-*"],
    "bus": [f"arn:aws:events:{ACCOUNT}:event-bus/demo"],
    "state_machine": [f"arn:aws:states:{ACCOUNT}:stateMachine:demo-*"],
    "workgroup": [f"arn:aws:athena:{ACCOUNT}:workgroup/demo-*"],
    "database": [f"arn:aws:glue:{ACCOUNT}:database/lake"],
    "data": ["arn:aws:s3:::demo-lake/raw/*", "arn:aws:s3:::demo-lake/results/*"],
    "application": [f"arn:aws:emr-serverless:{ACCOUNT}:/applications/00demo"],
    "virtual_cluster": [f"arn:aws:emr-containers:{ACCOUNT}:/virtualclusters/00demo"],
    "execution_role": ["arn:aws:iam::123456789012:role/demo-job"],
    "job_queue": [f"arn:aws:batch:{ACCOUNT}:job-queue/demo"],
    "job_definition": [f"arn:aws:batch:{ACCOUNT}:job-definition/demo-load"],
    "cluster": [f"arn:aws:ecs:{ACCOUNT}:cluster/demo"],
    "task_definition": [f"arn:aws:ecs:{ACCOUNT}:task-definition/demo-*"],
    "task_role": ["arn:aws:iam::123456789012:role/demo-task"],
    "glue_job": [f"arn:aws:glue:{ACCOUNT}:job/demo-*"],
    "secret": [f"arn:aws:secretsmanager:{ACCOUNT}:secret:demo/*"],
    "parameter": [f"arn:aws:ssm:{ACCOUNT}:parameter/demo/*"],
    "action": [
        f"sns:Publish=arn:aws:sns:{ACCOUNT}:calls-*",
        f"sns:Publish=arn:aws:sns:{ACCOUNT}:days",
        f"ecs:Run*=arn:aws:ecs:{ACCOUNT}:task-definition/demo-*",
    ],
    "key": [f"arn:aws:kms:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab"],
}
# Two encrypted targets of the namespace, and jobs of two namespaces.
JOB_ARN = f"arn:aws:batch:{ACCOUNT}:job"
PLACE = Place(
    "eu-west-1",
    "123456789012",
    tags={f"{JOB_ARN}/j-{name}": {"sluice:namespace": name} for name in ("demo", "other")},
    keys=dict.fromkeys((f"arn:aws:sqs:{ACCOUNT}:demo-a", f"arn:aws:sns:{ACCOUNT}:demo-a"), GIVEN["key"][0]),
    workgroups={"q-own": "demo-a", "q-other": "other"},
)
QUEUE, EXECUTION = "https://sqs.eu-west-1.amazonaws.com/123456789012", f"arn:aws:states:{ACCOUNT}:execution"
JOB = {"applicationId": "00demo", "jobRunId": "j1"}
TASK = {"cluster": "demo", "taskDefinition": "demo-etl:3", "tags": [{"key": "a", "value": "b"}]}
ONE = f"arn:aws:ecs:{ACCOUNT}:task/demo/0a1b"
START = {"applicationId": "00demo", "executionRoleArn": GIVEN["execution_role"][0], "tags": {"a": "b"}}
ON_EKS = {"virtualClusterId": "00demo", "executionRoleArn": GIVEN["execution_role"][0]}
OF_EKS = {"virtualClusterId": "00demo", "id": "j1"}
SUBMIT = {"jobQueue": GIVEN["job_queue"][0], "jobDefinition": "demo-load:3", "tags": {"sluice:namespace": "demo"}}
WITHOUT_RESOURCE = {"batch:DescribeJobs", "batch:ListJobs"}
# The calls of the adapters, and each with a thing of another team.
CALLS: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("sqs", "SendMessageBatch", {"QueueUrl": f"{QUEUE}/demo-a"}, {"QueueUrl": f"{QUEUE}/other"}),
    ("sns", "PublishBatch", {"TopicArn": f"arn:aws:sns:{ACCOUNT}:demo-a"}, {"TopicArn": f"arn:aws:sns:{ACCOUNT}:x"}),
    (
        "lambda",
        "Invoke",
        {"FunctionName": f"arn:aws:lambda:{ACCOUNT}:function:demo-a"},
        {"FunctionName": f"arn:aws:lambda:{ACCOUNT}:function:other"},
    ),
    ("events", "PutEvents", {"Entries": [{"EventBusName": "demo"}]}, {"Entries": [{"EventBusName": "other"}]}),
    (
        "stepfunctions",
        "StartExecution",
        {"stateMachineArn": f"arn:aws:states:{ACCOUNT}:stateMachine:demo-a:3"},
        {"stateMachineArn": f"arn:aws:states:{ACCOUNT}:stateMachine:other"},
    ),
    (
        "stepfunctions",
        "StopExecution",
        {"executionArn": f"{EXECUTION}:demo-a:sluice-1"},
        {"executionArn": f"{EXECUTION}:demo-a:of-somebody-else"},
    ),
    ("athena", "StartQueryExecution", {"WorkGroup": "demo-a"}, {"WorkGroup": "other"}),
    ("athena", "ListQueryExecutions", {"WorkGroup": "demo-a"}, {"WorkGroup": "primary"}),
    ("athena", "BatchGetQueryExecution", {"QueryExecutionIds": ["q-own"]}, {"QueryExecutionIds": ["q-own", "q-other"]}),
    ("athena", "GetQueryExecution", {"QueryExecutionId": "q-own"}, {"QueryExecutionId": "q-other"}),
    ("athena", "StopQueryExecution", {"QueryExecutionId": "q-own"}, {"QueryExecutionId": "q-other"}),
    ("glue", "GetTable", {"DatabaseName": "lake", "Name": "t"}, {"DatabaseName": "other", "Name": "t"}),
    ("s3", "PutObject", {"Bucket": "demo-lake", "Key": "raw/a"}, {"Bucket": "demo-lake", "Key": "audit/a"}),
    ("emr-serverless", "StartJobRun", START, {**START, "executionRoleArn": "arn:aws:iam::123456789012:role/x"}),
    ("emr-serverless", "GetJobRun", JOB, {**JOB, "applicationId": "00other"}),
    ("emr-serverless", "CancelJobRun", JOB, {**JOB, "applicationId": "00other"}),
    ("emr-serverless", "ListJobRuns", {"applicationId": "00demo"}, {"applicationId": "00other"}),
    ("emr-containers", "StartJobRun", ON_EKS, {**ON_EKS, "virtualClusterId": "00other"}),
    ("emr-containers", "StartJobRun", ON_EKS, {**ON_EKS, "executionRoleArn": "arn:aws:iam::123456789012:role/x"}),
    ("emr-containers", "DescribeJobRun", OF_EKS, {**OF_EKS, "virtualClusterId": "00other"}),
    ("emr-containers", "CancelJobRun", OF_EKS, {**OF_EKS, "virtualClusterId": "00other"}),
    ("emr-containers", "ListJobRuns", {"virtualClusterId": "00demo"}, {"virtualClusterId": "00other"}),
    ("batch", "SubmitJob", SUBMIT, {**SUBMIT, "jobQueue": "other"}),
    ("batch", "SubmitJob", {**SUBMIT, "jobDefinition": "demo-load"}, {**SUBMIT, "jobDefinition": "demo-load-other:3"}),
    ("batch", "SubmitJob", SUBMIT, {**SUBMIT, "tags": {"sluice:namespace": "other"}}),
    ("batch", "SubmitJob", SUBMIT, {**SUBMIT, "tags": {"a": "b"}}),
    ("batch", "TerminateJob", {"jobId": "j-demo"}, {"jobId": "j-other"}),
    ("ecs", "RunTask", TASK, {**TASK, "taskDefinition": "other"}),
    ("ecs", "RunTask", TASK, {**TASK, "cluster": "other"}),
    (
        "ecs",
        "DescribeTasks",
        {"cluster": "demo", "tasks": [ONE]},
        {"cluster": "x", "tasks": [ONE.replace("demo", "x")]},
    ),
    ("ecs", "StopTask", {"cluster": "demo", "task": ONE}, {"cluster": "x", "task": ONE.replace("demo", "x")}),
    ("ecs", "ListTasks", {"cluster": "demo"}, {"cluster": "other"}),
    *(
        ("glue", operation, {"JobName": "demo-etl"}, {"JobName": "other"})
        for operation in ("BatchStopJobRun", "GetJob", "GetJobRun", "GetJobRuns", "StartJobRun")
    ),
    ("secretsmanager", "GetSecretValue", {"SecretId": "demo/key"}, {"SecretId": "other/key"}),
    ("ssm", "GetParameter", {"Name": "/demo/key"}, {"Name": "/other/key"}),
]


def role(**targets: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = template("demo", "prod", targets or GIVEN)["Resources"]["TargetRole"]["Properties"]
    return found


def policy(**targets: list[str]) -> Policy:
    return Policy(role(**targets)["Policies"][0]["PolicyDocument"]["Statement"])


@pytest.mark.parametrize(("service", "operation", "own", "foreign"), CALLS)
def test_o10_a_role_calls_the_targets_of_its_namespace_alone(
    service: str, operation: str, own: dict[str, Any], foreign: dict[str, Any]
) -> None:
    allowed = policy()
    assert all(allowed.allows(need) for need in needs(service, operation, own, PLACE))
    assert not all(allowed.allows(need) for need in needs(service, operation, foreign, PLACE))


def test_o10_a_role_may_tag_by_application_and_by_run() -> None:
    tagging = [each.resource for each in policy().grants() if each.action == "emr-serverless:TagResource"]
    assert tagging == [GIVEN["application"][0], f"{GIVEN['application'][0]}/jobruns/*"]


@pytest.mark.parametrize(("service", "operation", "own", "foreign"), CALLS[:2])
def test_o10_a_role_without_the_key_sends_nothing_encrypted(
    service: str, operation: str, own: dict[str, Any], foreign: dict[str, Any]
) -> None:
    allowed = policy(**{kind: arns for kind, arns in GIVEN.items() if kind != "key"})
    refused = [need.action for need in needs(service, operation, own, PLACE) if not allowed.allows(need)]
    assert refused == ["kms:GenerateDataKey", "kms:Decrypt"]


def test_o10_a_role_uses_a_key_through_targets_alone() -> None:
    action, [key] = "kms:Decrypt", GIVEN["key"]
    through = {name: policy().allows(Need(action, key, (("kms:ViaService", f"{name}.eu-west-1.amazonaws.com"),)))
               for name in ("sqs", "sns", "states", "secretsmanager", "ssm", "s3", "dynamodb")}  # fmt: skip
    assert [name for name, allowed in through.items() if allowed] == ["sqs", "sns", "states", "secretsmanager", "ssm"]
    of_executions = (("kms:ViaService", "states.eu-west-1.amazonaws.com"),)
    assert not policy().allows(Need("kms:GenerateDataKey", key, of_executions))
    assert policy().allows(Need(action, key, (("kms:ViaService", "sqs.cn-north-1.amazonaws.com.cn"),)))
    assert not policy().allows(Need(action, key))


def test_o10_a_role_trusts_two_lambdas_with_its_external_id() -> None:
    [statement] = role()["AssumeRolePolicyDocument"]["Statement"]
    assert statement["Principal"] == {"AWS": [{"Ref": "CheckRoleArn"}, {"Ref": "RunStateRoleArn"}]}
    assert statement["Condition"] == {"StringEquals": {"sts:ExternalId": "sluice/prod/demo"}}


def test_w22_a_role_makes_the_given_calls_alone() -> None:
    allowed = policy(action=GIVEN["action"])
    topic, task = f"arn:aws:sns:{ACCOUNT}:", f"arn:aws:ecs:{ACCOUNT}:task-definition/"
    made = [
        Need("sns:Publish", f"{topic}calls-a"),
        Need("sns:Publish", f"{topic}days"),
        Need("ecs:RunTask", f"{task}demo-1"),
    ]
    others = [Need("sns:Publish", f"{topic}x"), Need("sns:Subscribe", f"{topic}days"), Need("ecs:RunTask", f"{task}x")]
    assert [need for need in (*made, *others) if allowed.allows(need)] == made
    everywhere = policy(action=["cloudwatch:PutMetricData=*"])
    assert everywhere.allows(Need("cloudwatch:PutMetricData", "*"))
    statements = role(action=GIVEN["action"])["Policies"][0]["PolicyDocument"]["Statement"]
    assert [each["Sid"] for each in statements] == ["Call1", "Call2"]


def test_o10_a_role_has_permissions_for_its_targets_alone() -> None:
    assert policy(queue=GIVEN["queue"]).actions == {"sqs:SendMessage"}


def test_w22_a_role_for_eks_passes_no_role() -> None:
    only = policy(virtual_cluster=GIVEN["virtual_cluster"], execution_role=GIVEN["execution_role"])
    calls = ("CancelJobRun", "DescribeJobRun", "ListJobRuns", "StartJobRun")
    assert only.actions == {f"emr-containers:{each}" for each in calls}


def test_a_role_passes_the_roles_of_tasks_to_tasks_alone() -> None:
    action, [passed] = "iam:PassRole", GIVEN["task_role"]
    assert policy().allows(Need(action, passed, (("iam:PassedToService", "ecs-tasks.amazonaws.com"),)))
    assert not policy().allows(Need(action, passed, (("iam:PassedToService", "emr-serverless.amazonaws.com"),)))


def test_a_role_tags_tasks_only_when_it_starts_them() -> None:
    assert not policy().allows(Need("ecs:TagResource", ONE, (("ecs:CreateAction", "CreateService"),)))


@pytest.mark.parametrize(("holder", "allowed"), [("demo", True), ("other", False)])
def test_w22_a_role_takes_no_job_from_another_namespace(holder: str, allowed: bool) -> None:
    keys = (("aws:RequestTag/sluice:namespace", "demo"), ("aws:ResourceTag/sluice:namespace", holder))
    assert policy().allows(Need("batch:TagResource", f"{JOB_ARN}/j-{holder}", keys)) == allowed


def test_w22_a_role_of_queries_reads_the_list_of_databases() -> None:
    catalog = GIVEN["database"][0].partition(":database/")[0] + ":catalog"
    assert policy().allows(Need("glue:GetDatabases", catalog))


def test_no_action_or_resource_of_a_role_is_a_wildcard() -> None:
    """But for the calls for which IAM has no resource. https://docs.aws.amazon.com/service-authorization/"""
    for statement in role()["Policies"][0]["PolicyDocument"]["Statement"]:
        if statement["Sid"] == "ListTasks":  # it has no resource in IAM; a condition names the cluster
            assert statement["Condition"] == {"ArnLike": {"ecs:cluster": GIVEN["cluster"]}}
            continue
        assert "*" not in statement["Action"]
        assert "*" not in statement["Resource"] or set(statement["Action"]) <= WITHOUT_RESOURCE


def test_w22_a_role_reads_jobs_of_batch_alone() -> None:
    reading = [each.resource for each in policy().grants() if each.action in WITHOUT_RESOURCE]
    assert reading == ["*"] * len(WITHOUT_RESOURCE)
    for operation in ("DescribeJobs", "ListJobs"):
        assert all(policy().allows(need) for need in needs("batch", operation, {}, PLACE))
    without = policy(queue=GIVEN["queue"])
    assert not any(action.startswith("batch:") for action in without.actions)


@pytest.mark.parametrize(
    ("namespace", "stage", "targets", "expected"),
    [
        ("Demo", "prod", GIVEN, "expected the name of a namespace, got 'Demo'"),
        ("demo", "Prod", GIVEN, "expected the stage of a stack such as prod, got 'Prod'"),
        ("demo", "prod", {}, "expected at least one target, got none"),
        ("demo", "prod", {"queue": ["demo"]}, "expected the ARN of a queue, got 'demo'"),
        ("demo", "prod", {"key": GIVEN["key"]}, "expected at least one target, got none"),
        ("demo", "prod", {"key": [f"arn:aws:kms:{ACCOUNT}:alias/a"]}, "expected the ARN of a KMS key that encrypts"),
        ("demo", "prod", {"action": ["sns:Publish"]}, "expected an action of IAM and the ARN of its resource, such as"),
        ("demo", "prod", {"action": ["*=*"]}, "expected an action of IAM and the ARN of its resource"),
        ("demo", "prod", {"action": ["sns:*=*"]}, "expected an action of IAM and the ARN of its resource"),
        ("demo", "prod", {"application": GIVEN["application"]}, target_role.NEEDS_APPLICATION),
        ("demo", "prod", {"virtual_cluster": GIVEN["virtual_cluster"]}, target_role.NEEDS_APPLICATION),
        ("demo", "prod", {"cluster": GIVEN["cluster"]}, "expected a cluster with each task definition"),
        ("demo", "prod", {"task_role": GIVEN["task_role"]}, "expected a cluster with each task definition"),
        ("demo", "prod", {"execution_role": GIVEN["execution_role"]}, target_role.NEEDS_APPLICATION),
        ("demo", "prod", {"job_queue": GIVEN["job_queue"]}, "expected a job definition with each job queue"),
        (
            "demo",
            "prod",
            {"job_definition": [f"{GIVEN['job_definition'][0]}:1"]},
            "expected the ARN of a job definition",
        ),
    ],
)
def test_a_malformed_name_or_arn_is_refused(
    namespace: str, stage: str, targets: dict[str, list[str]], expected: str
) -> None:
    with pytest.raises(BadRole) as failure:
        template(namespace, stage, targets)
    assert str(failure.value).startswith(expected)


def test_the_command_prints_the_template(capsys: pytest.CaptureFixture[str]) -> None:
    assert target_role.main(["demo", "--stage", "prod", "--queue", GIVEN["queue"][0]]) == 0
    assert yaml_tags.load(capsys.readouterr().out) == template("demo", "prod", {"queue": GIVEN["queue"]})
    assert target_role.main(["demo", "--stage", "prod"]) == 1
    assert capsys.readouterr().err.startswith("target role: expected at least one target")


# -- the stack ------------------------------------------------------------------------------------------------------


def test_o10_two_lambdas_may_assume_the_listed_roles(template: dict[str, Any], resources: dict[str, Any]) -> None:
    parameter = template["Parameters"]["TargetRoleArns"]
    assert (parameter["Type"], parameter["Default"]) == ("String", "")
    listed = {"Fn::Equals": [{"Ref": "TargetRoleArns"}, ""]}
    assert template["Conditions"]["AssumesTargetRoles"] == {"Fn::Not": [listed]}
    given = resources["AssumeTargetRoles"]
    assert given["Condition"] == "AssumesTargetRoles"
    assert given["Properties"]["Roles"] == [{"Ref": "CheckRole"}, {"Ref": "RunStateRole"}]
    [statement] = given["Properties"]["PolicyDocument"]["Statement"]
    assert statement["Action"] == "sts:AssumeRole"
    assert statement["Resource"] == {"Fn::Split": [",", {"Ref": "TargetRoleArns"}]}


def test_o10_no_other_permission_of_the_stack_assumes_a_role(resources: dict[str, Any]) -> None:
    found = [name for name, each in resources.items() if _assumes(each) and name != "AssumeTargetRoles"]
    assert found == []


def _assumes(resource: dict[str, Any]) -> bool:
    properties = resource.get("Properties", {})
    documents = [properties.get("PolicyDocument"), *properties.get("Policies", [])]
    return resource["Type"].startswith("AWS::IAM") and "sts:AssumeRole" in json.dumps(documents)


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("", True),
        ("arn:aws:iam::123456789012:role/sluice-target-demo", True),
        ("arn:aws:iam::123456789012:role/sluice-target-*,arn:aws:iam::210987654321:role/x", True),
        ("*", False),
        ("arn:aws:iam::123456789012:role/*", False),
        ("arn:aws:iam::*:role/sluice-target-demo", False),
        ("arn:aws:iam::123456789012:user/demo", False),
    ],
)
def test_o10_the_parameter_takes_roles_with_an_account_and_name(
    template: dict[str, Any], text: str, fits: bool
) -> None:
    assert bool(re.fullmatch(template["Parameters"]["TargetRoleArns"]["AllowedPattern"], text)) is fits


def test_w22_a_role_may_do_all_that_the_adapter_of_athena_does() -> None:
    """Each call that the adapter makes is among those of `CALLS`."""
    clock = HandClock()
    queries = Queries(clock)
    adapter = AthenaTarget(queries, clock.now, pause=lambda seconds: None)
    plain = rows.run("demo.flights.clean.1.a", start_requested_at=clock.now())
    run = replace(plain, request=replace(plain.request, target=TARGET, client_token="t" * 40))
    adapter.start(run, {"correlation": {"day": "1"}})
    [made] = queries.queries.values()
    begun = replace(run, target_id=made.id)
    assert adapter.find(run) == made.id
    adapter.cancel(begun)
    made.shown = False
    adapter.status(begun)
    assert set(queries.calls) == {operation for service, operation, *_ in CALLS if service == "athena"}
