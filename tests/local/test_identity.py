"""The local cloud finds out about the sender of a request once. The answers are those of ministack."""

from __future__ import annotations

import asyncio
import copy
import json
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from ministack.core import iam_actions

from infra.local import guard, identity

HOST = "127.0.0.1:4566"
BODY = json.dumps({"RequestItems": {"jobs": {"Keys": []}, "runs": {"Keys": []}}}).encode()


class Sqs:
    """ministack's module of SQS with one queue, which looks at the policy of the queue as often as that."""

    def __init__(self) -> None:
        self.queue: dict[str, Any] = {"messages": []}
        self.allows = True
        self.checks = 0
        self._HANDLERS: dict[str, Any] = {}
        self._enforce_queue_policy, self._act_send_message_batch = self._enforce, self._batch

    def _enforce(self, queue: dict[str, Any], action: str) -> None:
        self.checks += 1
        if not self.allows:
            raise PermissionError(action)

    def _get_q(self, url: str, action: str) -> dict[str, Any]:
        self._enforce_queue_policy(self.queue, action)
        return self.queue

    def _batch(self, data: dict[str, Any], url: str) -> int:
        for entry in data["Entries"]:
            self._get_q(url, "sqs:SendMessage")["messages"].append(entry)
        return len(data["Entries"])

    def send(self, count: int) -> int:
        sent: int = self._HANDLERS["SendMessageBatch"]({"Entries": list(range(count))}, "url")
        return sent


def installed(sqs: Any = None, **changed: Any) -> SimpleNamespace:
    modules = SimpleNamespace(
        iam_evaluator=SimpleNamespace(pin_request_caller=changed.get("pin", lambda *_: None)),
        iam_actions=SimpleNamespace(json=json),
        sigv4=SimpleNamespace(header_signature_failure=changed.get("failure", lambda *_, **__: "refused")),
        sqs=sqs or Sqs(),
    )
    identity.install(modules.iam_evaluator, modules.iam_actions, modules.sigv4, modules.sqs)
    return modules


def in_a_request(step: Any) -> Any:
    """The server handles each request in a task of its own."""

    async def task() -> Any:
        return step()

    return asyncio.run(task())


def test_the_policy_of_a_queue_is_checked_once_a_batch() -> None:
    sqs = Sqs()
    installed(sqs)
    assert (sqs.send(10), sqs.checks, len(sqs.queue["messages"])) == (10, 1, 10)
    sqs.send(10)
    sqs._get_q("url", "sqs:SendMessage")
    assert sqs.checks == 3


def test_another_action_on_the_queue_is_checked_by_itself() -> None:
    sqs = Sqs()
    sqs._act_send_message_batch = lambda data, url: sqs._get_q(url, "sqs:DeleteMessage")
    installed(sqs)
    sqs.send(1)
    assert sqs.checks == 2


def test_a_policy_that_forbids_a_batch_forbids_the_next_too() -> None:
    sqs = Sqs()
    installed(sqs)
    sqs.send(1)
    sqs.allows = False
    for _ in range(2):
        with pytest.raises(PermissionError, match="sqs:SendMessage"):
            sqs.send(10)
    assert len(sqs.queue["messages"]) == 1


def test_the_caller_of_a_request_is_looked_up_once() -> None:
    pinned: list[str] = []
    pin = installed(pin=lambda headers, query: pinned.append(headers.get("authorization"))).iam_evaluator
    for sent in ({"authorization": "a"}, {}):
        in_a_request(lambda sent=sent: [pin.pin_request_caller(sent, {}) for _ in range(3)])
    assert pinned == ["a", None, None, None]
    in_a_request(lambda: pin.pin_request_caller({"authorization": "a"}, {}))
    assert pinned[-1] == "a" and len(pinned) == 5


def test_another_caller_in_the_same_request_is_looked_up() -> None:
    pinned: list[str] = []
    pin = installed(pin=lambda headers, query: pinned.append(headers["authorization"])).iam_evaluator
    in_a_request(lambda: [pin.pin_request_caller({"authorization": who}, {}) for who in ("a", "b", "b", "a")])
    assert pinned == ["a", "b", "a"]


def test_only_the_signature_that_the_guard_verified_is_accepted() -> None:
    check = installed().sigv4.header_signature_failure
    signed, other, none = (SimpleNamespace(signature=text) for text in ("ab12", "ab13", ""))

    def after_the_guard() -> list[Any]:
        guard.verified.set("ab12")
        return [check(each, "secret", presigned=False) for each in (signed, other, none)]

    assert in_a_request(after_the_guard) == [None, "refused", "refused"]
    assert in_a_request(lambda: [check(each) for each in (signed, none)]) == ["refused", "refused"]


@pytest.mark.parametrize("secret", ["right", "wrong"])
def test_the_guard_marks_a_request_that_it_has_verified(secret: str) -> None:
    seen: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(guard.verified.get())

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        pass

    async def requests() -> str:
        guarded = guard.before_asgi(app, guard.Guard(4566, lambda key: "right", "/ready"))
        signed = _signed(secret)
        await asyncio.create_task(guarded(signed, receive, send))
        return guard.verified.get()

    assert asyncio.run(requests()) == "", "the next request on the same connection is not marked"
    assert [bool(signature) for signature in seen] == ([True] if secret == "right" else [])


def test_permissions_are_read_from_one_parse_of_the_body() -> None:
    place = ("us-east-1", "000000000000")
    plain = iam_actions.dynamodb_resource_arns(BODY, *place), iam_actions.dynamodb_service_context(BODY)
    read = installed().iam_actions.json
    before = copy.deepcopy(read.loads(BODY))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(iam_actions, "json", read)
        for _ in range(2):
            assert (
                iam_actions.dynamodb_resource_arns(BODY, *place),
                iam_actions.dynamodb_service_context(BODY),
            ) == plain
        assert iam_actions.dynamodb_resource_arns(b"{", *place) == []
    assert read.loads(BODY) is read.loads(BODY)
    assert read.loads(BODY) == before


def _signed(secret: str) -> dict[str, Any]:
    request = AWSRequest("POST", f"http://{HOST}/", data=b"")
    SigV4Auth(Credentials("AKIA", secret), "sqs", "us-east-1").add_auth(request)
    headers = [(name.lower().encode(), value.encode()) for name, value in request.headers.items()]
    return {
        "type": "http", "method": "POST", "path": "/", "raw_path": b"/", "query_string": b"",
        "headers": [(b"host", HOST.encode()), *headers],
    }  # fmt: skip
