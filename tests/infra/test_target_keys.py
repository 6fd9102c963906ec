"""Keys of encrypted targets (parameter TargetKeyArns): who may use them, through which services."""

from __future__ import annotations

import re
from typing import Any

import pytest

from infra.local.permissions import Need, Policy, needs
from tests.infra.resolve import Resolver
from tests.support import roles

QUEUE = {"QueueUrl": "https://sqs.eu-west-1.amazonaws.com/123456789012/sluice-target-x"}


def statements(template: dict[str, Any]) -> list[dict[str, Any]]:
    document = template["Resources"]["UseTargetKeys"]["Properties"]["PolicyDocument"]
    found: list[dict[str, Any]] = Resolver(template, {}, TargetKeyArns=roles.KEY)(document)["Statement"]
    return found


def test_e5_the_lambdas_that_send_may_use_the_keys(template: dict[str, Any]) -> None:
    given = template["Resources"]["UseTargetKeys"]
    assert given["Properties"]["Roles"] == [{"Ref": "CheckRole"}], "burst has the role of check"
    assert given["Condition"] == "UsesTargetKeys"
    assert template["Parameters"]["TargetKeyArns"]["Default"] == ""
    granted = {name: {grant.resource for grant in policy.grants()} for name, policy in roles.policies().items()}
    users = [name for name, resources in granted.items() if roles.KEY in resources]
    assert users == ["check"]


def test_e5_an_encrypted_queue_is_refused_without_its_key(template: dict[str, Any]) -> None:
    [send, *of_key] = needs("sqs", "SendMessage", QUEUE, roles.PLACE)
    sends = {"Effect": "Allow", "Action": send.action, "Resource": send.resource}
    assert len(of_key) == 2
    assert not any(Policy([sends]).allows(need) for need in of_key)
    assert all(Policy([sends, *statements(template)]).allows(need) for need in (send, *of_key))


@pytest.mark.parametrize(("service", "allowed"), [("sqs", True), ("sns", True), ("states", True), ("s3", False)])
def test_e5_a_key_serves_through_the_services_of_targets_alone(
    template: dict[str, Any], service: str, allowed: bool
) -> None:
    policy = Policy(statements(template))
    through = (("kms:ViaService", f"{service}.eu-west-1.amazonaws.com"),)
    assert policy.allows(Need("kms:GenerateDataKey", roles.KEY, through)) is allowed
    assert not policy.allows(Need("kms:GenerateDataKey", roles.KEY))
    assert not policy.allows(Need("kms:GenerateDataKey", roles.KEY.replace("1234abcd", "other"), through))


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("", True),
        (roles.KEY, True),
        (f"{roles.KEY},arn:aws-cn:kms:cn-north-1:210987654321:key/mrk-1234abcd12ab34cd56ef1234567890ab", True),
        ("arn:aws:kms:eu-west-1:123456789012:alias/orders", False),
        ("arn:aws:kms:*:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab", False),
        ("1234abcd-12ab-34cd-56ef-1234567890ab", False),
        ("*", False),
    ],
)
def test_e5_the_parameter_takes_arns_of_keys(template: dict[str, Any], text: str, fits: bool) -> None:
    assert bool(re.fullmatch(template["Parameters"]["TargetKeyArns"]["AllowedPattern"], text)) is fits
