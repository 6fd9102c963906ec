"""The IAM actions that a call to AWS needs, and whether a policy allows them.

A call does not always need an IAM action of the same name. A batch of messages needs `sqs:SendMessage`, and a DynamoDB
transaction the action of each of its items. A job run of EMR Serverless also needs `iam:PassRole` for its role. `needs`
returns the actions and resources of a call. `Policy` answers whether they are allowed; the evaluation is ministack's
(`ministack.core.iam_evaluator`), with which the local cloud also refuses calls.

AWS's reference lists the resource types of each action. For some actions it lists several, none of them required, and
no page says which one a call is checked against. Such a call needs the action on each of them (`OPEN`), so a policy
that names only one of them is refused here (decision 0109).

https://docs.aws.amazon.com/service-authorization/latest/reference/
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from ministack.core import iam_evaluator

_TRANSACTED = {
    "Put": "dynamodb:PutItem",
    "Update": "dynamodb:UpdateItem",
    "Delete": "dynamodb:DeleteItem",
    "ConditionCheck": "dynamodb:ConditionCheckItem",
    "Get": "dynamodb:GetItem",
}
_EMR = "emr-serverless.amazonaws.com"
# The actions whose resource AWS's reference leaves open, with the resource types that it lists.
OPEN = {"emr-serverless:TagResource": ("application", "jobRun")}
_OF_ITEMS = (
    *("dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem"),
    *("dynamodb:ConditionCheckItem", "dynamodb:BatchGetItem", "dynamodb:BatchWriteItem"),
    *("dynamodb:Query", "dynamodb:Scan", "dynamodb:GetRecords"),
)
# What a caller needs on the KMS key that encrypts a table, a queue, an object, a topic, an execution or a secret.
# DynamoDB decrypts the key of a table for whoever reads or writes it.
# https://docs.aws.amazon.com/kms/latest/developerguide/services-dynamodb.html
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html
# https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html
# https://docs.aws.amazon.com/step-functions/latest/dg/encryption-at-rest.html
# https://docs.aws.amazon.com/secretsmanager/latest/userguide/security-encryption.html
_READS, _WRITES = ("kms:Decrypt",), ("kms:GenerateDataKey", "kms:Decrypt")
_KEYED = {
    **dict.fromkeys(_OF_ITEMS, _READS),
    "s3:GetObject": _READS,
    "s3:PutObject": ("kms:GenerateDataKey",),
    "sqs:ReceiveMessage": _READS,
    "sqs:SendMessage": _WRITES,
    "sns:Publish": _WRITES,
    "states:DescribeExecution": _READS,
    "secretsmanager:GetSecretValue": _READS,
    "ssm:GetParameter": _READS,
}


@dataclass(frozen=True, slots=True)
class Need:
    """An action on a resource, with the values of condition keys that the request has."""

    action: str
    resource: str
    keys: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        conditions = "".join(f", {name}={value}" for name, value in self.keys)
        return f"{self.action} on {self.resource}{conditions}"


@dataclass(frozen=True, slots=True)
class Grant:
    """One action of one statement on one of its resources, as written in the policy."""

    statement: str
    action: str
    resource: str
    conditions: Mapping[str, Any] = field(default_factory=dict, compare=False)


class Policy:
    """The statements of all policies of a role, with CloudFormation functions resolved."""

    def __init__(self, statements: Iterable[Mapping[str, Any]]) -> None:
        self._statements = [dict(statement) for statement in statements]
        self._parsed = iam_evaluator.parse_policy_document({"Statement": self._statements})

    def allows(self, need: Need) -> bool:
        return bool(iam_evaluator.evaluate(_context(need), [self._parsed]).decision == "Allow")

    @property
    def actions(self) -> frozenset[str]:
        return frozenset(grant.action for grant in self.grants())

    def grants(self) -> Iterator[Grant]:
        """All allowed actions, one by one."""
        for statement in self._statements:
            if statement["Effect"] == "Allow":
                for action in _listed(statement["Action"]):
                    for resource in _listed(statement["Resource"]):
                        yield Grant(statement.get("Sid", ""), action, resource, statement.get("Condition", {}))


def covers(grant: Grant, need: Need) -> bool:
    """Whether this grant alone allows the needed action."""
    statement: dict[str, Any] = {"Effect": "Allow", "Action": grant.action, "Resource": grant.resource}
    if grant.conditions:
        statement["Condition"] = dict(grant.conditions)
    return Policy([statement]).allows(need)


@dataclass(frozen=True, slots=True)
class Place:
    """The region and account of the resources in requests. ``keys`` are the ARNs of the customer managed KMS keys of
    encrypted resources, by patterns of the ARNs of these. ``tags`` are those of resources, by their ARNs.
    ``workgroups`` are those of queries of Athena by their ids; `primary` for all others."""

    region: str = "us-east-1"
    account: str = "000000000000"
    partition: str = "aws"
    keys: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    workgroups: Mapping[str, str] = field(default_factory=dict)

    def key_of(self, resource: str) -> str:
        """The key that encrypts a resource; empty if none does."""
        return next((key for pattern, key in self.keys.items() if fnmatchcase(resource, pattern)), "")

    def arn(self, service: str, name: str) -> str:
        """The ARN of a resource. A name that is an ARN stays as it is."""
        return (
            name if name.startswith("arn:") else f"arn:{self.partition}:{service}:{self.region}:{self.account}:{name}"
        )

    def bucket(self, name: str, key: str | None = None) -> str:
        return f"arn:{self.partition}:s3:::{name}{'' if key is None else f'/{key}'}"


def needs(service: str, operation: str, parameters: Mapping[str, Any], place: Place) -> list[Need]:
    """The actions that a call needs. `service` is botocore's name, `operation` the API's, `parameters` are boto3's.

    Raises `LookupError` for a service or operation without a rule: no Lambda has called it so far.
    """
    rule = _RULES.get(service)
    if rule is None:
        raise LookupError(
            f"expected a service of {', '.join(_RULES)}, got {service}: add a rule with the actions that it needs"
        )
    found = list(rule(operation, parameters, place))
    return found + list(dict.fromkeys(use for need in found for use in uses_of_key(need, place)))


def uses_of_key(need: Need, place: Place) -> Iterator[Need]:
    """What an action on an encrypted resource needs on its key. The service asks KMS with the rights of the caller."""
    key = place.key_of(need.resource)
    service = need.action.partition(":")[0]
    for action in _KEYED.get(need.action, ()) if key else ():
        yield Need(action, key, (("kms:ViaService", f"{service}.{place.region}.amazonaws.com"),))


def _dynamodb(operation: str, parameters: Mapping[str, Any], place: Place) -> Iterator[Need]:
    def table(name: str) -> str:
        return place.arn("dynamodb", f"table/{name}")

    match operation:
        case "TransactWriteItems" | "TransactGetItems":
            for item in parameters["TransactItems"]:
                ((kind, arguments),) = item.items()
                yield Need(_TRANSACTED[kind], table(arguments["TableName"]))
        case "BatchGetItem" | "BatchWriteItem":
            for name in parameters["RequestItems"]:
                yield Need(f"dynamodb:{operation}", table(name))
        case "Query" | "Scan" if "IndexName" in parameters:
            yield Need(f"dynamodb:{operation}", f"{table(parameters['TableName'])}/index/{parameters['IndexName']}")
        case _:
            yield Need(f"dynamodb:{operation}", table(parameters["TableName"]))


def _sqs(operation: str, parameters: Mapping[str, Any], place: Place) -> Iterator[Need]:
    name = parameters["QueueName"] if operation == "GetQueueUrl" else parameters["QueueUrl"].rpartition("/")[2]
    yield Need(f"sqs:{operation.removesuffix('Batch')}", place.arn("sqs", name))


def _sns(operation: str, parameters: Mapping[str, Any], place: Place) -> Iterator[Need]:
    yield Need(f"sns:{operation.removesuffix('Batch')}", place.arn("sns", parameters["TopicArn"]))


def _events(operation: str, parameters: Mapping[str, Any], place: Place) -> Iterator[Need]:
    _expect(operation, "PutEvents")
    for bus in dict.fromkeys(entry.get("EventBusName", "default") for entry in parameters["Entries"]):
        yield Need("events:PutEvents", bus if bus.startswith("arn:") else place.arn("events", f"event-bus/{bus}"))


def _lambda(operation: str, parameters: Mapping[str, Any], place: Place) -> Iterator[Need]:
    _expect(operation, "Invoke")
    name = parameters["FunctionName"]
    yield Need("lambda:InvokeFunction", name if name.startswith("arn:") else place.arn("lambda", f"function:{name}"))


def _s3(operation: str, parameters: Mapping[str, Any], place: Place) -> Iterator[Need]:
    bucket, key = parameters["Bucket"], parameters.get("Key")
    match operation:
        case "GetObject" | "HeadObject":
            yield Need("s3:GetObject", place.bucket(bucket, key))
        case "PutObject" | "CreateMultipartUpload" | "UploadPart" | "CompleteMultipartUpload":
            yield Need("s3:PutObject", place.bucket(bucket, key))
        case "ListObjectsV2" | "ListObjects":
            yield Need("s3:ListBucket", place.bucket(bucket), (("s3:prefix", parameters.get("Prefix", "")),))
        case _:
            raise LookupError(
                f"expected a known operation of S3, got {operation}: add a rule with the actions that it needs"
            )


def _secrets(operation: str, parameters: Mapping[str, Any], place: Place) -> Iterator[Need]:
    name = parameters["SecretId"]
    # Secrets Manager appends six characters to the ARN of each secret.
    own = name if name.startswith("arn:") else place.arn("secretsmanager", f"secret:{name}-AbCdEf")
    yield Need(f"secretsmanager:{operation}", own)


def _ssm(operation: str, parameters: Mapping[str, Any], place: Place) -> Iterator[Need]:
    name = parameters["Name"]
    yield Need(
        f"ssm:{operation}", name if name.startswith("arn:") else place.arn("ssm", f"parameter/{name.lstrip('/')}")
    )


def _sts(operation: str, parameters: Mapping[str, Any], place: Place) -> Iterator[Need]:
    _expect(operation, "AssumeRole")
    yield Need("sts:AssumeRole", parameters["RoleArn"])


def _glue(operation: str, parameters: Mapping[str, Any], place: Place) -> Iterator[Need]:
    """GetTable needs the action on the catalog, the database and the table, so the policy has to name all three.

    https://docs.aws.amazon.com/service-authorization/latest/reference/list_awsglue.html
    """
    if operation in ("BatchStopJobRun", "GetJob", "GetJobRun", "GetJobRuns", "StartJobRun"):
        yield Need(f"glue:{operation}", place.arn("glue", f"job/{parameters['JobName']}"))
        return
    _expect(operation, "GetTable")
    database = parameters["DatabaseName"]
    for resource in ("catalog", f"database/{database}", f"table/{database}/{parameters['Name']}"):
        yield Need("glue:GetTable", place.arn("glue", resource))


def _emr_serverless(operation: str, parameters: Mapping[str, Any], place: Place) -> Iterator[Need]:
    application = place.arn("emr-serverless", f"/applications/{parameters.get('applicationId', '*')}")
    if "jobRunId" in parameters:
        yield Need(f"emr-serverless:{operation}", f"{application}/jobruns/{parameters['jobRunId']}")
        return
    yield Need(f"emr-serverless:{operation}", application)
    if operation == "StartJobRun":
        yield Need("iam:PassRole", parameters["executionRoleArn"], (("iam:PassedToService", _EMR),))
        if parameters.get("tags"):
            arns = {"application": application, "jobRun": f"{application}/jobruns/new"}  # the run has no id yet
            for resource_type in OPEN["emr-serverless:TagResource"]:
                yield Need("emr-serverless:TagResource", arns[resource_type])


def _emr_containers(operation: str, parameters: Mapping[str, Any], place: Place) -> Iterator[Need]:
    """The execution role is no resource of a call and is not passed; a policy names it by a condition.

    https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonemroneksemrcontainers.html
    """
    cluster = place.arn("emr-containers", f"/virtualclusters/{parameters['virtualClusterId']}")
    if operation in ("DescribeJobRun", "CancelJobRun"):
        yield Need(f"emr-containers:{operation}", f"{cluster}/jobruns/{parameters['id']}")
        return
    if operation != "ListJobRuns":
        _expect(operation, "StartJobRun")
    role = parameters.get("executionRoleArn")
    yield Need(f"emr-containers:{operation}", cluster, (("emr-containers:ExecutionRoleArn", role),) if role else ())


def _batch(operation: str, parameters: Mapping[str, Any], place: Place) -> Iterator[Need]:
    """A job definition without a revision is authorized as its newest one.

    https://docs.aws.amazon.com/service-authorization/latest/reference/list_awsbatch.html
    """
    if operation in ("DescribeJobs", "ListJobs"):
        yield Need(f"batch:{operation}", "*")
        return
    job = place.arn("batch", f"job/{parameters.get('jobId', 'new')}")
    if operation == "TerminateJob":
        tags = place.tags.get(job, {})
        yield Need("batch:TerminateJob", job, tuple((f"aws:ResourceTag/{name}", tag) for name, tag in tags.items()))
        return
    _expect(operation, "SubmitJob")
    for kind, name in (("job-queue", parameters["jobQueue"]), ("job-definition", parameters["jobDefinition"])):
        arn = name if name.startswith("arn:") else place.arn("batch", f"{kind}/{name}")
        newest = ":1" if kind == "job-definition" and arn.count(":") < 6 else ""
        yield Need("batch:SubmitJob", f"{arn}{newest}")
    if given := parameters.get("tags"):
        yield Need("batch:TagResource", job, tuple((f"aws:RequestTag/{name}", tag) for name, tag in given.items()))


def _states(operation: str, parameters: Mapping[str, Any], place: Place) -> Iterator[Need]:
    """A version or an alias is authorized by the ARN of its state machine.

    https://docs.aws.amazon.com/step-functions/latest/dg/auth-version-alias.html
    """
    if operation == "StartExecution":
        machine = ":".join(parameters["stateMachineArn"].split(":")[:7])
        yield Need("states:StartExecution", machine)
        return
    yield Need(f"states:{operation}", place.arn("states", parameters["executionArn"]))


def _ecs(operation: str, parameters: Mapping[str, Any], place: Place) -> Iterator[Need]:
    """RunTask passes the roles of its definition on, which the request does not name. ListTasks has no resource of its
    own; its policy names the cluster by a condition.

    https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonelasticcontainerservice.html
    https://docs.aws.amazon.com/AmazonECS/latest/developerguide/supported-iam-actions-tagging.html
    """
    cluster = place.arn("ecs", f"cluster/{str(parameters['cluster']).rpartition('/')[2]}")
    of_cluster, name = (("ecs:cluster", cluster),), cluster.rpartition("/")[2]
    match operation:
        case "RunTask":
            definition = str(parameters["taskDefinition"])
            resource = definition if definition.startswith("arn:") else f"task-definition/{definition}"
            family, _, revision = place.arn("ecs", resource).rpartition("/")[2].partition(":")
            yield Need("ecs:RunTask", place.arn("ecs", f"task-definition/{family}:{revision or 1}"), of_cluster)
            if parameters.get("tags"):
                created = (*of_cluster, ("ecs:CreateAction", "RunTask"))
                yield Need("ecs:TagResource", place.arn("ecs", f"task/{name}/new"), created)
        case "DescribeTasks":
            for task in parameters["tasks"]:
                yield Need("ecs:DescribeTasks", task, of_cluster)
        case "StopTask":
            yield Need("ecs:StopTask", parameters["task"], of_cluster)
        case _:
            _expect(operation, "ListTasks")
            yield Need("ecs:ListTasks", "*", of_cluster)


def _athena(operation: str, parameters: Mapping[str, Any], place: Place) -> Iterator[Need]:
    """A query is authorized by its workgroup.

    https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonathena.html
    """
    ids = [*parameters.get("QueryExecutionIds", ()), *filter(None, [parameters.get("QueryExecutionId")])]
    named = [place.workgroups.get(each, "primary") for each in ids] or [parameters.get("WorkGroup", "primary")]
    for workgroup in dict.fromkeys(named):
        yield Need(f"athena:{operation}", place.arn("athena", f"workgroup/{workgroup}"))


def _without_resource(service: str) -> Callable[[str, Mapping[str, Any], Place], Iterator[Need]]:
    """The rule for services for whose actions IAM defines no resource type."""
    return lambda operation, parameters, place: iter([Need(f"{service}:{operation}", "*")])


_RULES: dict[str, Callable[[str, Mapping[str, Any], Place], Iterator[Need]]] = {
    "batch": _batch,
    "athena": _athena,
    "cloudwatch": _without_resource("cloudwatch"),
    "dynamodb": _dynamodb,
    "ec2": _without_resource("ec2"),
    "ecs": _ecs,
    "emr-containers": _emr_containers,
    "emr-serverless": _emr_serverless,
    "events": _events,
    "glue": _glue,
    "lambda": _lambda,
    "s3": _s3,
    "secretsmanager": _secrets,
    "sns": _sns,
    "sqs": _sqs,
    "ssm": _ssm,
    "stepfunctions": _states,
    "sts": _sts,
}


def _expect(operation: str, known: str) -> None:
    if operation != known:
        raise LookupError(f"expected {known}, got {operation}: add a rule with the actions that it needs")


def _context(need: Need) -> Any:
    """The request of a call: it goes to the region of its resource, which belongs to the account in its ARN."""
    region, account = [*need.resource.split(":"), *[""] * 5][3:5]
    owner = {"aws:resourceaccount": account} if account else {}
    return iam_evaluator.EvalContext(
        principal_arn="arn:aws:sts::000000000000:assumed-role/lambda/lambda",
        principal_type="AssumedRole",
        principal_account="000000000000",
        action=need.action,
        resource_arn=need.resource,
        region=region or "us-east-1",
        source_ip="127.0.0.1",
        secure_transport=True,
        service_context={**owner, **{name.lower(): value for name, value in need.keys}},
    )


def _listed(value: str | Sequence[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)
