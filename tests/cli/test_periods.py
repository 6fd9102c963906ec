"""`periods`: the periods of a schedule, and what became of each (L23)."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.conftest import Sluice
from tests.cli.played_api import Played, PlayedApi
from tests.cli.recorded import CLEAN, JOB, SCHEDULES, past

PATH = f"{SCHEDULES}/clean/periods"


def item(day: int, state: str, **changed: Any) -> dict[str, Any]:
    at = f"2026-03-{day:02d}T00:00:00.000Z"
    return {
        "at": at,
        "period": {"start": at, "end": at, "zone": "UTC", "label": at[:10]},
        "values": {"day": at[:10]},
        "state": state,
        **dict.fromkeys(("why", "code", "job_id", "since", "ready_at")),
        "runs": [],
        "attempts": 0,
        "revision": 0,
        **changed,
    }


def test_l23_each_period_is_a_line_with_its_state(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[PATH] = [
        item(1, "succeeded", runs=[JOB], revision=2, since=past(minutes=3)),
        item(2, "waiting", job_id=JOB, why="waits for a slot", since=past(minutes=2)),
        item(3, "missing"),
    ]
    result = sluice("periods", CLEAN, "--from", "2026-03-01", "--to", "2026-03-04T00:00:00+01:00")
    assert result.exit_code == 0
    assert [line.split() for line in result.stdout.splitlines()] == [
        ["PERIOD", "STATE", "SINCE", "RUNS", "RUN"],
        ["day=2026-03-01", "succeeded", "3", "m", "ago", "2", JOB],
        ["day=2026-03-02", "waiting", "2", "m", "ago", "-", JOB],
        ["waits", "for", "a", "slot"],
        ["day=2026-03-03", "missing", "-", "-", "-"],
    ]
    assert f"sluice backfill begin {CLEAN} --partition day=2026-03-03 --only missing" in result.stderr
    query = api.requests[0].query
    assert (query["from"], query["to"]) == ("2026-03-01T00:00:00Z", "2026-03-03T23:00:00Z")


def test_l23_an_instant_names_the_period_of_a_fire(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[PATH] = [item(1, "failed", values=None, period=None, runs=[JOB], revision=1, why="it failed")]
    result = sluice("periods", CLEAN)
    assert result.stdout.splitlines()[1].startswith("2026-03-01 00:00:00 UTC")
    assert result.stderr == ""
    assert json.loads(sluice("periods", "clean", "-a", "demo.flights", "--json").stdout)["items"] == api.lists[PATH]
    api.lists[PATH] = []
    assert sluice("periods", CLEAN).stdout == ""


MATRIX = "/v1/namespaces/demo/periods"


def by_day(name: str, days: str, **changed: Any) -> dict[str, Any]:
    plain = {"schedule": name, "days": days, "mixed": {}, "why": None, "complete_from": "2026-02-01T00:00:00.000Z"}
    return plain | changed


def test_l23_many_schedules_have_a_letter_for_each_day(api: PlayedApi, sluice: Sluice) -> None:
    items = [by_day(CLEAN, "ssfm"), by_day("demo.flights.join", "....", why="no period")]
    api.answers["GET", MATRIX] = [
        Played(200, {"items": items, "next_cursor": None, "from": "2026-02-27", "to": "2026-03-02"})
    ]
    result = sluice("periods", "-a", "demo.flights", "--from", "2026-02-27", "--to", "2026-03-03", "--tag", "team=a")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[:3] == [
        "SCHEDULE            MONTH    1   5    10   15   20   25   30",
        "demo.flights.clean  2026-02                            ss",
        "demo.flights.clean  2026-03  fm",
    ]
    assert "demo.flights.join has no periods here: no period" in result.stderr
    assert "f failed, m missing" in result.stderr
    query = {"from": "2026-02-27", "to": "2026-03-02", "app": "flights", "tag": "team=a", "limit": "100"}
    assert api.requests[0].query == query
    assert json.loads(sluice("periods", "-n", "demo", "--json").stdout)["items"] == items
    assert "from" not in api.requests[-1].query


def test_l23_several_schedules_are_named_in_one_request(api: PlayedApi, sluice: Sluice) -> None:
    api.answers["GET", MATRIX] = [
        Played(200, {"items": [by_day(CLEAN, "s")], "next_cursor": None, "from": "2026-02-27", "to": "2026-02-27"})
    ]
    assert sluice("periods", CLEAN, "flights.join", "-n", "demo").exit_code == 0
    assert api.requests[0].query["schedules"] == f"{CLEAN},demo.flights.join"


def test_l23_wrong_words_about_many_schedules_are_refused(api: PlayedApi, sluice: Sluice) -> None:
    for words, expected in (
        (("-n", "demo", "--from", "noon"), "expected a day, got 'noon'"),
        ((CLEAN, "other.flights.join"), "expected schedules of one namespace, got demo, other"),
        ((CLEAN, "--tag", "team=a"), "expected --tag without NAME"),
        ((CLEAN, "demo.flights.join", "--tag", "team=a"), "expected --tag without NAME"),
    ):
        result = sluice("periods", *words)
        assert result.exit_code == 2, words
        assert expected in result.stderr
    assert api.requests == []
