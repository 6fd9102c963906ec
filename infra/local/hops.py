"""Chains of Lambdas and queues, counted as Lambda counts them.

Lambda stops a chain in which a function is invoked more than 16 times and drops the event, unless the function has
`RecursiveLoop: Allow`. ministack counts calls of `Invoke`, but not messages, so a function that sends to its own queue
would run forever there, but stop in AWS. Here a message carries the number of invocations that led to it.

https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html
"""

from __future__ import annotations

import contextvars
import logging
from collections.abc import Callable
from typing import Any

_LOG = logging.getLogger("sluice.local")
HOPS = "sluice-hops"  # attribute of a message: the number of invocations that led to it
_sender: contextvars.ContextVar[int] = contextvars.ContextVar("sluice_sender", default=0)


def count(lambda_svc: Any, sqs: Any, provisioners: Any) -> None:
    """Make ministack count messages, and read `RecursiveLoop` from a template."""
    _send_with_hops(lambda_svc, sqs)
    _invoke_with_hops(lambda_svc, sqs)
    _read_recursive_loop(lambda_svc, provisioners)


def _send_with_hops(lambda_svc: Any, sqs: Any) -> None:
    """Give a message the depth of the invocation that sent it, which ministack's runtime passes in a header."""
    handle, send = sqs.handle_request, sqs._act_send_message

    async def handle_request(method: str, path: str, headers: dict[str, str], *more: Any) -> Any:
        _sender.set(lambda_svc._inbound_invoke_depth(headers))
        return await handle(method, path, headers, *more)

    def send_message(data: dict[str, Any], url: str) -> Any:
        sent = send(data, url)
        if hops := _sender.get():
            messages = sqs._get_q(data.get("QueueUrl", url), "sqs:SendMessage")["messages"]
            next(message for message in reversed(messages) if message["id"] == sent["MessageId"])[HOPS] = hops
        return sent

    sqs.handle_request, sqs._act_send_message = handle_request, send_message
    sqs._HANDLERS["SendMessage"] = send_message


def _invoke_with_hops(lambda_svc: Any, sqs: Any) -> None:
    """Give a batch the depth of its deepest message. Dropped messages are removed from their queue."""
    run: Callable[..., None] = lambda_svc._run_sqs_batch

    def run_batch(mapping: Any, function: Any, event: Any, batch: Any, url: str, queue: str) -> None:
        depth = 1 + max(message.get(HOPS, 0) for message in batch)
        name = function["config"]["FunctionName"]
        if lambda_svc._recursive_loop_drop(name, lambda_svc._functions.get(name, function), depth) is not None:
            _LOG.warning("%s: %d messages dropped after %d hops", name, len(batch), depth - 1)
            sqs._delete_messages_for_esm(url, {message["receipt_handle"] for message in batch})
            return
        lambda_svc._invoke_depth.set(depth)
        run(mapping, function, event, batch, url, queue)

    lambda_svc._run_sqs_batch = run_batch


def _read_recursive_loop(lambda_svc: Any, provisioners: Any) -> None:
    handler = provisioners._RESOURCE_HANDLERS["AWS::Lambda::Function"]
    create, update = handler["create"], handler["update"]

    def set_mode(name: str, properties: dict[str, Any]) -> None:
        lambda_svc._functions[name]["recursive_loop"] = properties.get("RecursiveLoop", "Terminate")

    def created(logical_id: str, properties: dict[str, Any], stack: str) -> Any:
        made = create(logical_id, properties, stack)
        set_mode(made[0], properties)
        return made

    def updated(physical_id: str, old: dict[str, Any], new: dict[str, Any], *more: Any, **named: Any) -> Any:
        made = update(physical_id, old, new, *more, **named)
        set_mode(made[0], new)
        return made

    handler["create"], handler["update"] = created, updated
