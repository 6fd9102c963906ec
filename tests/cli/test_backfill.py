"""`backfill`: begin one over an interval or over partitions, list, show, cancel (L12)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import Sluice
from tests.cli.played_api import Played, PlayedApi
from tests.cli.recorded import CLEAN, JOB, SCHEDULES, backfill

ALL = f"{SCHEDULES}/clean/backfills"
ONE = f"{ALL}/0a1b2c3d4e5f6071"
PLAIN = {"only": "all", "concurrency": 1, "order": "oldest", "properties": {}, "dry_run": False}


def test_l12_an_interval_of_days_is_sent_and_only_the_id_printed(api: PlayedApi, sluice: Sluice) -> None:
    api.play("POST", ALL, Played(201, backfill()))
    asked = ["--from", "2026-01-01", "--to", "2026-02-01T01:00:00+01:00", "-c", "3", "--newest-first", "-p", "deep=yes"]
    result = sluice("backfill", "begin", CLEAN, *asked)
    assert (result.exit_code, result.stdout) == (0, "0a1b2c3d4e5f6071\n")
    [request] = api.requests
    assert request.body == {
        "from": "2026-01-01T00:00:00Z",
        "to": "2026-02-01T00:00:00Z",
        "only": "all",
        "concurrency": 3,
        "order": "newest",
        "properties": {"deep": "yes"},
        "dry_run": False,
    }


def test_l12_after_a_lost_answer_request_repeats_with_its_key(api: PlayedApi, sluice: Sluice) -> None:
    api.play("POST", ALL, Played(503), Played(201, backfill()))
    assert sluice("backfill", "begin", CLEAN, "--from", "2026-01-01", "--to", "2026-01-02").exit_code == 0
    first, again = api.requests
    assert first.headers["idempotency-key"] == again.headers["idempotency-key"] != ""


@pytest.mark.parametrize(
    ("asked", "partitions"),
    [
        (["--from", "year=2013", "--to", "year=2013/month=3"],
         {"from": {"year": "2013"}, "to": {"year": "2013", "month": "3"}}),
        (["--from", "year=2013"], {"from": {"year": "2013"}}),
        (["--dataset", "flights"], {"dataset": "flights"}),
        (["--partition", "year=2013/day=1/", "--partition", "year=2013/day=2"],
         {"values": [{"year": "2013", "day": "1"}, {"year": "2013", "day": "2"}]}),
        (["--partition", "aws-account-id=0001/_hour=07"], {"values": [{"aws-account-id": "0001", "_hour": "07"}]}),
    ],
)  # fmt: skip
def test_l12_partitions_are_named_like_their_paths(
    api: PlayedApi, sluice: Sluice, asked: list[str], partitions: Any
) -> None:
    api.play("POST", ALL, Played(201, backfill()))
    assert sluice("backfill", "begin", CLEAN, *asked).exit_code == 0
    assert [request.body for request in api.requests] == [{"partitions": partitions} | PLAIN]


def test_l12_a_dry_run_prints_how_many_and_the_first_and_last(api: PlayedApi, sluice: Sluice) -> None:
    ends = {"first": [{"year": "2013", "day": "1"}], "last": [{"year": "2013", "day": "9"}]}
    now = {"missing": 9, "waiting": 0, "running": 1, "succeeded": 0, "failed": 0}
    entries = [
        {"entry": {"day": "1"}, "state": "missing", "runs": True, "why": None, "run_id": None},
        {"entry": {"day": "2"}, "state": "running", "runs": False, "why": "the target starts it", "run_id": JOB},
    ]
    plan = {"schedule": CLEAN, "dataset": "demo.flights", "total": 9, **ends, "now": now, "entries": entries}
    api.play("POST", ALL, plan)
    result = sluice("backfill", "begin", CLEAN, "--from", "year=2013", "--only", "missing", "--dry-run")
    assert result.exit_code == 0
    assert [line.split() for line in result.stdout.splitlines() if line] == [
        ["backfill", "of", CLEAN, "9", "runs"],
        ["runs", "year=2013/day=1"],
        ["(7", "more)"],
        ["year=2013/day=9"],
        ["now", "9", "missing,", "1", "running"],
        ["The", "range", "now"],
        ["OF", "NOW", "THEN", "LAST", "RUN", "WHY"],
        ["day=1", "missing", "runs", "-", "-"],
        ["day=2", "running", "left", "alone", JOB, *"the target starts it".split()],
    ]
    assert "8 more" in result.stderr
    assert (api.requests[0].body["dry_run"], api.requests[0].body["only"]) == (True, "missing")


def test_l23_a_dry_run_of_periods_counts_their_partitions(api: PlayedApi, sluice: Sluice) -> None:
    why = "lacks 1 of 24 hours of 2026-03-01 UTC in demo.clicks: 05"
    row = {"state": "missing", "run_id": None, "why": None, "need": 24}
    entries = [
        row | {"entry": {"day": "2026-02-28"}, "runs": True, "have": 24},
        row | {"entry": {"day": "2026-03-01"}, "runs": False, "have": 23, "why": why},
    ]
    now = {"missing": 2, "waiting": 0, "running": 0, "succeeded": 0, "failed": 0}
    first = {"first": [{"day": "2026-02-28"}], "last": []}
    api.play("POST", ALL, {"schedule": CLEAN, "dataset": None, "total": 1, **first, "now": now, "entries": entries})
    result = sluice("backfill", "begin", CLEAN, "--from", "day=2026-02-28", "--to", "day=2026-03-01", "--dry-run")
    assert [line.split() for line in result.stdout.splitlines()][-3:] == [
        ["OF", "PARTS", "NOW", "THEN", "WHY"],
        ["day=2026-02-28", "24", "of", "24", "missing", "runs", "-"],
        ["day=2026-03-01", "23", "of", "24", "missing", "-", *why.split()],
    ]


def test_l23_a_backfill_shows_which_periods_were_incomplete(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", ONE, backfill(left_out=2, incomplete=[{"day": "2026-03-01"}]))
    shown = [line.split() for line in sluice("backfill", "show", CLEAN, "0a1b2c3d4e5f6071").stdout.splitlines()]
    assert ["incomplete", "day=2026-03-01"] in shown and ["(1", "more)"] in shown


def test_l23_a_backfill_shows_what_it_left_alone(api: PlayedApi, sluice: Sluice) -> None:
    left = {"only": "missing", "left_alone": 3, "in_flight": [{"day": "1"}, {"day": "2"}]}
    api.play("GET", ONE, backfill(**left))
    shown = [line.split() for line in sluice("backfill", "show", CLEAN, "0a1b2c3d4e5f6071").stdout.splitlines()]
    assert ["only", "missing"] in shown
    assert [line for line in shown if "left" in line or "day=2" in line or "more)" in line] == [
        ["left", "alone", "day=1"],
        ["day=2"],
        ["(1", "more)"],
    ]


def test_l12_a_backfill_is_shown_with_counts_and_active_entries(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", ONE, backfill())
    result = sluice("backfill", "show", CLEAN, "0a1b2c3d4e5f6071")
    assert result.exit_code == 0
    assert "backfill 0a1b2c3d4e5f6071  RUNNING  9 of 31" in result.stdout
    assert "20 waiting, 2 running, 8 succeeded, 1 failed" in result.stdout
    assert "2026-01-31 02:00:00 UTC to 2026-01-01 02:00:00 UTC, 3 at a time" in result.stdout
    assert JOB in result.stdout
    assert json.loads(sluice("backfill", "show", "clean", "0a1b2c3d4e5f6071", "-a", "demo.flights", "--json").stdout)


def test_l12_backfills_are_listed_newest_first(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[ALL] = [backfill(), backfill("CANCELLED", backfill_id="older", reason="backfill older was cancelled")]
    result = sluice("backfill", "list", CLEAN)
    head, *rows = result.stdout.splitlines()
    assert head.split() == ["BACKFILL", "STATE", "BEGUN", "DONE", "FAILED", "FIRST", "LAST"]
    assert rows[0].split()[:2] == ["0a1b2c3d4e5f6071", "RUNNING"]
    assert "9/31" in rows[0]
    assert "backfill older was cancelled" in result.stdout
    api.lists[ALL] = []
    assert sluice("backfill", "list", CLEAN).stdout == ""


@pytest.mark.parametrize(("flags", "query"), [([], {}), (["--runs"], {"runs": "cancel"})])
def test_l12_a_backfill_is_cancelled_with_its_runs_or_without(
    api: PlayedApi, sluice: Sluice, flags: list[str], query: dict[str, str]
) -> None:
    api.play("POST", f"{ONE}/cancel", backfill("CANCELLED", active=[], reason="backfill x was cancelled by ada"))
    result = sluice("backfill", "cancel", CLEAN, "0a1b2c3d4e5f6071", *flags)
    assert result.exit_code == 0
    assert "was cancelled by ada" in result.stdout
    assert api.requests[0].query == query


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ([], "both ends of an interval, or --partition"),
        (["--from", "2026-01-01"], "both ends of an interval"),
        (["--from", "yesterday", "--to", "2026-01-01"], "an instant with a time zone"),
        (["--from", "year=2013", "--to", "2026-01-01"], "expected key=value"),
        (["--partition", "day=1", "--from", "day=1"], "either --partition or --from"),
        (["--from", "2026-01-01", "--to", "2026-01-02", "-c", "0"], "expected 1 or more"),
    ],
)
def test_l12_invalid_arguments_are_refused_before_sending(
    api: PlayedApi, sluice: Sluice, asked: list[str], words: str
) -> None:
    result = sluice("backfill", "begin", CLEAN, *asked)
    assert result.exit_code == 2
    assert words in result.stderr
    assert api.requests == []
