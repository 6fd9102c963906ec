"""`backfill begin --wait`: a bar on a terminal, a row for each change elsewhere, and the exit code of the result."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import Sluice
from tests.cli.played_api import Played, PlayedApi
from tests.cli.recorded import CLEAN, SCHEDULES, backfill
from tests.cli.terminal import on_a_terminal

ALL = f"{SCHEDULES}/clean/backfills"
ONE = f"{ALL}/0a1b2c3d4e5f6071"
BEGIN = ("backfill", "begin", CLEAN, "--from", "2026-01-01", "--to", "2026-01-04", "--wait")


def of(state: str, **counts: int) -> dict[str, Any]:
    none = dict.fromkeys(("waiting", "running", "succeeded", "failed", "cancelled"), 0)
    return backfill(state) | none | {"total": 3} | counts


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluice.cli.watch.FIRST_PAUSE", 0.0)
    monkeypatch.setattr("sluice.cli.watch.MAX_PAUSE", 0.0)


def test_l12_a_wait_prints_each_change_and_the_result(api: PlayedApi, sluice: Sluice) -> None:
    api.play("POST", ALL, Played(201, backfill()))
    half = of("RUNNING", running=1, succeeded=1, waiting=1)
    api.play("GET", ONE, of("RUNNING", waiting=3), half, half, of("DONE", succeeded=3))
    done = sluice(*BEGIN)
    assert (done.exit_code, done.stdout) == (0, "0a1b2c3d4e5f6071\nDONE  3 succeeded\n")
    assert done.stderr.splitlines() == [
        "0 of 3  3 waiting",
        "1 of 3  1 waiting, 1 running, 1 succeeded",
        "3 of 3  3 succeeded",
    ]


@pytest.mark.parametrize(
    "end", [of("DONE", succeeded=2, failed=1), of("CANCELLED", succeeded=1, cancelled=1), of("ENDED", succeeded=1)]
)
def test_l12_a_wait_ends_with_1_unless_all_succeed(api: PlayedApi, sluice: Sluice, end: dict[str, Any]) -> None:
    api.play("POST", ALL, Played(201, backfill()))
    api.play("GET", ONE, end)
    assert sluice(*BEGIN).exit_code == 1


def test_l12_a_wait_with_json_prints_the_last_view_only(api: PlayedApi, sluice: Sluice) -> None:
    api.play("POST", ALL, Played(201, backfill()))
    api.play("GET", ONE, of("RUNNING", running=3), of("DONE", succeeded=3))
    done = sluice(*BEGIN, "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    assert json.loads(done.stdout)["state"] == "DONE"


def test_l12_on_a_terminal_a_wait_draws_a_bar(api: PlayedApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    api.play("POST", ALL, Played(201, backfill()))
    api.play("GET", ONE, of("RUNNING", running=1, succeeded=1, waiting=1), of("DONE", succeeded=3))
    code, output = on_a_terminal(*BEGIN)
    assert code == 0
    assert "━" in output and "1/3" in output and "3/3" in output


def test_l12_a_dry_run_waits_for_nothing(api: PlayedApi, sluice: Sluice) -> None:
    done = sluice(*BEGIN, "--dry-run")
    assert (done.exit_code, api.requests) == (2, [])
    assert "expected one of --wait and --dry-run, got both" in done.stderr
