"""The schedules of an app are listed by tag, workflow and state, page by page like every list (L18)."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.web.conftest import APP, NS, WEEKDAYS, Api, installation, settle_in

LIST = f"{APP}/schedules"
# name -> (tags, workflow, state)
SCHEDULES: dict[str, tuple[dict[str, str], str, str]] = {
    "a": ({"team": "x"}, "notify", "enabled"),
    "b": ({"team": "x", "tier": "gold"}, "clean", "enabled"),
    "c": ({"team": "y"}, "notify", "disabled"),
    "d": ({"tier": ""}, "clean", "disabled"),
    "e": ({}, "notify", "hold"),
    "f": ({"team": "x"}, "notify", "backlog"),
    "g": ({}, "clean", "drain"),
    "h": ({"team": "a=b"}, "notify", "completed"),
    "i": ({"team": "x"}, "other", "enabled"),
}


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with installation() as made:
        settle_in(made)
        target = made.get(f"{APP}/workflows/notify")["target"]
        made.put(f"{NS}/apps/elsewhere", {"workflows": {"notify": {"target": target}}})
        made.put(f"{APP}/workflows/other", {"target": target})
        for name, (tags, workflow, state) in SCHEDULES.items():
            trigger = {"type": "time", "expression": "R1/PT1S"} if state == "completed" else WEEKDAYS
            made.schedule(name, workflow=workflow, tags=tags, trigger=trigger, enabled=state != "disabled")
            if state in ("hold", "backlog", "drain"):
                made.post(f"{LIST}/{name}/pause", {"mode": state})
        made.put(f"{NS}/apps/elsewhere/schedules/a", {"workflow": "notify", "trigger": WEEKDAYS, "tags": {"team": "x"}})
        made.schedule("gone", tags={"team": "x"}, enabled=True)
        made.delete(f"{LIST}/gone")
        yield made


def listed(api: Api, query: str) -> str:
    items = api.get(f"{LIST}?{query}")["items"]
    return "".join(item["name"].rpartition(".")[2] for item in items)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("tag=team=x", "abfi"),
        ("tag=team", "abcfhi"),
        ("tag=team=a=b", "h"),
        ("tag=team=", ""),
        ("tag=tier=", "d"),
        ("tag=tier", "bd"),
        ("tag=tea", ""),
        ("tag=Team=x", ""),
        ("workflow=clean", "bdg"),
        ("workflow=flights.clean", "bdg"),
        ("workflow=demo.flights.clean", "bdg"),
        ("workflow=elsewhere.notify", ""),
        ("workflow=never", ""),
        ("state=enabled", "abi"),
        ("state=disabled", "cd"),
        ("state=hold", "e"),
        ("state=backlog", "f"),
        ("state=drain", "g"),
        ("state=completed", "h"),
        ("tag=team=x&state=enabled", "abi"),
        ("tag=team=x&workflow=notify", "af"),
        ("tag=team=x&workflow=notify&state=backlog", "f"),
        ("tag=team=y&state=enabled", ""),
        ("limit=500", "abcdefghi"),
    ],
)
def test_l18_a_list_has_what_matches_every_filter(api: Api, query: str, names: str) -> None:
    assert listed(api, query) == names


@pytest.mark.parametrize("limit", [1, 2, 5])
@pytest.mark.parametrize(("query", "names"), [("tag=team=x", "abfi"), ("state=disabled", "cd"), ("tag=never", "")])
def test_l18_a_filtered_list_is_the_same_in_pages_of_any_size(api: Api, query: str, names: str, limit: int) -> None:
    found, cursor = "", ""
    for _ in range(20):
        page = api.get(f"{LIST}?{query}&limit={limit}{cursor}")
        assert len(page["items"]) <= limit
        found += "".join(item["name"].rpartition(".")[2] for item in page["items"])
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert (found, page["next_cursor"]) == (names, None)


def test_l18_a_cursor_belongs_to_its_filters(api: Api) -> None:
    cursor = api.get(f"{LIST}?tag=team&limit=1")["next_cursor"]
    assert len(api.get(f"{LIST}?limit=1&tag=team&cursor={cursor}")["items"]) == 1
    for other in ("tag=team=x&", "state=enabled&", "tag=team&state=enabled&", ""):
        error = api.refused(400, "GET", f"{LIST}?{other}limit=1&cursor={cursor}")
        assert (error["code"], error["field"]) == ("bad_cursor", "cursor")


STATES = "expected one of enabled, hold, backlog, drain, completed, disabled, got "
TAG = "expected a tag such as team=a, or just team, got "
REFERENCE = "expected a name, or a full name with dots such as namespace.app.name, got "


@pytest.mark.parametrize(
    ("query", "field", "message"),
    [
        ("tag=", "tag", TAG + "''"),
        ("tag==x", "tag", TAG + "'=x'"),
        ("workflow=", "workflow", REFERENCE + "''"),
        ("workflow=No%20Name", "workflow", REFERENCE + "'No Name'"),
        ("workflow=a.b.c.d", "workflow", REFERENCE + "'a.b.c.d'"),
        ("state=", "state", STATES + "''"),
        ("state=paused", "state", STATES + "'paused'"),
        ("state=Enabled", "state", STATES + "'Enabled'"),
        ("state=deleted", "state", STATES + "'deleted'"),
        ("tag=team=x&tag=tier", "tag", "expected each query parameter once, got ['team=x', 'tier']"),
        ("state=hold&state=drain", "state", "expected each query parameter once, got ['hold', 'drain']"),
        ("limit=1&limit=2", "limit", "expected each query parameter once, got ['1', '2']"),
        ("owner=ops", "owner", "unknown query parameter 'owner'"),
        ("tags=team=x", "tags", "unknown query parameter 'tags'"),
    ],
)
def test_l18_an_invalid_filter_is_refused(api: Api, query: str, field: str, message: str) -> None:
    error: dict[str, Any] = api.refused(400, "GET", f"{LIST}?{query}")
    assert (error["field"], error["message"]) == (field, message)
    if error["code"] == "unknown_field":
        assert error["hint"] == "use one of tag, workflow, state, limit, cursor"


def test_l18_filters_need_an_existing_app(api: Api) -> None:
    assert api.refused(404, "GET", f"{NS}/apps/nowhere/schedules?tag=team")["code"] == "not_found"


def test_l24_a_list_by_tag_knows_the_tags_of_the_app(api: Api) -> None:
    target = api.get(f"{APP}/workflows/notify")["target"]
    one = {"workflow": "notify", "trigger": WEEKDAYS}
    made = {
        "workflows": {"notify": {"target": target}},
        "schedules": {"one": one, "two": one | {"tags": {"team": "b"}}},
    }
    api.put(f"{NS}/apps/tagged", {**made, "tags": {"team": "app"}})
    names = ["demo.tagged.one"]
    assert [row["name"] for row in api.get(f"{NS}/apps/tagged/schedules?tag=team=app")["items"]] == names
    assert [row["name"] for row in api.get(f"{NS}/schedules?tag=team=app")["items"]] == names
