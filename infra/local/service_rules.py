"""Rules of AWS that are documented on its pages but not in botocore's models. Each rule names its page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Parameters = Mapping[str, Any]
KIB = 1024

# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html
SQS_BATCH, SQS_BYTES = 10, 1024 * KIB
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
SQS_DELAY_S, SQS_ATTRIBUTES = 900, 10
_SQS_ENTRY_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")
_SQS_FIFO_ID = re.compile(r"[A-Za-z0-9!-/:-@\[-`{-~]{1,128}")
_SQS_CHARACTERS = re.compile("[\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*")
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html
_ATTRIBUTE_NAME = re.compile(r"(?!(?i:aws\.|amazon\.))(?!\.)(?!.*\.\.)[A-Za-z0-9_.-]{1,256}(?<!\.)")
# https://docs.aws.amazon.com/sns/latest/api/API_PublishBatch.html
SNS_BATCH, SNS_BYTES = 10, 256 * KIB
# https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents.html
EVENTS_BATCH, EVENTS_BYTES = 10, 256 * KIB
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html
S3_KEY_BYTES = 1024
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
_S3_BUCKET = re.compile(
    r"(?!xn--|sthree-|amzn-s3-demo-)(?!\d+\.\d+\.\d+\.\d+$)[a-z0-9](?:[a-z0-9-]|\.(?!\.)){1,61}[a-z0-9]"
)
# https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
LAMBDA_BYTES = {"RequestResponse": 6 * KIB * KIB, "Event": KIB * KIB}
# https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html. AWS also accepts names with
# other characters, but CloudWatch does not log them.
_EXECUTION_NAME = re.compile(r"[0-9A-Za-z_-]{1,80}")
STATES_BYTES = 256 * KIB
# https://docs.aws.amazon.com/batch/latest/APIReference/API_SubmitJob.html,
# https://docs.aws.amazon.com/batch/latest/userguide/service_limits.html
_BATCH_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
BATCH_BYTES, BATCH_OVERRIDES, BATCH_IDS = 30 * KIB, 8_192, 100
# https://docs.aws.amazon.com/tag-editor/latest/userguide/best-practices-and-strats.html
_TAG = re.compile(r"[\w\s+=.:/@-]{0,256}")
# https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_RunTask.html
_ECS_TOKEN, _ECS_STARTED_BY = re.compile(r"[!-~]{1,64}"), re.compile(r"[A-Za-z0-9/_-]{1,128}")
ECS_OVERRIDES, ECS_SUBNETS, ECS_GROUPS, ECS_REASON, ECS_TASKS = 8192, 16, 5, 255, 100
# https://docs.aws.amazon.com/glue/latest/dg/aws-glue-programming-etl-glue-arguments.html
# https://docs.aws.amazon.com/glue/latest/dg/aws-glue-api-jobs-runs.html
GLUE_ARGUMENT_BYTES, GLUE_MINUTES = 260 * KIB, 10_080
# https://docs.aws.amazon.com/athena/latest/ug/service-limits.html
ATHENA_BYTES = 256 * KIB
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html
# The models limit the requests to one table, but not those of one call to several tables.
DYNAMODB_BATCH_GET, DYNAMODB_BATCH_WRITE = 100, 25


def problems(service: str, operation: str, parameters: Parameters) -> Iterator[str]:
    """The reasons for which these rules refuse a request."""
    rule = _RULES.get((service, operation))
    if rule is not None:
        yield from rule(parameters)
    if service == "s3":
        yield from _s3(parameters)


def _send_message(parameters: Parameters) -> Iterator[str]:
    yield from _message("", parameters, is_fifo=_is_fifo(parameters))
    yield from _bytes("MessageBody", _message_bytes(parameters), SQS_BYTES)


def _send_message_batch(parameters: Parameters) -> Iterator[str]:
    entries = parameters.get("Entries", ())
    yield from _batch(entries, SQS_BATCH)
    for number, entry in enumerate(entries):
        yield from _message(f"Entries[{number}].", entry, is_fifo=_is_fifo(parameters))
    yield from _bytes("Entries", sum(map(_message_bytes, entries)), SQS_BYTES)


def _is_fifo(parameters: Parameters) -> bool:
    return str(parameters.get("QueueUrl", "")).endswith(".fifo")


def _message(place: str, message: Parameters, *, is_fifo: bool) -> Iterator[str]:
    body = str(message.get("MessageBody", ""))
    if not body:
        yield f"{place}MessageBody: expected at least one character, got none"
    if not _SQS_CHARACTERS.fullmatch(body):
        yield f"{place}MessageBody: expected characters that XML 1.0 allows"
    delay = int(message.get("DelaySeconds", 0))
    if not 0 <= delay <= SQS_DELAY_S:
        yield f"{place}DelaySeconds: expected 0 to {SQS_DELAY_S}, got {delay}"
    if is_fifo and "DelaySeconds" in message:
        yield f"{place}DelaySeconds: expected none for a message of a FIFO queue, got {delay}"
    if is_fifo and "MessageGroupId" not in message:
        yield f"{place}MessageGroupId: expected one for a FIFO queue, got none"
    for name in ("MessageGroupId", "MessageDeduplicationId"):
        if name in message and not _SQS_FIFO_ID.fullmatch(str(message[name])):
            yield f"{place}{name}: expected 1 to 128 letters, digits or punctuation, got {message[name]!r}"
    yield from _attributes(place, message.get("MessageAttributes", {}))


def _attributes(place: str, attributes: Mapping[str, Any]) -> Iterator[str]:
    if len(attributes) > SQS_ATTRIBUTES:
        yield f"{place}MessageAttributes: expected at most {SQS_ATTRIBUTES}, got {len(attributes)}"
    for name, attribute in attributes.items():
        if not _ATTRIBUTE_NAME.fullmatch(name):
            yield f"{place}MessageAttributes: expected a name of A-Z a-z 0-9 _ - ., got {name!r}"
        if not (attribute.get("StringValue") or attribute.get("BinaryValue")):
            yield f"{place}MessageAttributes.{name}: expected a value, got an empty one"


def _message_bytes(message: Parameters) -> int:
    """The bytes of the body, and of each attribute's name, type and value."""
    size = len(str(message.get("MessageBody", message.get("Message", ""))).encode())
    for name, attribute in message.get("MessageAttributes", {}).items():
        value = attribute.get("StringValue") or attribute.get("BinaryValue") or b""
        size += len(name) + len(attribute["DataType"]) + len(value.encode() if isinstance(value, str) else value)
    return size


def _publish(parameters: Parameters) -> Iterator[str]:
    yield from _bytes("Message", _message_bytes(parameters), SNS_BYTES)
    if len(str(parameters.get("Subject", ""))) > 100:
        yield f"Subject: expected at most 100 characters, got {len(parameters['Subject'])}"


def _publish_batch(parameters: Parameters) -> Iterator[str]:
    entries = parameters.get("PublishBatchRequestEntries", ())
    yield from _batch(entries, SNS_BATCH)
    yield from _bytes("PublishBatchRequestEntries", sum(map(_message_bytes, entries)), SNS_BYTES)


def _put_events(parameters: Parameters) -> Iterator[str]:
    entries = parameters.get("Entries", ())
    size = 0
    for number, entry in enumerate(entries):
        size += sum(len(str(entry.get(name, "")).encode()) for name in ("Source", "DetailType", "Detail"))
        if str(entry.get("Source", "")).startswith("aws."):
            yield f"Entries[{number}].Source: expected one that does not begin with aws., got {entry['Source']!r}"
        if not _is_object(entry.get("Detail", "{}")):
            yield f"Entries[{number}].Detail: expected a JSON object, got {str(entry.get('Detail'))[:60]!r}"
    if not 1 <= len(entries) <= EVENTS_BATCH:
        yield f"Entries: expected 1 to {EVENTS_BATCH}, got {len(entries)}"
    yield from _bytes("Entries", size, EVENTS_BYTES)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _invoke(parameters: Parameters) -> Iterator[str]:
    payload = parameters.get("Payload", b"")
    size = len(payload.encode() if isinstance(payload, str) else payload) if hasattr(payload, "__len__") else 0
    yield from _bytes("Payload", size, LAMBDA_BYTES[parameters.get("InvocationType", "RequestResponse")])


def _start_execution(parameters: Parameters) -> Iterator[str]:
    machine, given = str(parameters["stateMachineArn"]), str(parameters.get("input", "{}"))
    if "/" in machine:
        yield f"stateMachineArn: expected no label of a Distributed Map, got {machine!r}"
    if "name" in parameters and not _EXECUTION_NAME.fullmatch(str(parameters["name"])):
        yield f"name: expected 1 to 80 letters, digits, hyphens or underscores, got {parameters['name']!r}"
    if not _is_object(given):
        yield f"input: expected a JSON object, got {given[:60]!r}"
    yield from _bytes("input", len(given.encode()), STATES_BYTES)


def _submit_job(parameters: Parameters) -> Iterator[str]:
    if not _BATCH_NAME.fullmatch(str(parameters["jobName"])):
        yield f"jobName: expected 1 to 128 letters, digits, hyphens or underscores, got {parameters['jobName']!r}"
    yield from _bytes("request", len(json.dumps(parameters)), BATCH_BYTES)
    overrides = parameters.get("containerOverrides", {})
    yield from _bytes("containerOverrides", len(json.dumps(overrides)), BATCH_OVERRIDES)
    if "" in overrides.get("command", ()):
        yield "containerOverrides.command: expected no empty text"
    for variable in overrides.get("environment", ()):
        if str(variable["name"]).startswith("AWS_BATCH"):
            yield f"containerOverrides.environment: expected no name of Batch's own, got {variable['name']}"
    if not parameters.get("timeout", {}).get("attemptDurationSeconds", 60) >= 60:
        yield "timeout.attemptDurationSeconds: expected at least 60"
    if not 1 <= parameters.get("retryStrategy", {}).get("attempts", 1) <= 10:
        yield "retryStrategy.attempts: expected 1 to 10"
    for name, value in parameters.get("tags", {}).items():
        if not _TAG.fullmatch(value):
            yield f"tags.{name}: expected letters, digits, spaces and _ . : / = + - @, got {value!r}"


def _list_jobs(parameters: Parameters) -> Iterator[str]:
    places = [name for name in ("jobQueue", "arrayJobId", "multiNodeJobId") if name in parameters]
    if len(places) != 1:
        yield f"expected one of jobQueue, arrayJobId and multiNodeJobId, got {', '.join(places) or 'none'}"
    if len(parameters.get("filters", ())) > 1:
        yield "filters: expected one at most"


def _describe_jobs(parameters: Parameters) -> Iterator[str]:
    if not 1 <= len(parameters["jobs"]) <= BATCH_IDS:
        yield f"jobs: expected 1 to {BATCH_IDS}, got {len(parameters['jobs'])}"


def _terminate_job(parameters: Parameters) -> Iterator[str]:
    if not 1 <= len(str(parameters["reason"])) <= KIB:
        yield f"reason: expected 1 to {KIB} characters, got {len(str(parameters['reason']))}"


def _run_task(parameters: Parameters) -> Iterator[str]:
    overrides = parameters.get("overrides", {})
    if (size := len(json.dumps(overrides))) > ECS_OVERRIDES:
        yield f"overrides: expected at most {ECS_OVERRIDES} characters, got {size}"
    for number, each in enumerate(overrides.get("containerOverrides", ())):
        if not each.get("name"):
            yield f"overrides.containerOverrides[{number}].name: expected one, because the override has other parts"
    if not _ECS_TOKEN.fullmatch(str(parameters.get("clientToken", "-"))):
        yield f"clientToken: expected 1 to 64 characters of ASCII, got {parameters['clientToken']!r}"
    if not _ECS_STARTED_BY.fullmatch(str(parameters.get("startedBy", "-"))):
        yield f"startedBy: expected 1 to 128 letters, digits, - / _, got {parameters['startedBy']!r}"
    if "launchType" in parameters and "capacityProviderStrategy" in parameters:
        yield "launchType: expected none beside a capacityProviderStrategy"
    network = parameters.get("networkConfiguration", {}).get("awsvpcConfiguration", {})
    for name, most in (("subnets", ECS_SUBNETS), ("securityGroups", ECS_GROUPS)):
        if len(network.get(name, ())) > most:
            yield f"{name}: expected at most {most}, got {len(network[name])}"


def _list_tasks(parameters: Parameters) -> Iterator[str]:
    """https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_ListTasks.html"""
    if "startedBy" in parameters and {"family", "serviceName", "containerInstance"} & parameters.keys():
        yield "startedBy: expected no other filter beside it"


def _describe_tasks(parameters: Parameters) -> Iterator[str]:
    if not 1 <= len(parameters["tasks"]) <= ECS_TASKS:
        yield f"tasks: expected 1 to {ECS_TASKS}, got {len(parameters['tasks'])}"


def _stop_task(parameters: Parameters) -> Iterator[str]:
    """https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_StopTask.html"""
    if len(str(parameters.get("reason", ""))) > ECS_REASON:
        yield f"reason: expected at most {ECS_REASON} characters, got {len(parameters['reason'])}"


def _start_job_run(parameters: Parameters) -> Iterator[str]:
    given = parameters.get("Arguments", {})
    for name in given:
        if not str(name).startswith("--"):
            yield f"Arguments: expected names that begin with --, got {name!r}"
    yield from _bytes("Arguments", len(json.dumps(given)), GLUE_ARGUMENT_BYTES)
    if ("WorkerType" in parameters) != ("NumberOfWorkers" in parameters):
        yield "NumberOfWorkers: expected WorkerType and NumberOfWorkers together, got one of them"
    if not int(parameters.get("Timeout", 1)) <= GLUE_MINUTES:
        yield f"Timeout: expected at most {GLUE_MINUTES} minutes, got {parameters['Timeout']}"


def _start_query(parameters: Parameters) -> Iterator[str]:
    output = parameters.get("ResultConfiguration", {}).get("OutputLocation")
    if output is not None and not str(output).startswith("s3://"):
        yield f"ResultConfiguration.OutputLocation: expected an s3:// address, got {output!r}"
    yield from _bytes("QueryString", len(str(parameters["QueryString"]).encode()), ATHENA_BYTES)


def _s3(parameters: Parameters) -> Iterator[str]:
    bucket, key = parameters.get("Bucket"), parameters.get("Key")
    if bucket is not None and not str(bucket).startswith("arn:") and not _S3_BUCKET.fullmatch(str(bucket)):
        yield f"Bucket: expected 3 to 63 lower-case letters, digits, dots or hyphens, got {bucket!r}"
    if key is not None and not 1 <= len(str(key).encode()) <= S3_KEY_BYTES:
        yield f"Key: expected 1 to {S3_KEY_BYTES} bytes, got {len(str(key).encode())}"
    for name, value in parameters.get("Metadata", {}).items():
        if not (name.isascii() and str(value).isascii()):
            yield f"Metadata.{name}: expected ASCII, got {value!r}"


def _batch_get(parameters: Parameters) -> Iterator[str]:
    count = sum(len(table["Keys"]) for table in parameters["RequestItems"].values())
    if not 1 <= count <= DYNAMODB_BATCH_GET:
        yield f"RequestItems: expected 1 to {DYNAMODB_BATCH_GET} keys, got {count}"


def _batch_write(parameters: Parameters) -> Iterator[str]:
    count = sum(len(requests) for requests in parameters["RequestItems"].values())
    if not 1 <= count <= DYNAMODB_BATCH_WRITE:
        yield f"RequestItems: expected 1 to {DYNAMODB_BATCH_WRITE} requests, got {count}"


def _batch(entries: Any, maximum: int) -> Iterator[str]:
    if not 1 <= len(entries) <= maximum:
        yield f"expected 1 to {maximum} entries, got {len(entries)}"
    ids = [str(entry.get("Id", "")) for entry in entries]
    if len(set(ids)) < len(ids):
        yield f"expected ids that differ, got {ids}"
    for entry_id in ids:
        if not _SQS_ENTRY_ID.fullmatch(entry_id):
            yield f"Id: expected 1 to 80 letters, digits, hyphens or underscores, got {entry_id!r}"


def _bytes(place: str, size: int, maximum: int) -> Iterator[str]:
    if size > maximum:
        yield f"{place}: expected at most {maximum} bytes, got {size}"


_RULES: dict[tuple[str, str], Callable[[Parameters], Iterator[str]]] = {
    ("sqs", "SendMessage"): _send_message,
    ("sqs", "SendMessageBatch"): _send_message_batch,
    ("sns", "Publish"): _publish,
    ("sns", "PublishBatch"): _publish_batch,
    ("events", "PutEvents"): _put_events,
    ("lambda", "Invoke"): _invoke,
    ("stepfunctions", "StartExecution"): _start_execution,
    ("batch", "SubmitJob"): _submit_job,
    ("batch", "ListJobs"): _list_jobs,
    ("batch", "DescribeJobs"): _describe_jobs,
    ("batch", "TerminateJob"): _terminate_job,
    ("ecs", "RunTask"): _run_task,
    ("ecs", "ListTasks"): _list_tasks,
    ("ecs", "DescribeTasks"): _describe_tasks,
    ("ecs", "StopTask"): _stop_task,
    ("glue", "StartJobRun"): _start_job_run,
    ("athena", "StartQueryExecution"): _start_query,
    ("dynamodb", "BatchGetItem"): _batch_get,
    ("dynamodb", "BatchWriteItem"): _batch_write,
}
