"""Deliveries to SNS, EventBridge and Lambda: what arrives, and the meaning of each refusal (E5)."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError, ReadTimeoutError
from moto import mock_aws

from chalicelib import wiring
from chalicelib.aws.targets.event_bus import EventBusTarget
from chalicelib.aws.targets.lambda_function import LambdaTarget
from chalicelib.aws.targets.registry import ADAPTERS
from chalicelib.aws.targets.sns import SnsTarget
from chalicelib.core.results import HINT, NONE, Result
from chalicelib.core.targets.answers import Answer, Never, NoAnswer, NotNow, Started
from chalicelib.core.targets.registry import of_type
from chalicelib.settings import Settings
from tests.support import rows
from tests.support.deliveries import CONTEXT, Queue, attributes, run

FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:consume"


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    with mock_aws():
        yield


@pytest.mark.parametrize("fifo", [False, True])
def test_e5_a_topic_passes_the_message_to_its_subscribers(fifo: bool) -> None:
    queue = Queue(FifoQueue="true") if fifo else Queue()
    sns: Any = boto3.client("sns")
    shape = {"FifoTopic": "true"} if fifo else {}
    topic = sns.create_topic(Name="orders.fifo" if fifo else "orders", Attributes=shape)["TopicArn"]
    raw = {"RawMessageDelivery": "true"}
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queue.arn, Attributes=raw)

    calls = [(run(number, type="sns", topic_arn=topic, subject="Orders"), CONTEXT) for number in range(11)]
    answers = SnsTarget(sns).start_many(calls)

    assert all(isinstance(answer, Started) for answer in answers)
    messages = queue.messages()
    assert sorted(attributes(each)["sluice-event-id"] for each in messages) == sorted(each.run_id for each, _ in calls)
    assert json.loads(messages[0]["Body"]) == CONTEXT


def test_e5_a_missing_topic_is_a_refusal() -> None:
    gone = run(type="sns", topic_arn="arn:aws:sns:us-east-1:123456789012:none", subject=None)
    assert isinstance(SnsTarget(boto3.client("sns")).start(gone, CONTEXT), Never)


KEY = "arn:aws:kms:us-east-1:123456789012:key/1a"
OF_KMS = (
    f"User: arn:aws:sts::123456789012:assumed-role/check/x is not authorized to perform: kms:Decrypt on resource: {KEY}"
)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("KMSAccessDenied", OF_KMS),
        ("KMSAccessDenied", "null (Service: AWSKMS; Status Code: 400; Error Code: AccessDeniedException)"),
    ],
)
def test_e5_a_topic_whose_key_is_denied_says_what_to_grant(code: str, message: str) -> None:
    class Topics:
        def publish_batch(self, **call: Any) -> Any:
            raise ClientError({"Error": {"Code": code, "Message": message}}, "PublishBatch")

    answer = SnsTarget(Topics()).start(run(type="sns", topic_arn="arn:aws:sns:us-east-1:1:t", subject=None), CONTEXT)
    assert isinstance(answer, Never)
    assert "what to do: allow kms:GenerateDataKey and kms:Decrypt on" in answer.why
    assert "TargetKeyArns" in answer.why


def test_e5_a_bus_gets_an_event_that_its_rules_can_match() -> None:
    queue, events = Queue(), boto3.client("events")
    events.create_event_bus(Name="orders")
    pattern = json.dumps({"source": ["team.orders"], "detail": {"sluice": {"schedule": ["demo.flights.clean"]}}})
    events.put_rule(Name="all", EventBusName="orders", EventPattern=pattern)
    events.put_targets(Rule="all", EventBusName="orders", Targets=[{"Id": "q", "Arn": queue.arn}])

    target = {"type": "event_bus", "bus": "orders", "source": "team.orders", "detail_type": "Due"}
    answer = EventBusTarget(events).start(run(data={"content_type": "application/json", "text": "[1]"}, **target), {})

    [message] = queue.messages()
    view = json.loads(message["Body"])
    assert answer == Started(view["id"], done=True)
    assert (view["detail-type"], view["detail"]["data"]) == ("Due", [1])
    assert view["detail"]["sluice"]["event_id"] == "demo.flights.notify.1.e1"
    assert view["detail"]["sluice"]["due_time"] == "2026-03-02T12:00:00.250Z"


class Bus:
    def put_events(self, Entries: Sequence[Any]) -> Any:
        codes = ["ThrottlingException", "InternalFailure", "MalformedDetail"]
        return {"Entries": [{"EventId": "e"}, *({"ErrorCode": code, "ErrorMessage": "?"} for code in codes)]}


def test_e5_events_refused_by_a_bus_have_their_own_answers() -> None:
    target = {"type": "event_bus", "bus": "b", "source": "s", "detail_type": "d"}
    answers = EventBusTarget(Bus()).start_many([(run(number, **target), CONTEXT) for number in range(4)])
    assert [type(answer) for answer in answers] == [Started, NotNow, NoAnswer, Never]


AT_MOST = "expected a result of at most 10,000 bytes of JSON"


class Functions:
    """The used part of a Lambda client: returns the set answer, or raises the set error."""

    def __init__(self, payload: bytes = b"{}", failed: bool = False, error: Exception | None = None) -> None:
        self.payload, self.failed, self.error = payload, failed, error
        self.calls: list[dict[str, Any]] = []

    def invoke(self, **call: Any) -> Any:
        self.calls.append(call)
        if self.error is not None:
            raise self.error
        answer = {"ResponseMetadata": {"RequestId": "q1"}, "Payload": io.BytesIO(self.payload)}
        return answer | {"FunctionError": "Unhandled"} if self.failed else answer


def refused(code: str, status: int) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "?"}, "ResponseMetadata": {"HTTPStatusCode": status}}, "x")


@pytest.mark.parametrize(("wait", "kind"), [(False, "Event"), (True, "RequestResponse")])
def test_e5_a_function_is_invoked_with_or_without_waiting(wait: bool, kind: str) -> None:
    functions = Functions()
    answer = LambdaTarget(functions).start(run(type="lambda", function=FUNCTION, wait=wait), CONTEXT)
    [call] = functions.calls
    assert answer == Started("q1", done=True, result=Result({}) if wait else NONE)
    assert (call["FunctionName"], call["InvocationType"]) == (FUNCTION, kind)
    view = json.loads(call["Payload"])
    assert (view["context"], view["sluice"]["attempt"]) == (CONTEXT, 1)
    assert view["sluice"]["nominal_time"] == "2026-03-02T12:00:00.000Z"


@pytest.mark.parametrize(
    ("payload", "result"),
    [
        (b'{"mode": "full"}', Result({"mode": "full"})),
        (b"null", NONE),
        (b"", NONE),
        (b"done", Result(refused="expected a result in JSON, got 'done'")),
        (
            b'"' + b"x" * 11_000 + b'"',
            Result(refused=f"expected a result of at most 10,000 bytes of JSON, got 11,002; {HINT}"),
        ),
        (
            b'"' + b"x" * 99_000 + b'"',
            Result(refused=f"expected a result of at most 10,000 bytes of JSON, got more than 65,536; {HINT}"),
        ),
    ],
)
def test_w18_the_answer_of_a_function_is_the_result(payload: bytes, result: Result) -> None:
    target = run(type="lambda", function=FUNCTION, wait=True)
    assert LambdaTarget(Functions(payload)).start(target, CONTEXT) == Started("q1", done=True, result=result)


def test_w18_an_answer_that_breaks_off_is_no_answer() -> None:
    class Broken(io.BytesIO):
        def read(self, *_: Any) -> bytes:
            raise ReadTimeoutError(endpoint_url="x")

    functions = Functions()
    functions.invoke = lambda **_: {"ResponseMetadata": {}, "Payload": Broken()}  # type: ignore[method-assign]
    answer = LambdaTarget(functions).start(run(type="lambda", function=FUNCTION, wait=True), CONTEXT)
    assert isinstance(answer, NoAnswer) and answer.why.startswith("the answer of the function broke off: ")


@pytest.mark.parametrize(
    ("functions", "kind"),
    [
        (Functions(b'{"errorMessage": "no stock"}', failed=True), NoAnswer),
        (Functions(error=refused("TooManyRequestsException", 429)), NotNow),
        (Functions(error=refused("ServiceException", 500)), NoAnswer),
        (Functions(error=refused("ResourceNotFoundException", 404)), Never),
        (Functions(error=refused("AccessDeniedException", 403)), Never),
        (Functions(error=ConnectTimeoutError(endpoint_url="x")), NoAnswer),
    ],
)
def test_e5_each_refusal_of_lambda_has_its_meaning(functions: Functions, kind: type[Answer]) -> None:
    answer = LambdaTarget(functions).start(run(type="lambda", function=FUNCTION, wait=True), CONTEXT)
    assert isinstance(answer, kind), answer


def test_c15_a_probe_calls_a_function_and_reads_its_answer() -> None:
    functions = Functions(b'{"met": true}')
    assert LambdaTarget(functions).probe({"function": FUNCTION}, {"job_id": "j"}) == b'{"met": true}'
    assert functions.calls[0]["InvocationType"] == "RequestResponse"
    broken = LambdaTarget(Functions(b'{"errorMessage": "boom"}', failed=True)).probe({"function": FUNCTION}, {})
    assert broken == NoAnswer("the function failed: boom")
    busy = LambdaTarget(Functions(error=refused("TooManyRequestsException", 429))).probe({"function": FUNCTION}, {})
    assert isinstance(busy, NoAnswer)


def test_e5_each_kind_of_target_is_wired() -> None:
    names = ("catalog_table", "jobs_table", "runs_table", "hints_queue_url", "lake_bucket", "control_bucket")
    targets = wiring.targets(Settings(**dict.fromkeys(names, "x"), emr_application_id="", emr_job_role_arn=""))
    made = {kind: targets.of(kind) for kind in ADAPTERS}
    assert len({type(each) for each in made.values()}) == len(ADAPTERS)
    for kind, target in made.items():
        assert (target.start_many([]), target.status_many([])) == ([], [])
        if of_type(kind).event_source is None:  # this target cannot be polled
            sent = rows.run()
            assert (target.status(sent), target.find(sent), target.cancel(sent)) == (None, None, None)
            assert target.run_name("x") is None
    with pytest.raises(ValueError, match="expected a target of type emr_serverless, sqs"):
        targets.of("kafka")
