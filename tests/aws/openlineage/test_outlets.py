"""H6: an endpoint, a queue and a folder take the events of OpenLineage, or say why not."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from chalicelib.aws.openlineage import outlets
from chalicelib.aws.openlineage.outlets import DeadLetters, FolderOutlet, HttpOutlet, QueueOutlet
from chalicelib.aws.targets.safe_http import SafeHttp
from chalicelib.core.openlineage.outlets import Item, Later, Refused, Sent
from chalicelib.core.targets.answers import Never

QUEUE = "arn:aws:sqs:eu-west-1:123456789012:lineage"


class Receiver:
    """An endpoint on the loopback interface, such as that of Marquez. ``answer`` maps a body to a status."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        self.tokens: set[str | None] = set()
        self.answer: Any = lambda body: 201
        self.slow = 0.0
        self.text = b'{"message":\n "job.name is missing"}'
        self.lock = Lock()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                time.sleep(receiver.slow)
                with receiver.lock:
                    status = receiver.answer(body)
                    receiver.tokens.add(self.headers.get("Authorization"))
                    receiver.got.append(body)
                text = receiver.text
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/api/v1/lineage"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.server.shutdown()
    made.server.server_close()


class Secrets:
    def __init__(self, value: Any) -> None:
        self.value = value

    def header(self, name: str) -> Any:
        return self.value


def item(number: int, run: str = "r1", **event: Any) -> Item:
    named = {"eventTime": "2026-03-02T12:00:00.000Z", "eventType": "START", "run": {"runId": run}, "number": number}
    return Item(f"{number:03}", 0, named | event)


def outlet(receiver: Receiver, secret: Any = "", left: int = 60_000) -> HttpOutlet:
    name = "/sluice-target/lineage" if secret else ""
    return HttpOutlet(SafeHttp(allow_private=True), Secrets(secret), receiver.url, name, lambda: left)  # type: ignore[arg-type]


def test_h6_an_endpoint_gets_each_event_in_the_order_of_its_run(receiver: Receiver) -> None:
    items = [item(number, f"r{number % 4}") for number in range(12)]
    assert outlet(receiver, "Bearer token").send(items) == [Sent()] * 12
    for run in ("r0", "r1", "r2", "r3"):
        numbers = [body["number"] for body in receiver.got if body["run"]["runId"] == run]
        assert numbers == sorted(numbers)
    assert len(receiver.got) == 12
    assert receiver.tokens == {"Bearer token"}


def test_h6_an_answer_about_the_event_is_a_refusal(receiver: Receiver) -> None:
    receiver.answer = lambda body: 400 if body["number"] == 1 else 200
    refused, sent = outlet(receiver).send([item(1), item(2)])
    assert refused == Refused('the endpoint answered with HTTP 400: {"message": "job.name is missing"}')
    assert sent == Sent()


@pytest.mark.parametrize(("status", "failed"), [(401, False), (403, True), (404, True), (429, False), (500, True)])
def test_h6_an_answer_about_the_endpoint_is_no_refusal(receiver: Receiver, status: int, failed: bool) -> None:
    receiver.answer = lambda body: status
    first, second = outlet(receiver).send([item(1), item(2)])
    assert isinstance(first, Later)
    assert f"HTTP {status}" in first.why
    assert first.failed is failed
    assert second == outlets.BEFORE  # the events of a run keep their order
    assert len(receiver.got) == 1


def test_h6_a_pause_that_is_asked_for_stops_all_calls(receiver: Receiver) -> None:
    receiver.answer = lambda body: 429
    found = outlet(receiver).send([item(number, f"r{number}") for number in range(100)])
    assert all(isinstance(outcome, Later) for outcome in found)
    assert len(receiver.got) <= outlets.AT_ONCE


def test_h6_one_event_that_fails_does_not_stop_others(receiver: Receiver) -> None:
    receiver.answer = lambda body: 500 if body["run"]["runId"] == "r3" else 200
    found = outlet(receiver).send([item(number, f"r{number}") for number in range(20)])
    assert [number for number, outcome in enumerate(found) if not isinstance(outcome, Sent)] == [3]


def test_h6_a_silent_endpoint_is_asked_again_later(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlets, "CALL", 200)
    receiver.slow = 0.5
    found = outlet(receiver).send([item(number, f"r{number}") for number in range(20)])
    assert isinstance(found[0], Later)
    assert "no complete answer within 0.2 s" in found[0].why
    assert found[0].failed
    assert found[-1] == outlets.SILENT
    assert not outlets.SILENT.tried


def test_h6_an_answer_does_not_show_the_secret(receiver: Receiver) -> None:
    receiver.answer = lambda body: 400
    receiver.text = b'{"message": "no rights for Bearer s3cr3t-token", "token": "s3cr3t-token"}'
    [found] = outlet(receiver, "Bearer s3cr3t-token").send([item(1)])
    assert isinstance(found, Refused)
    assert found.why.endswith('{"message": "no rights for ***", "token": "***"}')


def test_h6_a_slow_endpoint_is_called_at_once_for_several_runs(receiver: Receiver) -> None:
    receiver.slow = 0.2
    began = time.monotonic()
    assert outlet(receiver).send([item(number, f"r{number}") for number in range(8)]) == [Sent()] * 8
    assert time.monotonic() - began < 8 * 0.2


def test_h6_an_endpoint_that_is_not_there_is_asked_again() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/"
    made = HttpOutlet(SafeHttp(allow_private=True), Secrets(""), url, "", lambda: 60_000)  # type: ignore[arg-type]
    [found] = made.send([item(1)])
    assert isinstance(found, Later)
    assert found.failed
    assert "could not be reached" in found.why


def test_h6_no_call_begins_that_the_invocation_cannot_wait_for(receiver: Receiver) -> None:
    assert outlet(receiver, left=11_000).send([item(1)]) == [outlets.NO_TIME]
    assert receiver.got == []


def test_h6_without_its_secret_an_event_is_not_sent(receiver: Receiver) -> None:
    [found] = outlet(receiver, Never("secret cannot be read")).send([item(1)])
    assert found == Later("secret cannot be read")
    assert receiver.got == []


def test_h6_a_private_address_is_not_called(receiver: Receiver) -> None:
    made = HttpOutlet(SafeHttp(), Secrets(""), receiver.url, "", lambda: 60_000)  # type: ignore[arg-type]
    [found] = made.send([item(1)])
    assert isinstance(found, Later)
    assert "expected an https URL" in found.why


class Sqs:
    def __init__(self, failed: Any = ()) -> None:
        self.failed, self.batches, self.sent = failed, [], []

    def get_queue_url(self, **asked: Any) -> dict[str, str]:
        assert asked == {"QueueName": self.name, "QueueOwnerAWSAccountId": "123456789012"}
        return {"QueueUrl": "https://sqs/lineage"}

    name = "lineage"

    def send_message_batch(self, QueueUrl: str, Entries: Any) -> Any:
        if isinstance(self.failed, Exception):
            raise self.failed
        self.batches.append(Entries)
        return {"Failed": self.failed} if self.failed else {}

    def send_message(self, **message: Any) -> None:
        self.sent.append(message)


def test_h6_a_queue_gets_ten_events_in_a_call() -> None:
    sqs = Sqs()
    assert QueueOutlet(sqs, QUEUE).send([item(number) for number in range(25)]) == [Sent()] * 25
    assert [len(batch) for batch in sqs.batches] == [10, 10, 5]
    assert json.loads(sqs.batches[0][0]["MessageBody"]) == item(0).event
    assert sqs.batches[0][0].keys() == {"Id", "MessageBody"}


def test_h6_large_events_are_in_batches_that_a_queue_takes() -> None:
    sqs = Sqs()
    QueueOutlet(sqs, QUEUE).send([item(number, text="x" * 120_000) for number in range(5)])
    assert [len(batch) for batch in sqs.batches] == [2, 2, 1]


def test_h6_a_fifo_queue_keeps_the_order_of_a_run() -> None:
    sqs = Sqs()
    sqs.name = "lineage.fifo"
    QueueOutlet(sqs, f"{QUEUE}.fifo").send([item(1, "r7")])
    [[entry]] = sqs.batches
    assert (entry["MessageGroupId"], entry["MessageDeduplicationId"]) == ("r7", item(1, "r7").id)


def test_h6_a_call_of_a_fifo_queue_has_one_event_of_a_run() -> None:
    sqs = Sqs()
    sqs.name = "lineage.fifo"
    items = [item(0, "r1"), item(1, "r1"), item(2, "r2"), item(3, "r1"), item(4, "r2")]
    assert QueueOutlet(sqs, f"{QUEUE}.fifo").send(items) == [Sent()] * 5
    sent = [[json.loads(entry["MessageBody"])["number"] for entry in batch] for batch in sqs.batches]
    assert sent == [[0, 2], [1, 4], [3]]


@pytest.mark.parametrize("name", ["lineage", "lineage.fifo"])
def test_h6_no_event_passes_one_that_a_queue_did_not_take(name: str) -> None:
    sqs = Sqs([{"Id": "0", "Code": "InternalError", "SenderFault": False}])
    sqs.name = name
    items = [item(number, "r1" if number in (0, 12) else f"x{number}") for number in range(13)]
    found = QueueOutlet(sqs, QUEUE.replace("lineage", name)).send(items)
    assert isinstance(found[0], Later)
    assert found[1:10] == [Sent()] * 9
    assert found[10:] == [outlets.BEFORE] * 3
    assert len(sqs.batches) == 1


def test_h6_messages_that_a_queue_does_not_take() -> None:
    refused = {"Id": "0", "Code": "InvalidMessageContents", "Message": "bad", "SenderFault": True}
    busy = {"Id": "1", "Code": "InternalError", "SenderFault": False}
    found = QueueOutlet(Sqs([refused, busy]), QUEUE).send([item(0), item(1), item(2)])
    assert [type(outcome) for outcome in found] == [Refused, Later, Sent]
    gone = ClientError(
        {"Error": {"Code": "AWS.SimpleQueueService.NonExistentQueue", "Message": "gone"}}, "SendMessageBatch"
    )
    for error in (gone, EndpointConnectionError(endpoint_url="https://sqs")):
        [later] = QueueOutlet(Sqs(error), QUEUE).send([item(0)])
        assert isinstance(later, Later)


class S3:
    def __init__(self, error: Exception | None = None) -> None:
        self.objects: dict[str, bytes] = {}
        self.error = error

    def put_object(self, Bucket: str, Key: str, Body: bytes, **kinds: str) -> None:
        if self.error is not None:
            raise self.error
        self.objects[f"{Bucket}/{Key}"] = Body


def test_h6_a_folder_gets_one_object_for_a_batch() -> None:
    s3, items = S3(), [item(1), item(2)]
    made = FolderOutlet(s3, "lake/lineage/")
    assert made.send(items) == made.send(items) == [Sent(), Sent()]
    [(key, body)] = s3.objects.items()
    assert key.startswith("lake/lineage/day=2026-03-02/")
    assert [json.loads(line) for line in body.splitlines()] == [each.event for each in items]
    denied = ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "PutObject")
    [later] = FolderOutlet(S3(denied), "lake/").send([item(1)])
    assert isinstance(later, Later)
    assert "AccessDenied" in later.why


def test_h6_a_dead_letter_has_the_event_and_the_reason() -> None:
    sqs = Sqs()
    DeadLetters(sqs, "https://sqs/dead", lambda: 5).keep(item(1), "HTTP 400")
    [message] = sqs.sent
    assert message["QueueUrl"] == "https://sqs/dead"
    assert json.loads(message["MessageBody"]) == {"why": "HTTP 400", "at": 5, "id": item(1).id, "event": item(1).event}


def test_h6_a_dead_letter_of_a_change_has_its_keys() -> None:
    sqs, keys = Sqs(), {"pk": {"S": "RUN#r1"}, "sk": {"S": "A#1"}}
    DeadLetters(sqs, "https://sqs/dead", lambda: 5).keep_change("007", keys, "ValueError: no")
    [message] = sqs.sent
    assert json.loads(message["MessageBody"]) == {"why": "ValueError: no", "at": 5, "id": "007", "keys": keys}
