"""Principals, members, roles and rights (O5)."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from pydantic import ValidationError

from chalicelib.core.access.principal import Principal, identified
from chalicelib.core.access.roles import HELD, ROLES, Access, Resource, Right, can_see, is_allowed
from chalicelib.core.errors import SluiceError, from_validation

ADA = "arn:aws:sts::123456789012:assumed-role/data-eng/ada"
BOB = "arn:aws:iam::123456789012:user/team/bob"


def principal(arn: str) -> Principal:
    return identified({"identity": {"userArn": arn}})


def access(*members: dict[str, Any]) -> Access:
    admin = {"member": "arn:aws:iam::123456789012:role/root-of-all", "roles": ["admin"]}
    return Access.model_validate({"members": [admin, *members]})


def test_a_session_belongs_to_its_role() -> None:
    context = {
        "identity": {"userArn": ADA, "user": "AROAX:ada", "sourceIp": "192.0.2.7"},
        "requestId": "r1",
    }
    assert identified(context) == Principal(
        arn=ADA,
        account="123456789012",
        member="arn:aws:iam::123456789012:role/data-eng",
        session="ada",
        unique_id="AROAX:ada",
        source="192.0.2.7",
        request_id="r1",
    )


@pytest.mark.parametrize(
    "arn",
    [
        "arn:aws:iam::123456789012:user/team/bob",
        "arn:aws-cn:iam::123456789012:root",
        "arn:aws:sts::123456789012:federated-user/x",
    ],
)
def test_a_signer_that_is_no_session_is_its_own_member(arn: str) -> None:
    assert (principal(arn).member, principal(arn).session) == (arn, "")


@pytest.mark.parametrize(
    "context", [{}, {"identity": None}, {"identity": {"userArn": None}}, {"identity": {"userArn": "ann"}}]
)
def test_an_unknown_signer_is_refused(context: dict[str, Any]) -> None:
    with pytest.raises(SluiceError) as caught:
        identified(context)
    assert caught.value.code == "forbidden"
    assert caught.value.hint is not None


@pytest.mark.parametrize(
    ("member", "arn", "fits"),
    [
        ("arn:aws:iam::123456789012:role/data-eng", ADA, True),
        ("arn:aws:iam::123456789012:role/data-*", ADA, True),
        ("arn:aws:iam::123456789012:role/*", ADA, None),
        ("arn:aws:iam::123456789012:role/data", ADA, False),
        ("arn:aws:iam::123456789012:user/data-*", ADA, False),
        ("arn:aws:iam::123456789012:user/team/*", BOB, True),
        ("arn:aws:iam::123456789012:user/team/bo", BOB, False),
        ("123456789012", BOB, True),
        ("210987654321", BOB, False),
        ("arn:aws:iam::210987654321:role/data-eng", ADA, False),
    ],
)
def test_a_member_is_a_user_a_role_or_an_account(member: str, arn: str, fits: bool | None) -> None:
    if fits is None:
        with pytest.raises((ValidationError, SluiceError)):
            access({"member": member, "roles": ["viewer"]})
        return
    roles = access({"member": member, "roles": ["viewer"]}).roles_of(principal(arn))
    assert roles == (("viewer",) if fits else ())


@pytest.mark.parametrize(
    "member",
    [
        "*",
        "arn:aws:iam::*:role/data",
        "arn:aws:iam::123456789012:*",
        "arn:aws:iam::123456789012:role/*",
        "arn:aws:iam::123456789012:role/path/data",
        "arn:aws:sts::123456789012:assumed-role/data/ada",
        "arn:aws:iam::123456789012:root",
        "12345",
        "ann",
    ],
)
def test_a_member_that_fits_everybody_or_nobody_is_refused(member: str) -> None:
    with pytest.raises(ValidationError) as caught:
        access({"member": member, "roles": ["viewer"]})
    error = from_validation(caught.value, Access)
    assert error.field == "members.1.member"
    assert error.hint is not None
    assert "arn:aws:iam::123456789012:role/data-*" in error.hint


def test_an_access_document_has_an_admin() -> None:
    with pytest.raises(ValidationError) as caught:
        Access.model_validate({"members": [{"member": "123456789012", "roles": ["author"]}]})
    assert from_validation(caught.value, Access).message.startswith("expected at least one member with the role admin")


@pytest.mark.parametrize(("field", "role"), [("events", "worker"), ("datasets", "author"), ("pools", "producer")])
def test_a_limit_stands_beside_the_role_that_it_limits(field: str, role: str) -> None:
    with pytest.raises(ValidationError):
        access({"member": "123456789012", "roles": [role], field: ["x"]})


@pytest.mark.parametrize("role", ROLES)
def test_each_role_has_exactly_its_rights(role: str) -> None:
    document = access({"member": "123456789012", "roles": [role]})
    held = {right for right in get_args(Right) if is_allowed(principal(BOB), (), document, right)}
    assert held == HELD[role]


def test_nobody_approves_without_the_duty() -> None:
    document = access({"member": "123456789012", "roles": ["admin"]})
    assert not is_allowed(principal(BOB), (), document, "approve")
    assert not is_allowed(principal(BOB), (BOB,), None, "approve")


def test_administrators_of_the_installation_need_no_members() -> None:
    administrators = ("arn:aws:iam::123456789012:role/deploy-*",)
    deployer = principal("arn:aws:sts::123456789012:assumed-role/deploy-prod/ci")
    assert is_allowed(deployer, administrators, None, "administer")
    assert can_see(deployer, administrators, None)
    assert not is_allowed(principal(ADA), administrators, None, "read")
    assert not can_see(principal(ADA), administrators, None)


@pytest.mark.parametrize(
    ("limits", "resource", "allowed"),
    [
        ({}, Resource(events=("sales.paid",)), True),
        ({}, Resource(dataset="flights"), True),
        ({"events": ["sales."]}, Resource(events=("sales.paid", "sales.sent")), True),
        ({"events": ["sales."]}, Resource(events=("sales.paid", "stock.low")), False),
        ({"events": ["sales."]}, Resource(dataset="flights"), False),
        ({"datasets": ["flights"]}, Resource(dataset="flights"), True),
        ({"datasets": ["flights"]}, Resource(dataset="weather"), False),
        ({"datasets": ["flights"]}, Resource(events=("sales.paid",)), False),
        ({"events": ["sales."], "datasets": ["flights"]}, Resource(events=("sales.paid",)), True),
    ],
)
def test_a_producer_may_be_limited(limits: dict[str, Any], resource: Resource, allowed: bool) -> None:
    document = access({"member": "123456789012", "roles": ["producer"], **limits})
    assert is_allowed(principal(BOB), (), document, "produce", resource) is allowed


def test_a_worker_may_be_limited_to_pools() -> None:
    document = access({"member": "123456789012", "roles": ["worker"], "pools": ["gpu"]})
    assert is_allowed(principal(BOB), (), document, "work", Resource(pool="gpu"))
    assert not is_allowed(principal(BOB), (), document, "work", Resource(pool="cpu"))


def test_a_limit_holds_for_its_role_alone() -> None:
    document = access({"member": "123456789012", "roles": ["producer", "author"], "events": ["sales."]})
    assert is_allowed(principal(BOB), (), document, "produce", Resource(events=("stock.low",)))
