"""`reprocess`: begin one of a partition or of a range, list, show, cancel (L21)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import Sluice
from tests.cli.played_api import Played, PlayedApi
from tests.cli.recorded import reprocess

ALL = "/v1/namespaces/demo/reprocess"
ONE = f"{ALL}/326ca05653517d0b"
DAY = {"year": "2013", "day": "1"}
PLAIN = {"dataset": "demo.flights", "scope": "downstream", "concurrency": 1, "properties": {}, "dry_run": False}


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        (["demo.flights", "year=2013/day=1"], {"partition": DAY}),
        (["begin", "flights", "year=2013/day=1/", "-n", "demo"], {"partition": DAY}),
        (["demo.flights", "--from", "year=2013"], {"from": {"year": "2013"}}),
        (["demo.flights", "--from", "year=2013", "--to", "year=2014"],
         {"from": {"year": "2013"}, "to": {"year": "2014"}}),
        (["demo.flights", "year=2013/day=1", "--only"], {"partition": DAY, "scope": "only"}),
        (["demo.flights", "year=2013/day=1", "--downstream", "-c", "3"], {"partition": DAY, "concurrency": 3}),
        (["demo.flights", "year=2013/day=1", "--upto", "flights.join", "-p", "mode=deep"],
         {"partition": DAY, "upto": "demo.flights.join", "properties": {"mode": "deep"}}),
    ],
)  # fmt: skip
def test_l21_what_runs_again_is_sent_and_the_id_printed(
    api: PlayedApi, sluice: Sluice, asked: list[str], sent: Any
) -> None:
    api.play("POST", ALL, Played(201, reprocess()))
    result = sluice("reprocess", *asked)
    assert (result.exit_code, result.stdout) == (0, "326ca05653517d0b\n"), result.stderr
    assert [request.body for request in api.requests] == [PLAIN | sent]


def test_l21_after_a_lost_answer_request_repeats_with_its_key(api: PlayedApi, sluice: Sluice) -> None:
    api.play("POST", ALL, Played(503), Played(201, reprocess()))
    assert sluice("reprocess", "demo.flights", "day=1").exit_code == 0
    first, again = api.requests
    assert first.headers["idempotency-key"] == again.headers["idempotency-key"] != ""


def test_l21_a_dry_run_prints_each_step_and_why(api: PlayedApi, sluice: Sluice) -> None:
    why = "counts partitions of demo.flights"
    step = {"step": 0, "schedule": "demo.flights.clean", "workflow": "demo.flights.clean", "after": [], "why": why}
    steps = [step | {"total": 2, "first": [DAY, DAY | {"day": "2"}], "last": []}]
    api.play("POST", ALL, {"namespace": "demo", "dataset": "demo.flights", "partitions": 2, "total": 2, "steps": steps})
    result = sluice("reprocess", "demo.flights", "--from", "year=2013", "--dry-run")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[0].split() == ["re-processing", "of", "demo.flights", "2", "runs"]
    assert "demo.flights.clean" in result.stdout
    assert "year=2013/day=1 to year=2013/day=2" in result.stdout
    assert why in result.stdout
    assert api.requests[0].body["dry_run"] is True


def test_l21_a_reprocessing_is_shown_step_by_step(api: PlayedApi, sluice: Sluice) -> None:
    view = reprocess()
    api.play("GET", ONE, view)
    result = sluice("reprocess", "show", "326ca05653517d0b", "-n", "demo")
    assert result.exit_code == 0, result.stderr
    assert "re-processing 326ca05653517d0b  RUNNING  1/3 runs" in result.stdout
    assert "1 waiting, 1 running, 1 succeeded" in result.stdout
    steps = [line.split()[:3] for line in result.stdout.splitlines() if line.strip()[:1].isdigit()]
    assert steps == [["0", "demo.flights.clean", "succeeded"], ["1", "demo.flights.join", "running"],
                     ["2", "demo.flights.report", "waiting"]]  # fmt: skip
    assert json.loads(sluice("reprocess", "show", "326ca05653517d0b", "-n", "demo", "--json").stdout) == view


def test_l21_reprocessings_are_listed_newest_first(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[ALL] = [reprocess(), reprocess("FAILED", reprocess_id="older", failed=2)]
    result = sluice("reprocess", "list", "-n", "demo")
    head, *rows = result.stdout.splitlines()
    assert head.split() == ["REPROCESSING", "STATE", "BEGUN", "DONE", "FAILED", "DATASET", "FIRST", "LAST"]
    assert [row.split()[:2] for row in rows] == [["326ca05653517d0b", "RUNNING"], ["older", "FAILED"]]


@pytest.mark.parametrize(("flags", "query"), [([], {}), (["--runs"], {"runs": "cancel"})])
def test_l21_a_reprocessing_is_cancelled_with_runs_or_without(
    api: PlayedApi, sluice: Sluice, flags: list[str], query: dict[str, str]
) -> None:
    api.play("POST", f"{ONE}/cancel", reprocess("CANCELLED", reason="re-processing x was cancelled by ada"))
    result = sluice("reprocess", "cancel", "326ca05653517d0b", "-n", "demo", *flags)
    assert result.exit_code == 0, result.stderr
    assert "was cancelled by ada" in result.stdout
    assert api.requests[0].query == query


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (["demo.flights"], "expected a partition, or --from and --to, got neither"),
        (["demo.flights", "day=1", "--from", "day=1"], "expected a partition, or --from and --to, got both"),
        (["demo.flights", "2013"], "expected key=value"),
        (["flights", "day=1"], "expected a dataset as namespace.dataset"),
        (["demo.flights", "day=1", "--only", "--upto", "flights.join"], "one of --only, --downstream and --upto"),
        (["show", "x"], "expected a namespace"),
    ],
)
def test_l21_invalid_arguments_are_refused_before_sending(
    api: PlayedApi, sluice: Sluice, asked: list[str], words: str
) -> None:
    result = sluice("reprocess", *asked)
    assert result.exit_code == 2
    assert words in result.stderr
    assert api.requests == []
