"""The CloudFormation template of the role with which Sluice calls the targets of one namespace.

    python -m infra.target_role demo --stage prod --queue arn:aws:sqs:eu-west-1:123456789012:demo-* > demo-target.yaml

The role trusts the Lambdas `check`, `burst` and `run_state` of one stack, with the external id of the namespace. It may
call the given targets and nothing else; with `--key` also those that a KMS key of your own encrypts, and with `--action
sns:Publish=arn:aws:sns:...` AWS's API, for targets of the type `aws_api`. The template has
two parameters, the outputs `CheckRoleArn` and `RunStateRoleArn` of the stack. The parameter `TargetRoleArns` of the
stack must name the role, and then the allow-list of the namespace.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from chalicelib.aws.targets.assumed import external_id
from infra import yaml_tags

_NAMESPACE = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_STAGE = re.compile(r"[a-z][a-z0-9-]{0,15}")
# The targets by the option that names them: the form of an ARN, and a word for it.
_FORMS: Mapping[str, tuple[str, str]] = {
    "queue": (r"arn:aws[a-z-]*:sqs:\S+", "a queue"),
    "topic": (r"arn:aws[a-z-]*:sns:\S+", "a topic"),
    "function": (r"arn:aws[a-z-]*:lambda:\S+:function:\S+", "a function"),
    "bus": (r"arn:aws[a-z-]*:events:\S+:event-bus/\S+", "an event bus"),
    "state_machine": (r"arn:aws[a-z-]*:states:\S+:stateMachine:[^:\s]+", "a state machine without a version"),
    "workgroup": (r"arn:aws[a-z-]*:athena:\S+:workgroup/\S+", "a workgroup of Athena"),
    "database": (r"arn:aws[a-z-]*:glue:[a-z0-9-]+:\d{12}:database/\S+", "a Glue database of queries"),
    "data": (r"arn:aws[a-z-]*:s3:::[^/\s]+/\S+", "the objects that queries read and write, their results included"),
    "application": (r"arn:aws[a-z-]*:emr-serverless:\S+:/applications/[0-9a-z]+", "an application of EMR Serverless"),
    "virtual_cluster": (
        r"arn:aws[a-z-]*:emr-containers:[a-z0-9-]+:\d{12}:/virtualclusters/[0-9a-z]+",
        "a virtual cluster of EMR on EKS",
    ),
    "execution_role": (r"arn:aws[a-z-]*:iam::\d{12}:role/\S+", "an execution role"),
    "job_queue": (r"arn:aws[a-z-]*:batch:[a-z0-9-]+:\d{12}:job-queue/\S+", "a job queue of AWS Batch"),
    "job_definition": (r"arn:aws[a-z-]*:batch:\S+:job-definition/[^:\s]+", "a job definition without a revision"),
    "cluster": (r"arn:aws[a-z-]*:ecs:\S+:cluster/[A-Za-z0-9_*-]+", "a cluster of ECS"),
    "task_definition": (r"arn:aws[a-z-]*:ecs:\S+:task-definition/[^:\s]+", "a task definition without a revision"),
    "task_role": (r"arn:aws[a-z-]*:iam::\d{12}:role/\S+", "a role of task definitions"),
    "glue_job": (r"arn:aws[a-z-]*:glue:[a-z0-9*-]+:\d{12}:job/\S+", "a Glue job"),
    "secret": (r"arn:aws[a-z-]*:secretsmanager:\S+:secret:\S+", "a secret"),
    "parameter": (r"arn:aws[a-z-]*:ssm:\S+:parameter/\S+", "an SSM parameter"),
    "action": (
        r"[a-z0-9-]+:[A-Z][A-Za-z0-9]*\*?=(?:\*|arn:aws[a-z-]*:[a-z0-9-]+:\S+)",
        "an action of IAM and the ARN of its resource, such as sns:Publish=arn:aws:sns:eu-west-1:123456789012:demo-*",
    ),
    "key": (r"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[\w-]+", "a KMS key that encrypts targets"),
}
_QUERIES = tuple(
    f"athena:{action}"
    for action in ("BatchGetQueryExecution", "GetQueryExecution", "ListQueryExecutions", "StartQueryExecution",
                   "StopQueryExecution")
)  # fmt: skip
# Athena reads and writes tables and objects with the rights of the caller that starts a query.
# https://docs.aws.amazon.com/athena/latest/ug/managed-policies.html#amazonathenafullaccess-managed-policy
_TABLES = tuple(
    f"glue:{action}"
    for action in ("BatchCreatePartition", "BatchGetPartition", "CreateTable", "GetDatabase", "GetDatabases",
                   "GetPartition", "GetPartitions", "GetTable", "GetTables", "UpdateTable")
)  # fmt: skip
_OBJECTS = ("s3:AbortMultipartUpload", "s3:GetObject", "s3:ListMultipartUploadParts", "s3:PutObject")
_BUCKETS = ("s3:GetBucketLocation", "s3:ListBucket", "s3:ListBucketMultipartUploads")
NEEDS_APPLICATION = (
    "expected an application or a virtual cluster with each execution role, and an execution role with each of them"
)
NEEDS_DEFINITION = "expected a job definition with each job queue, and a job queue with each job definition"
NEEDS_CLUSTER = "expected a cluster with each task definition, and a task definition with each cluster and task role"
# The services that decrypt with the rights of their callers, and those that encrypt so. Their domain differs in China.
_DECRYPT = ("secretsmanager", "sns", "sqs", "ssm", "states")
_ENCRYPT = ("sns", "sqs")
Statement = tuple[str, list[str], list[str], dict[str, Any]]  # its id, actions, resources, and more of its parts
_OF_GLUE = ("BatchStopJobRun", "GetJob", "GetJobRun", "GetJobRuns", "StartJobRun")


class BadRole(ValueError):
    """A name or an ARN that no role may have. The message says what was expected."""


def template(namespace: str, stage: str, targets: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The template of the target role of a namespace.

    `targets` are ARNs, or patterns of ARNs, by kind: `queue`, `topic`, `function`, `bus`, `state_machine`,
    `application`, `virtual_cluster`, `execution_role`, `job_queue`, `job_definition`, `cluster`, `task_definition`,
    `task_role`, `secret`, `glue_job`, `workgroup`, `database`, `data`, `parameter`, `key`; an `action` is
    `<action>=<ARN>`. Raises `BadRole` for malformed names and ARNs, and for a role that may call nothing.
    """
    if not _NAMESPACE.fullmatch(namespace):
        raise BadRole(f"expected the name of a namespace, got {namespace!r}")
    if not _STAGE.fullmatch(stage):
        raise BadRole(f"expected the stage of a stack such as prod, got {stage!r}")
    for kind, arns in targets.items():
        form, word = _FORMS[kind]
        for arn in arns:
            if not re.fullmatch(form, arn, re.ASCII):
                what = word if kind == "action" else f"the ARN of {word}"
                raise BadRole(f"expected {what}, got {arn!r}")
    for one, other, why in (
        ("job_queue", "job_definition", NEEDS_DEFINITION),
        ("cluster", "task_definition", NEEDS_CLUSTER),
    ):
        if bool(targets.get(one)) != bool(targets.get(other)):
            raise BadRole(why)
    if bool(targets.get("application") or targets.get("virtual_cluster")) != bool(targets.get("execution_role")):
        raise BadRole(NEEDS_APPLICATION)
    if targets.get("task_role") and not targets.get("cluster"):
        raise BadRole(NEEDS_CLUSTER)
    statements = _statements(targets, namespace)
    if not any(arns for kind, arns in targets.items() if kind != "key"):
        raise BadRole("expected at least one target, got none: a role without permissions calls nothing")
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": f"The role with which Sluice, stage {stage}, calls the targets of namespace {namespace}.",
        "Parameters": {
            "CheckRoleArn": {"Type": "String", "Description": "Output CheckRoleArn of Sluice's stack."},
            "RunStateRoleArn": {"Type": "String", "Description": "Output RunStateRoleArn of Sluice's stack."},
        },
        "Resources": {
            "TargetRole": {
                "Type": "AWS::IAM::Role",
                "Properties": {
                    "RoleName": f"sluice-target-{namespace}"[:64],
                    "AssumeRolePolicyDocument": _trust(namespace, stage),
                    "Policies": [
                        {
                            "PolicyName": "targets",
                            "PolicyDocument": {"Version": "2012-10-17", "Statement": statements},
                        }
                    ],
                    "Tags": [{"Key": "sluice:namespace", "Value": namespace}],
                },
            }
        },
        "Outputs": {"RoleArn": {"Value": {"Fn::GetAtt": ["TargetRole", "Arn"]}}},
    }


def _trust(namespace: str, stage: str) -> dict[str, Any]:
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"AWS": [{"Ref": "CheckRoleArn"}, {"Ref": "RunStateRoleArn"}]},
                "Action": "sts:AssumeRole",
                "Condition": {"StringEquals": {"sts:ExternalId": external_id(stage, namespace)}},
            }
        ],
    }


def _statements(targets: Mapping[str, Sequence[str]], namespace: str) -> list[dict[str, Any]]:
    def of(kind: str, after: str = "") -> list[str]:
        return [f"{arn}{after}" for arn in dict.fromkeys(targets.get(kind, ()))]

    executions = [arn.replace(":stateMachine:", ":execution:") + ":sluice-*" for arn in of("state_machine")]
    passed = {"Condition": {"StringEquals": {"iam:PassedToService": "emr-serverless.amazonaws.com"}}}
    wanted: list[Statement] = [
        ("SendMessages", ["sqs:SendMessage"], of("queue"), {}),
        ("Publish", ["sns:Publish"], of("topic"), {}),
        ("InvokeFunctions", ["lambda:InvokeFunction"], of("function"), {}),
        ("PutEvents", ["events:PutEvents"], of("bus"), {}),
        ("StartExecutions", ["states:StartExecution"], of("state_machine"), {}),
        ("ReadAndStopExecutions", ["states:DescribeExecution", "states:StopExecution"], executions, {}),
        ("RunQueries", list(_QUERIES), of("workgroup"), {}),
        ("UseTablesOfQueries", list(_TABLES), _of_tables(of("database")), {}),
        ("UseObjectsOfQueries", list(_OBJECTS), of("data"), {}),
        ("ListObjectsOfQueries", list(_BUCKETS), list(dict.fromkeys(arn.partition("/")[0] for arn in of("data"))), {}),
        (
            "StartTagAndListRuns",
            [
                "emr-serverless:GetApplication",
                "emr-serverless:ListJobRuns",
                "emr-serverless:StartJobRun",
                "emr-serverless:TagResource",
            ],
            of("application"),
            {},
        ),
        (
            "ReadTagAndCancelRuns",
            ["emr-serverless:CancelJobRun", "emr-serverless:GetJobRun", "emr-serverless:TagResource"],
            of("application", "/jobruns/*"),
            {},
        ),
        ("PassJobRoles", ["iam:PassRole"], of("execution_role") if of("application") else [], passed),
        *_of_eks(of),
        *_jobs(of, namespace),
        *_tasks(of),
        ("RunGlueJobs", [f"glue:{action}" for action in _OF_GLUE], of("glue_job"), {}),
        ("ReadSecrets", ["secretsmanager:GetSecretValue"], of("secret"), {}),
        ("ReadParameters", ["ssm:GetParameter"], of("parameter"), {}),
        ("DecryptUnderKeysOfTargets", ["kms:Decrypt"], of("key"), _through(_DECRYPT)),
        ("EncryptUnderKeysOfTargets", ["kms:GenerateDataKey"], of("key"), _through(_ENCRYPT)),
    ]
    return [
        {"Sid": sid, "Effect": "Allow", "Action": actions, "Resource": resources, **more}
        for sid, actions, resources, more in (*wanted, *_calls(targets.get("action", ())))
        if resources
    ]


def _of_eks(of: Callable[..., list[str]]) -> list[Statement]:
    """The statements for job runs of EMR on EKS. A start passes no role, so a condition names the execution roles.

    https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonemroneksemrcontainers.html
    """
    clusters, runs = of("virtual_cluster"), of("virtual_cluster", "/jobruns/*")
    roles = {"Condition": {"ArnLike": {"emr-containers:ExecutionRoleArn": of("execution_role")}}}
    return [
        ("StartRunsOnEks", ["emr-containers:StartJobRun"], clusters, roles),
        ("ListRunsOnEks", ["emr-containers:ListJobRuns"], clusters, {}),
        ("ReadAndCancelRunsOnEks", ["emr-containers:CancelJobRun", "emr-containers:DescribeJobRun"], runs, {}),
    ]


def _jobs(
    of: Callable[[str, str], list[str]], namespace: str
) -> list[tuple[str, list[str], list[str], dict[str, Any]]]:
    """The statements for jobs of AWS Batch. IAM has no resource for the calls that read jobs.

    https://docs.aws.amazon.com/service-authorization/latest/reference/list_awsbatch.html
    """
    queues = of("job_queue", "")
    jobs = list(dict.fromkeys(f"{queue.partition(':job-queue/')[0]}:job/*" for queue in queues))
    submitted = [*queues, *of("job_definition", ""), *of("job_definition", ":*")]
    own = {"Condition": {"StringEquals": {"aws:ResourceTag/sluice:namespace": namespace}}}
    # A job gets the tag of this namespace, and never in the place of another one: the tag decides who may terminate it.
    tagged = {
        "Condition": {
            "StringEquals": {"aws:RequestTag/sluice:namespace": namespace},
            "StringEqualsIfExists": {"aws:ResourceTag/sluice:namespace": namespace},
        }
    }
    return [
        ("SubmitJobs", ["batch:SubmitJob"], submitted, {}),
        ("TagJobs", ["batch:TagResource"], jobs, tagged),
        ("TerminateJobs", ["batch:TerminateJob"], jobs, own),
        ("ReadJobs", ["batch:DescribeJobs", "batch:ListJobs"], ["*"] if jobs else [], {}),
    ]


def _tasks(of: Callable[[str, str], list[str]]) -> list[Statement]:
    """The statements for tasks of ECS. ListTasks knows no resource, so a condition names the clusters.

    https://docs.aws.amazon.com/AmazonECS/latest/developerguide/security_iam_id-based-policy-examples.html
    """
    clusters, roles = of("cluster", ""), of("task_role", "")
    tasks = [arn.replace(":cluster/", ":task/") + "/*" for arn in clusters]
    inside = {"ArnLike": {"ecs:cluster": clusters}}
    created = {"Condition": {"StringEquals": {"ecs:CreateAction": "RunTask"}}}
    passed = {"Condition": {"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}}}
    return [
        ("RunTasks", ["ecs:RunTask"], of("task_definition", ":*"), {"Condition": inside}),
        ("ReadAndStopTasks", ["ecs:DescribeTasks", "ecs:StopTask"], tasks, {}),
        ("TagTasks", ["ecs:TagResource"], tasks, created),
        ("ListTasks", ["ecs:ListTasks"], ["*"] if clusters else [], {"Condition": inside}),
        ("PassTaskRoles", ["iam:PassRole"], roles, passed),
    ]


def _calls(given: Sequence[str]) -> Iterator[tuple[str, list[str], list[str], dict[str, Any]]]:
    """A statement for each action of IAM, with all its resources."""
    resources: dict[str, list[str]] = {}
    for action, _, resource in (each.partition("=") for each in dict.fromkeys(given)):
        resources.setdefault(action, []).append(resource)
    for number, (action, on) in enumerate(resources.items(), 1):
        yield f"Call{number}", [action], on, {}


def _of_tables(databases: Sequence[str]) -> list[str]:
    """An action on a table needs the action on its database and its catalog, too."""
    catalogs = [f"{arn.partition(':database/')[0]}:catalog" for arn in databases]
    tables = [f"{arn.replace(':database/', ':table/')}/*" for arn in databases]
    return list(dict.fromkeys([*catalogs, *databases, *tables]))


def _through(services: Sequence[str]) -> dict[str, Any]:
    return {"Condition": {"StringLike": {"kms:ViaService": [f"{service}.*.amazonaws.com*" for service in services]}}}


def main(argv: list[str] | None = None) -> int:
    """Command line. Exit code 1 with one message for names that no role may have."""
    parser = argparse.ArgumentParser(prog="python -m infra.target_role", description="The target role of a namespace.")
    parser.add_argument("namespace")
    parser.add_argument("--stage", required=True, help="stage of the stack, such as prod")
    for kind, (_, word) in _FORMS.items():
        option = f"--{kind.replace('_', '-')}"
        form, text = ("ACTION=ARN", word) if kind == "action" else ("ARN", f"ARN, or pattern, of {word}")
        parser.add_argument(option, action="append", default=[], metavar=form, help=text)
    options = vars(parser.parse_args(argv))
    try:
        made = template(options["namespace"], options["stage"], {kind: options[kind] for kind in _FORMS})
    except BadRole as error:
        print(f"target role: {error}", file=sys.stderr)
        return 1
    print(yaml_tags.dump(made), end="")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
