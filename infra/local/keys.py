"""What is encrypted with a KMS key needs the permission to use the key, as in AWS.

ministack stores the key of a table, a queue, a topic or a bucket, and asks nothing of it. Here a call on one of them
also needs `kms:Decrypt` or `kms:GenerateDataKey` of its caller, by the caller's policies and the policy of the key; S3
and EventBridge deliver to a queue only if the key names them. A disabled key lets nobody in.

Whoever sends to a queue or a topic gets the denial of KMS in the words of AWS, because Sluice reads them.
"""

from __future__ import annotations

import contextvars
import logging
from collections.abc import Callable
from typing import Any

from infra.local.permissions import Need, Place, uses_of_key

_LOG = logging.getLogger("sluice.local")
SENDER = ("kms:Decrypt", "kms:GenerateDataKey")
SENDING = ("sqs:SendMessage", "sns:Publish")
_OF_AWS = "alias/aws/"  # keys that AWS manages: everybody in the account may use them
# What KMS denies the sender of the request that is being handled; empty if nothing.
_denied: contextvars.ContextVar[str] = contextvars.ContextVar("sluice_denied", default="")


class Keys:
    """The keys of ministack's tables, queues and buckets, and who may use them."""

    def __init__(self, iam_evaluator: Any, kms: Any, dynamodb: Any, sqs: Any, s3: Any, sns: Any = None) -> None:
        self._iam, self._kms, self._dynamodb, self._sqs, self._s3 = iam_evaluator, kms, dynamodb, sqs, s3
        self._sns = sns

    def of(self, service: str, resource: str) -> str:
        """The ARN of the customer's key that encrypts a resource; empty if none does."""
        key = ""
        if service == "dynamodb" and ":table/" in resource:
            table = self._dynamodb._tables.get(resource.partition(":table/")[2].partition("/")[0]) or {}
            key = (table.get("SSEDescription") or {}).get("KMSMasterKeyArn", "")
        elif service == "sqs":
            queue = self._sqs._queue_by_arn(resource) or {}
            key = queue.get("attributes", {}).get("KmsMasterKeyId", "")
        elif service == "sns":
            topic = self._sns._topic_by_arn_any_scope(resource) or {}
            key = topic.get("attributes", {}).get("KmsMasterKeyId", "")
        elif service == "s3" and "/" in resource:
            bucket = resource.partition(":::")[2].partition("/")[0]
            key = self._s3._bucket_default_sse_headers(bucket).get("x-amz-server-side-encryption-aws-kms-key-id", "")
        if not key or key.startswith(_OF_AWS) or ":key/" in key:
            return key if ":key/" in key else ""
        found = self._kms._resolve_key(key)  # an id or an alias
        return str(found["Arn"]) if found else ""

    def is_enabled(self, key: str) -> bool:
        found = self._kms._resolve_key(key)
        return found is not None and found["KeyState"] == "Enabled"

    def let_in(self, key: str, service: str) -> bool:
        """Whether the policy of a key allows a service of AWS to write to what it encrypts."""
        policy, _ = self._kms.key_policy_for_arn(key) or ("", "")
        contexts = (
            self._iam.EvalContext(
                principal_arn="*", principal_type="Service", principal_account="", action=action, resource_arn=key,
                region=key.split(":")[3],
            )
            for action in SENDER
        )  # fmt: skip
        return self.is_enabled(key) and all(
            self._iam.evaluate_resource_policy(policy, context, service=service).decision == "Allow"
            for context in contexts
        )


def install(iam_evaluator: Any, eventbridge: Any, sqs: Any, keys: Keys) -> None:
    """Make ministack ask the keys. It must be called after `refusals.install`, which then logs these refusals, too."""
    iam_evaluator.enforce = _also_of_keys(iam_evaluator, iam_evaluator.enforce, keys)
    allows, dispatch = sqs.queue_policy_allows, eventbridge._dispatch_to_sqs

    def queue_policy_allows(queue_arn: str, service: str, *more: Any) -> bool:
        return bool(allows(queue_arn, service, *more)) and _may_send(keys, queue_arn, service)

    def dispatch_to_sqs(spec: Any, *more: Any) -> None:
        if _may_send(keys, str(spec), "events.amazonaws.com"):
            dispatch(spec, *more)
        else:
            _LOG.warning("EventBridge may not use the key of %s: the event is lost", spec)

    sqs.queue_policy_allows, eventbridge._dispatch_to_sqs = queue_policy_allows, dispatch_to_sqs


def tell_senders(sqs: Any, sns: Any) -> None:
    """Make SQS and SNS answer what KMS denies a sender."""
    find_queue, find_topic = sqs._get_q, sns._get_topic

    def get_queue(url: str, action: str | None = None) -> Any:
        if action in SENDING and (denied := _denied.get()):
            raise sqs._Err("KMS.AccessDeniedException", denied)
        return find_queue(url, action)

    def get_topic(arn: str, action: str | None = None) -> Any:
        if action in SENDING and (denied := _denied.get()):
            return None, sns._error("KMSAccessDenied", denied, 400)
        return find_topic(arn, action)

    sqs._get_q, sns._get_topic = get_queue, get_topic


def _may_send(keys: Keys, queue_arn: str, service: str) -> bool:
    key = keys.of("sqs", queue_arn)
    return not key or keys.let_in(key, service)


def _also_of_keys(iam_evaluator: Any, enforce: Callable[..., Any], keys: Keys) -> Callable[..., Any]:
    def enforced(access_key_id: str, iam_action: str, service: str, region: str, **named: Any) -> Any:
        _denied.set("")
        refused = enforce(access_key_id, iam_action, service, region, **named)
        resource = named.get("resource_arn", "*")
        key = keys.of(service, resource) if refused is None else ""
        if not key:
            return refused
        uses = list(uses_of_key(Need(iam_action, resource), Place(region, keys={"*": key})))
        if uses and not keys.is_enabled(key):
            return iam_evaluator.EvalResult("Deny", principal_arn=f"the disabled key {key}")
        for use in uses:
            context = dict(use.keys)
            refused = enforce(access_key_id, use.action, "kms", region, resource_arn=key, service_context=context)
            if refused is not None and iam_action in SENDING:
                by = f"User: {refused.principal_arn} is not authorized to perform: {use.action} on resource: {key}"
                _denied.set(f"{by} because no identity-based policy allows the {use.action} action")
                return None
            if refused is not None:
                return refused
        return None

    return enforced
