"""`reprocess`: begin one of a partition or of a range, list, show, cancel (L21)."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr
from typing import Any

import pytest

from sluice.cli import progress
from sluice.client import Client
from tests.cli.conftest import Sluice
from tests.cli.played_api import Played, PlayedApi
from tests.cli.recorded import reprocess
from tests.cli.terminal import on_a_terminal

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


def test_l21_a_partition_that_may_be_a_typing_error_is_told(api: PlayedApi, sluice: Sluice) -> None:
    view = reprocess()
    view["steps"][0]["why"] = "counts partitions of demo.flights; this partition is not registered"
    view["steps"][0]["registered"] = False
    api.play("POST", ALL, Played(201, view))
    result = sluice("reprocess", "demo.flights", "year=2013/day=99")
    assert (result.stdout, "this partition is not registered" in result.stderr) == ("326ca05653517d0b\n", True)


def test_l21_a_dry_run_prints_each_step_and_why(api: PlayedApi, sluice: Sluice) -> None:
    why = "counts partitions of demo.flights"
    step = {"step": 0, "schedule": "demo.flights.clean", "workflow": "demo.flights.clean", "after": [], "why": why}
    steps = [step | {"total": 2, "first": [DAY, DAY | {"day": "2"}], "last": []}]
    left = {"schedule": "demo.flights.bytes", "why": "counts the bytes of demo.daily, and starts by itself"}
    plan = {"partitions": 2, "total": 2, "steps": steps, "not_followed": [left]}
    api.play("POST", ALL, {"namespace": "demo", "dataset": "demo.flights", **plan})
    result = sluice("reprocess", "demo.flights", "--from", "year=2013", "--dry-run")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[0].split() == ["re-processing", "of", "demo.flights", "2", "runs"]
    assert "demo.flights.clean" in result.stdout
    assert "year=2013/day=1 to year=2013/day=2" in result.stdout
    assert why in result.stdout
    assert " ".join(result.stdout.splitlines()[-1].split()) == f"{left['schedule']} {left['why']}"
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


def test_l21_failed_runs_are_shown_with_their_errors(api: PlayedApi, sluice: Sluice) -> None:
    view = reprocess("FAILED")
    failed = {"run_id": "demo.flights.join.m3k2j9x1.0f", "partition": DAY, "reason": "exit code 1: KeyError: 'x'"}
    view["steps"][1] |= {"state": "failed", "running": 0, "failed": 1, "failures": [failed]}
    api.play("GET", ONE, view)
    result = sluice("reprocess", "show", "326ca05653517d0b", "-n", "demo")
    head, columns, row = result.stdout.splitlines()[-3:]
    assert (head, columns.split()) == ("Failed runs", ["RUN", "OF", "REASON"])
    assert row.split(maxsplit=2) == [failed["run_id"], "2013/1", failed["reason"]]


def test_l21_reprocessings_are_listed_newest_first(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[ALL] = [reprocess(), reprocess("FAILED", reprocess_id="older", failed=2)]
    result = sluice("reprocess", "list", "-n", "demo")
    head, *rows = result.stdout.splitlines()
    assert head.split() == ["REPROCESSING", "STATE", "BEGUN", "DONE", "FAILED", "OF", "FIRST", "LAST"]
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
        (["--run", "demo.flights.clean.1.x", "--schedule", "demo.flights.nightly"], "one of DATASET, --run and"),
        (["--dry-run"], "one of DATASET, --run and --schedule, got none"),
        (["--run", "demo.flights.clean.1.x", "--from", "2026-01-01"], "--from and --to without --run"),
        (["--schedule", "demo.flights.nightly", "--from", "2026-01-01"], "expected both ends of an interval"),
        (["--schedule", "demo.flights.nightly", "--from", "x", "--to", "2026-01-01"], "expected an instant with a"),
        (["demo.flights", "day=1", "--wait", "--dry-run"], "one of --wait and --dry-run, got both"),
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


RUN = "demo.flights.clean.m3k2j9x1.b90c17e4d2a35f8871e0"
OTHER = {key: value for key, value in PLAIN.items() if key != "dataset"}


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        (["--run", RUN], {"run": RUN}),
        (["begin", "--run", RUN, "--only"], {"run": RUN, "scope": "only"}),
        (["--schedule", "flights.nightly", "-n", "demo", "--from", "2026-01-01", "--to", "2026-02-01T05:00:00+01:00"],
         {"fires": {"schedule": "demo.flights.nightly", "from": "2026-01-01T00:00:00Z", "to": "2026-02-01T04:00:00Z"}}),
    ],
)  # fmt: skip
def test_l21_a_run_or_a_range_of_fires_is_sent(api: PlayedApi, sluice: Sluice, asked: list[str], sent: Any) -> None:
    api.play("POST", ALL, Played(201, reprocess()))
    result = sluice("reprocess", *asked)
    assert (result.exit_code, result.stdout) == (0, "326ca05653517d0b\n"), result.stderr
    assert [request.body for request in api.requests] == [OTHER | sent]


# -- progress ----------------------------------------------------------------------------------------------------------


def at_step(number: int, state: str = "running", whole: str = "RUNNING") -> Any:
    """The view when the steps before this one have succeeded, and this one has this state."""
    view = reprocess(whole)
    for step in view["steps"]:
        own = "succeeded" if step["step"] < number else state if step["step"] == number else "waiting"
        counts = {"waiting": 0, "running": 0, "succeeded": 0, "failed": 0, "cancelled": 0} | {own: 1}
        step.update(counts, state=own)
    return view | {name: sum(step[name] for step in view["steps"]) for name in counts}


def test_l21_wait_prints_each_step_until_the_end(api: PlayedApi) -> None:
    views = [at_step(0), at_step(0), at_step(1), at_step(2), at_step(2, "succeeded", "DONE")]
    api.play("GET", ONE, *views)
    pauses: list[float] = []
    last, output = progressing(api, pauses)
    assert last["state"] == "DONE"
    assert len(pauses) == 4, "none after the end"
    assert [line.split()[-5:] for line in output.splitlines()] == [
        [state, f"demo.flights.{name}", done, "of", "1"]
        for name in ("clean", "join", "report")
        for state, done in (("running", "0"), ("succeeded", "1"))
    ]


def progressing(api: PlayedApi, pauses: list[float]) -> tuple[Any, str]:
    output = io.StringIO()
    with redirect_stderr(output):
        return progress.until_over(Client(api.url), ONE, pause=pauses.append), output.getvalue()


@pytest.mark.parametrize(("end", "code"), [("DONE", 0), ("FAILED", 1), ("CANCELLED", 1)])
def test_l21_wait_exits_with_1_unless_all_succeeded(api: PlayedApi, sluice: Sluice, end: str, code: int) -> None:
    over = at_step(2, {"DONE": "succeeded"}.get(end, end.lower()), end)
    api.play("POST", ALL, Played(201, reprocess()))
    api.play("GET", ONE, over)
    for asked in (["demo.flights", "day=1", "--wait"], ["show", "326ca05653517d0b", "-n", "demo", "--wait"]):
        result = sluice("reprocess", *asked)
        assert result.exit_code == code, result.stderr
        assert end in result.stdout
        answer = sluice("reprocess", *asked, "--json")
        assert (answer.exit_code, json.loads(answer.stdout), answer.stderr) == (code, over, "")


def test_l21_a_failed_step_is_shown_with_its_reason(api: PlayedApi, sluice: Sluice) -> None:
    view = at_step(1, "failed", "FAILED")
    view["steps"][1]["reason"] = "0 of 1 run succeeded"
    api.play("GET", ONE, view)
    result = sluice("reprocess", "show", "326ca05653517d0b", "-n", "demo", "--wait")
    assert result.exit_code == 1
    assert "failed     demo.flights.join  1 of 1  0 of 1 run succeeded" in result.stderr


def test_l21_show_has_a_bar_of_what_is_done(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", ONE, at_step(1, "failed", "FAILED"))
    [line] = [line for line in sluice("reprocess", "show", "326ca05653517d0b", "-n", "demo").stdout.splitlines()
              if "progress" in line]  # fmt: skip
    assert line.split() == ["progress", "━" * 20 + "─" * 10, "2/3"]


def test_l21_wait_on_a_terminal_draws_a_bar(api: PlayedApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    api.play("POST", ALL, Played(201, reprocess()))
    api.play("GET", ONE, at_step(1), at_step(2, "succeeded", "DONE"))
    code, output = on_a_terminal("reprocess", "demo.flights", "day=1", "--wait")
    assert code == 0, output
    assert "1/3" in output and "3/3" in output
    assert "demo.flights.join" in output
