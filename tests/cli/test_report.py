"""``sluice report``: a day, workflow by workflow, with units (H3)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi

REPORTS = "/v1/namespaces/demo/reports"


def line(workflow: str = "demo.flights.clean", **fields: Any) -> dict[str, Any]:
    """A line as the job writes it, with the fields that are shown."""
    plain = {
        "namespace": "demo", "workflow": workflow, "runs": 24, "attempts": 25, "retries": 1, "succeeded": 23,
        "failed": 1, "cancelled": 0, "aborted": 0, "not_run": 0, "success_rate": 0.958333, "lateness_p50_ms": 640,
        "lateness_p99_ms": 2_100, "duration_p50_ms": 95_000, "duration_p95_ms": 200_000, "waited_p95_ms": None,
        "sla_misses": None, "cost_usd": 1.234, "duration_p50_change": 0.25, "cost_change": -0.1,
    }  # fmt: skip
    return plain | fields


def play(api: PlayedApi, *items: dict[str, Any]) -> None:
    api.play("GET", REPORTS, {"day": "2026-03-02", "items": list(items), "next_cursor": None})


def test_h3_a_report_is_a_table_with_units(api: PlayedApi, sluice: Sluice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    play(api, line())
    done = sluice("report", "-n", "demo", "--day", "2026-03-02")
    assert done.exit_code == 0
    header, row = done.stdout.splitlines()
    assert header.split()[:4] == ["WORKFLOW", "RUNS", "SUCCESS", "FAILED"]
    assert row.split() == ("demo.flights.clean 24 95.8 % 1 1 640 ms 2.1 s 1 m 35 s 3 m 20 s $1.23 +25% -10%".split())
    assert "demo on 2026-03-02 (UTC)" in done.stderr
    assert api.requests[0].query["day"] == "2026-03-02"


def test_h3_a_column_without_any_known_value_is_omitted(api: PlayedApi, sluice: Sluice) -> None:
    play(api, line(cost_usd=None, cost_change=None))
    assert not {"MISSED", "COST", "WAITED"} & set(sluice("report", "-n", "demo").stdout.splitlines()[0].split())


def test_h3_a_report_is_sorted_as_asked_with_the_unknown_last(api: PlayedApi, sluice: Sluice) -> None:
    items = [line("demo.a.x", cost_usd=1.0), line("demo.a.y", cost_usd=None), line("demo.a.z", cost_usd=5.0)]
    play(api, *items)
    answer = json.loads(sluice("report", "-n", "demo", "--sort", "cost", "--json").stdout)
    assert [item["workflow"] for item in answer["items"]] == ["demo.a.z", "demo.a.x", "demo.a.y"]
    assert answer["day"] == "2026-03-02"


def test_h3_a_success_rate_is_never_rounded_up_to_100_percent(api: PlayedApi, sluice: Sluice) -> None:
    play(api, line(success_rate=0.99999))
    assert "99.9 %" in sluice("report", "-n", "demo").stdout


def test_h3_a_day_without_runs_is_reported_as_such(api: PlayedApi, sluice: Sluice) -> None:
    play(api)
    assert "nothing ran in demo on 2026-03-02" in sluice("report", "-n", "demo").stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--day", "yesterday"], "expected a day such as 2026-11-20"),
        (["--sort", "colour"], "expected one of name, cost, failed"),
    ],
)
def test_h3_wrong_usage_is_reported_before_any_request(
    api: PlayedApi, sluice: Sluice, arguments: list[str], said: str
) -> None:
    done = sluice("report", "-n", "demo", *arguments)
    assert done.exit_code == 2 and said in done.stderr
    assert api.requests == []


def test_h3_a_report_names_dags_and_messages_as_people_do(api: PlayedApi, sluice: Sluice) -> None:
    """W20: a graph has a digest in its name, and the messages of an app count as the workflow ``demo.flights.~``."""
    names = ["demo.flights.nightly~0a1b2c3d", "demo.flights.~", "demo.flights.clean"]
    play(api, *(line(name) for name in names))
    printed = sluice("report", "-n", "demo").stdout
    assert "~" not in printed
    found = [row.split("  ")[0] for row in printed.splitlines()[1:]]
    assert sorted(found) == ["demo.flights.clean", "demo.flights.nightly", "messages of demo.flights"]
    of_dag = json.loads(sluice("report", "-a", "demo.flights", "--workflow", "nightly", "--json").stdout)
    assert [item["workflow"] for item in of_dag["items"]] == names[:1]
    assert "messages of demo.flights" in sluice("report", "-n", "demo", "--text", "MESSAGES").stdout
