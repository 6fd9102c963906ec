"""On the local cloud, a sender to an encrypted queue or topic without its key is told so in the words of AWS."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ministack.core import iam_evaluator

from infra.local import keys

KEY = "arn:aws:kms:us-east-1:000000000000:key/1234abcd"
CHECK = "arn:aws:sts::000000000000:assumed-role/sluice-local-CheckRole-X/sluice-local-check"
SEND, PUBLISH = "sqs:SendMessage", "sns:Publish"


class Cloud:
    """The parts of ministack that `keys` changes. ``allowed`` are the actions that IAM allows."""

    EvalResult = iam_evaluator.EvalResult

    def __init__(self, *allowed: str) -> None:
        self.allowed = allowed
        self.asked: list[tuple[str, str, Any]] = []
        of_key = {"plain": "", "owned": "alias/aws/sqs", "orders": "alias/o", "named": KEY}
        things = {name: {"attributes": {"KmsMasterKeyId": key}} for name, key in of_key.items()}
        kms = SimpleNamespace(_resolve_key=lambda name: {"Arn": KEY, "KeyState": "Enabled"})
        bus = SimpleNamespace(_dispatch_to_sqs=None)
        self.sqs = SimpleNamespace(
            _get_q=lambda url, action=None: things[url],
            _Err=RuntimeError,
            _queue_by_arn=things.get,
            queue_policy_allows=None,
        )
        self.sns = SimpleNamespace(
            _get_topic=lambda arn, action=None: (things[arn], None),
            _topic_by_arn_any_scope=things.get,
            _error=lambda *all_of: all_of,
        )
        keys.install(self, bus, self.sqs, keys.Keys(self, kms, None, self.sqs, None, self.sns))
        keys.tell_senders(self.sqs, self.sns)

    def enforce(self, who: str, action: str, service: str, region: str, **named: Any) -> Any:
        self.asked.append((action, named["resource_arn"], named.get("service_context")))
        return None if action in self.allowed else iam_evaluator.EvalResult("ImplicitDeny", principal_arn=CHECK)

    def send(self, queue: str) -> Any:
        assert self.enforce("ASIACHECK", SEND, "sqs", "us-east-1", resource_arn=queue) is None
        return self.sqs._get_q(queue, SEND)

    def publish(self, topic: str) -> Any:
        assert self.enforce("ASIACHECK", PUBLISH, "sns", "us-east-1", resource_arn=topic) is None
        return self.sns._get_topic(topic, PUBLISH)


@pytest.mark.parametrize("name", ["orders", "named"])
def test_a_sender_with_the_key_sends(name: str) -> None:
    cloud = Cloud(SEND, PUBLISH, "kms:GenerateDataKey", "kms:Decrypt")
    assert cloud.send(name)["attributes"]
    assert cloud.publish(name)[1] is None
    asked = [(action, resource, (context or {}).get("kms:ViaService")) for action, resource, context in cloud.asked]
    of_sqs, of_sns = (f"{service}.us-east-1.amazonaws.com" for service in ("sqs", "sns"))
    assert asked == [
        (SEND, name, None),
        ("kms:GenerateDataKey", KEY, of_sqs),
        ("kms:Decrypt", KEY, of_sqs),
        (PUBLISH, name, None),
        ("kms:GenerateDataKey", KEY, of_sns),
        ("kms:Decrypt", KEY, of_sns),
    ]


@pytest.mark.parametrize(
    ("allowed", "missing"), [((), "kms:GenerateDataKey"), (("kms:GenerateDataKey",), "kms:Decrypt")]
)
def test_a_sender_without_the_key_is_refused_as_by_aws(allowed: tuple[str, ...], missing: str) -> None:
    cloud = Cloud(SEND, PUBLISH, *allowed)
    denied = (
        f"User: {CHECK} is not authorized to perform: {missing} on resource: {KEY} because no identity-based policy"
    )
    with pytest.raises(RuntimeError) as refused:
        cloud.send("orders")
    code, message = refused.value.args
    assert code == "KMS.AccessDeniedException"
    assert message == f"{denied} allows the {missing} action"
    assert cloud.publish("orders") == (None, ("KMSAccessDenied", message, 400))
    assert cloud.send("plain")["attributes"], "the denial is of one request"


@pytest.mark.parametrize("name", ["plain", "owned"])
def test_no_key_is_needed_where_aws_manages_it(name: str) -> None:
    cloud = Cloud(SEND, PUBLISH)
    cloud.send(name)
    assert cloud.publish(name)[1] is None
    assert [action for action, *_ in cloud.asked] == [SEND, PUBLISH]
