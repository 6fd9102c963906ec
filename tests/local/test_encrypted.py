"""On the local cloud, who sends to an encrypted queue or topic needs its key."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from infra.local import encrypted

KEY = "arn:aws:kms:us-east-1:000000000000:key/1234abcd"
CHECK = "arn:aws:sts::000000000000:assumed-role/sluice-local-CheckRole-X/sluice-local-check"
SEND, PUBLISH = "sqs:SendMessage", "sns:Publish"


class Cloud:
    """The parts of ministack that `encrypted` changes. ``allowed`` are the actions that IAM allows."""

    def __init__(self, *allowed: str) -> None:
        self.allowed = allowed
        self.asked: list[tuple[Any, ...]] = []
        attributes: dict[str, dict[str, str]] = {
            "plain": {},
            "owned": {"KmsMasterKeyId": "alias/aws/sqs"},
            "orders": {"KmsMasterKeyId": "alias/o"},
        }
        things = {name: {"attributes": of} for name, of in attributes.items()}
        self.iam = SimpleNamespace(enforce=self._enforce)
        self.kms = SimpleNamespace(_resolve_key=lambda name: {"Arn": KEY} if name == "alias/o" else None)
        self.sqs = SimpleNamespace(_get_q=lambda url, action=None: things[url], _Err=RuntimeError)
        self.sns = SimpleNamespace(
            _get_topic=lambda arn, action=None: (things[arn], None), _error=lambda *all_of: all_of
        )
        encrypted.install(self.iam, self.kms, self.sqs, self.sns)

    def _enforce(self, key: str, action: str, service: str, region: str, **named: Any) -> Any:
        self.asked.append((key, action, service, region, named))
        return None if action in self.allowed else SimpleNamespace(principal_arn=CHECK)

    def send(self, queue: str) -> Any:
        assert self.iam.enforce("ASIACHECK", SEND, "sqs", "us-east-1", resource_arn=queue) is None
        return self.sqs._get_q(queue, SEND)

    def publish(self, topic: str) -> Any:
        assert self.iam.enforce("ASIACHECK", PUBLISH, "sns", "us-east-1", resource_arn=topic) is None
        return self.sns._get_topic(topic, PUBLISH)


def test_a_sender_with_the_key_sends() -> None:
    cloud = Cloud(SEND, PUBLISH, "kms:GenerateDataKey", "kms:Decrypt")
    assert cloud.send("orders")["attributes"]
    named = {"resource_arn": KEY, "service_context": {"kms:ViaService": "sqs.us-east-1.amazonaws.com"}}
    assert cloud.asked[1:] == [
        ("ASIACHECK", "kms:GenerateDataKey", "kms", "us-east-1", named),
        ("ASIACHECK", "kms:Decrypt", "kms", "us-east-1", named),
    ]
    assert cloud.publish("orders")[1] is None


@pytest.mark.parametrize(
    ("allowed", "missing"), [((), "kms:GenerateDataKey"), (("kms:GenerateDataKey",), "kms:Decrypt")]
)
def test_a_sender_without_the_key_is_refused_in_the_words_of_aws(allowed: tuple[str, ...], missing: str) -> None:
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


def test_who_receives_needs_the_key_for_decryption_alone() -> None:
    Cloud("sqs:ReceiveMessage", "kms:Decrypt").sqs._get_q("orders", "sqs:ReceiveMessage")
    with pytest.raises(RuntimeError, match="not authorized to perform: kms:Decrypt"):
        Cloud("sqs:ReceiveMessage").sqs._get_q("orders", "sqs:ReceiveMessage")


@pytest.mark.parametrize("name", ["plain", "owned"])
def test_no_key_is_needed_for_keys_of_aws_and_for_other_calls(name: str) -> None:
    cloud = Cloud(SEND, PUBLISH)
    cloud.send(name)
    assert cloud.publish(name)[1] is None
    cloud.sqs._get_q("orders")
    cloud.sqs._get_q("orders", "sqs:DeleteMessage")
    assert [asked[1] for asked in cloud.asked] == [SEND, PUBLISH]
