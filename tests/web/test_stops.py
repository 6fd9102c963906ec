"""Stop and start a namespace, an app or a tag over HTTP: reports, views, the audit record, refusals (L24)."""

from typing import Any

import pytest

from sluice import wording
from tests.support.dags import dag
from tests.web.conftest import APP, NS, Api
from tests.web.wrong import ONE

STOPPED = "demo has been stopped since "


def made(api: Api) -> None:
    api.schedule("nightly", enabled=True, tags={"team": "a"})
    api.put(f"{APP}/dags/daily", dag("one -> two", nodes={n: {"workflow": "clean"} for n in ("one", "two")}))


def test_l24_a_stop_shows_who_when_and_why(api: Api) -> None:
    made(api)
    report = api.post(f"{NS}/stop", {"reason": "table is repaired"})
    assert report["changed"] == ["demo.flights.daily", "demo.flights.nightly"]
    [stop] = report["stops"]
    assert (stop["namespace"], stop["app"], stop["tag"], stop["state"]) == ("demo", None, None, "stopped")
    assert (stop["reason"], bool(stop["by"])) == ("table is repaired", True)

    assert api.get(f"{NS}/stops")["stops"] == api.get(f"{NS}/now")["stopped"] == [stop]
    assert api.get(ONE)["stops"] == api.get(f"{APP}/dags/daily")["stops"] == [stop]
    rows = {row["name"]: row for row in api.get(f"{NS}/schedules")["items"]}
    assert rows["demo.flights.nightly"]["stops"] == [stop]
    assert api.get(ONE)["state"] == "enabled"
    assert api.get(f"{ONE}/why")["why"].startswith(
        f"{STOPPED}{stop['since']} by {wording.who(stop['by'])}: table is repaired"
    )

    report = api.post(f"{NS}/start", {})
    assert (report["changed"], report["stops"]) == (["demo.flights.daily", "demo.flights.nightly"], [])
    assert api.get(ONE)["stops"] == api.get(f"{NS}/now")["stopped"] == []


def test_l24_a_stop_of_an_app_by_a_tag(api: Api) -> None:
    made(api)
    report = api.post(f"{APP}/stop", {"reason": "r", "tag": "team=a"})
    assert report["changed"] == ["demo.flights.nightly"]
    assert [(each["app"], each["tag"]) for each in report["stops"]] == [("demo.flights", "team=a")]
    assert api.post(f"{APP}/start", {"tag": "team"})["changed"] == [], "another tag is another stop"
    assert api.post(f"{APP}/start", {"tag": "team=a"})["changed"] == ["demo.flights.nightly"]


def test_l24_a_stop_says_what_becomes_of_timeouts(api: Api) -> None:
    made(api)
    assert [each["timeouts"] for each in api.post(f"{NS}/stop", {"reason": "r"})["stops"]] == ["count"]
    [stop] = api.post(f"{NS}/stop", {"reason": "r", "timeouts": "stop"})["stops"]
    assert stop["timeouts"] == "stop"
    assert api.get(f"{NS}/stops")["stops"] == api.get(ONE)["stops"] == [stop]
    error = api.refused(400, "POST", f"{NS}/stop", {"reason": "r", "timeouts": "wait"})
    assert error["field"] == "timeouts"


def test_l24_a_stop_and_a_start_are_one_audit_record_each(api: Api) -> None:
    made(api)
    api.post(f"{APP}/stop", {"reason": "r"})
    api.post(f"{APP}/stop", {"reason": "longer"})
    api.post(f"{APP}/start", {})
    records = [each for each in api.get(f"{NS}/audit")["items"] if each["kind"] == "stop"]
    assert [(each["name"], each["before"], each["after"]) for each in records] == [
        ("demo.flights", {"reason": "longer"}, None),
        ("demo.flights", {"reason": "r"}, {"reason": "longer"}),
        ("demo.flights", None, {"reason": "r"}),
    ]


def test_l24_a_dry_run_stores_nothing(api: Api) -> None:
    made(api)
    before = api.everything()
    report = api.post(f"{NS}/stop", {"reason": "r", "dry_run": True})
    assert (report["changed"], report["dry_run"]) == (["demo.flights.daily", "demo.flights.nightly"], True)
    assert api.everything() == before


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "reason"),
        ({"reason": ""}, "reason"),
        ({"reason": "a\nb"}, "reason"),
        ({"reason": "x" * 201}, "reason"),
        ({"reason": "r", "tag": "=a"}, "tag"),
        ({"reason": "r", "tag": "team=z"}, "tag"),
        ({"reason": "r", "all": True}, "all"),
    ],
)
def test_l24_wrong_stops_are_refused(api: Api, body: dict[str, Any], field: str) -> None:
    made(api)
    before = api.everything()
    assert api.refused(400, "POST", f"{NS}/stop", body)["field"] == field
    assert api.everything() == before


def test_l24_what_does_not_exist_is_not_found(api: Api) -> None:
    for action, body in (("stop", {"reason": "r"}), ("start", {})):
        assert api.refused(404, "POST", f"/v1/namespaces/nowhere/{action}", body)["code"] == "not_found"
        assert api.refused(404, "POST", f"{NS}/apps/nowhere/{action}", body)["code"] == "not_found"
