"""Queues and topics that a customer managed KMS key encrypts: their senders need the key.

ministack keeps `KmsMasterKeyId` and asks nobody. In AWS, SQS and SNS call KMS with the rights of the sender. So a
sender without `kms:GenerateDataKey` and `kms:Decrypt` on the key is refused here with the error of AWS. The keys that
AWS manages (`alias/aws/sqs`) are for everybody of the account.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Mapping
from typing import Any

from infra.local.permissions import KEYED

_OF_AWS = "alias/aws/"
# The access key and the region of the request that is being handled.
_sender: contextvars.ContextVar[tuple[str, str]] = contextvars.ContextVar("sluice_sender", default=("", ""))


class Denied(Exception):
    """KMS denies the sender the key of a queue or topic. The message is AWS's."""


def install(iam_evaluator: Any, kms: Any, sqs: Any, sns: Any) -> None:
    """Change these modules of ministack."""
    iam_evaluator.enforce = _noted(iam_evaluator.enforce)
    find_queue, find_topic = sqs._get_q, sns._get_topic

    def get_queue(url: str, action: str | None = None) -> Any:
        queue = find_queue(url, action)
        try:
            _require(iam_evaluator, kms, action, queue["attributes"])
        except Denied as denied:
            raise sqs._Err("KMS.AccessDeniedException", str(denied)) from None
        return queue

    def get_topic(arn: str, action: str | None = None) -> Any:
        topic, error = find_topic(arn, action)
        try:
            if topic is not None:
                _require(iam_evaluator, kms, action, topic["attributes"])
        except Denied as denied:
            return None, sns._error("KMSAccessDenied", str(denied), 400)
        return topic, error

    sqs._get_q, sns._get_topic = get_queue, get_topic


def _noted(ask: Callable[..., Any]) -> Callable[..., Any]:
    def enforce(access_key_id: str, iam_action: str, service: str, region: str, **named: Any) -> Any:
        _sender.set((access_key_id, region))
        return ask(access_key_id, iam_action, service, region, **named)

    return enforce


def _require(iam_evaluator: Any, kms: Any, action: str | None, attributes: Mapping[str, str]) -> None:
    key_id = attributes.get("KmsMasterKeyId") or ""
    if action not in KEYED or not key_id or key_id.startswith(_OF_AWS):
        return
    found = kms._resolve_key(key_id)
    key = found["Arn"] if found else key_id
    access_key_id, region = _sender.get()
    through = {"kms:ViaService": f"{action.partition(':')[0]}.{region}.amazonaws.com"}
    for needed in KEYED[action]:
        refused = iam_evaluator.enforce(access_key_id, needed, "kms", region, resource_arn=key, service_context=through)
        if refused is not None:
            caller = getattr(refused, "principal_arn", "")
            denied = f"User: {caller} is not authorized to perform: {needed} on resource: {key}"
            raise Denied(f"{denied} because no identity-based policy allows the {needed} action")
