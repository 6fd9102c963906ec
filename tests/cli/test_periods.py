"""`periods`: the periods of a schedule, and what became of each (L23)."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi
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
