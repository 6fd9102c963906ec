"""Partitions of a dataset in a range, and what one partition has led to (T7)."""

from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.flow.views import partitions
from tests.support.schedules import BY_DAY
from tests.web.conftest import APP, KEYS, NS, Api, installation, settle_in
from tests.web.reads import counted

FLIGHTS = {"type": "partition", "dataset": "flights"}
BOTH = {"type": "all", "triggers": [FLIGHTS, {"type": "partition", "dataset": "weather"}]}
LIST = f"{NS}/datasets/flights/partitions"
ONE = f"{NS}/datasets/flights/partition"
DAYS = [(month, day) for month in (1, 2, 10) for day in (2, 9, 10, 11)]


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    """``clean`` runs for each day of flights; ``join`` also waits for the weather."""
    with installation() as made:
        settle_in(made)
        made.schedule("clean", workflow="clean", trigger=FLIGHTS, by=BY_DAY, enabled=True)
        made.schedule("join", trigger=BOTH, by=BY_DAY, enabled=True)
        for month, day in DAYS:
            made.post(LIST, {"partition": {"year": 2013, "month": month, "day": day}})
        made.post(f"{NS}/datasets/weather/partitions", {"partition": {"year": 2014, "month": 1, "day": 1}})
        made.work()
        yield made


def days(answer: Any) -> list[tuple[int, int]]:
    return [(int(item["partition"]["month"]), int(item["partition"]["day"])) for item in answer["items"]]


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("from=2013/1/9&to=2013/2/9", DAYS[1:6]),
        ("from=2013/2&to=2013/2", DAYS[4:8]),
        ("from=2013/2/11", DAYS[7:]),
        ("to=2013/1/9&order=desc", [DAYS[1], DAYS[0]]),
        ("from=2013/10/2&to=2013/10/2", [DAYS[8]]),
        ("from=2012&to=2013", DAYS),
        ("from=2014", []),
    ],
)
def test_t7_partitions_of_a_range_come_in_their_order(api: Api, query: str, wanted: Any) -> None:
    answer = api.get(f"{LIST}?{query}")
    assert days(answer) == wanted
    assert (answer["next_cursor"], answer["at_least"]) == (None, False)


def test_t7_partitions_can_be_listed_newest_first(api: Api) -> None:
    assert days(api.get(f"{LIST}?order=desc")) == days(api.get(LIST))[::-1]
    first = api.get(f"{LIST}?order=desc&limit=5")
    second = api.get(f"{LIST}?order=desc&cursor={first['next_cursor']}")
    assert days(first) + days(second) == days(api.get(LIST))[::-1]


def test_a_range_that_is_cut_says_so(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    assert api.get(f"{LIST}?from=2013&limit=3")["at_least"] is True
    monkeypatch.setattr(partitions, "MAX_READ", 4)
    with counted() as tally:
        assert api.get(f"{LIST}?from=2013/1&to=2013/10")["at_least"] is True
    assert tally.calls == {"GetItem": 1, "Query": 2}, "one finds how the year is spelled"
    assert tally.units <= 3


def test_a_range_reads_what_both_its_ends_share(api: Api) -> None:
    with counted() as tally:
        assert api.get(f"{LIST}?from=2013/2/9&to=2013/2/10")["at_least"] is False
    assert tally.calls == {"GetItem": 1, "Query": 4}, "three find how the year and the month are spelled"


def test_t7_numbers_in_requests_need_no_leading_zeros(api: Api) -> None:
    api.put(f"{NS}/datasets/padded", {"bucket": "lake", "prefix": "raw/padded/", "keys": KEYS})
    padded = f"{NS}/datasets/padded/partition"
    for month, day in ((1, 5), (9, 1), (9, 30), (10, 1)):
        api.post(f"{padded}s", {"partition": {"year": 2026, "month": f"{month:02}", "day": f"{day:02}"}})
    for bounds in ("from=2026/9&to=2026/10", "from=2026/09/1&to=2026/10", "from=2026/9/01"):
        assert days(api.get(f"{padded}s?{bounds}")) == [(9, 1), (9, 30), (10, 1)]
    for bounds in ("from=2026/9/1&to=2026/9/29", "from=2026/9/1&to=2026/09/01"):
        assert days(api.get(f"{padded}s?{bounds}")) == [(9, 1)]
    assert days(api.get(f"{padded}s?from=2026/13")) == days(api.get(f"{padded}s?from=2026/8&to=2026/8")) == []
    view = api.get(f"{padded}?values=2026/9/1")
    assert (view["values"], view["partition"]["month"]) == (["2026", "09", "01"], "09")
    assert view["path"].endswith("/year=2026/month=09/day=01/")
    assert api.get(f"{padded}?values=2026/9/2")["ready_at"] is None
    error = api.refused(400, "POST", f"{padded}s", {"partition": {"year": 2026, "month": 1, "day": 5}})
    assert "year=2026/month=01/day=05" in error["message"]
    again = {"partition": {"year": 2026, "month": "01", "day": "05"}}
    assert api.post(f"{padded}s", again)["path"] == api.get(f"{padded}?values=2026/1/5")["path"]


def test_t7_dates_of_any_padding_are_within_their_bounds(api: Api) -> None:
    api.put(f"{NS}/datasets/dates", {"bucket": "lake", "prefix": "raw/dates/", "keys": ["dt", "hour"]})
    dates = f"{NS}/datasets/dates/partitions"
    for dt, hour in (("2026-03-01", "00"), ("2026-03-01", "10"), ("2026-03-02", "00")):
        api.post(dates, {"partition": {"dt": dt, "hour": hour}})
    for bounds in ("from=2026-03-01/0&to=2026-03-01/23", "from=2026-3-1/0&to=2026-3-1/23", "to=2026-3-1"):
        assert [each["partition"]["hour"] for each in api.get(f"{dates}?{bounds}")["items"]] == ["00", "10"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("from=2013/1/1/1", "from"),
        ("to=2013//1", "to"),
        ("from=2014&to=2013", "to"),
        ("order=up", "order"),
        ("from=2013&cursor=x", "cursor"),
    ],
)
def test_a_wrong_range_of_partitions_is_refused(api: Api, query: str, field: str) -> None:
    assert api.refused(400, "GET", f"{LIST}?{query}")["field"] == field


def test_t7_a_partition_shows_the_runs_and_jobs_that_count_it(api: Api) -> None:
    view = api.get(f"{ONE}?values=2013/2/9")
    [run] = [each for each in api.get(f"{APP}/schedules/clean/runs")["items"] if each["partition"] == view["partition"]]
    assert [(each["run_id"], each["state"]) for each in view["runs"]] == [(run["run_id"], run["state"])]
    [job] = view["waiting"]
    assert (job["schedule"], job["state"]) == ("demo.flights.join", "PENDING_TRIGGER")
    assert "1 partition of demo.weather" in job["reason"]
    assert view["schedules"] == ["demo.flights.clean", "demo.flights.join"]
    assert view["ready_at"] is not None
    assert (view["ended"], view["at_least"]) == ([], False)


def test_t7_a_missing_partition_shows_who_waits_for_it(api: Api) -> None:
    view = api.get(f"{ONE}?values=2014/1/1")
    assert (view["ready_at"], view["path"], view["runs"]) == (None, None, [])
    [job] = view["waiting"]
    assert job["schedule"] == "demo.flights.join"
    assert "1 partition of demo.flights" in job["reason"]
    assert api.get(f"{ONE}?values=2015/1/1")["waiting"] == []


def test_a_partition_costs_the_same_for_many_schedules(api: Api) -> None:
    with counted() as few:
        api.get(f"{ONE}?values=2015/1/1")
    for number in range(6):
        api.schedule(f"more{number}", trigger=BOTH, by=BY_DAY, enabled=True)
    api.get(f"{ONE}?values=2015/1/1")  # the versions are known after this
    with counted() as many:
        api.get(f"{ONE}?values=2015/1/1")
    backfills = {"Query": many.calls["Query"] - few.calls["Query"]}
    assert (many.calls, backfills) == (few.calls | {"Query": many.calls["Query"]}, {"Query": 6}), "one for each"
    assert few.total <= 13


@pytest.mark.parametrize("query", ["", "?values=2013", "?values=2013/1/1/1", "?values=2013//1"])
def test_a_partition_needs_a_value_for_each_key(api: Api, query: str) -> None:
    assert api.refused(400, "GET", f"{ONE}{query}")["field"] == "values"
