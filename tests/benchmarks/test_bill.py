"""The bill of an installation has everything that AWS charges for, with the counts of the template."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from benchmarks import results
from benchmarks.cost import bill, prices
from benchmarks.cost.plant import Plant, fresh_tables
from benchmarks.cost.tally import billed_bytes
from benchmarks.machine import ROOT
from chalicelib.core.instants import MINUTE


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return results.read()


def by_what(millions: float, found: dict[str, Any]) -> dict[str, bill.Line]:
    return {line.what: line for line in bill.lines(millions, found)}


def test_w11_the_bill_counts_alarms_and_queues_of_the_template() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    assert f"with {bill.alarm_metrics()} metrics" in page
    assert bill.polled_queues() == 4


def test_w11_an_idle_installation_pays_for_what_never_stops(found: dict[str, Any]) -> None:
    idle = by_what(0, found)
    assert idle.keys() == {
        *("ticks", "pings that keep `check` warm", "polling of queues by Lambda", "alarms", "custom metrics"),
        *("dashboard", "logs written", "logs kept for 30 days"),
    }
    assert all(line.usd > 0 for line in idle.values())
    assert 5 < bill.total(0, found) < 20


def test_w11_jobs_pay_for_storage_recovery_and_logs(found: dict[str, Any]) -> None:
    busy, ten = by_what(1, found), by_what(10, found)
    table, recovery = busy["table of runs, after 180 days"], busy["its point-in-time recovery"]
    assert 300 < float(table.amount.split(" ")[0]) < 600
    assert 0.3 < recovery.usd / table.usd < 0.6, "without global indexes, at $0.20 instead of $0.25"
    for what in ("table of runs, after 180 days", "its point-in-time recovery", "lake, after 180 days"):
        assert ten[what].usd == pytest.approx(10 * busy[what].usd)
    assert ten["alarms"] == busy["alarms"]
    assert bill.total(1, found) > 30 * sum(line.usd for line in (busy["alarms"], busy["dashboard"])) / 30


def test_w11_the_log_lines_of_each_path_are_counted(found: dict[str, Any]) -> None:
    for one in (*found["cost"], found["cost_idle_tick"]):
        invocations = sum(count for name, count in one["calls"].items() if name.startswith("lambda:"))
        assert one["log_bytes"] > 300 * invocations, "Lambda writes three lines for each invocation"
    assert billed_bytes("abc\nd\n") == 2 * 26 + 4


def test_w11_an_idle_tick_logs_one_line_and_one_metric(capsys: pytest.CaptureFixture[str]) -> None:
    plant = Plant(*fresh_tables(), logged=True)
    written: list[str] = []
    plant.tally.logged = written.append  # type: ignore[method-assign]
    plant.pass_by(MINUTE)
    ours = [json.loads(line) for line in "".join(written).splitlines() if line.startswith("{")]
    assert [one.get("message") for one in ours if "message" in one] == ["tick"]
    metrics = [name for one in ours if "_aws" in one for name in one if name[0].isupper()]
    assert metrics == ["OverdueAge"]
    assert len(metrics) == bill.IDLE_METRICS
    assert capsys.readouterr().out == "", "what is counted is not shown"


def test_w11_options_are_priced_apart(found: dict[str, Any]) -> None:
    options = {what: (idle, busy) for what, _, idle, busy in bill.options(found)}
    idle, busy = options["`Tracing=Active`"]
    assert 0 < idle < busy
    pollers = options[f"`BurstMinimumPollers={bill.PROVISIONED}`"]
    assert pollers == (bill.PROVISIONED * 720 * prices.POLLER_HOUR,) * 2
    page = (ROOT / "docs" / "deployment.md").read_text()
    assert re.search(r"BurstMinimumPollers.*\$6.66 a month each", page)
