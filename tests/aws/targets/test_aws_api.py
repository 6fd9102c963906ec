"""Calls of AWS's API: what is sent, and the meaning of each answer (W22)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError, EndpointResolutionError, ParamValidationError
from botocore.parsers import ResponseParserError

from chalicelib.aws.targets.aws_api import AwsApiTarget
from chalicelib.core.results import NONE, Result
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import Answer, Never, NoAnswer, NotNow, Started
from chalicelib.core.targets.aws_api import AwsApiTarget as Document
from chalicelib.core.targets.target import MAX_AWS_CALL
from tests.support.api_calls import ApiCalls, refused
from tests.support.deliveries import run

CONTEXT: dict[str, Any] = {"run_id": "r1", "correlation": {"day": "1"}, "workflow": "demo.flights.load:3"}
TOPIC = "arn:aws:sns:us-east-1:000000000000:days"
SNS = {"service": "sns", "action": "publish", "input": {"TopicArn": TOPIC, "Message": "day {{correlation.day}}"}}
ECS = {"service": "ecs", "action": "RunTask", "input": {"taskDefinition": "{{workflow}}"}}
PARAMETER = {"service": "ssm", "action": "put_parameter", "input": {"Name": "/a", "Value": "b"}, "result": True}


def call(number: int = 1, **target: Any) -> Run:
    return run(number, **Document(type="aws_api", **target).model_dump(mode="json"))


@pytest.fixture
def calls() -> ApiCalls:
    return ApiCalls()


def test_w22_a_call_is_made_with_the_values_of_its_run(calls: ApiCalls) -> None:
    answer = AwsApiTarget(calls.make).start(call(**SNS), CONTEXT)
    assert answer == Started("q1", done=True, result=NONE)
    assert calls.made == [("sns:Publish", {"TopicArn": TOPIC, "Message": "day 1"})]


def test_w22_the_answer_is_the_result_if_it_is_wanted(calls: ApiCalls) -> None:
    calls.answers["ssm:PutParameter"] = {"Version": 3, "Tier": "Standard"}
    answer = AwsApiTarget(calls.make).start(call(**PARAMETER), CONTEXT)
    assert answer == Started("q1", done=True, result=Result({"Version": 3, "Tier": "Standard"}))
    assert "Standard" not in repr(answer)  # answers are logged


def test_w22_a_result_that_is_too_large_is_refused(calls: ApiCalls) -> None:
    calls.answers["ssm:PutParameter"] = {"Tier": "x" * 11_000}
    answer = AwsApiTarget(calls.make).start(call(**PARAMETER), CONTEXT)
    assert isinstance(answer, Started)
    assert "at most 10,000 bytes" in answer.result.refused


def test_w22_each_try_and_redrive_of_a_run_has_one_token(calls: ApiCalls) -> None:
    target, made = AwsApiTarget(calls.make), call(**ECS)
    calls.lose_answers = 1
    assert isinstance(target.start(made, CONTEXT), NoAnswer)
    target.start(replace(made, attempt=2, calls=2), CONTEXT)
    target.start(call(2, **ECS), CONTEXT)
    tokens = [request["clientToken"] for _, request in calls.made]
    assert tokens[0] == tokens[1] != tokens[2]
    assert len(tokens[0]) == 36


def test_w22_one_client_makes_all_calls_of_a_service(calls: ApiCalls) -> None:
    target = AwsApiTarget(calls.make)
    answers = target.start_many([(call(number, **SNS), CONTEXT) for number in range(20)] + [(call(**ECS), CONTEXT)])
    assert all(isinstance(answer, Started) for answer in answers)
    assert [service for service, _ in calls.clients] == ["sns", "ecs"]


def test_w22_a_call_ends_within_the_longest_call_of_aws(calls: ApiCalls) -> None:
    AwsApiTarget(calls.make).start(call(**SNS), CONTEXT)
    [(_, options)] = calls.clients
    assert options["retries"] == {"total_max_attempts": 1}
    assert (3 + options["read_timeout"]) * 1_000 < MAX_AWS_CALL == Document.longest_call({})


ARN = "arn:aws:sts::000000000000:assumed-role/sluice-target-demo/sluice-demo"
DENIED = f"User: {ARN} is not authorized to perform: sns:Publish on resource: {TOPIC} because no identity-based policy allows the sns:Publish action"  # noqa: E501


@pytest.mark.parametrize(
    ("error", "expected", "said"),
    [
        (refused("ThrottlingException"), NotNow, "sns:Publish refused for now: ThrottlingException"),
        (refused("DBInstanceNotReady"), NotNow, "refused for now"),
        (refused("InternalFailure", status=500), NoAnswer, "sns:Publish gave no answer"),
        (refused("SomethingElse", status=503), NoAnswer, "gave no answer"),
        (EndpointConnectionError(endpoint_url="https://x"), NoAnswer, "gave no answer"),
        (refused("NotFoundException"), Never, "NotFoundException"),
        (refused("ValidationException", "1 error"), Never, "ValidationException: 1 error"),
        (refused("InvalidInstanceID.NotFound"), Never, "NotFound"),
        (refused("MissingParameter"), Never, "MissingParameter"),
        (refused("AccessDenied", DENIED), Never, "allow sns:Publish on"),
        (refused("UnauthorizedOperation", DENIED), Never, "in the policies of the role sluice-target-demo"),
        (ParamValidationError(report="hunter2"), Never, "the SDK cannot write a request"),
        (EndpointResolutionError(msg="hunter2"), Never, "no address for sns:Publish: EndpointResolutionError"),
        (ResponseParserError("hunter2"), NoAnswer, "no answer that can be read"),
        (RecursionError("hunter2"), NoAnswer, "no answer that can be read"),
        (UnicodeEncodeError("utf-8", "hunter2", 0, 1, "surrogates"), Never, "no call was made"),
        (refused("SlowDown", status=503), NotNow, "refused for now: SlowDown"),
        (refused("RequestThrottledException", status=503), NotNow, "refused for now"),
        (refused("ProvisionedThroughputExceededException"), NotNow, "refused for now"),
        (refused("RequestLimitExceeded", status=503), NotNow, "refused for now"),
        (refused("TooManyRequestsException", status=429), NotNow, "refused for now"),
        (refused("NoSuchBucket", status=404), Never, "refused the call"),
        (refused("DBInstanceNotFoundFault", status=404), Never, "refused the call"),
        (refused("StateMachineDoesNotExist"), Never, "refused the call"),
        (refused("IdempotentParameterMismatch"), Never, "refused the call"),
        (refused("SerializationException"), Never, "refused the call"),
        (refused("InvalidName"), Never, "refused the call"),
        (refused("ParameterNotFound"), Never, "sns:Publish refused the call"),
        (refused("ResourceNotFoundException", status=503), NoAnswer, "gave no answer"),
    ],
    ids=lambda value: str(getattr(value, "response", {}).get("Error", {}).get("Code", "")) or None,
)
def test_w22_each_error_has_its_meaning(
    calls: ApiCalls, error: Exception, expected: type[Answer], said: str
) -> None:  # fmt: skip
    calls.refusals = [error]
    answer = AwsApiTarget(calls.make).start(call(**SNS), CONTEXT)
    assert isinstance(answer, expected)
    assert said in getattr(answer, "why", "")
    assert "hunter2" not in getattr(answer, "why", "")
    assert calls.made == []


DEEP: Any = None
for _ in range(3_000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    "wrong", [{"run_id": "\ud800"}, {"run_id": DEEP}, {"run_id": "[" * 100_000}], ids=["surrogate", "deep", "open"]
)
def test_w22_one_bad_value_repeats_no_other_call(calls: ApiCalls, wrong: dict[str, Any]) -> None:
    """What leaves one call of a batch as an exception would repeat all."""
    count = {"service": "ecs", "action": "run_task", "input": {"taskDefinition": "{{run_id}}", "count": "{{run_id}}"}}
    asked = [(call(1, **SNS), CONTEXT), (call(2, **count), {**CONTEXT, **wrong}), (call(3, **SNS), CONTEXT)]
    first, bad, last = AwsApiTarget(calls.make).start_many(asked)
    assert isinstance(first, Started) and isinstance(last, Started)
    assert isinstance(bad, Never) and bad.why.startswith("no call was made")
    assert len(calls.made) == 2


def test_w22_an_adapter_keeps_the_clients_of_eight_services(calls: ApiCalls) -> None:
    target = AwsApiTarget(calls.make)
    for number in range(9):
        target._client(f"s{number}")
        target._client("s0")
    assert len(target._clients) == 8
    assert [service for service, _ in calls.clients] == [f"s{number}" for number in range(9)]
    target._client("s1")
    assert calls.clients[-1][0] == "s1", "the one that was used longest ago is made again"


@pytest.mark.parametrize(
    ("given", "context", "said"),
    [
        ({"Message": "{{correlation.hour}}"}, CONTEXT, "input.Message: expected a run whose context has correlation.h"),
        ({"Message": "a", "MessageAttributes": "{{run_id}}"}, CONTEXT, "input.MessageAttributes: expected an object"),
    ],
)  # fmt: skip
def test_w22_a_run_without_a_fitting_value_makes_no_call(
    calls: ApiCalls, given: dict[str, Any], context: dict[str, Any], said: str
) -> None:
    answer = AwsApiTarget(calls.make).start(call(**{**SNS, "input": given}), context)
    assert isinstance(answer, Never)
    assert said in answer.why
    assert calls.made == []


def test_w22_an_action_of_a_newer_sdk_is_a_refusal(calls: ApiCalls) -> None:
    """After a rollback, the package may have an older model than the one by which the document was checked."""
    answer = AwsApiTarget(calls.make).start(call(**{**SNS, "action": "publish_newly"}), CONTEXT)
    assert isinstance(answer, Never)
    assert "expected an action of sns" in answer.why
