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
    None for no input. ``wraps``: Sluice sends the data inside an object of its own. ``is_call``: the target has the
    input itself."""

    kind: str
    target: Document | None
    data: Any = None
    wraps: bool = False
    delivered: bool = True
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
    kinds = {"ecs": "ECS task", "batch": "Batch job", "glue": "Glue workflow", "kinesis": "Kinesis stream"}
    return Carried(kinds.get(service, f"target {arn or 'without an ARN'}"), None, given)


def _universal(action: str, given: Any) -> Carried:
    """The target for a universal target, a call of the AWS SDK with the input as its parameters."""
    call = given if isinstance(given, dict) else {}
    lower = action.lower()
    if lower == "emrserverless:startjobrun" and (job := _spark(call)):
        return Carried("EMR Serverless job", job, None, delivered=False)
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
    made = api_call(action, given)
    return Carried(f"call of {action}", made, None if made else given, is_call=made is not None)


def _has_only(call: dict[str, Any], *known: str) -> bool:
    """Whether a message is all that an input has. In data, Sluice fills in nothing."""
    return call.keys() <= set(known) and "<aws.scheduler." not in json.dumps(call)


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
