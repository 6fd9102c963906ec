"""Converts the target of an EventBridge schedule or rule into the target of a workflow, by the service of its ARN."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sluice.client import Document
from sluice.convert.api_calls import api_call
from sluice.convert.jsons import object_at, text_at

UNIVERSAL = "arn:aws:scheduler:::aws-sdk:"


@dataclass(frozen=True, slots=True)
class Carried:
    """A converted target. ``target`` is None for a kind that Sluice does not call. ``data`` is the input of the target;
    None for no input. ``wraps``: Sluice sends the data inside an object of its own. ``lost`` is what a workflow has in
    the place of a part of the target. ``is_call``: the target has the input itself."""

    kind: str
    target: Document | None
    data: Any = None
    wraps: bool = False
    delivered: bool = True
    lost: str = ""
    is_call: bool = False


def carried(target: dict[str, Any]) -> Carried:
    arn, given = text_at(target, "Arn"), _data(target.get("Input"))
    parts = arn.split(":", 5)
    service, rest = (parts[2], parts[5]) if len(parts) == 6 and parts[0] == "arn" else ("", arn)
    if service == "scheduler" and ":aws-sdk:" in arn:
        return _universal(arn.partition(":aws-sdk:")[2], given)
    if service == "lambda":
        return Carried("Lambda function", {"type": "lambda", "function": arn}, given, wraps=True)
    if service == "sqs":
        domain = "amazonaws.com.cn" if parts[1] == "aws-cn" else "amazonaws.com"
        url = f"https://sqs.{parts[3]}.{domain}/{parts[4]}/{rest}"
        group = text_at(object_at(target, "SqsParameters"), "MessageGroupId") if rest.endswith(".fifo") else ""
        return Carried("queue", {"type": "sqs", "queue_url": url, **({"group": group} if group else {})}, given)
    if service == "sns":
        return Carried("topic", {"type": "sns", "topic_arn": arn}, given)
    if service == "states" and rest.startswith("stateMachine:"):
        return Carried("state machine", {"type": "step_functions", "state_machine": arn}, given, True, False)
    if service == "events" and rest.startswith("event-bus/"):
        event = object_at(target, "EventBridgeParameters")
        named = {"source": text_at(event, "Source"), "detail_type": text_at(event, "DetailType")}
        if named["source"].startswith(("aws.", "sluice/")):
            named["source"] = ""
        bus = {"type": "event_bus", "bus": arn, **{key: value for key, value in named.items() if value}}
        return Carried("event bus", bus, given, wraps=True)
    if service == "ecs" and rest.startswith("cluster/") and (task := _task(arn, target, given)):
        return Carried("ECS task", task, None, delivered=False)
    if service == "batch" and rest.startswith("job-queue/") and (job := _job(arn, target, given)):
        return Carried("Batch job", job, None, delivered=False, lost=_retried(object_at(target, "BatchParameters")))
    kinds = {"ecs": "ECS task", "batch": "Batch job", "glue": "Glue workflow", "kinesis": "Kinesis stream"}
    return Carried(kinds.get(service, f"target {arn or 'without an ARN'}"), None, given)


def _task(cluster: str, target: dict[str, Any], given: Any) -> Document | None:
    parameters = object_at(target, "EcsParameters")
    providers = parameters.get("CapacityProviderStrategy")
    return ecs_target(
        cluster,
        text_at(parameters, "TaskDefinitionArn"),
        given,
        parameters.get("NetworkConfiguration"),
        text_at(parameters, "LaunchType"),
        providers,
        text_at(parameters, "PlatformVersion"),
    )


def ecs_target(
    cluster: str, definition: str, overrides: Any, network: Any, launch_type: str, providers: Any, platform: str
) -> Document | None:
    """The target ``ecs``; None for a task that does not run on Fargate, has no override that names its container, or
    overrides more than command and environment. The keys of AWS begin with small or with large letters."""
    place = _lower(_lower(network).get("awsvpcconfiguration"))
    containers = _lower(overrides).get("containeroverrides")
    provider = (
        _lower(providers[0]).get("capacityprovider") if isinstance(providers, list) and len(providers) == 1 else ""
    )
    if not isinstance(containers, list) or len(containers) != 1 or not place.get("subnets") or not cluster:
        return None
    own = _lower(containers[0])
    if provider not in ("FARGATE", "FARGATE_SPOT") and (providers or launch_type != "FARGATE"):
        return None  # by default a task runs on instances
    if own.keys() - {"name", "command", "environment"} or len(_lower(overrides)) > 1 or not definition:
        return None
    variables = [_lower(each) for each in own.get("environment") or ()]
    document = {
        "type": "ecs",
        "cluster": cluster,
        "task_definition": definition,
        "container": own.get("name"),
        "command": own.get("command"),
        "environment": {str(each.get("name")): str(each.get("value")) for each in variables},
        "subnets": place["subnets"],
        "security_groups": place.get("securitygroups"),
        "assign_public_ip": place.get("assignpublicip") == "ENABLED",
        "capacity_provider": provider,
        "platform_version": platform,
    }
    return {key: value for key, value in document.items() if value}


def _job(queue: str, target: dict[str, Any], given: Any) -> Document | None:
    """Batch takes the overrides of a rule from its input."""
    own, more = _lower(target.get("BatchParameters")), _lower(given)
    if own.keys() - {"jobdefinition", "jobname", "retrystrategy"}:
        return None
    return batch_target(queue, text_at(own, "jobdefinition"), more.get("containeroverrides"), more.get("parameters"))


def _submit_job(call: dict[str, Any]) -> Document | None:
    own = _lower(call)
    known = {"jobqueue", "jobdefinition", "jobname", "containeroverrides", "parameters", "retrystrategy", "timeout"}
    if own.keys() - known - {"shareidentifier", "schedulingpriorityoverride", "tags", "propagatetags"}:
        return None
    queue, definition = text_at(own, "jobqueue"), text_at(own, "jobdefinition")
    found = batch_target(queue, definition, own.get("containeroverrides"), own.get("parameters"))
    share, priority = own.get("shareidentifier"), own.get("schedulingpriorityoverride")
    more = {"share_identifier": share, **({"scheduling_priority": priority} if share else {})}
    return found and {**found, **{key: value for key, value in more.items() if value is not None}}


def _retried(call: dict[str, Any]) -> str:
    """The retries and the timeout of a job, which Sluice sets on the workflow."""
    own = _lower(call)
    found = [name for name in ("RetryStrategy", "Timeout") if own.get(name.lower())]
    once = _lower(own.get("retrystrategy")) == {"attempts": 1}
    return " and ".join(name for name in found if name != "RetryStrategy" or not once)


def batch_target(queue: str, definition: str, overrides: Any, parameters: Any) -> Document | None:
    """The target ``batch``; None without a queue or a definition, and for an override of anything but command,
    environment and sizes. The keys of AWS begin with small or with large letters."""
    own = _lower(overrides)
    needs = {str(_lower(each).get("type")): _lower(each).get("value") for each in own.get("resourcerequirements") or ()}
    sizes = {"VCPU": own.get("vcpus"), "MEMORY": own.get("memory")} | needs
    known = {"command", "environment", "resourcerequirements", "vcpus", "memory"}
    if not queue or not definition or own.keys() - known or sizes.keys() - {"VCPU", "MEMORY"}:
        return None
    variables = [_lower(each) for each in own.get("environment") or ()]
    try:
        vcpus, memory = (float(str(sizes[kind] or 0)) for kind in ("VCPU", "MEMORY"))
    except ValueError:
        return None
    document = {
        "type": "batch",
        "job_queue": queue,
        "job_definition": definition,
        "command": own.get("command"),
        "environment": {str(each.get("name")): str(each.get("value")) for each in variables},
        "parameters": {str(key): str(value) for key, value in parameters.items()}
        if isinstance(parameters, dict)
        else None,
        "vcpus": int(vcpus) if vcpus.is_integer() else vcpus,
        "memory_mib": int(memory),
    }
    return {key: value for key, value in document.items() if value}


def _lower(value: Any) -> Document:
    """An object with its keys in small letters; an empty one for anything else."""
    return {str(key).lower(): each for key, each in value.items()} if isinstance(value, dict) else {}


def _universal(action: str, given: Any) -> Carried:
    """The target for a universal target, a call of the AWS SDK with the input as its parameters."""
    call = given if isinstance(given, dict) else {}
    lower = action.lower()
    if lower == "emrserverless:startjobrun" and (job := _spark(call)):
        return Carried("EMR Serverless job", job, None, delivered=False)
    if lower == "ecs:runtask" and (task := _run_task(call)):
        return Carried("ECS task", task, None, delivered=False)
    if lower == "batch:submitjob" and (job := _submit_job(call)):
        return Carried("Batch job", job, None, delivered=False, lost=_retried(call))
    if lower == "athena:startqueryexecution" and (query := _query(call)):
        return Carried("Athena query", query, None, delivered=False)
    if lower == "lambda:invoke" and text_at(call, "FunctionName").startswith("arn:"):
        target = {"type": "lambda", "function": call["FunctionName"]}
        return Carried("Lambda function", target, _data(call.get("Payload")), wraps=True)
    if lower == "sqs:sendmessage" and text_at(call, "QueueUrl") and _has_only(call, "QueueUrl", "MessageBody"):
        return Carried("queue", {"type": "sqs", "queue_url": call["QueueUrl"]}, _data(call.get("MessageBody")))
    if lower == "sns:publish" and text_at(call, "TopicArn") and _has_only(call, "TopicArn", "Subject", "Message"):
        subject = text_at(call, "Subject")
        target = {"type": "sns", "topic_arn": call["TopicArn"], **({"subject": subject} if subject else {})}
        return Carried("topic", target, _data(call.get("Message")))
    if lower == "sfn:startexecution" and text_at(call, "StateMachineArn"):
        target = {"type": "step_functions", "state_machine": call["StateMachineArn"]}
        return Carried("state machine", target, _data(call.get("Input")), True, False)
    if lower == "glue:startjobrun" and (job := glue_target(call)):
        return Carried("Glue job", job, None, delivered=False)
    made = api_call(action, given)
    return Carried(f"call of {action}", made, None if made else given, is_call=made is not None)


def _has_only(call: dict[str, Any], *known: str) -> bool:
    """Whether a message is all that an input has. In data, Sluice fills in nothing."""
    return call.keys() <= set(known) and "<aws.scheduler." not in json.dumps(call)


def _run_task(call: dict[str, Any]) -> Document | None:
    own = _lower(call)
    return ecs_target(
        text_at(own, "cluster"),
        text_at(own, "taskdefinition"),
        own.get("overrides"),
        own.get("networkconfiguration"),
        text_at(own, "launchtype"),
        own.get("capacityproviderstrategy"),
        text_at(own, "platformversion"),
    )


def glue_target(call: dict[str, Any]) -> Document | None:
    """The target ``glue`` for the fields of StartJobRun; None without a job, and for fields that it does not have."""
    fields = {"WorkerType": "worker_type", "NumberOfWorkers": "workers", "ExecutionClass": "execution_class"}
    halves = ("WorkerType" in call) != ("NumberOfWorkers" in call)
    if halves or not text_at(call, "JobName") or set(call) - {"JobName", "Arguments", *fields}:
        return None
    arguments = {str(key): str(value) for key, value in object_at(call, "Arguments").items()}
    document = {"type": "glue", "job": call["JobName"], "arguments": arguments}
    document |= {field: call.get(name) for name, field in fields.items()}
    return {key: value for key, value in document.items() if value}


def _query(call: dict[str, Any]) -> Document | None:
    """None for a call with parameters that the target of Sluice does not have."""
    context, output = object_at(call, "QueryExecutionContext"), object_at(call, "ResultConfiguration")
    known = {"QueryString", "QueryExecutionContext", "ResultConfiguration", "WorkGroup", "ClientRequestToken"}
    if set(call) - known or set(output) - {"OutputLocation"}:
        return None
    return athena_target(
        text_at(call, "QueryString"),
        text_at(context, "Database"),
        text_at(output, "OutputLocation"),
        text_at(call, "WorkGroup"),
        text_at(context, "Catalog"),
    )


def athena_target(
    query: str = "", database: str = "", output_location: str = "", workgroup: str = "", catalog: str = ""
) -> Document | None:
    """The target ``athena``; None without a query."""
    output = f"{output_location.rstrip('/')}/" if output_location else ""
    document = {
        "type": "athena",
        "query": query,
        "workgroup": workgroup,
        "database": database,
        "catalog": catalog,
        "output": output,
    }
    return {key: value for key, value in document.items() if value} if query else None


def _spark(call: dict[str, Any]) -> Document | None:
    submit = object_at(object_at(call, "JobDriver"), "SparkSubmit")
    return spark_target(
        text_at(call, "ApplicationId"),
        text_at(call, "ExecutionRoleArn"),
        text_at(submit, "EntryPoint"),
        submit.get("EntryPointArguments"),
        text_at(submit, "SparkSubmitParameters"),
    )


def spark_target(application: str, role: str, entry: str, arguments: Any, parameters: str) -> Document | None:
    """The target ``emr_serverless``; None for an entry point that is not a Python file in S3."""
    if not entry.startswith("s3://") or not entry.endswith(".py"):
        return None
    words = parameters.split()
    spark: dict[str, str] = {}
    files: list[str] = []
    known = {"--conf", "--py-files"}
    for flag, value in pairwise(words):
        if flag == "--conf" and "=" in value:
            key, _, setting = value.partition("=")
            spark[key] = setting
        elif flag == "--py-files":
            files = value.split(",")
        elif flag.startswith("--") and flag not in known:
            return None  # a parameter that the target of Sluice does not have
    document = {
        "type": "emr_serverless",
        "application_id": application,
        "execution_role_arn": role,
        "entry_point": entry,
        "arguments": [str(each) for each in arguments] if isinstance(arguments, list) else [],
        "py_files": files,
        "spark": spark,
    }
    return {key: value for key, value in document.items() if value}


def _data(text: Any) -> Any:
    """The input as JSON where it is JSON, else as text."""
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
