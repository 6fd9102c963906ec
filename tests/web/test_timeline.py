"""The timeline of a namespace in columns, and the days of a schedule (H1)."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core import ids
from chalicelib.core.instants import HOUR, MINUTE, SECOND, iso
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.writes import Put
from chalicelib.flow.views import spans
from chalicelib.wiring import ports
from tests.core.builders import run as plain_run
from tests.support.reasons import says
from tests.web.conftest import APP, NS, Api, installation, settle_in
from tests.web.reads import counted

RUNS = 330  # one a minute
STATES: tuple[Any, ...] = ("SUCCEEDED", "FAILED", "RUNNING")


def made(number: int, now: int) -> Run:
    """The run that was claimed ``number`` minutes before ``now``. It waited 2 s and took 30 s."""
    schedule = f"demo.flights.s{number % 3}"
    at = now - number * MINUTE
    state = STATES[number % 5] if number % 5 < 3 else "SUCCEEDED"
    return replace(
        plain_run(state),
        run_id=ids.job_id(schedule, 1, f"run {number}"),
        schedule=schedule,
        workflow="demo.flights.clean",
        kind="gathering",
        attempt=1,
        claimed_at=at,
        created_at=at - 2 * SECOND,
        accepted_at=at - 2 * SECOND,
        ended_at=at + 30 * SECOND if state != "RUNNING" else None,
        wake_at=None,
    )


class Past:
    """An installation with runs, its API and the instant of the newest run."""

    def __init__(self, api: Api) -> None:
        self.api, self.now = api, ports().clock.now() - MINUTE
        settle_in(api)
        for number in range(3):
            api.schedule(f"s{number}")
        ports().ledger.put_all([Put(made(number, self.now)) for number in range(RUNS)])

    def timeline(self, **query: Any) -> Any:
        return self.api.get(f"{NS}/timeline?" + "&".join(f"{name}={value}" for name, value in query.items()))

    def before(self, minutes: int) -> str:
        return iso(self.now - minutes * MINUTE)


@pytest.fixture(scope="module")
def past() -> Iterator[Past]:
    with installation() as api:
        yield Past(api)


def test_h1_a_timeline_has_what_was_claimed_in_its_span(past: Past) -> None:
    view = past.timeline(**{"from": past.before(29), "to": past.before(9)}, ids="true")
    assert len(view["row"]) == 20
    assert (view["at_least"], view["complete_from"]) == (False, view["from"])
    for place, number in enumerate(range(10, 30)):
        run = made(number, past.now)
        assert view["names"][view["row"][place]] == run.schedule
        assert view["states"][view["state"][place]] == run.state
        assert (view["at"][place], view["waited"][place]) == (run.created_at, 2_000)
        start = view["at"][place] + view["waited"][place] + view["starting"][place]
        assert start == (run.started_at or run.start_requested_at or run.claimed_at)
        assert view["took"][place] == (None if run.state == "RUNNING" else run.ended_at - start)
        assert view["ids"][place] == f"{run.run_id}#1"
    assert view["workflows"] == ["demo.flights.clean"] * 3


@pytest.mark.parametrize(("only", "count"), [("schedule=flights.s1", 20), ("workflow=flights.clean", 60)])
def test_h1_a_timeline_of_one_schedule_or_workflow(past: Past, only: str, count: int) -> None:
    name, _, value = only.partition("=")
    view = past.timeline(**{"from": past.before(59), name: value})
    assert len(view["row"]) == count
    assert view["names"] == (["demo.flights.s1"] if name == "schedule" else [f"demo.flights.s{n}" for n in range(3)])
    assert "ids" not in view


def test_a_cut_timeline_says_from_when_it_is_whole(past: Past) -> None:
    view = past.timeline(**{"from": past.before(200), "limit": 100})
    assert (len(view["row"]), view["at_least"]) == (100, True)
    rest = past.timeline(**{"from": view["complete_from"]})
    assert rest["at_least"] is False
    assert rest["row"] == view["row"][: len(rest["row"])]
    assert len(rest["row"]) == 99


def test_outcomes_count_the_newest_runs_by_state(past: Past) -> None:
    view = past.api.get(f"{NS}/outcomes")
    runs = past.api.get(f"{NS}/runs?limit=500")["items"]
    assert (view["runs"], view["more"], view["since"]) == (len(runs), False, runs[-1]["claimed_at"])
    assert view["states"] == dict(Counter(run["state"] for run in runs))
    assert view["failed"] == [run for run in runs if run["state"] == "FAILED"][:8]


def test_a_timeline_reads_a_hundred_runs_a_call(past: Past) -> None:
    with counted() as tally:
        view = past.timeline(**{"from": past.before(RUNS), "limit": 300})
    assert (len(view["row"]), view["at_least"]) == (300, True)
    # Four calls for 301 rows, half a unit each; the namespace; four parts of at most two days.
    assert (tally.calls["BatchGetItem"], tally.calls["GetItem"]) == (4, 1)
    assert tally.calls["Query"] <= 8
    assert tally.units <= 301 / 2 + 40
    assert len(json.dumps(view)) < 60 * 300


def test_the_largest_timeline_fits_into_an_answer() -> None:
    row = {
        "row": 9_999,
        "at": 1_795_356_000_000,
        "waited": 86_400_000,
        "starting": 86_400_000,
        "took": 86_400_000,
        "state": 9,
        "ids": "x" * 230,
    }
    assert len(json.dumps(list(row.values()))) * 5_000 < 6_000_000  # what a Lambda may answer


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("from=2026-11-20T00:00:00Z&to=2026-11-20T00:00:00Z", "from"),
        ("from=2026-11-01T00:00:00Z&to=2026-11-20T00:00:00Z", "from"),
        ("from=yesterday", "from"),
        ("limit=5001", "limit"),
        ("schedule=other.flights.clean", "schedule"),
        ("schedule=flights.s1&workflow=flights.clean", "workflow"),
        ("workflow=a/b.c", "workflow"),
        ("ids=yes", "ids"),
    ],
)
def test_a_wrong_timeline_request_is_refused(past: Past, query: str, field: str) -> None:
    assert past.api.refused(400, "GET", f"{NS}/timeline?{query}")["field"] == field


# -- days --------------------------------------------------------------------------------------------------------------


def test_h1_days_count_runs_and_records_by_state(past: Past) -> None:
    record = Record(
        "demo.flights.s0.1.00000000000000000000",
        "SKIPPED",
        "demo.flights.s0",
        1,
        says("x"),
        past.now,
        past.now,
        count=3,
    )
    ports().ledger.put_all([Put(record)])
    view = past.api.get(f"{APP}/schedules/s0/days")
    wanted: dict[str, dict[str, int]] = {}
    for number in range(0, RUNS, 3):
        run = made(number, past.now)
        counts = wanted.setdefault(iso(run.claimed_at)[:10], {})
        counts[run.state] = counts.get(run.state, 0) + 1
    wanted[iso(past.now)[:10]]["SKIPPED"] = 3
    assert {day["day"]: day["counts"] for day in view["days"]} == wanted
    assert [day["day"] for day in view["days"]] == sorted(wanted, reverse=True)
    assert (view["at_least"], view["complete_from"], view["zone"]) == (False, view["from"], "UTC")


def test_h1_days_are_those_of_the_zone(past: Past) -> None:
    view = past.api.get(f"{APP}/schedules/s1/days?zone=Asia/Tokyo")
    wanted = {iso(made(number, past.now).claimed_at + 9 * HOUR)[:10] for number in range(1, RUNS, 3)}
    assert {day["day"] for day in view["days"]} == wanted


def test_a_retried_run_counts_once_by_its_last_attempt(past: Past) -> None:
    first = replace(made(0, past.now), run_id="demo.flights.gone.1.0", schedule="demo.flights.gone", state="RETRYING")
    last = replace(first, attempt=2, state="SUCCEEDED", claimed_at=past.now + SECOND)
    ports().ledger.put_all([Put(first), Put(last)])
    past.api.schedule("gone")
    [day] = past.api.get(f"{APP}/schedules/gone/days")["days"]
    assert day["counts"] == {"SUCCEEDED": 1}


def test_days_that_were_cut_say_from_which_they_are_whole(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "MAX_ATTEMPTS", 100)
    with counted() as tally:
        view = past.api.get(f"{APP}/schedules/s2/days")
    assert view["at_least"] is True
    oldest = made(2 + 3 * 100, past.now).claimed_at
    assert view["complete_from"] > iso(oldest)[:10]
    assert sum(sum(day["counts"].values()) for day in view["days"]) == 100
    # 101 rows, a hundred a call; the state of the schedule; four parts of the runs and one of the records.
    assert tally.calls == {"BatchGetItem": 2, "Query": 5, "GetItem": 1}
    assert tally.units <= 101 / 2 + 30


@pytest.mark.parametrize("query", ["from=2026-1-1", "to=today", "from=2026-11-02&to=2026-11-01", "from=1980-01-01"])
def test_a_wrong_span_of_days_is_refused(past: Past, query: str) -> None:
    assert past.api.refused(400, "GET", f"{APP}/schedules/s0/days?{query}")["code"] == "invalid"


def test_the_days_of_an_unknown_schedule_are_not_found(past: Past) -> None:
    assert past.api.refused(404, "GET", f"{APP}/schedules/nothing/days")["code"] == "not_found"
    assert past.api.refused(400, "GET", f"{APP}/schedules/s0/days?zone=Mars")["field"] == "zone"
