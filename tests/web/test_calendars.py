"""Holiday calendars over the API: put, read, listed, replaced, deleted unless a schedule names them (L17, T30)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.conftest import NS, Api
from tests.web.wrong import ONE, time

CALENDARS = f"{NS}/calendars"
FRANCE = f"{CALENDARS}/france"
LAST = {"type": "time", "expression": "0 17 LW * *", "zone": "Europe/Paris", "calendar": "france"}


def test_l17_a_calendar_is_put_read_listed_replaced_and_deleted(api: Api) -> None:
    created = api.send("PUT", FRANCE, {"days": ["12-25", {"from": "2026-05-14", "to": "2026-05-15"}], "owner": "ada"})
    assert (created.status_code, created.json_body["did"]) == (201, "created")
    answer = api.get(FRANCE)
    assert (answer["name"], answer["kind"], answer["version"]) == ("demo.france", "calendar", 1)
    assert answer["days"] == ["12-25", {"from": "2026-05-14", "to": "2026-05-15"}]
    changed = api.send("PUT", FRANCE, {"days": ["12-25"]})
    assert (changed.status_code, changed.json_body["did"]) == (200, "replaced")
    assert api.refused(412, "PUT", FRANCE, {"days": ["12-26"]}, if_match='"1"')["code"] == "changed_meanwhile"
    assert [each["name"] for each in api.get(CALENDARS)["items"]] == ["demo.france"]
    api.delete(FRANCE)
    assert api.refused(404, "GET", FRANCE)["code"] == "not_found"


def test_t30_a_schedule_names_a_calendar_of_its_namespace(api: Api) -> None:
    api.put(FRANCE, {"days": ["12-25"]})
    put = api.schedule("nightly", trigger=LAST, enabled=True)
    assert put["trigger"]["calendar"] == "demo.france"
    shown = api.get(f"{ONE}/preview?count=12")
    assert shown["description"] == "at 17:00 on the last working day of the month, Europe/Paris, without demo.france"
    december = [item for item in shown["items"] if item[5:7] == "12"]
    assert december == [f"{december[0][:4]}-12-31T16:00:00.000Z"]
    api.put(FRANCE, {"days": [{"from": "12-24", "to": "12-31"}]})
    assert [item[5:10] for item in api.get(f"{ONE}/preview?count=12")["items"] if item[5:7] == "12"] == ["12-23"]
    error = api.refused(409, "DELETE", FRANCE)
    assert (error["code"], "demo.flights.nightly" in error["message"]) == ("in_use", True)


def test_t30_a_dag_may_name_a_calendar(api: Api) -> None:
    api.put(FRANCE, {"days": ["12-25"]})
    nodes = {"first": {"workflow": "notify"}}
    dag = f"{NS}/apps/flights/dags/month"
    first = api.put(dag, {"trigger": LAST, "nodes": nodes, "edges": [], "enabled": True})
    same = api.put(dag, {"trigger": LAST, "nodes": nodes, "edges": [], "enabled": True})
    assert same["version"] == first["version"]
    assert api.refused(409, "DELETE", FRANCE)["message"].endswith("used by dag demo.flights.month")


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ({}, "days", "a value"),
        ({"days": []}, "days", "at least 1"),
        ({"days": ["mon", "tue", "wed", "thu", "fri"]}, "days", "holidays that leave a working day"),
        ({"days": ["2026-02-30"]}, "days.0", "a date such as 2026-12-25"),
        ({"days": ["12-25"], "zone": "UTC"}, "zone", "unknown field"),
    ],
)
def test_l17_a_wrong_calendar_is_refused_by_field(api: Api, body: Any, field: str, words: str) -> None:
    before = api.everything()
    error = api.refused(400, "PUT", FRANCE, body)
    assert (error["field"], words in error["message"]) == (field, True), error
    assert api.everything() == before


def test_t30_a_calendar_that_is_missing_is_named(api: Api) -> None:
    api.put(FRANCE, {"days": ["12-25"]})
    error = api.refused(400, "PUT", ONE, time("0 17 LW * *", calendar="farnce"))
    assert (error["code"], error["field"]) == ("unknown_reference", "trigger.calendar")
    assert "demo.france" in error["hint"]


def test_t30_every_view_knows_the_holidays(api: Api) -> None:
    """2026-03-31 is a holiday, so the occurrence of March is that of the 30th."""
    api.put(FRANCE, {"days": ["03-31"]})
    leaf = {**LAST, "expression": "0 17 W * *"}
    api.schedule("nightly", trigger=leaf, enabled=True)
    at = [item for item in api.get(f"{ONE}/preview?count=400")["items"] if item[5:7] == "03"]
    assert at and not [item for item in at if item[5:10] == "03-31"]
    assert api.get(f"{ONE}/why")["next_fire"] == api.get(f"{ONE}/preview?count=1")["items"][0]
    shown = api.get(f"{NS}/fires?from={at[0][:4]}-03-29T00:00:00Z&to={at[0][:4]}-04-02T00:00:00Z")["items"]
    assert {fire["nominal_at"][5:10] for fire in shown} <= {"03-29", "03-30", "04-01"}
    api.post(f"{NS}/glance", {"schedules": ["demo.flights.nightly"]})
    answer = api.post(f"{ONE}/skip", {"at": at[0]})
    assert at[0] in answer["skips"]
    holiday = f"{at[0][:4]}-03-31T15:00:00.000Z"
    assert api.refused(400, "POST", f"{ONE}/skip", {"at": holiday})["field"] == "at"
    past = {"from": "2026-03-27T00:00:00Z", "to": "2026-04-02T00:00:00Z", "dry_run": True}
    plan = api.post(f"{ONE}/backfills", past)
    assert [item[5:16] for item in plan["first"]] == ["03-27T16:00", "03-30T15:00", "04-01T15:00"]
    fires = api.post(f"{ONE}/dry-run", {"events": [{"type": "time", "at": at[0]}]})
    assert fires["fires"] == 1
