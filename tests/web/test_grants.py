"""Grants between namespaces over the API: who changes them, and what others learn (O9)."""

from __future__ import annotations

import pytest

from chalicelib.core.rows.grants import GrantsRow
from chalicelib.web import access
from chalicelib.wiring import ports
from tests.web.conftest import APP, NS, Api
from tests.web.signed import Signer, authorizing, member, role

OTHER = "/v1/namespaces/other"
AUTHOR = Signer(role("author"))
MEMBERS = [{"member": member("boss"), "roles": ["admin"]}]
MINE = {"workflow": "clean", "trigger": {"type": "program_status", "workflow": "other.core.clean"}, "enabled": True}


@pytest.fixture
def enforced(api: Api, monkeypatch: pytest.MonkeyPatch) -> Api:
    """Namespace ``other`` has a workflow; its administrator is another than that of ``demo``."""
    api.put(OTHER, {})
    api.put(f"{OTHER}/access", {"members": MEMBERS})
    target = {"type": "emr_serverless", "entry_point": "s3://code/job.py"}
    api.put(f"{OTHER}/apps/core", {"workflows": {"clean": {"target": target}}})
    api.put(f"{NS}/access", {"members": [*MEMBERS, {"member": member("author"), "roles": ["author"]}]})
    authorizing(monkeypatch, "enforce")
    for module in ("access", "actions", "schedules"):
        monkeypatch.setattr(f"chalicelib.web.routes.{module}.ports", access.ports)
    return api


def test_o9_only_an_administrator_changes_grants(enforced: Api) -> None:
    document = {"grants": [{"to": "demo", "follow": ["core.*"]}]}
    assert AUTHOR.status("PUT", f"{OTHER}/grants", document) == 404
    assert AUTHOR.status("PUT", f"{NS}/grants", {"grants": []}) == 403
    boss = Signer(role("boss"))
    assert boss.status("GET", f"{OTHER}/grants") == 404
    assert boss.send("PUT", f"{OTHER}/grants", document) == (
        201,
        {"name": "other", "kind": "grants", "did": "created", "version": 1},
    )
    assert boss.send("PUT", f"{OTHER}/grants", document)[1]["did"] == "unchanged"
    assert boss.send("GET", f"{OTHER}/grants")[1]["grants"] == document["grants"]
    assert boss.send("GET", f"{OTHER}/grants")[1]["updated_by"] == boss.arn
    assert boss.send("PUT", f"{OTHER}/grants", {"grants": []}, If_Match='"7"')[0] == 412


def test_o9_an_author_learns_nothing_of_what_is_not_granted(enforced: Api) -> None:
    missing = {**MINE, "trigger": {"type": "program_status", "workflow": "other.core.cleax"}}
    denied = AUTHOR.error("PUT", f"{APP}/schedules/mine", MINE)
    absent = AUTHOR.error("PUT", f"{APP}/schedules/mine", missing)
    assert {**absent, "message": absent["message"].replace("cleax", "clean")} == denied
    assert denied["hint"].endswith("can grant it: sluice grants other")
    Signer(role("boss")).send("PUT", f"{OTHER}/grants", {"grants": [{"to": "demo", "follow": ["core.clean"]}]})
    assert AUTHOR.status("PUT", f"{APP}/schedules/mine", MINE) == 201


@pytest.mark.parametrize(
    ("grant", "field"),
    [
        ({"to": "other", "run": ["*"]}, "grants.0.to"),
        ({"to": "*", "run": ["*"]}, "grants.0.to"),
        ({"to": "demo", "start": ["*"]}, "grants.0.start"),
        ({"to": "demo", "run": "core.clean"}, "grants.0.run"),
    ],
)
def test_o9_a_bad_grant_gets_its_field_and_a_hint(enforced: Api, grant: dict[str, object], field: str) -> None:
    error = Signer(role("boss")).error("PUT", f"{OTHER}/grants", {"grants": [grant]})
    assert (error["field"], bool(error["hint"])) == (field, True)
    assert ports().rows.get(GrantsRow, "other") is None


def test_o9_the_grants_of_a_missing_namespace_are_refused(api: Api) -> None:
    error = api.refused(404, "PUT", "/v1/namespaces/nowhere/grants", {"grants": []})
    assert error["hint"] == "create the namespace first"
