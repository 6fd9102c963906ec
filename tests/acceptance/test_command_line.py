"""What a user sees on the command line (O8): schedules, fires to come, the queue with reasons, the timeline of a run, a
DAG, and datasets. The commands are played on the service of this checkout."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.console.test_commands_act import Installation, ran
from tests.docs.session import session

CLEAN = "demo.flights.clean"


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Installation]:
    """Noon of Monday, 2 March 2026: one partition has come, its run runs, and a job waits for an approval."""
    with session(tmp_path) as reader:
        yield Installation(reader)


def told(text: str) -> list[str]:
    """The lines that a command prints, with single spaces."""
    return [" ".join(line.split()) for line in ran(f"sluice {text}").splitlines()]


def nodes_of(run_id: str) -> dict[str, str]:
    """The state of each node of a DAG run, as `sluice dags show` prints it."""
    words = [line.split() for line in told(f"dags show demo.flights.nightly {run_id}")]
    return {line[0]: line[1] for line in words if line and line[0] in ("prepare", "join")}


def test_o8_a_user_sees_schedules_and_what_they_wait_for(at: Installation) -> None:
    rows = {line.split()[0]: line for line in told("schedules list -n demo")[1:]}
    assert set(rows) == {CLEAN, "demo.flights.ask", "demo.flights.hourly"}
    assert rows["demo.flights.hourly"] == "demo.flights.hourly enabled demo.flights.notify every hour"
    assert list(told("schedules list -n demo --tag team=a")[1:]) == [rows["demo.flights.hourly"]]
    ran("sluice pause demo.flights.hourly")
    assert " hold " in told("schedules list hourly -n demo")[1]
    assert told("schedules list -n demo --state enabled")[1:] == [rows["demo.flights.ask"], rows[CLEAN]]


def test_o8_a_user_sees_the_fires_to_come_and_skips_one(at: Installation) -> None:
    first, second = "2026-03-02T13:00:00Z", "2026-03-02 14:00:00.000 UTC"
    page = told("preview demo.flights.hourly --count 2")
    assert [line.split()[:3] for line in page[-2:]] == [["1", "2026-03-02", "13:00:00.000"], ["2", *second.split()[:2]]]
    assert told(f"skip demo.flights.hourly {first}") == [
        "demo.flights.hourly skips",
        "2026-03-02 13:00:00.000 UTC (in 1 h)",
    ]
    at.world.pass_by("3h")
    sent = json.loads(ran("sluice runs list -s demo.flights.hourly --json"))["items"]
    assert [run["nominal_at"] for run in sent] == ["2026-03-02T15:00:00.000Z", "2026-03-02T14:00:00.000Z"], "as it said"


def test_o8_a_user_sees_the_queue_with_reasons_and_acts(at: Installation) -> None:
    job = at.waiting()
    lines = told("jobs -n demo")
    assert lines[1].split()[:2] == [job, "PENDING_CONSTRAINTS"]
    assert "approval" in lines[2]
    assert [line for line in lines if job in line] == [
        line for line in told("jobs -n demo --waits-for approval") if job in line
    ]
    assert "approval" in " ".join(told("now -n demo"))
    why = " ".join(told(f"why job {job}"))
    assert "decision wait" in why and "year=2013/day=4" in why
    ran(f"sluice jobs approve {job} --reason checked")
    at.world.settle()
    assert json.loads(ran("sluice jobs -n demo --waits-for approval --json"))["items"] == []
    assert told("runs list -s demo.flights.ask")[1].split()[:2] == [job, "STARTING"]


def test_o8_a_user_sees_the_timeline_of_a_run(at: Installation) -> None:
    run_id = at.ended()
    page = told(f"runs show {run_id}")
    assert page[0] == f"run {run_id} SUCCEEDED"
    begin = page.index("Instants")
    steps = [line.partition(" 2026-")[0] for line in page[begin + 2 :] if " 2026-" in line]
    assert steps == ["job created", "trigger met", "claimed", "start requested", "started", "ended"]
    run: dict[str, Any] = json.loads(ran(f"sluice runs show {run_id} --json"))
    order = ("created_at", "accepted_at", "claimed_at", "start_requested_at", "started_at", "ended_at")
    assert [run[name] for name in order] == sorted(run[name] for name in order)
    listed = told("runs list -n demo -a flights --workflow clean --since 1h")
    assert [line.split()[:2] for line in listed if line.startswith(run_id)] == [[run_id, "SUCCEEDED"]]


def test_o8_a_user_sees_a_dag_node_by_node_and_runs_it_again(at: Installation) -> None:
    run_id = at.ended_dag()
    assert nodes_of(run_id) == {"prepare": "SUCCEEDED", "join": "SUCCEEDED"}
    assert told("dags runs demo.flights.nightly --state succeeded")[1].split()[:2] == [run_id, "SUCCEEDED"]
    again = told(f"dags rerun demo.flights.nightly {run_id} --only join")
    assert again[0] == "run of demo.flights.nightly RUNNING"
    at.world.settle()
    assert told("dags why demo.flights.nightly")[0].startswith("dag demo.flights.nightly enabled")
    ran("sluice dags pause demo.flights.nightly")
    assert told("dags why demo.flights.nightly")[0] == "dag demo.flights.nightly hold"
    ran("sluice dags resume demo.flights.nightly")
    ran(f"sluice dags cancel demo.flights.nightly {run_id}")
    at.world.settle()
    assert nodes_of(run_id) == {"prepare": "SUCCEEDED", "join": "CANCELLED"}


def test_o8_a_user_cancels_a_dag_run_that_waits_to_begin(at: Installation) -> None:
    _, late, waiting = at.mapped()
    ran(f"sluice dags cancel demo.flights.files {waiting}")
    at.world.settle()
    assert at.world.jobs("files~") == []
    ran(f"sluice dags cancel demo.flights.files {late}")
    at.world.settle()
    assert [run.run_id for run in at.world.runs("files~")].count(waiting) == 0, "nor when there is room for it"


def test_o8_a_user_sees_datasets_and_the_life_of_a_partition(at: Installation) -> None:
    run_id = at.ended()
    assert told("datasets -n demo")[1].startswith("demo.flights year/day ")
    [_, partition] = told("datasets demo.flights")
    assert partition.startswith("year=2013/day=4 ") and partition.endswith("/raw/year=2013/day=4/")
    used = [line for line in told("datasets show demo.flights year=2013 day=4") if run_id in line]
    assert len(used) == 1 and used[0].startswith("used by") and "SUCCEEDED" in used[0]
    ran("sluice datasets register demo.flights year=2013 day=5")
    at.world.settle()
    assert [line.split()[0] for line in told("datasets demo.flights")[1:]] == ["year=2013/day=4", "year=2013/day=5"]
    assert any("year" not in line and "2013/5" in line for line in told("runs list -s demo.flights.clean"))
