"""What ministack finds out about the sender of a request, found once for each request.

ministack looks up the caller of a request up to three times. It reads the body up to three times for the permissions
that a call needs, and checks the policy of a queue for each message of a batch. Here it does each of these once."""

from __future__ import annotations

import contextvars
import functools
import json
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

_SEND = "sqs:SendMessage"
_caller: contextvars.ContextVar[str] = contextvars.ContextVar("sluice_caller", default="")
_checked: contextvars.ContextVar[frozenset[tuple[int, str]]] = contextvars.ContextVar(
    "sluice_checked", default=frozenset()
)


def install(iam_evaluator: Any, iam_actions: Any, sqs: Any) -> None:
    """Change these modules of ministack."""
    iam_evaluator.pin_request_caller = _pinned_once(iam_evaluator.pin_request_caller)
    # Its functions read what they parse, and change nothing in it.
    read = functools.lru_cache(maxsize=4)(json.loads)
    iam_actions.json = SimpleNamespace(**{**vars(json), "loads": read})
    _check_batches_once(sqs)


def _pinned_once(pin: Callable[..., None]) -> Callable[..., None]:
    """Look up the caller once for each signature. Each request is a task with variables of its own."""

    def pin_request_caller(headers: Mapping[str, str], query_params: Mapping[str, Any] | None = None) -> None:
        signed = (headers or {}).get("authorization", "")
        if signed and signed == _caller.get():
            return
        pin(headers, query_params)
        _caller.set(signed)

    return pin_request_caller


def _check_batches_once(sqs: Any) -> None:
    """Check the policy of a queue once for each batch of messages, not for each message."""
    enforce, send_batch = sqs._enforce_queue_policy, sqs._act_send_message_batch

    def enforce_queue_policy(queue: dict[str, Any], action: str) -> None:
        if (id(queue), action) not in _checked.get():
            enforce(queue, action)

    def send_message_batch(data: dict[str, Any], url: str) -> Any:
        queue = sqs._get_q(data.get("QueueUrl", url), _SEND)
        token = _checked.set(frozenset({(id(queue), _SEND)}))
        try:
            return send_batch(data, url)
        finally:
            _checked.reset(token)

    sqs._enforce_queue_policy, sqs._act_send_message_batch = enforce_queue_policy, send_message_batch
    sqs._HANDLERS["SendMessageBatch"] = send_message_batch
