"""Requests that AWS's models and pages refuse are refused here, so no emulator and no test accepts them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from chalicelib.aws.targets.emr_serverless import EmrServerlessTarget
from infra.local.service_model import problems
from tests.local.conftest import Emulators
from tests.support import rows
from tests.support.aws_rules import form_of

RUN: dict[str, Any] = {
    "applicationId": "00f5abc",
    "clientToken": "t1",
    "executionRoleArn": "arn:aws:iam::000000000000:role/job",
    "jobDriver": {"sparkSubmit": {"entryPoint": "s3://code/job.py"}},
}


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        ({"tags": {"sluice:schedule": "demo.flights.~note"}}, "tags.sluice:schedule: expected a match of"),
        ({"tags": {"s" * 129: "x"}}, "expected a length of 1 to 128, got 129"),
        ({"clientToken": "a b"}, "clientToken: expected a match of"),
        ({"name": ""}, "name: expected a length of 1 to 256, got 0"),
        ({"mode": "SLOW"}, "mode: expected one of BATCH, STREAMING, got 'SLOW'"),
        ({"jobDriver": {}}, "jobDriver: expected one of sparkSubmit, hive, got none"),
        ({"jobDriver": {"sparkSubmit": {}}}, "jobDriver.sparkSubmit.entryPoint: expected a value, got none"),
        ({"executionTimeoutMinutes": -1}, "executionTimeoutMinutes: expected 0 to 1000000, got -1"),
        ({"colour": "red"}, "colour: expected one of applicationId"),
    ],
)
def test_a_request_that_violates_the_service_model_says_where(change: dict[str, Any], reported: str) -> None:
    assert problems("emr-serverless", "StartJobRun", RUN) == []
    found = problems("emr-serverless", "StartJobRun", RUN | change)
    assert any(reported in each for each in found), found


BATCH = {"jobName": "a", "jobQueue": "q", "jobDefinition": "d"}


def entry(number: int = 0, **more: Any) -> dict[str, Any]:
    return {"Id": str(number), "MessageBody": "x", **more}


@pytest.mark.parametrize(
    ("entries", "reported"),
    [
        ([entry(number) for number in range(11)], "expected 1 to 10 entries, got 11"),
        ([], "expected 1 to 10 entries, got 0"),
        ([entry(), entry()], "expected ids that differ"),
        ([entry(MessageBody="\x00")], "expected characters that XML 1.0 allows"),
        ([entry(DelaySeconds=901)], "DelaySeconds: expected 0 to 900, got 901"),
        ([entry(MessageBody="x" * 1024 * 1025)], "expected at most 1048576 bytes"),
        ([entry(MessageAttributes={"aws.x": {"DataType": "String", "StringValue": "1"}})], "expected a name of"),
        ([entry(MessageAttributes={"x": {"DataType": "String", "StringValue": ""}})], "expected a value, got an empty"),
    ],
)
def test_a_batch_of_messages_keeps_the_limits_of_sqs(entries: list[dict[str, Any]], reported: str) -> None:
    found = problems("sqs", "SendMessageBatch", {"QueueUrl": "https://sqs/1/q", "Entries": entries})
    assert any(reported in each for each in found), found


def test_a_message_of_a_fifo_queue_has_a_group_and_no_delay() -> None:
    fifo = {"QueueUrl": "https://sqs/1/q.fifo", "MessageBody": "x"}
    assert problems("sqs", "SendMessage", {**fifo, "MessageGroupId": "g"}) == []
    [answer] = problems("sqs", "SendMessage", fifo)
    assert answer == "MessageGroupId: expected one for a FIFO queue, got none"
    assert problems("sqs", "SendMessage", {**fifo, "MessageGroupId": "g", "DelaySeconds": 1})


@pytest.mark.parametrize(
    ("service", "operation", "parameters", "reported"),
    [
        ("s3", "PutObject", {"Bucket": "Lake", "Key": "k"}, "Bucket: expected 3 to 63 lower-case letters"),
        ("s3", "PutObject", {"Bucket": "lake", "Key": "k" * 1025}, "Key: expected 1 to 1024 bytes, got 1025"),
        ("s3", "PutObject", {"Bucket": "lake", "Key": "k", "Metadata": {"x": "é"}}, "expected ASCII"),
        ("batch", "SubmitJob", {**BATCH, "jobName": "-a"}, "jobName: expected 1 to 128 letters"),
        ("batch", "SubmitJob", {**BATCH, "tags": {"a": "~b"}}, "tags.a: expected letters, digits"),
        ("batch", "SubmitJob", {**BATCH, "timeout": {"attemptDurationSeconds": 59}}, "expected at least 60"),
        ("batch", "SubmitJob", {**BATCH, "containerOverrides": {"command": [""]}}, "command: expected no empty text"),
        ("batch", "SubmitJob", {**BATCH, "containerOverrides": {"command": ["x" * 9_000]}}, "at most 8192 bytes"),
        ("batch", "SubmitJob", {**BATCH, "parameters": {"x": "x" * 31_000}}, "at most 30720 bytes"),
        ("batch", "ListJobs", {}, "expected one of jobQueue, arrayJobId and multiNodeJobId, got none"),
        ("batch", "DescribeJobs", {"jobs": ["j"] * 101}, "jobs: expected 1 to 100, got 101"),
        ("batch", "TerminateJob", {"jobId": "j", "reason": "x" * 1_025}, "reason: expected 1 to 1024 characters"),
        ("athena", "StartQueryExecution", {"QueryString": "é" * 131_073}, "QueryString: expected at most 262144 bytes"),
        (
            "athena",
            "StartQueryExecution",
            {"QueryString": "a", "ResultConfiguration": {"OutputLocation": "b/"}},
            "s3://",
        ),
        ("stepfunctions", "StartExecution", {"stateMachineArn": "a/b"}, "expected no label of a Distributed Map"),
        ("stepfunctions", "StartExecution", {"stateMachineArn": "a", "name": "a~b"}, "name: expected 1 to 80 letters"),
        ("stepfunctions", "StartExecution", {"stateMachineArn": "a", "input": "7"}, "input: expected a JSON object"),
        ("stepfunctions", "StartExecution", {"stateMachineArn": "a", "input": f'{{"a": "{"x" * 262_144}"}}'}, "262144"),
        ("events", "PutEvents", {"Entries": [{"Source": "aws.x", "Detail": "{}"}]}, "does not begin with aws."),
        ("events", "PutEvents", {"Entries": [{"Source": "x", "Detail": "[]"}]}, "expected a JSON object"),
        ("sns", "Publish", {"TopicArn": "t", "Message": "x" * 262_145}, "expected at most 262144 bytes"),
        ("dynamodb", "BatchGetItem", {"RequestItems": {"t": {"Keys": [{}] * 101}}}, "expected 1 to 100 keys, got 101"),
    ],
)
def test_limits_documented_only_on_pages_are_kept_too(
    service: str, operation: str, parameters: dict[str, Any], reported: str
) -> None:
    found = problems(service, operation, parameters)
    assert any(reported in each for each in found), found


@pytest.mark.breaks_aws_rules
def test_the_emr_emulator_refuses_what_aws_refuses(emulators: Emulators) -> None:
    emr = emulators.start(driver="instant")
    with pytest.raises(ClientError, match="tags.sluice:schedule: expected a match of") as answer:
        emr.start(tags={"sluice:schedule": "demo.flights.~note"})
    assert answer.value.response["Error"]["Code"] == "ValidationException"


@pytest.mark.parametrize("schedule", ["demo.flights.~note", "demo.flights.etl~.load", "demo.flights.daily", "a" * 300])
def test_the_start_of_any_run_is_a_valid_emr_serverless_request(schedule: str) -> None:
    target = EmrServerlessTarget(None, "00f5abc", RUN["executionRoleArn"], "control")
    document = {"entry_point": "s3://code/job.py", "arguments": [], "py_files": [], "spark": {}}
    request = replace(rows.run().request, target={**document, "application_id": None, "execution_role_arn": None})
    run = rows.run(schedule=schedule, workflow=schedule, request=request)
    assert problems("emr-serverless", "StartJobRun", target.request(run)) == []


def test_a_request_to_tables_in_memory_is_checked_by_its_form() -> None:
    """A form that was valid once is not checked again. Another form of the same request is."""
    request = {"TableName": "t", "Key": {"pk": {"S": "a"}}, "UpdateExpression": "SET a = :a",
               "ExpressionAttributeValues": {":a": {"S": "1"}}}  # fmt: skip
    same = {**request, "Key": {"pk": {"S": "b"}}, "ExpressionAttributeValues": {":a": {"S": "2"}}}
    assert form_of(request) == form_of(same)
    for name, other in (("TableName", "u"), ("UpdateExpression", "SET b = :a"), ("ReturnValues", "ALL"),
                        ("Key", {"pk": {"S": "a"}, "sk": {"S": "b"}})):  # fmt: skip
        assert form_of(request) != form_of({**request, name: other})
    assert form_of({"TransactItems": [{"Put": request}]}) != form_of({"TransactItems": [{"Put": request}] * 2})
