"""Who may send which request: every route, every role, the own and a foreign namespace (O5)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from chalicelib.core.access.roles import HELD, ROLES
from chalicelib.web import table
from chalicelib.web.access import SIGNED
from tests.web.conftest import APP, NS, Api, installation, settle_in
from tests.web.signed import Signer, authorizing, member, role

ADMIN = Signer(role("platform"))
STRANGER = Signer(role("stranger"))
MEMBERS = {name: Signer(role(f"the-{name}")) for name in ROLES}
DOCUMENT = {"members": [{"member": member(f"the-{name}"), "roles": [name]} for name in ROLES]}
RUN = "demo.flights.nightly.mf3k0p2q.0a1b2c3d4e5f60718293"
VALUES = {
    "ns": "demo",
    "app": "flights",
    "name": "none",
    "job_id": RUN,
    "run_id": RUN,
    "fire_id": RUN,
    "lease_id": f"{RUN}-1-1",
    "pool": "demo.gpu",
}
ROUTES = sorted((route.method, route.path, route.needs) for route in table.ROUTES)


@pytest.fixture(scope="module")
def standing() -> Iterator[Api]:
    with installation() as api, pytest.MonkeyPatch.context() as patch:
        settle_in(api)
        api.put(f"{NS}/access", DOCUMENT)
        api.put("/v1/namespaces/other")
        api.put("/v1/namespaces/other/access", {"members": [{"member": member("others"), "roles": ["admin"]}]})
        authorizing(patch, "enforce")
        yield api


def filled(path: str, **changed: str) -> str:
    values = VALUES | changed
    return re.sub(r"{(\w+)}", lambda found: values.get(found[1], "x1"), path)


def test_every_route_says_what_it_needs() -> None:
    assert len(ROUTES) > 80
    assert {path for _, path, needs in ROUTES if needs == SIGNED} == {
        "/v1/audit",  # for administrators of the installation, see `test_audit.py`
        "/v1/health",
        "/v1/namespaces",
        "/v1/openapi.json",
        "/v1/prefixes",  # likewise, see `test_prefixes.py`
        "/v1/whoami",
    }
    with pytest.raises(TypeError, match="needs"):
        table.Route("GET", "/v1/new", "access.new")


# The one would end the tests. The other is for administrators of the installation alone, see `test_quotas.py`.
OTHERWISE = {("DELETE", "/v1/namespaces/{ns}"), ("PUT", "/v1/namespaces/{ns}/quotas")}


@pytest.mark.usefixtures("standing")
@pytest.mark.parametrize("name", ROLES)
def test_each_role_reaches_exactly_what_it_may(name: str) -> None:
    """A request that passes the check fails later, as its names do not exist or its body is empty; it is no 403."""
    for method, path, needs in ROUTES:
        if needs == SIGNED or (method, path) in OTHERWISE:
            continue
        status = MEMBERS[name].status(method, filled(path), {"unknown": 1} if method in ("PUT", "POST") else None)
        assert (status != 403) == (needs in HELD[name]), (method, path, status)


@pytest.mark.usefixtures("standing")
def test_a_stranger_learns_nothing_from_any_route() -> None:
    for method, path, needs in ROUTES:
        if needs == SIGNED:
            continue
        there = STRANGER.error(method, filled(path), {"unknown": 1} if method in ("PUT", "POST") else None)
        absent = STRANGER.error(
            method, filled(path, ns="nobody"), {"unknown": 1} if method in ("PUT", "POST") else None
        )
        assert there["code"] == "not_found", (method, path, there)
        assert there["message"].replace("demo", "nobody") == absent["message"].replace("demo", "nobody")


@pytest.mark.usefixtures("standing")
def test_a_stranger_learns_nothing_of_the_names_that_dags_have() -> None:
    for method in ("PUT", "DELETE"):
        error = STRANGER.error(method, f"{APP}/schedules/daily~0a1b2c3d~clean", {} if method == "PUT" else None)
        assert error["code"] == "not_found", error


@pytest.mark.usefixtures("standing")
def test_members_of_one_namespace_are_strangers_in_another() -> None:
    for method, path, needs in ROUTES:
        if needs == SIGNED or "{ns}" not in path:
            continue
        for name in ("admin", "author"):
            error = MEMBERS[name].error(method, filled(path, ns="other"), {} if method in ("PUT", "POST") else None)
            assert error["code"] == "not_found", (method, path, name)


@pytest.mark.usefixtures("standing")
def test_a_request_without_a_signer_is_refused() -> None:
    for path in ("/v1/health", "/v1/namespaces", NS):
        error = Signer(None).error("GET", path)
        assert error["code"] == "forbidden"


@pytest.mark.usefixtures("standing")
def test_a_list_of_namespaces_holds_those_with_a_role() -> None:
    def names(signer: Signer) -> list[str]:
        status, page = signer.send("GET", "/v1/namespaces")
        assert status == 200
        return [item["name"] for item in page["items"]]

    assert names(ADMIN) == ["demo", "other"]
    assert names(MEMBERS["worker"]) == ["demo"]
    assert names(STRANGER) == []


@pytest.mark.usefixtures("standing")
def test_a_refusal_names_the_role_and_who_gives_it() -> None:
    error = MEMBERS["viewer"].error("PUT", APP, {})
    assert error == {
        "code": "forbidden",
        "message": "expected the role author or admin in namespace demo, to create, replace and delete definitions; "
        f"{member('the-viewer')} does not have it",
        "field": None,
        "hint": "an admin of demo can give it: sluice access demo",
    }
