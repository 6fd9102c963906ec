"""Secrets by reference: their names, and the headers that must have one (E5)."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.errors import SluiceError, from_validation
from chalicelib.core.targets.http import HttpTarget
from chalicelib.core.targets.secrets import SecretReference, arn_of, name_of
from chalicelib.core.targets.urls import check_credentials
from tests.support.world import World, flights

HOOK: dict[str, Any] = {"type": "http", "url": "https://hooks.example.com/orders"}
KEY = {"ssm": "/sluice-target/demo/key"}


@pytest.mark.parametrize(
    ("stored", "name", "arn"),
    [
        ("/a/b", "/a/b", "arn:*:ssm:*:*:parameter/a/b"),
        ({"ssm": "/a/b"}, "/a/b", "arn:*:ssm:*:*:parameter/a/b"),
        ({"secrets_manager": "a/b"}, "secretsmanager:a/b", "arn:*:secretsmanager:*:*:secret:a/b"),
        ("arn:aws:secretsmanager:eu-west-1:1:secret:a", *["arn:aws:secretsmanager:eu-west-1:1:secret:a"] * 2),
    ],
)
def test_a_secret_has_one_name_and_one_arn(stored: Any, name: str, arn: str) -> None:
    assert (name_of(stored), arn_of(name)) == (name, arn)


@pytest.mark.parametrize("given", [{}, {"ssm": "/a", "secrets_manager": "b"}, {"ssm": "a"}, {"secrets_manager": "a b"}])
def test_a_reference_names_exactly_one_secret(given: dict[str, str]) -> None:
    with pytest.raises((ValidationError, SluiceError)):
        SecretReference.model_validate(given)


def test_a_target_keeps_references_and_names_them() -> None:
    made = HttpTarget.model_validate({**HOOK, "headers": {"Authorization": KEY, "X-Team": "a"}, "secret": KEY})
    stored = made.model_dump(mode="json")
    assert (stored["headers"], stored["secret"]) == ({"Authorization": KEY, "X-Team": "a"}, KEY)
    named = [(each.kind, each.value, each.field) for each in HttpTarget.named(stored)]
    arn = "arn:*:ssm:*:*:parameter/sluice-target/demo/key"
    assert named == [
        ("hosts", "hooks.example.com", "url"),
        ("secrets", arn, "secret"),
        ("secrets", arn, "headers.Authorization"),
    ]


@pytest.mark.parametrize(
    "header",
    ["Authorization", "authorization", "Cookie", "X-Api-Key", "Private-Token", "X-Secret", "Api-Key", "x-apikey"],
)
def test_a_header_with_credentials_must_name_a_secret(header: str) -> None:
    with pytest.raises(SluiceError) as failure:
        check_credentials({header: "Bearer s3cr3t"}, "target.headers")
    assert failure.value.field == f"target.headers.{header}"
    assert "s3cr3t" not in str(failure.value.to_dict())
    check_credentials({header: KEY}, "target.headers")


def test_other_headers_may_be_in_clear() -> None:
    check_credentials({"X-Team": "a", "Accept": "x", "X-Tokens": "3", "Keyed": "y"}, "target.headers")


@pytest.mark.parametrize(
    ("target", "field"),
    [
        ({"headers": {"Authorization": "Bearer x"}}, "headers.Authorization"),
        ({"headers": {"X-Key": {"ssm": "/sluice-target/other/key"}}}, "headers.X-Key"),
        ({"secret": {"secrets_manager": "sluice-target-other/key"}}, "secret"),
    ],
)
def test_an_app_with_a_clear_or_foreign_secret_is_refused(target: dict[str, Any], field: str) -> None:
    world = World()
    with pytest.raises(SluiceError) as failure:
        world.deploy(flights({}, notify={"target": HOOK | target}))
    assert failure.value.field == f"workflows.notify.target.{field}"
    world.deploy(flights({}, notify={"target": HOOK | {"headers": {"Authorization": KEY}, "secret": KEY}}))


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"secret": "no path"}, "target.secret"),
        ({"secret": {"ssm": "no path"}}, "target.secret.ssm"),
        ({"headers": {"X-Key": {"ssm": 1}}}, "target.headers.X-Key.ssm"),
        ({"headers": {"X-Key": {"vault": "a"}}}, "target.headers.X-Key.vault"),
        ({"headers": {"X-Key": 7}}, "target.headers.X-Key"),
    ],
)
def test_a_bad_secret_is_refused_at_its_field(given: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as failure:
        Workflow.model_validate({"target": HOOK | given})
    found = from_validation(failure.value, Workflow)
    assert field in [found.field, *(each.field for each in found.problems)]


@pytest.mark.parametrize("name", ["/sluice-target/demo/../other/key", "/sluice-target/demo/./key", "/sluice-target/.."])
@pytest.mark.parametrize("field", ["secret", "headers.Authorization"])
def test_o14_a_secret_with_dots_as_a_part_of_its_name_is_refused(name: str, field: str) -> None:
    named = {"secret": name} if field == "secret" else {"headers": {"Authorization": {"ssm": name}}}
    with pytest.raises(SluiceError) as refused:
        World().deploy(flights({}, notify={"target": HOOK | named}))
    assert (refused.value.code, refused.value.field) == ("invalid", f"workflows.notify.target.{field}")
    assert refused.value.message == f"expected a secret whose name has no part . or .., got '{name}'"


def test_a_secret_may_have_dots_within_the_parts_of_its_name() -> None:
    World().deploy(flights({}, notify={"target": HOOK | {"secret": "/sluice-target/demo/key..v1.2"}}))
