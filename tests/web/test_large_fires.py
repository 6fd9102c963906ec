"""A large fire in the API: one line of a list, which opens, and the events in it (E2)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.core.fires import bundles
from chalicelib.core.instants import iso, parse_instant
from tests.web import large_fires
from tests.web.conftest import APP, NS, Api, installation, settle_in
from tests.web.signed import Signer, authorizing, member, role

ADMIN, OURS, STRANGER = Signer(role("platform")), Signer(role("ours")), Signer(role("stranger"))


@pytest.fixture(scope="module")
def large() -> Iterator[tuple[Api, str]]:
    """An installation with a fire of 2,000 events, two of which have failed."""
    with installation() as api:
        settle_in(api)
        api.schedule("batch", spread={"count": 2_000})
        yield api, large_fires.put(failed=(3, 1_200))


LISTS = (f"{NS}/runs", f"{APP}/schedules/batch/runs", f"{APP}/workflows/notify/runs")


@pytest.mark.parametrize("path", LISTS)
def test_e2_the_sent_events_of_a_fire_are_one_line(large: tuple[Api, str], path: str) -> None:
    api, fire_id = large
    items = api.get(path)["items"]
    [line] = [item for item in items if item["sends"] is not None]
    assert (line["count"], line["fire"], line["spread"]) == (1_998, fire_id, {"index": 0, "count": 2_000})
    assert (line["state"], line["sends"]["late_p50"], line["sends"]["late_max"]) == ("SUCCEEDED", 20, 20)
    others = [item for item in items if item is not line]
    assert {item["state"] for item in others} == {"FAILED"}
    assert sorted(item["spread"]["index"] for item in others) == [3, 1_200]
    assert {(item["fire"], item["count"]) for item in others} == {(fire_id, 1)}
    assert api.get(f"/v1/runs/{line['run_id']}")["fire"] == fire_id


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_e2_short_pages_have_each_event_once(large: tuple[Api, str], limit: int) -> None:
    api, _ = large
    seen: list[Any] = []
    cursor = ""
    for _ in range(30):
        page = api.get(f"{NS}/runs?limit={limit}{cursor}")
        assert len(page["items"]) <= limit
        seen += page["items"]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert sum(item["count"] for item in seen) == 2_000


def test_e2_a_filter_by_state_keeps_the_lines(large: tuple[Api, str]) -> None:
    api, _ = large
    assert [item["count"] for item in api.get(f"{NS}/runs?state=SUCCEEDED")["items"]] == [1_998]
    assert [item["count"] for item in api.get(f"{NS}/runs?state=FAILED")["items"]] == [1, 1]


def test_e2_a_fire_opens(large: tuple[Api, str]) -> None:
    api, fire_id = large
    view = api.get(f"/v1/fires/{fire_id}")
    assert (view["events"], view["sent"], view["failed"], view["state"]) == (2_000, 1_998, 2, "FAILED")
    assert (view["schedule"], view["workflow"]) == ("demo.flights.batch", "demo.flights.notify")
    assert view["nominal_at"] == iso(parse_instant(view["sends"]["first"]) - 20)


def test_e2_the_events_of_a_fire_are_paged(large: tuple[Api, str]) -> None:
    api, fire_id = large
    first = api.get(f"/v1/fires/{fire_id}/events?limit=4")
    assert [(event["index"], event["state"]) for event in first["items"]] == [
        (0, "SENT"),
        (1, "SENT"),
        (2, "SENT"),
        (3, "FAILED"),
    ]
    following = api.get(f"/v1/fires/{fire_id}/events?limit=4&cursor={first['next_cursor']}")
    assert [event["index"] for event in following["items"]] == [4, 5, 6, 7]
    failed = api.get(f"/v1/fires/{fire_id}/events?state=FAILED")
    assert [event["index"] for event in failed["items"]] == [3, 1_200]
    assert failed["next_cursor"] is None
    other = api.refused(400, "GET", f"/v1/fires/{fire_id}/events?state=GONE")
    assert other["field"] == "state"


def test_e2_an_event_is_found_by_its_id(large: tuple[Api, str]) -> None:
    api, fire_id = large
    for number, state in ((0, "SUCCEEDED"), (3, "FAILED"), (1_999, "SUCCEEDED")):
        event = bundles.event_id(fire_id, number)
        view = api.get(f"/v1/runs/{event}")
        assert (view["run_id"], view["state"], view["spread"]["index"]) == (event, state, number)
        assert api.get(f"/v1/runs/{event}/why")["state"] == state
        assert api.get(f"/v1/runs/{event}/lineage")["run_id"] == event
    again = api.post(f"/v1/runs/{bundles.event_id(fire_id, 1_999)}/rerun")
    assert again["job_id"]


@pytest.mark.parametrize("wrong", ["demo.flights.batch", "demo.flights.batch.m1n5.4b2f", "x"])
def test_e2_no_fire_has_a_wrong_id(large: tuple[Api, str], wrong: str) -> None:
    api, _ = large
    error = api.refused(404, "GET", f"/v1/fires/{wrong}")
    assert error["code"] == "not_found"


def _shared(api: Api, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """A fire of the namespace ``demo``, and one of ``other`` that runs a workflow of ``demo``. Their ids."""
    api.put("/v1/namespaces/other")
    boss = {"member": member("boss"), "roles": ["admin"]}
    api.put(f"{NS}/access", {"members": [boss, {"member": member("ours"), "roles": ["viewer"]}]})
    api.put("/v1/namespaces/other/access", {"members": [boss]})
    made = large_fires.put(events=500), large_fires.put("other.secret.batch", events=500)
    authorizing(monkeypatch, "enforce")
    return made


def test_o5_a_fire_is_read_by_readers_of_its_namespace(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    own, hidden = _shared(api, monkeypatch)
    for rest in ("", "/events"):
        assert OURS.send("GET", f"/v1/fires/{own}{rest}")[0] == 200
        assert ADMIN.send("GET", f"/v1/fires/{hidden}{rest}")[0] == 200
        status, body = OURS.send("GET", f"/v1/fires/{hidden}{rest}")
        unknown = hidden.replace("batch", "none")
        told = json.loads(json.dumps(OURS.send("GET", f"/v1/fires/{unknown}{rest}")[1]).replace(unknown, hidden))
        assert (status, body) == (404, told), "nobody learns which ids exist by trying them"
        assert STRANGER.send("GET", f"/v1/fires/{own}{rest}")[0] == 404


def test_o5_runs_of_a_shared_workflow_hide_other_fires(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    own, hidden = _shared(api, monkeypatch)
    path = f"{APP}/workflows/notify/runs"
    assert {item["fire"] for item in OURS.send("GET", path)[1]["items"]} == {own}
    assert {item["fire"] for item in ADMIN.send("GET", path)[1]["items"]} == {own, hidden}
