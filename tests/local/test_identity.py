"""The local cloud finds out about the sender of a request once, and who may do what stays the same."""

from __future__ import annotations

import asyncio
import copy
import json
from types import SimpleNamespace
from typing import Any

import pytest
from ministack.core import iam_actions

from infra.local import guard, identity

HOST = "127.0.0.1:4566"
BODY = json.dumps({"RequestItems": {"jobs": {"Keys": []}, "runs": {"Keys": []}}}).encode()


class Sqs:
    """ministack's module of SQS with one queue, which looks at the policy of the queue as often as that."""

    def __init__(self) -> None:
        self.queue: dict[str, Any] = {"messages": []}
        self.other: dict[str, Any] = {"messages": []}
        self.allows = True
        self.checks = 0
        self._HANDLERS: dict[str, Any] = {}
        self._enforce_queue_policy, self._act_send_message_batch = self._enforce, self._batch

    def _enforce(self, queue: dict[str, Any], action: str) -> None:
        self.checks += 1
        if not self.allows:
            raise PermissionError(action)

    def _get_q(self, url: str, action: str) -> dict[str, Any]:
        queue = self.other if url == "other" else self.queue
        self._enforce_queue_policy(queue, action)
        return queue

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
        sqs=sqs or Sqs(),
    )
    identity.install(modules.iam_evaluator, modules.iam_actions, modules.sqs)
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


def test_another_queue_is_checked_by_itself() -> None:
    sqs = Sqs()
    sqs._act_send_message_batch = lambda data, url: sqs._get_q("other", "sqs:SendMessage")
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


@pytest.mark.parametrize(
    ("service", "path", "action"),
    [("scheduler", "/schedules/nightly", "scheduler:CreateSchedule"), ("batch", "/v1/submitjob", "batch:SubmitJob")],
)
def test_a_call_still_needs_its_action(service: str, path: str, action: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """ministack finds the actions of REST calls in botocore's files, which it reads with the same module."""
    monkeypatch.setattr(iam_actions, "json", installed().iam_actions.json)
    for name in ("_REST_ROUTE_CACHE", "_TAG_OPERATIONS"):
        monkeypatch.setattr(iam_actions, name, {})
    assert iam_actions.extract_iam_action(service, "POST", path, {}, b"{}", {}) == action
    tagged = json.dumps({"QueueName": "q", "tags": {"team": "a"}}).encode()
    assert iam_actions.request_tag_context("sqs", "sqs:CreateQueue", tagged, {})["aws:requesttag/team"]


def signed(*credentials: str) -> guard.Request:
    named = ", ".join(f"Credential={each}/20260302/us-east-1/sqs/aws4_request" for each in credentials)
    parts = f"AWS4-HMAC-SHA256 {named}, SignedHeaders=host;x-amz-date, Signature=ab12"
    headers = {"authorization": parts, "host": HOST, "x-amz-date": "20260302T120000Z"}
    return guard.Request("POST", "/", "", headers, [HOST])


def test_a_request_names_one_credential() -> None:
    """ministack would take the first for the caller, and the signature is that of the last."""
    checks = guard.Guard(4566, lambda key: "secret", "/ready")
    assert not isinstance(checks.signature_of(signed("AKIA")), guard.Refused)
    for credentials in (("ROOT", "AKIA"), ("AKIA", "ROOT"), ()):
        refused = checks.signature_of(signed(*credentials))
        assert isinstance(refused, guard.Refused)
        assert refused.code == "IncompleteSignature"
