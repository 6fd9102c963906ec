"""Keys of encrypted targets (parameter TargetKeyArns): who may use them, through which services."""

from __future__ import annotations

import re
from typing import Any

import pytest

from infra.local.permissions import Need, Policy, needs
from tests.infra.resolve import Resolver
from tests.support import roles

POLICIES = ("UseTargetKeys", "ReadTargetExecutions")
QUEUE = {"QueueUrl": "https://sqs.eu-west-1.amazonaws.com/123456789012/sluice-target-x"}


def statements(template: dict[str, Any]) -> list[dict[str, Any]]:
    """Of `check`."""
    resolve = Resolver(template, {}, TargetKeyArns=roles.KEY)
    documents = [template["Resources"][name]["Properties"]["PolicyDocument"] for name in POLICIES]
    return [statement for document in documents for statement in resolve(document)["Statement"]]


def test_e5_the_lambdas_that_send_may_use_the_keys(template: dict[str, Any]) -> None:
    send, read = (template["Resources"][name] for name in POLICIES)
    assert send["Properties"]["Roles"] == [{"Ref": "CheckRole"}], "burst has the role of check"
    assert read["Properties"]["Roles"] == [{"Ref": "CheckRole"}, {"Ref": "RunStateRole"}]
    assert send["Condition"] == read["Condition"] == "UsesTargetKeys"
    assert template["Parameters"]["TargetKeyArns"]["Default"] == ""
    granted = {name: {grant.resource for grant in policy.grants()} for name, policy in roles.policies().items()}
    users = [name for name, resources in granted.items() if roles.KEY in resources]
    assert users == ["check", "run_state"]
    of_key = {grant.action for grant in roles.policies()["run_state"].grants() if grant.resource == roles.KEY}
    assert of_key == {"kms:Decrypt"}


@pytest.mark.parametrize("name", ["check", "run_state"])
def test_e5_the_end_of_an_encrypted_execution_can_be_read(name: str) -> None:
    """Its status event has no input, error and cause."""
    execution = "arn:aws:states:us-east-1:000000000000:execution:sluice-target-etl:sluice-a"
    asked = needs("stepfunctions", "DescribeExecution", {"executionArn": execution}, roles.PLACE)
    assert [need.action for need in asked] == ["states:DescribeExecution", "kms:Decrypt"]
    assert all(roles.policies()[name].allows(need) for need in asked)


def test_e5_an_encrypted_queue_is_refused_without_its_key(template: dict[str, Any]) -> None:
    [send, *of_key] = needs("sqs", "SendMessage", QUEUE, roles.PLACE)
    sends = {"Effect": "Allow", "Action": send.action, "Resource": send.resource}
    assert len(of_key) == 2
    assert not any(Policy([sends]).allows(need) for need in of_key)
    assert all(Policy([sends, *statements(template)]).allows(need) for need in (send, *of_key))


@pytest.mark.parametrize(
    ("service", "encrypts", "decrypts"),
    [("sqs", True, True), ("sns", True, True), ("states", False, True), ("ssm", False, True), ("s3", False, False)],
)
def test_e5_a_key_serves_through_the_services_of_targets_alone(
    template: dict[str, Any], service: str, encrypts: bool, decrypts: bool
) -> None:
    policy = Policy(statements(template))
    through = (("kms:ViaService", f"{service}.eu-west-1.amazonaws.com"),)
    assert policy.allows(Need("kms:GenerateDataKey", roles.KEY, through)) is encrypts
    assert policy.allows(Need("kms:Decrypt", roles.KEY, through)) is decrypts
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
