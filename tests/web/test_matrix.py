"""The periods of many schedules by day, over HTTP (L23)."""

from __future__ import annotations

from tests.web.conftest import NS, Api

SPAN = "from=2026-11-14&to=2026-11-19"


def by_day(api: Api, *names: str) -> None:
    """Schedules that run each day of a dataset, of which two are registered."""
    days = {"bucket": "lake", "prefix": "raw/days/", "keys": ["day"]}
    api.put(f"{NS}/datasets/days", days | {"period": {"each": "day", "format": "day=%Y-%m-%d"}})
    for name in names:
        api.schedule(name, trigger={"type": "partition", "dataset": "days"}, workflow="clean", by=["day"])
    for day in ("2026-11-15", "2026-11-18"):
        api.post(f"{NS}/datasets/days/partitions", {"partition": {"day": day}})


def test_l23_the_periods_of_schedules_are_one_page(api: Api) -> None:
    by_day(api, "one", "two")
    api.work()
    found = api.get(f"{NS}/periods?{SPAN}&q=flights.")
    assert (found["from"], found["to"], found["next_cursor"]) == ("2026-11-14", "2026-11-19", None)
    rows = {each["schedule"].rpartition(".")[2]: each for each in found["items"]}
    assert rows["one"]["days"] == rows["two"]["days"]
    assert len(rows["one"]["days"]) == 6


def test_l23_pages_of_schedules_follow_each_other(api: Api) -> None:
    by_day(api, "one", "three", "two")
    first = api.get(f"{NS}/periods?{SPAN}&app=flights&limit=2")
    rest = api.get(f"{NS}/periods?{SPAN}&app=flights&limit=2&cursor={first['next_cursor']}")
    names = [each["schedule"] for each in first["items"] + rest["items"]]
    assert names == sorted(names)
    assert {"demo.flights.one", "demo.flights.three", "demo.flights.two"} <= set(names)
    named = api.get(f"{NS}/periods?{SPAN}&schedules=flights.two,demo.flights.one")
    assert [each["schedule"] for each in named["items"]] == ["demo.flights.one", "demo.flights.two"]


def test_l23_a_wrong_span_or_name_is_refused(api: Api) -> None:
    for query, field in (
        ("from=yesterday", "from"),
        ("from=2026-11-19&to=2026-11-14", "from"),
        ("from=2025-01-01&to=2026-11-14", "from"),
        ("zone=Mars/Base", "zone"),
        ("limit=101", "limit"),
        ("state=broken", "state"),
        ("cursor=no", "cursor"),
        ("schedules=other.flights.one", "schedules"),
        ("schedules=flights.daily~", "schedules"),
        ("schedules=" + ",".join(f"flights.s{number}" for number in range(101)), "schedules"),
    ):
        assert api.refused(400, "GET", f"{NS}/periods?{query}")["field"] == field, query
    assert api.refused(404, "GET", f"{NS}/periods?schedules=flights.none")["code"] == "not_found"
    assert api.refused(404, "GET", "/v1/namespaces/none/periods")["code"] == "not_found"
    assert api.refused(404, "GET", f"{NS}/periods?app=none")["code"] == "not_found"
