"""Members of a namespace: who changes them, what they may post, and what an observing installation logs (O5)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.access.roles import Access
from chalicelib.core.rows import kinds
from chalicelib.core.rows.access import AccessRow
from chalicelib.flow.definitions import access, of_namespace
from chalicelib.wiring import ports
from tests.web.conftest import APP, NS, Api
from tests.web.signed import Signer, authorizing, member, role

ADMIN = Signer(role("platform"))
STRANGER = Signer(role("stranger"))


@pytest.fixture
def enforced(api: Api, monkeypatch: pytest.MonkeyPatch) -> Api:
    authorizing(monkeypatch, "enforce")
    return api


def put_members(*members: dict[str, Any]) -> tuple[int, Any]:
    return ADMIN.send("PUT", f"{NS}/access", {"members": list(members)})


@pytest.mark.usefixtures("enforced")
def test_only_platform_administrators_create_namespaces() -> None:
    assert ADMIN.status("PUT", "/v1/namespaces/new", {}) == 201
    assert STRANGER.status("PUT", "/v1/namespaces/newer", {}) == 404
    assert put_members({"member": member("boss"), "roles": ["admin"]})[0] == 201
    assert Signer(role("boss")).status("PUT", "/v1/namespaces/newer", {}) == 404
    assert Signer(role("boss")).status("PUT", NS, {"description": "ours"}) == 200


@pytest.mark.usefixtures("enforced")
def test_a_change_of_members_holds_for_the_next_request() -> None:
    eve = Signer(role("eve"))
    put_members({"member": member("boss"), "roles": ["admin"]}, {"member": member("eve"), "roles": ["viewer"]})
    assert eve.status("GET", NS) == 200
    put_members({"member": member("boss"), "roles": ["admin"]})
    assert eve.status("GET", NS) == 404


@pytest.mark.parametrize(
    ("callers", "named"), [((), "210987654321, 333333333333"), (("210987654321",), "333333333333")]
)
def test_members_whom_api_gateway_refuses_are_named(
    api: Api, monkeypatch: pytest.MonkeyPatch, callers: tuple[str, ...], named: str
) -> None:
    own = {"member": member("boss"), "roles": ["admin"]}
    foreign = [{"member": "210987654321"}, {"member": member("x").replace("123456789012", "333333333333")}]
    members = [own, *({**each, "roles": ["viewer"]} for each in foreign)]
    current = ports()
    for account, expected in (("123456789012", True), ("", False)):
        known = replace(current, settings=replace(current.settings, account=account, caller_accounts=callers))
        monkeypatch.setattr("chalicelib.web.routes.access.ports", lambda known=known: known)
        answer = api.put(f"{NS}/access", {"members": members})
        assert (f"CallerAccounts of the stack: {named}" in answer.get("warning", "")) is expected
        assert "warning" not in api.put(f"{NS}/access", {"members": [own]})


@pytest.mark.usefixtures("enforced")
def test_an_admin_cannot_remove_itself() -> None:
    boss = Signer(role("boss"))
    put_members({"member": member("boss"), "roles": ["admin"]})
    error = boss.error("PUT", f"{NS}/access", {"members": [{"member": member("heir"), "roles": ["admin"]}]})
    assert (error["code"], error["field"]) == ("invalid", "members")
    assert boss.status("GET", f"{NS}/access") == 200


@pytest.mark.usefixtures("enforced")
def test_a_removed_admin_does_not_take_the_role_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The role is taken away after the request was let in, and before its members are stored."""
    boss, heir = {"member": member("boss"), "roles": ["admin"]}, {"member": member("heir"), "roles": ["admin"]}
    put_members(boss, heir)
    crossing = iter([Access.model_validate({"members": [heir]})])
    require = of_namespace.require

    def crossed(*known: Any) -> None:
        require(*known)
        for document in crossing:
            access.put(ports(), "demo", document, "platform")

    monkeypatch.setattr(of_namespace, "require", crossed)
    error = Signer(role("boss")).error("PUT", f"{NS}/access", {"members": [boss]})
    assert error["code"] == "forbidden"
    assert Signer(role("heir")).send("GET", f"{NS}/access")[1]["members"] == [heir]


@pytest.mark.usefixtures("enforced")
def test_members_do_not_return_with_a_new_namespace() -> None:
    ADMIN.send("PUT", "/v1/namespaces/new", {})
    ADMIN.send("PUT", "/v1/namespaces/new/access", {"members": [{"member": member("boss"), "roles": ["admin"]}]})
    boss = Signer(role("boss"))
    assert boss.status("DELETE", "/v1/namespaces/new") == 204
    assert ADMIN.status("PUT", "/v1/namespaces/new", {}) == 201
    assert boss.status("GET", "/v1/namespaces/new") == 404


@pytest.mark.usefixtures("enforced")
def test_a_producer_posts_only_its_event_types() -> None:
    put_members(
        {"member": member("boss"), "roles": ["admin"]},
        {"member": member("till"), "roles": ["producer"], "events": ["sales."], "datasets": ["flights"]},
    )
    till = Signer(role("till"))
    assert till.status("POST", f"{NS}/events", {"events": [{"type": "sales.paid"}]}) == 202
    error = till.error("POST", f"{NS}/events", {"events": [{"type": "sales.paid"}, {"type": "stock.low"}]})
    assert (error["code"], error["field"]) == ("forbidden", "events")
    assert "stock.low" in error["message"]
    day = {"partition": {"year": "2013", "month": "1", "day": "1"}}
    assert till.status("POST", f"{NS}/datasets/flights/partitions", day) == 201
    assert till.status("POST", f"{NS}/datasets/weather/partitions", day) == 403


@pytest.mark.usefixtures("enforced")
def test_the_signer_of_a_change_is_on_record() -> None:
    ADMIN.send("PUT", NS, {"description": "ours"})
    assert ADMIN.send("GET", NS)[1]["updated_by"] == ADMIN.arn


def test_observing_logs_what_would_be_refused(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    authorizing(monkeypatch, "observe")
    logged: list[dict[str, Any]] = []
    monkeypatch.setattr("chalicelib.log.logger.warning", lambda message, extra: logged.append({"m": message, **extra}))
    assert STRANGER.status("PUT", NS, {"description": "mine"}) == 200
    [entry] = logged
    assert entry["m"] == "request would be refused"
    assert entry["by"] == STRANGER.arn
    assert STRANGER.send("GET", "/v1/namespaces")[1]["items"]


@pytest.mark.usefixtures("api")
def test_observing_carries_out_every_request_and_logs_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    authorizing(monkeypatch, "observe")
    logged: list[dict[str, Any]] = []
    monkeypatch.setattr("chalicelib.log.logger.warning", lambda message, extra: logged.append(extra))
    for sender, by in ((STRANGER, STRANGER.arn), (Signer(None), "unknown")):
        logged.clear()
        assert sender.status("POST", f"{NS}/events", {"events": [{"type": "sales.paid"}]}) == 202
        assert [entry["by"] for entry in logged] == [by]
    logged.clear()
    assert STRANGER.status("PUT", f"{NS}/access", {"members": [{"member": member("boss"), "roles": ["admin"]}]}) == 201
    assert len(logged) == 1


def test_without_authorization_nothing_is_checked(api: Api) -> None:
    assert Signer(None).status("PUT", NS, {"description": "mine"}) == 200


@pytest.mark.parametrize(
    "target", [f"{APP}", f"{APP}/schedules", f"{NS}/runs", f"{NS}/graph", f"{APP}/schedules/none/why"]
)
def test_a_request_reads_the_access_document_once_strongly(
    api: Api, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    api.put(f"{NS}/access", {"members": [{"member": member("ours"), "roles": ["admin"]}]})
    authorizing(monkeypatch, "enforce")
    read: list[bool] = []
    client: Any = ports().catalog._dynamo._client
    own, key = client.get_item, kinds.key(AccessRow, "demo")

    def counted(**request: Any) -> Any:
        if (request["Key"]["pk"]["S"], request["Key"]["sk"]["S"]) == (key.pk, key.sk):
            read.append(request["ConsistentRead"])
        return own(**request)

    monkeypatch.setattr(client, "get_item", counted)
    Signer(role("ours")).send("GET", target)
    assert read == [True]
    Signer(role("ours")).send("GET", target)
    assert read == [True, True], "nothing is kept for the next request"
