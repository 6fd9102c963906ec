"""`sluice access`: the members of a namespace and their roles (O5)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi

PATH = "/v1/namespaces/demo/access"
BOSS = {"member": "arn:aws:iam::123456789012:role/boss", "roles": ["admin"]}
TILL = {
    "member": "arn:aws:iam::123456789012:role/till",
    "roles": ["producer", "worker"],
    "events": ["sales."],
    "datasets": ["flights"],
    "pools": ["gpu"],
}
VIEW = {"name": "demo", "kind": "access", "version": 4, "members": [BOSS, TILL]}
CHANGE = {"name": "demo", "kind": "access", "did": "replaced", "version": 5}


@pytest.fixture
def members(tmp_path: Path) -> Path:
    file = tmp_path / "members.yaml"
    file.write_text("members:\n  - member: arn:aws:iam::123456789012:role/boss\n    roles: [admin]\n")
    return file


def test_members_are_shown_with_roles_and_limits(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", PATH, VIEW)
    result = sluice("access", "demo")
    assert result.exit_code == 0
    lines = [line.split() for line in result.output.splitlines()]
    assert [BOSS["member"], "admin"] in [line[:2] for line in lines]
    assert "events sales.*, dataset flights, pool gpu" in " ".join(result.output.split())


def test_a_file_replaces_the_version_that_was_shown(api: PlayedApi, sluice: Sluice, members: Path) -> None:
    api.play("GET", PATH, VIEW)
    api.play("PUT", PATH, CHANGE)
    result = sluice("access", "demo", "--file", str(members), "--yes")
    assert result.exit_code == 0
    [request] = api.sent("PUT", PATH)
    assert request.body == {"members": [BOSS]}
    assert request.headers["if-match"] == '"4"'


def test_members_whom_api_gateway_refuses_are_named(api: PlayedApi, sluice: Sluice, members: Path) -> None:
    warning = "API Gateway refuses members of other accounts"
    api.play("GET", PATH, VIEW)
    api.play("PUT", PATH, CHANGE | {"warning": warning})
    result = sluice("access", "demo", "--file", str(members), "--yes")
    assert result.exit_code == 0
    assert f"warning: {warning}" in result.stderr


def test_who_loses_a_role_is_named_before(api: PlayedApi, sluice: Sluice, members: Path) -> None:
    api.play("GET", PATH, VIEW)
    result = sluice("access", "demo", "--file", str(members), input="n\n")
    assert result.exit_code == 1
    assert f"{TILL['member']} will lose every role in demo" in " ".join(result.output.split())
    assert api.sent("PUT", PATH) == []


def test_the_first_members_need_no_question(api: PlayedApi, sluice: Sluice, members: Path) -> None:
    api.refuse("GET", PATH, 404, "not_found", "no access document of namespace named 'demo'")
    api.play("PUT", PATH, CHANGE | {"did": "created", "version": 1})
    result = sluice("access", "demo", "--file", str(members), "--json")
    assert json.loads(result.stdout)["did"] == "created"
    assert "if-match" not in api.sent("PUT", PATH)[0].headers
