"""Datasets whose partitions are periods, over HTTP (T24): what is put, what is refused, what the answers show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.core.events.partitions import ObjectCreated
from chalicelib.core.instants import parse_instant
from chalicelib.flow.ingest import objects
from chalicelib.wiring import ports
from tests.web.conftest import APP, NS, Api, installation, settle_in

HOURS = {"each": "hour", "format": "dt=%Y-%m-%d/hour=%H", "zone": "Europe/Paris"}
CLICKS = {"bucket": "lake", "prefix": "raw/clicks/", "keys": ["dt", "hour"], "period": HOURS}
PATH = f"{NS}/datasets/clicks"


@pytest.fixture(scope="module")
def shared() -> Iterator[Api]:
    """An installation for the tests of puts, which leave nothing that another one sees."""
    with installation() as made:
        settle_in(made)
        yield made


def upload(*folders: str) -> None:
    for folder in folders:
        at = parse_instant("2026-11-20T11:50:12Z")
        objects.match_object(ports(), ObjectCreated("lake-bucket", f"raw/clicks/{folder}/part-0.csv", at, 5))


def test_t24_a_dataset_is_shown_as_it_was_put(shared: Api) -> None:
    shared.put(PATH, CLICKS)
    assert shared.get(PATH)["period"] == HOURS
    weeks = {"each": "week", "format": "dt=%Y-%m-%d", "week_starts": "sun"}
    shared.put(f"{NS}/datasets/weeks", CLICKS | {"prefix": "raw/weeks/", "keys": ["dt"], "period": weeks})
    assert shared.get(f"{NS}/datasets/weeks")["period"] == weeks | {"zone": "UTC"}
    assert "period" not in shared.get(f"{NS}/datasets/flights")


def test_t24_partitions_have_their_periods(api: Api) -> None:
    api.put(PATH, CLICKS)
    upload("dt=2026-10-25/hour=2", "dt=2026-10-25/hour=03")
    twice = {
        "start": "2026-10-25T00:00:00.000Z",
        "end": "2026-10-25T02:00:00.000Z",
        "zone": "Europe/Paris",
        "label": "2026-10-25T02",
    }
    listed = api.get(f"{PATH}/partitions")["items"]
    assert [item["partition"]["hour"] for item in listed] == ["02", "03"]
    assert listed[0]["period"] == twice
    assert listed[0]["path"] == "s3://lake-bucket/raw/clicks/dt=2026-10-25/hour=2/"
    ranged = api.get(f"{PATH}/partitions?from=2026-10-25/2&to=2026-10-25/2")["items"]
    assert [item["period"] for item in ranged] == [twice]
    for hour in ("2", "02"):
        one = api.get(f"{PATH}/partition?values=2026-10-25/{hour}")
        assert (one["period"], one["values"], one["ready_at"] is None) == (twice, ["2026-10-25", "02"], False)


def test_t24_a_partition_that_is_missing_has_its_period(api: Api) -> None:
    api.put(PATH, CLICKS)
    one = api.get(f"{PATH}/partition?values=2026-03-01/7")
    assert (one["values"], one["ready_at"], one["period"]["label"]) == (["2026-03-01", "07"], None, "2026-03-01T07")
    error = api.refused(400, "GET", f"{PATH}/partition?values=2026-03-29/02")
    assert error == {
        "code": "invalid",
        "message": "expected a time that the clocks of Europe/Paris show, got 'dt=2026-03-29/hour=02'",
        "field": "values",
        "hint": "Europe/Paris skips it",
    }


def test_t24_a_registration_shows_its_period(api: Api) -> None:
    api.put(PATH, CLICKS)
    for hour in (7, "07", "7"):
        row = api.post(f"{PATH}/partitions", {"partition": {"dt": "2026-03-01", "hour": hour}})
        assert (row["partition"]["hour"], row["period"]["label"]) == ("07", "2026-03-01T07")
    assert len(api.get(f"{PATH}/partitions")["items"]) == 1
    error = api.refused(400, "POST", f"{PATH}/partitions", {"partition": {"dt": "2026-03-01", "hour": "x"}})
    assert (error["field"], error["message"]) == ("partition", "expected a value of the form hour=%H, got 'hour=x'")


def test_t24_a_dataset_shows_folders_of_no_period(api: Api) -> None:
    api.put(PATH, CLICKS)
    upload("dt=2026-03-01/hour=24")
    [noted] = api.get(PATH)["ignored"]
    assert (noted["code"], noted["of"]) == ("no_period", "dt=2026-03-01/hour=24")
    assert noted["why"].startswith("its folder names no period: expected a time of the calendar (hour must be in 0..23")


def test_t24_a_partition_older_than_the_format_has_none(api: Api) -> None:
    api.put(PATH, CLICKS | {"period": None})
    upload("dt=x/hour=1", "dt=2026-03-01/hour=7")
    assert "period" not in api.get(f"{PATH}/partitions")["items"][0]
    api.put(PATH, CLICKS)
    listed = api.get(f"{PATH}/partitions")["items"]
    found = {item["partition"]["dt"]: item["period"] and item["period"]["label"] for item in listed}
    assert found == {"x": None, "2026-03-01": "2026-03-01T07"}


@pytest.mark.parametrize(
    ("period", "field", "message", "hint"),
    [
        (
            {"each": "45m"},
            "period.each",
            "expected one of 15m, 20m, 30m, hour, 2h,",
            "periods of 45m do not fill an hour",
        ),
        ({"each": "5h"}, "period.each", "got '5h'", "periods of 5h do not fill a day without a rest; write one of 2h,"),
        ({"each": "Daily"}, "period.each", "got 'Daily'", "did you mean 'day'?"),
        ({"each": "hourly"}, "period.each", "got 'hourly'", "did you mean 'hour'?"),
        ({"each": "10m"}, "period.each", "got '10m'", "a period has at least 15 minutes"),
        ({"each": "60m"}, "period.each", "got '60m'", "write hour"),
        ({"each": "24h"}, "period.each", "got '24h'", "write day"),
        ({"each": "1w"}, "period.each", "got '1w'", "write week"),
        ({"each": "30d"}, "period.each", "got '30d'", "write day, week, month, quarter or year"),
        (
            {"zone": "CEST"},
            "period.zone",
            "expected a time zone such as Europe/Paris or UTC, got 'CEST'",
            "Europe/Paris",
        ),
        (
            {"format": "dt=%Y-%m-%d"},
            "period",
            "that determines a period of one hour, with %Y %m %d %H",
            "add %H (hour)",
        ),
        ({"format": "dt=%Y-%m-%d/hour=%H%M"}, "period", "no %M (minute) for a period of one hour", "remove %M"),
        ({"format": "dt=%Y%-m%-d/hour=%H"}, "period", "that can be read back", "write a sign such as - between them"),
        ({"format": "hour=%H/dt=%Y-%m-%d"}, "period", "expected folders of the keys dt, hour", "in the order of keys"),
        ({"format": "day=%Y-%m-%d/hour=%H"}, "period", "expected folders of the keys dt, hour", "in the order of keys"),
        ({"each": "15m", "format": "dt=%Y-%m-%d/hour=%H:%M"}, "period", "the clocks of Europe/Paris show some", "%H%z"),
        ({"week_starts": "sun"}, "period.week_starts", "week_starts only with each: week", "write each: week"),
        ({"length": "hour"}, "period.length", "unknown field 'length'", ""),
    ],
)
def test_t24_a_period_that_folders_do_not_name_is_refused(
    shared: Api, period: dict[str, Any], field: str, message: str, hint: str
) -> None:
    error = shared.refused(400, "PUT", PATH, CLICKS | {"period": HOURS | period})
    assert error["field"].startswith(field)
    assert message in error["message"]
    assert hint in (error["hint"] or "")


def test_t24_quarters_of_an_hour_need_an_offset_or_utc(shared: Api) -> None:
    quarters = {"each": "15m", "format": "dt=%Y-%m-%d/hour=%H:%M%z", "zone": "Europe/Paris"}
    for period in (quarters, quarters | {"format": "dt=%Y-%m-%d/hour=%H:%M", "zone": "UTC"},
                   quarters | {"format": "dt=%Y-%m-%d/hour=%H:%M", "zone": "Asia/Kolkata"}):  # fmt: skip
        shared.put(PATH, CLICKS | {"period": period})
    for each, zone in (("30m", "Australia/Lord_Howe"), ("hour", "Australia/Lord_Howe"), ("2h", "Antarctica/Troll")):
        form = "dt=%Y-%m-%d/hour=%H:%M" if each == "30m" else HOURS["format"]
        shared.put(PATH, CLICKS | {"period": {"each": each, "format": form, "zone": zone}})
    troll = {"each": "hour", "format": HOURS["format"], "zone": "Antarctica/Troll"}
    error = shared.refused(400, "PUT", PATH, CLICKS | {"period": troll})
    assert "an offset (%z) in the format" in error["message"]


def test_t24_a_table_has_no_periods(shared: Api) -> None:
    table = {"bucket": "lake", "prefix": "warehouse/clicks/", "format": "iceberg", "single_writer": True}
    error = shared.refused(400, "PUT", f"{NS}/datasets/table", table | {"period": HOURS})
    assert (error["field"], "period only with format: files" in error["message"]) == ("period", True)


def test_l23_the_periods_of_a_schedule_are_read_page_by_page(api: Api) -> None:
    days = {"bucket": "lake", "prefix": "raw/days/", "keys": ["day"]}
    api.put(f"{NS}/datasets/days", days | {"period": {"each": "day", "format": "day=%Y-%m-%d"}})
    trigger = {"type": "partition", "dataset": "days"}
    api.schedule("byday", trigger=trigger, workflow="clean", by=["day"])
    for day in ("2026-11-15", "2026-11-18"):
        api.post(f"{NS}/datasets/days/partitions", {"partition": {"day": day}})
    path = f"{APP}/schedules/byday/periods?to=2026-11-20T00:00:00Z"
    first = api.get(f"{path}&limit=2")
    assert [each["values"]["day"] for each in first["items"]] == ["2026-11-15", "2026-11-16"]
    assert [each["ready_at"] is None for each in first["items"]] == [False, True]
    rest = api.get(f"{path}&cursor={first['next_cursor']}")
    assert [each["period"]["label"][8:] for each in rest["items"]] == ["17", "18", "19"]
    assert rest["next_cursor"] is None
    assert {each["state"] for each in first["items"] + rest["items"]} == {"missing"}
    one = api.get(f"{APP}/schedules/byday/periods?from=2026-11-16T00:00:00Z&to=2026-11-17T00:00:00Z")
    assert [each["period"]["label"] for each in one["items"]] == ["2026-11-16"]
    assert one["complete_from"] == "2026-11-15T00:00:00.000Z"
    for query, field in (("from=yesterday", "from"), ("cursor=no", "cursor")):
        assert api.refused(400, "GET", f"{APP}/schedules/byday/periods?{query}")["field"] == field
    assert api.refused(404, "GET", f"{APP}/schedules/none/periods")["code"] == "not_found"


def test_t25_a_dag_of_days_is_put_tried_and_listed(api: Api) -> None:
    api.put(PATH, CLICKS)
    path, of_hours = f"{APP}/dags/hourly", {"type": "partition", "dataset": "clicks", "of": "period"}
    dag = {"nodes": {"one": {"workflow": "clean"}}, "trigger": of_hours, "zone": "Europe/Paris", "enabled": True}
    error = api.refused(400, "PUT", path, dag)
    assert (error["code"], error["field"]) == ("invalid", "per")
    assert "timeout" not in api.put(path, dag | {"per": "day", "late": "again"})
    assert (api.get(path)["per"], api.get(path)["late"]) == ({"each": "day"}, "again")
    given = [
        {"type": "partition", "dataset": "clicks", "partition": {"dt": "2026-10-25", "hour": f"{hour:02}"}}
        for hour in range(24)
    ]
    steps = api.post(f"{APP}/schedules/hourly~/dry-run", {"events": given})["steps"]
    assert [step["fires"] for step in steps] == [False] * 23 + [True]
    upload("dt=2026-11-15/hour=02")
    query = "from=2026-11-14T23:00:00Z&to=2026-11-16T00:00:00Z"
    [waiting, missing] = api.get(f"{APP}/schedules/hourly~/periods?{query}")["items"]
    assert (waiting["state"], waiting["values"], missing["state"]) == ("waiting", {"day": "2026-11-15"}, "missing")
    assert "waits for 23 of 24 hours of 2026-11-15 Europe/Paris" in waiting["why"]


def test_t25_a_preview_has_the_next_days_of_a_schedule(api: Api) -> None:
    api.put(PATH, CLICKS)
    trigger = {"type": "partition", "dataset": "clicks", "of": "period"}
    api.schedule("daily", workflow="clean", trigger=trigger, per="day", zone="Europe/Paris")
    found = api.get(f"{APP}/schedules/daily/preview?count=200")
    assert found["items"] == [] and len(found["periods"]) == 100
    assert {each["need"] for each in found["periods"]} <= {23, 24, 25}
    first, second = found["periods"][:2]
    assert first["end"] == second["start"] == first["complete_from"]
    assert api.get(f"{APP}/schedules/daily/preview?count=2")["periods"] == [first, second]
    api.schedule("plain", workflow="clean", trigger={"type": "partition", "dataset": "clicks"})
    assert api.get(f"{APP}/schedules/plain/preview")["periods"] == []
