"""`runs rerun`: what becomes of the downstream is asked on a terminal, or said by a flag (L21, W15)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import Sluice
from tests.cli.played_api import Played, PlayedApi
from tests.cli.recorded import JOB, reprocess
from tests.cli.terminal import on_a_terminal

ALL = "/v1/namespaces/demo/reprocess"
RERUN = f"/v1/runs/{JOB}/rerun"


def plan(*names: str) -> Any:
    steps = [
        {"step": number, "schedule": f"demo.flights.{name}", "workflow": f"demo.flights.{name}", "after": [],
         "why": f"why of {name}", "total": 1, "first": [{"day": "1"}], "last": []}
        for number, name in enumerate(names)
    ]  # fmt: skip
    start = {"dataset": None, "run": JOB, "fires": None}
    return {"namespace": "demo", **start, "partitions": 1, "total": len(steps), "steps": steps, "not_followed": []}


@pytest.fixture
def asking(api: PlayedApi, monkeypatch: pytest.MonkeyPatch) -> PlayedApi:
    """An API in which two schedules follow the run."""
    monkeypatch.setenv("TERM", "xterm-256color")
    api.play("POST", ALL, plan("clean", "join", "report"), Played(201, reprocess()))
    api.play("POST", RERUN, {"job_id": f"{JOB}2"})
    return api


def sent(api: PlayedApi) -> list[tuple[str, Any]]:
    """What was begun: the path, and the scope."""
    return [
        (request.path, (request.body or {}).get("scope"))
        for request in api.requests
        if not (request.body or {}).get("dry_run")
    ]


@pytest.mark.parametrize(("flag", "scope"), [("--downstream", "downstream"), ("--only", "only")])
def test_l21_a_flag_says_what_becomes_of_the_downstream(api: PlayedApi, sluice: Sluice, flag: str, scope: str) -> None:
    api.play("POST", ALL, Played(201, reprocess()))
    result = sluice("runs", "rerun", JOB, flag)
    assert (result.exit_code, result.stdout) == (0, "326ca05653517d0b\n"), result.stderr
    [request] = api.requests
    assert request.body == {"run": JOB, "scope": scope}
    assert request.headers["idempotency-key"]
    assert json.loads(sluice("runs", "rerun", JOB, flag, "--json").stdout)["reprocess_id"] == "326ca05653517d0b"


def test_l21_a_script_without_a_flag_reruns_as_before(api: PlayedApi, sluice: Sluice) -> None:
    api.play("POST", RERUN, {"job_id": f"{JOB}2"})
    assert sluice("runs", "rerun", JOB).exit_code == 0
    assert sent(api) == [(RERUN, None)]


def test_l21_both_flags_of_a_rerun_are_refused(api: PlayedApi, sluice: Sluice) -> None:
    result = sluice("runs", "rerun", JOB, "--only", "--downstream")
    assert (result.exit_code, "expected one of --only and --downstream" in result.stderr) == (2, True)
    assert api.requests == []


@pytest.mark.parametrize(
    ("answer", "code", "begun"),
    [
        ("d\n", 0, [(ALL, "downstream")]),
        ("Downstream\n", 0, [(ALL, "downstream")]),
        ("o\n", 0, [(ALL, "only")]),
        ("n\n", 1, []),
        ("\n", 1, []),
    ],
)
def test_l21_rerun_asks_on_a_terminal_what_follows(asking: PlayedApi, answer: str, code: int, begun: Any) -> None:
    got, output = on_a_terminal("runs", "rerun", JOB, answer=answer)
    assert (got, sent(asking)) == (code, begun), output
    assert "why of report" in output
    assert "2 schedules follow this run" in output
    assert ("nothing was changed" in output) == (code == 1)


@pytest.mark.parametrize("option", ["--downstream", "--only", "--json"])
def test_l21_rerun_with_its_answer_in_advance_asks_nothing(asking: PlayedApi, option: str) -> None:
    asking.play("POST", ALL, Played(201, reprocess()))
    code, output = on_a_terminal("runs", "rerun", JOB, option)
    assert (code, len(sent(asking)), "follow this run" in output) == (0, 1, False)


def test_l21_rerun_asks_nothing_if_nothing_follows(asking: PlayedApi) -> None:
    asking.play("POST", ALL, plan("clean"))
    code, output = on_a_terminal("runs", "rerun", JOB)
    assert (code, sent(asking)) == (0, [(RERUN, None)]), output


def test_l21_rerun_of_a_dag_node_asks_nothing(asking: PlayedApi) -> None:
    asking.refuse("POST", ALL, 400, "invalid", "expected a run outside DAGs", field="run")
    code, output = on_a_terminal("runs", "rerun", JOB)
    assert (code, sent(asking)[-1]) == (0, (RERUN, None)), output
