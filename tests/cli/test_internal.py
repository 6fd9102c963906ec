"""Lists omit Sluice's internal objects unless `--all` is given, and the list says so."""

from __future__ import annotations

import json

import pytest

from chalicelib.core import ids
from sluice import names
from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi
from tests.cli.recorded import CLEAN, SCHEDULES, View, job, message, record, run, schedule

NS = "/v1/namespaces/demo"
NODE = ids.dag_node("demo.flights.daily~0a1b2c3d", "join")
START = ids.dag_start("demo.flights.daily")
NOTICE = ids.message_schedule("demo.flights", f"notice-{'0a' * 12}")
OWN = ids.message_schedule("demo.flights", "backup")


def of(make: View, field: str, schedule: str) -> View:
    return make | {"schedule": schedule, field: f"{schedule}.m3k2j9x1.0123456789abcdef0123"}


LISTS = [
    (("runs", "list"), "runs", [of(run(), "run_id", name) for name in (CLEAN, NODE, NOTICE, START)], "run_id"),
    (("jobs",), "jobs", [of(job(), "job_id", name) for name in (CLEAN, NODE, NODE, START)], "job_id"),
    (("records",), "records", [of(record("SKIPPED"), "id", name) for name in (CLEAN, NODE, NOTICE, OWN)], "id"),
]


@pytest.mark.parametrize(("command", "path", "views", "field"), LISTS, ids=[case[1] for case in LISTS])
def test_lists_leave_out_nodes_and_notices_unless_all(
    api: PlayedApi, sluice: Sluice, command: tuple[str, ...], path: str, views: list[View], field: str
) -> None:
    api.lists |= {f"{NS}/runs": [], f"{NS}/{path}": views}
    done = sluice(*command, "-n", "demo")
    assert all((view[field] in done.stdout) == (view in (views[0], views[3])) for view in views)
    assert "2 of DAG nodes and notices left out; --all shows them" in done.stderr
    assert json.loads(sluice(*command, "-n", "demo", "--json").stdout)["items"] == [views[0], views[3]]
    everything = sluice(*command, "-n", "demo", "--all")
    assert all(view[field] in everything.stdout for view in views)
    assert "left out" not in everything.stderr


def test_a_list_reads_on_when_a_page_was_left_out(api: PlayedApi, sluice: Sluice) -> None:
    nodes = [of(run(), "run_id", NODE) for _ in range(30)]
    api.lists[f"{NS}/runs"] = [*nodes, *(run(f"{CLEAN}.m3k2j9x1.{n:020d}") for n in range(200))]
    done = sluice("runs", "list", "-n", "demo", "--limit", "5")
    assert done.stdout.count(CLEAN) == 5
    assert len(api.requests) == 2
    assert "5 shown" in done.stderr


def test_naming_a_node_lists_its_own_runs(api: PlayedApi, sluice: Sluice) -> None:
    short = NODE.rpartition(".")[2]
    path = names.path_of(names.SCHEDULE, f"demo.flights.{short}")
    api.lists[f"{path}/runs"] = [of(run(), "run_id", NODE)]
    assert NODE in sluice("runs", "list", "-s", NODE).stdout


def test_schedules_of_a_dag_are_left_out_of_schedules(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[SCHEDULES] = [schedule(), *(schedule(name) | {"dag": "demo.flights.daily"} for name in (START, NODE))]
    done = sluice("get", "schedules", "-n", "demo", "-a", "flights")
    assert (CLEAN in done.stdout, "daily" in done.stdout) == (True, False)
    assert "2 of DAG nodes and notices left out" in done.stderr
    assert "demo.flights.daily/join" in sluice("get", "schedules", "-n", "demo", "-a", "flights", "--all").stdout


def test_notices_are_left_out_of_messages(api: PlayedApi, sluice: Sluice) -> None:
    notice = f"demo.flights.notice-{'0a' * 12}"
    api.lists["/v1/namespaces/demo/apps/flights/messages"] = [message(), message(notice)]
    for command in (("message", "list"), ("get", "messages", "-n", "demo")):
        done = sluice(*command, "-a", "demo.flights")
        assert ("backup" in done.stdout, notice in done.stdout) == (True, False)
        assert notice in sluice(*command, "-a", "demo.flights", "--all").stdout


def test_the_command_knows_the_names_that_the_service_makes() -> None:
    assert names.is_internal(f"demo.flights.~{ids.NOTICE}{ids.digest('w', 'c', 's', length=24)}")
    assert [names.is_internal(name) for name in (NODE, START, OWN, CLEAN)] == [True, False, False, False]
    assert not names.is_internal("demo.flights.~notice-board")
