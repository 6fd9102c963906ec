"""`dags`: list them, see their runs, run them, run parts of a run again (W4)."""

from __future__ import annotations

import json

import pytest

from tests.cli import recorded, recorded_dags
from tests.cli.conftest import Sluice
from tests.cli.played_api import Played, PlayedApi

NAME = "demo.flights.daily"
ALL = "/v1/namespaces/demo/apps/flights/dags"
ONE = f"{ALL}/daily"
RUN = recorded_dags.dag_run()["run_id"]


def listed(*items: recorded.View) -> Played:
    return Played(200, {"items": list(items), "next_cursor": None})


def test_w4_dags_are_listed_with_their_state(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", ALL, listed(recorded_dags.dag()), listed(recorded_dags.dag()))
    for command in (["dags", "list"], ["get", "dags"]):
        result = sluice(*command, "-a", "demo.flights")
        assert result.exit_code == 0
        assert result.stdout.splitlines()[1].split()[:3] == [NAME, "enabled", "3"]


def test_w20_dags_are_filtered_by_their_state(api: PlayedApi, sluice: Sluice) -> None:
    other = recorded_dags.dag() | {"name": "demo.flights.held", "state": "hold"}
    api.play("GET", ALL, listed(recorded_dags.dag(), other))
    result = sluice("dags", "list", "-a", "demo.flights", "--state", "hold")
    assert [line.split()[0] for line in result.stdout.splitlines()[1:]] == ["demo.flights.held"]


def test_w4_a_dag_is_described_with_its_edges_and_last_runs(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", ONE, Played(200, recorded_dags.dag()))
    api.play("GET", f"{ONE}/runs", listed(recorded_dags.dag_run()))
    answer = sluice("describe", "dag", NAME).stdout
    assert "clean -> join within 6h" in answer
    assert "join -> report on COMPLETED or FAILED" in answer
    assert "1 partition of flights, one run per year/month/day" in answer
    assert "join FAILED: disk full" in " ".join(answer.split())


def test_w4_dag_runs_are_listed_with_what_they_wait_for(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", f"{ONE}/runs", listed(recorded_dags.dag_run(), recorded_dags.dag_run("SUCCEEDED", nodes={})))
    answer = sluice("dags", "runs", NAME).stdout
    assert "1/3" in answer
    assert "0/0" in answer


def test_w4_a_run_is_shown_node_by_node(api: PlayedApi, sluice: Sluice) -> None:
    again = {"what": "from", "node": "join", "by": recorded.ARN, "at": "2026-01-01T00:00:00.000Z", "round": 2}
    api.play("GET", f"{ONE}/runs/{RUN}", Played(200, recorded_dags.dag_run(reruns=[again])))
    answer = " ".join(sluice("dags", "show", NAME, RUN).stdout.split())
    assert "needs join COMPLETED, which is FAILED" in answer
    assert f"from join, by {recorded.ARN}" in answer


def of_day(day: str, run_id: str) -> recorded.View:
    return recorded_dags.dag_run(run_id=run_id, partition={"day": day})


def test_w4_without_an_id_the_newest_run_is_meant(api: PlayedApi, sluice: Sluice) -> None:
    newest = recorded_dags.dag_run()
    api.play("GET", f"{ONE}/runs", listed(newest, of_day("2026-03-01", "other")))
    api.play("GET", f"{ONE}/runs/{RUN}", Played(200, newest))
    api.play("POST", f"{ONE}/runs/{RUN}/rerun", Played(202, newest))
    shown = sluice("dags", "show", NAME)
    assert f"the newest run: {RUN}" in shown.stderr and f"run of {NAME}" in shown.stdout
    assert sluice("dags", "rerun", NAME, "--from", "join").exit_code == 0


def test_w4_the_run_of_a_day_is_found_by_its_partition(api: PlayedApi, sluice: Sluice) -> None:
    found = of_day("2026-03-01", RUN)
    runs = listed(of_day("2026-03-02", "other"), found, of_day("2026-03-01", "older"))
    api.play("GET", f"{ONE}/runs", runs, runs)
    api.play("GET", f"{ONE}/runs/{RUN}", Played(200, found))
    assert sluice("dags", "show", NAME, "--partition", "day=2026-03-01").exit_code == 0
    none = sluice("dags", "show", NAME, "--partition", "day=2026-03-09")
    assert none.exit_code == 2
    assert "expected a run of day=2026-03-09 among the newest 500, got none" in none.stderr


def test_w4_a_dag_run_is_named_once(api: PlayedApi, sluice: Sluice) -> None:
    both = sluice("dags", "show", NAME, RUN, "--partition", "day=2026-03-01")
    assert both.exit_code == 2
    assert "expected either the ID of a run or --partition, got both" in both.stderr


def test_w4_the_run_of_a_node_names_its_dag(api: PlayedApi, sluice: Sluice) -> None:
    part = {"name": NAME, "run_id": RUN, "round": 2, "node": "join"}
    node, start = (recorded.run_page(recorded.run(dag=each)) for each in (part, {**part, "node": None}))
    api.play("GET", f"/v1/runs/{recorded.JOB}", node, start)
    answer = " ".join(sluice("runs", "show", recorded.JOB).stdout.split())
    assert f"node join of {NAME}, run {RUN}, round 2" in answer
    assert f"the start of {NAME}" in " ".join(sluice("runs", "show", recorded.JOB).stdout.split())


@pytest.mark.parametrize(
    ("asked", "body"),
    [
        (["--from", "join"], {"from": "join"}),
        (["--only", "join"], {"only": "join"}),
        (["--all"], {"all": True}),
        (["--from", "load[3,17]"], {"from": "load", "elements": [3, 17]}),
        (["--only", "load[failed]"], {"only": "load", "elements": "failed"}),
    ],
)
def test_w4_a_part_is_rerun_once(api: PlayedApi, sluice: Sluice, asked: list[str], body: recorded.View) -> None:
    path = f"{ONE}/runs/{RUN}/rerun"
    api.play("POST", path, Played(503), Played(200, recorded_dags.dag_run("RUNNING")))
    result = sluice("dags", "rerun", NAME, RUN, *asked, "--json")
    assert json.loads(result.stdout)["state"] == "RUNNING"
    first, second = api.requests
    assert (first.body, second.body) == (body, body)
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"] != ""


@pytest.mark.parametrize("asked", [[], ["--all", "--only", "join"]])
def test_w4_a_rerun_needs_the_part_to_run(api: PlayedApi, sluice: Sluice, asked: list[str]) -> None:
    result = sluice("dags", "rerun", NAME, RUN, *asked)
    assert result.exit_code == 2
    assert "expected one of --from NODE, --only NODE and --all" in result.stderr
    assert api.requests == []


@pytest.mark.parametrize("given", ["load[]", "load[x]", "load[1", "[3]", "load[3]x"])
def test_w19_elements_are_named_by_their_indexes(api: PlayedApi, sluice: Sluice, given: str) -> None:
    result = sluice("dags", "rerun", NAME, RUN, "--from", given)
    assert result.exit_code == 2
    assert "such as load[3,17] or load[failed]" in " ".join(result.stderr.split())
    assert api.requests == []


def test_w19_elements_are_listed_and_counted(api: PlayedApi, sluice: Sluice) -> None:
    run_id, at = "demo.flights.daily~0a1b2c3d~load.m3k2j9x1.0123456789abcdef0123", recorded.past(minutes=3.5)
    failed = {"index": 7, "value": {"file": "a.csv"}, "state": "FAILED", "why": "disk full", "run_id": run_id}
    failed |= {"attempt": 2, "started_at": at, "ended_at": at}
    waits = {"index": 8, "value": "b.csv", "state": "PENDING", "why": "waits for others: 2 run at once", "run_id": None}
    waits |= {"attempt": None, "started_at": None, "ended_at": None}
    api.play("GET", f"{ONE}/runs/{RUN}/nodes/load/elements", listed(failed, waits))
    answer = " ".join(sluice("dags", "elements", NAME, RUN, "load").stdout.split())
    assert "load[7] FAILED" in answer
    assert '{"file": "a.csv"}' in answer
    assert "load[8] PENDING" in answer
    api.play("GET", f"{ONE}/runs", listed(recorded_dags.dag_run()))
    newest = sluice("dags", "elements", NAME, "load")
    assert "load[7] FAILED" in " ".join(newest.stdout.split())
    assert f"the newest run: {RUN}" in " ".join(newest.stderr.split())
    counts = {"count": 9, "succeeded": 3, "failed": 1, "running": 2, "waiting": 3}
    node = recorded_dags.dag_run()["nodes"]["clean"] | {"state": "RUNNING", "elements": counts}
    node["why"] = "3 of 9 elements succeeded, 1 failed"
    again = {"what": "from", "node": "load", "elements": [7], "by": recorded.ARN, "at": at, "round": 2}
    api.play("GET", f"{ONE}/runs/{RUN}", Played(200, recorded_dags.dag_run(nodes={"load": node}, reruns=[again])))
    shown = " ".join(sluice("dags", "show", NAME, RUN).stdout.split())
    assert "3 of 9 elements succeeded, 1 failed, 2 running, 3 waiting" in shown
    assert "from load[7], by" in shown


def test_w4_a_dag_is_run_switched_off_and_on(api: PlayedApi, sluice: Sluice) -> None:
    api.play("POST", f"{ONE}/run", Played(202, {"run_id": RUN, "dag": NAME}))
    assert sluice("dags", "run", NAME, "--at", "2h").stdout == f"{RUN}\n"
    assert api.requests[0].body == {"at": "2h"}
    for action, state in (("enable", "enabled"), ("disable", "disabled")):
        api.play("POST", f"{ONE}/{action}", Played(200, recorded_dags.dag() | {"state": state}))
        assert f"{NAME} is {state}" in sluice("dags", action, NAME).stderr


def test_l19_an_occurrence_of_a_dag_is_skipped_by_its_name(api: PlayedApi, sluice: Sluice) -> None:
    at = "2026-11-22T05:00:00.000Z"
    api.play("POST", f"{ONE}/skip", Played(200, recorded_dags.dag() | {"skips": [at]}))
    api.play("POST", f"{ONE}/unskip", Played(200, recorded_dags.dag()))
    done = sluice("dags", "skip", NAME, "2026-11-22T05:00:00Z")
    assert done.stdout.splitlines()[0] == f"{NAME} skips"
    assert "2026-11-22 05:00:00.000 UTC" in done.stdout
    assert sluice("dags", "unskip", NAME, "2026-11-22T05:00:00Z").stdout == f"{NAME} skips nothing\n"
    [sent, _] = [*api.sent("POST", f"{ONE}/skip"), *api.sent("POST", f"{ONE}/unskip")]
    assert sent.body == {"at": "2026-11-22T05:00:00Z"}


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("SKIPPED", "load has no elements: it is SKIPPED: needs a result of scan"),
        ("SUCCEEDED", "load has no elements: its list is empty"),
    ],
)
def test_w19_a_node_without_elements_says_why(api: PlayedApi, sluice: Sluice, state: str, said: str) -> None:
    node = recorded_dags.dag_run()["nodes"]["clean"] | {"state": state, "why": "needs a result of scan"}
    api.play("GET", f"{ONE}/runs/{RUN}/nodes/load/elements", listed())
    api.play("GET", f"{ONE}/runs/{RUN}", Played(200, recorded_dags.dag_run(nodes={"load": node})))
    assert sluice("dags", "elements", NAME, RUN, "load").stderr.strip() == said


def test_w20_cancel_names_the_active_nodes(api: PlayedApi, sluice: Sluice) -> None:
    nodes = recorded_dags.dag_run()["nodes"]
    active = recorded_dags.dag_run("RUNNING", nodes=nodes | {"join": nodes["join"] | {"state": "RUNNING"}})
    waiting = recorded_dags.dag_run("WAITING", nodes={})
    for view, kind, said in ((active, "runs", "cancelled: join"), (waiting, "jobs", "cancelled: the start")):
        api.play("GET", f"{ONE}/runs/{RUN}", Played(200, view))
        api.play("POST", f"/v1/{kind}/{RUN}/cancel", Played(202, view))
        result = sluice("dags", "cancel", NAME, RUN)
        assert (result.exit_code, result.stderr.strip()) == (0, said)


def test_w20_the_run_of_a_dag_is_cancelled_by_its_id(api: PlayedApi, sluice: Sluice) -> None:
    start = recorded.run(dag={"name": NAME, "run_id": RUN, "round": 1, "node": None})
    api.play("POST", f"/v1/runs/{RUN}/cancel", Played(202, start))
    assert sluice("runs", "cancel", RUN).stderr.split() == (
        f"the run of DAG {NAME} is being cancelled: sluice dags show {NAME} {RUN}".split()
    )


@pytest.mark.parametrize("state", ["SUCCEEDED", "FAILED"])
def test_w20_a_run_that_has_ended_is_not_cancelled(api: PlayedApi, sluice: Sluice, state: str) -> None:
    api.play("GET", f"{ONE}/runs/{RUN}", Played(200, recorded_dags.dag_run(state)))
    refused = {"code": "conflict", "message": f"expected a run of a DAG that has not ended, got one that is {state}"}
    api.play("POST", f"/v1/runs/{RUN}/cancel", Played(409, refused))
    result = sluice("dags", "cancel", NAME, RUN)
    assert result.exit_code == 1
    assert f"got one that is {state}" in " ".join(result.stderr.split())
