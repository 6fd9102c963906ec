"""Audit records: one for each change in its transaction, one for each refusal, and the lists of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib import handlers
from chalicelib.core.instants import DAY
from chalicelib.web import audit, quotas
from chalicelib.wiring import ports
from tests.web.conftest import APP, NS, WEEKDAYS, Api
from tests.web.signed import Signer, authorizing, member, role

ADA, EVE, PLATFORM = Signer(role("data", "ada")), Signer(role("nobody", "eve")), Signer(role("platform"))
MEMBERS = {"members": [{"member": member("data"), "roles": ["admin"]}, {"member": member("ci"), "roles": ["viewer"]}]}


def records(signer: Signer, query: str = "", path: str = f"{NS}/audit") -> list[dict[str, Any]]:
    status, body = signer.send("GET", f"{path}{query}")
    assert status == 200, body
    found: list[dict[str, Any]] = body["items"]
    return found


@pytest.fixture
def enforced(api: Api, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    api.put(f"{NS}/access", MEMBERS)
    authorizing(monkeypatch, "enforce")
    audit.refusals.cache_clear()
    yield api
    audit.refusals.cache_clear()


def test_a_record_says_who_changed_what(enforced: Api) -> None:
    ADA.send("PUT", f"{APP}/schedules/daily", {"workflow": "notify", "trigger": WEEKDAYS})
    ADA.send("PUT", f"{APP}/schedules/daily", {"workflow": "notify", "trigger": WEEKDAYS, "priority": 3})
    # In a millisecond records have no order.
    first, second = sorted(records(ADA, "?kind=schedule"), key=lambda record: int(record["after"]["version"]))
    assert (first["operation"], first["name"], first["before"]) == ("put_schedule", "demo.flights.daily", None)
    assert first["by"] == role("data", "ada")
    assert (first["session"], first["source"], first["request_id"]) == ("ada", "192.0.2.7", "r1")
    assert (first["account"], first["unique_id"]) == ("123456789012", "AROAEXAMPLE:ada")
    assert second["before"]["version"] == first["after"]["version"] == 1
    assert second["after"]["document"]["priority"] == 3


def test_each_part_of_a_deployment_has_a_record(enforced: Api) -> None:
    document = {
        "workflows": {"w": {"target": {"type": "emr_serverless", "entry_point": "s3://code/job.py"}}},
        "schedules": {"a": {"workflow": "w", "trigger": WEEKDAYS}, "b": {"workflow": "w", "trigger": WEEKDAYS}},
    }
    assert ADA.send("PUT", f"{NS}/apps/orders", document)[0] == 200
    found = [(each["kind"], each["name"]) for each in records(ADA, "?name=demo.orders")]
    assert sorted(set(found)) == [
        ("app", "demo.orders"),
        ("schedule", "demo.orders.a"),
        ("schedule", "demo.orders.b"),
        ("workflow", "demo.orders.w"),
    ]


def test_each_part_of_a_bulk_change_has_a_record(enforced: Api) -> None:
    for name in ("one", "two"):
        ADA.send("PUT", f"{APP}/schedules/{name}", {"workflow": "notify", "trigger": WEEKDAYS, "enabled": True})
    ADA.send("POST", f"{APP}/bulk", {"action": "disable", "workflow": "notify", "dry_run": True})
    ADA.send("POST", f"{APP}/bulk", {"action": "disable", "workflow": "notify"})
    found = [each for each in records(ADA) if each["operation"] == "change_schedules"]
    assert [each["after"]["state"] for each in found] == ["disabled"] * 2


def test_a_request_that_changes_nothing_leaves_no_record(enforced: Api) -> None:
    for _ in range(2):
        ADA.send("PUT", f"{APP}/schedules/daily", {"workflow": "notify", "trigger": WEEKDAYS})
    assert len(records(ADA, "?kind=schedule")) == 1


def test_a_refusal_of_a_member_is_recorded_once_a_minute(enforced: Api) -> None:
    for _ in range(5):
        assert Signer(role("ci")).send("DELETE", f"{APP}/schedules/daily")[0] == 403
    [found] = records(ADA, "?outcome=refused")
    assert (found["operation"], found["kind"], found["name"]) == ("delete_schedule", "schedule", "demo.flights.daily")
    assert (found["by"], found["count"]) == (role("ci"), 1)
    assert "author" in found["reason"]


def test_a_refusal_of_a_stranger_is_recorded(enforced: Api) -> None:
    assert EVE.send("GET", f"{APP}/schedules/daily")[0] == 404
    [found] = records(ADA, "?outcome=refused")
    assert (found["by"], found["operation"]) == (role("nobody", "eve"), "get_schedule")


def test_names_that_a_stranger_makes_up_are_not_stored(enforced: Api) -> None:
    EVE.send("PUT", "/v1/namespaces/made-up", {})
    assert not any("AUDIT#made-up" in row for table in enforced.everything() for row in table)
    [found] = records(PLATFORM, "?outcome=refused", "/v1/audit")
    assert (found["namespace"], found["name"], found["by"]) == ("", "", role("nobody", "eve"))


def test_an_observed_refusal_is_recorded_as_such(enforced: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    authorizing(monkeypatch, "observe")
    assert EVE.send("PUT", f"{NS}/policies/calm", {"max_events": 5})[0] == 201
    # Both may have the same millisecond, and then have no order.
    assert sorted(each["outcome"] for each in records(PLATFORM, "?who=nobody")) == ["changed", "observed"]


def test_only_administrators_read_records(enforced: Api) -> None:
    assert Signer(role("ci")).status("GET", f"{NS}/audit") == 403
    assert EVE.status("GET", f"{NS}/audit") == 404
    assert ADA.error("GET", "/v1/audit")["code"] == "forbidden"
    assert PLATFORM.status("GET", "/v1/audit") == 200


def test_records_are_read_page_by_page(enforced: Api) -> None:
    for number in range(5):
        ADA.send("PUT", f"{NS}/policies/p{number}", {"max_events": 5})
    for path in (f"{NS}/audit", "/v1/audit"):
        names, instants, cursor = [], [], ""
        while True:
            _, page = PLATFORM.send("GET", f"{path}?kind=policy&limit=2{cursor}")
            names += [each["name"] for each in page["items"]]
            instants += [each["at"] for each in page["items"]]
            if page["next_cursor"] is None:
                break
            cursor = f"&cursor={page['next_cursor']}"
        assert sorted(names) == [f"demo.p{number}" for number in range(5)]
        assert instants == sorted(instants, reverse=True)  # those of one millisecond have no order


def test_a_span_bounds_the_records(enforced: Api) -> None:
    ADA.send("PUT", f"{NS}/policies/calm", {"max_events": 5})
    assert records(ADA, "?to=2020-01-01T00:00:00Z") == []
    error = PLATFORM.error("GET", "/v1/audit?from=2020-01-01T00:00:00Z")
    assert (error["field"], error["hint"]) == ("from", "send one request for each part of the span")
    assert ADA.error("GET", f"{NS}/audit?outcome=lost")["field"] == "outcome"


def test_records_expire_after_the_days_of_the_setting(enforced: Api) -> None:
    ADA.send("PUT", f"{NS}/policies/calm", {"max_events": 5})
    [row] = ports().runs.audit("demo", 0, ports().clock.now() + DAY, 1, None).items
    assert row.expires_at == row.recorded_at + 400 * DAY


def test_what_follows_a_request_leaves_no_record(enforced: Api) -> None:
    """A run writes as many rows as before: only the request for it has a record, and the work of the clock has none."""
    ADA.send("PUT", f"{APP}/schedules/daily", {"workflow": "notify", "trigger": WEEKDAYS, "enabled": True})
    _, begun = ADA.send("POST", f"{APP}/schedules/daily/run", {})
    before = sorted(each["operation"] for each in records(ADA))
    enforced.work()
    handlers.tick()
    enforced.work()
    assert ADA.send("GET", f"/v1/runs/{begun['job_id']}")[1]["state"] == "SUCCEEDED"
    assert sorted(each["operation"] for each in records(ADA)) == before
    assert "run_now" in before


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        ("access", {"members": MEMBERS["members"][:1]}, MEMBERS),
        ("grants", {"grants": [{"to": "lake", "run": ["*"]}]}, {"grants": []}),
        ("allowed", {"topics": []}, {"topics": [], "alarms": ["a*"]}),
        ("quotas", {"schedules": 7}, {"schedules": 8}),
    ],
)
def test_a_record_has_the_former_document_of_a_namespace(
    enforced: Api, kind: str, first: dict[str, Any], second: dict[str, Any]
) -> None:
    for document in (first, second):
        assert PLATFORM.status("PUT", f"{NS}/{kind}", document) in (200, 201)
    of_kind = [record for record in records(ADA) if record["kind"] == kind]
    newest = max(of_kind, key=lambda record: int(record["after"]["version"]))  # in a millisecond records have no order
    assert newest["before"]["document"] == {**newest["before"]["document"], **first}
    assert newest["after"]["document"] == {**newest["after"]["document"], **second}
    assert newest["after"]["version"] == newest["before"]["version"] + 1


def test_a_refusal_for_a_quota_is_recorded(enforced: Api) -> None:
    quotas.memory.cache_clear()
    assert PLATFORM.status("PUT", f"{NS}/quotas", {"schedules": 0}) in (200, 201)
    body = {"workflow": "notify", "trigger": WEEKDAYS}
    assert ADA.error("PUT", f"{APP}/schedules/more", body)["code"] == "over_quota"
    [found] = records(ADA, "?outcome=refused")
    assert (found["operation"], found["name"], found["by"]) == (
        "put_schedule",
        "demo.flights.more",
        role("data", "ada"),
    )
    assert "at most 0 schedules" in found["reason"]
    quotas.memory.cache_clear()
