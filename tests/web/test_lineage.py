"""What triggers what: the graph of a namespace, and what led to a run and followed from it."""

from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.core.targets.answers import RunUpdate
from chalicelib.flow.runs import complete
from chalicelib.flow.views import graph as graphs
from chalicelib.wiring import ports
from tests.support.schedules import BY_DAY, after
from tests.web.conftest import APP, NS, Api, installation, settle_in
from tests.web.reads import counted

DAY = {"year": "2013", "month": "1", "day": "4"}
FLIGHTS = {"type": "partition", "dataset": "flights"}


class Chain:
    """``flights`` starts ``clean``, which starts ``join``; ``off`` and ``slow`` wait for ``clean``, too."""

    def __init__(self, api: Api) -> None:
        self.api = api
        settle_in(api)
        api.put(f"{APP}/workflows/join", {"target": {"type": "emr_serverless", "entry_point": "s3://code/j.py"}})
        api.schedule("clean", workflow="clean", trigger=FLIGHTS, by=BY_DAY, enabled=True)
        api.put(f"{APP}/schedules/join", after("clean", "join", by=BY_DAY) | {"enabled": True})
        slow = {"trigger": {"type": "program_status", "workflow": "clean", "count": 2}, "workflow": "notify"}
        api.put(f"{APP}/schedules/slow", slow | {"enabled": True})
        api.put(f"{APP}/schedules/off", slow | {"enabled": False})
        api.post(f"{NS}/datasets/flights/partitions", {"partition": DAY})
        api.work()
        self.clean = self.ends("clean")
        self.join = self.ends("join")

    def ends(self, name: str) -> str:
        [run] = ports().runs.runs("schedule", f"demo.flights.{name}", 9, None).items
        now = ports().clock.now()
        complete.advance_run(ports(), run.run_id, run.attempt, RunUpdate("RUNNING", now, ""))
        complete.advance_run(ports(), run.run_id, run.attempt, RunUpdate("SUCCEEDED", now, ""))
        self.api.work()
        return run.run_id

    def lineage(self, run_id: str, query: str = "") -> tuple[dict[str, Any], set[tuple[str, str, str]]]:
        view = self.api.get(f"/v1/runs/{run_id}/lineage{query}")
        assert view["at_least"] is False
        return {node["id"]: node for node in view["nodes"]}, edges(view)


def edges(view: Any) -> set[tuple[str, str, str]]:
    return {(edge["from"], edge["to"], edge["text"]) for edge in view["edges"]}


@pytest.fixture(scope="module")
def chain() -> Iterator[Chain]:
    with installation() as api:
        yield Chain(api)


def test_a_lineage_has_what_led_to_a_run(chain: Chain) -> None:
    nodes, links = chain.lineage(chain.join)
    partition = "partition:demo.flights/2013/1/4"
    assert {node: each["depth"] for node, each in nodes.items()} == {chain.join: 0, chain.clean: -1, partition: -2}
    assert links == {(chain.clean, chain.join, "COMPLETED"), (partition, chain.clean, "partition")}
    assert nodes[partition]["reason"] == "partition 2013/1/4 of demo.flights"


def test_a_lineage_has_what_followed_from_a_run(chain: Chain) -> None:
    nodes, links = chain.lineage(chain.clean, "?up=0")
    [job] = chain.api.get(f"{APP}/schedules/slow/jobs")["items"]
    assert {node: (each["kind"], each["depth"]) for node, each in nodes.items()} == {
        chain.clean: ("run", 0),
        chain.join: ("run", 1),
        job["job_id"]: ("job", 1),
    }
    assert links == {(chain.clean, chain.join, "COMPLETED"), (chain.clean, job["job_id"], "COMPLETED")}
    assert nodes[job["job_id"]]["reason"] == job["reason"]


def test_a_lineage_costs_the_same_for_many_followers(chain: Chain) -> None:
    with counted() as few:
        chain.lineage(chain.clean, "?up=0&down=1")
    for number in range(8):
        slow = {"trigger": {"type": "program_status", "workflow": "join", "count": 2}, "workflow": "notify"}
        chain.api.put(f"{APP}/schedules/more{number}", slow | {"enabled": True})
    with counted() as many:
        chain.lineage(chain.clean, "?up=0&down=1")
    assert many.calls == few.calls
    # The run; the subscribers of two statuses; their applied events, the runs and the records; the search for one job.
    assert few.total <= 9


def test_what_followed_is_known_after_a_schedule_was_replaced(chain: Chain) -> None:
    for action in ("disable", "enable"):
        chain.api.post(f"{APP}/schedules/join/{action}")
    nodes, _ = chain.lineage(chain.clean, "?up=0")
    assert nodes[chain.join]["depth"] == 1


def test_the_lineage_of_an_unknown_run_is_not_found(chain: Chain) -> None:
    gone = chain.clean[:-3] + "000"
    assert chain.api.refused(404, "GET", f"/v1/runs/{gone}/lineage")["code"] == "not_found"
    assert chain.api.refused(400, "GET", f"/v1/runs/{chain.clean}/lineage?up=6")["field"] == "up"


# -- the graph -------------------------------------------------------------------------------------------------------

CLEANED = "demo.flights.clean reaching COMPLETED"


def test_a_graph_shows_what_leads_to_a_schedule_and_follows(chain: Chain) -> None:
    view = chain.api.get(f"{NS}/graph?around=workflow:demo.flights.clean&up=2&down=2")
    depths = {node["id"]: node["depth"] for node in view["nodes"]}
    assert depths["workflow:demo.flights.clean"] == 0
    assert depths["schedule:demo.flights.clean"] == -1
    assert depths["dataset:demo.flights"] == -2
    assert depths["schedule:demo.flights.join"] == 1
    assert depths["workflow:demo.flights.join"] == 2
    found = edges(view)
    assert ("workflow:demo.flights.clean", "schedule:demo.flights.join", CLEANED) in found
    assert ("dataset:demo.flights", "schedule:demo.flights.clean", "1 partition of demo.flights") in found
    states = {node["name"]: node["state"] for node in view["nodes"] if node["kind"] == "schedule"}
    assert (states["demo.flights.off"], states["demo.flights.slow"]) == ("disabled", "enabled")
    assert view["at_least"] is False


def test_l22_a_graph_leads_from_data_through_workflows_to_data(api: Api) -> None:
    """The schedule on what a workflow writes is downstream of it. Nothing else follows: `clean` reads no `weather`."""
    emr = {"target": {"type": "emr_serverless", "entry_point": "s3://code/j.py"}}
    api.put(f"{APP}/workflows/clean", emr | {"reads": ["flights"], "produces": ["weather"]})
    api.put(f"{APP}/workflows/train", emr | {"reads": ["demo.weather"]})
    api.schedule("nightly", workflow="clean")
    api.schedule("report", trigger={"type": "partition", "dataset": "weather"}, enabled=False)
    view = api.get(f"{NS}/graph?around=schedule:demo.flights.nightly&down=4&up=1")
    depths = {node["id"]: node["depth"] for node in view["nodes"]}
    assert depths == {
        "schedule:demo.flights.nightly": 0,
        "workflow:demo.flights.clean": 1,
        "dataset:demo.weather": 2,
        "schedule:demo.flights.report": 3,
        "workflow:demo.flights.train": 3,
        "workflow:demo.flights.notify": 4,
    }
    whole = api.get(f"{NS}/graph")
    kinds = {(edge["from"], edge["to"], edge["kind"]) for edge in whole["edges"]}
    assert kinds == {
        ("schedule:demo.flights.nightly", "workflow:demo.flights.clean", "runs"),
        ("dataset:demo.flights", "workflow:demo.flights.clean", "reads"),
        ("workflow:demo.flights.clean", "dataset:demo.weather", "produces"),
        ("dataset:demo.weather", "schedule:demo.flights.report", "counts"),
        ("schedule:demo.flights.report", "workflow:demo.flights.notify", "runs"),
    }
    up = api.get(f"{NS}/graph?around=dataset:demo.weather&up=1&down=0")
    assert [node["id"] for node in up["nodes"]] == ["dataset:demo.weather", "workflow:demo.flights.clean"]


def test_nodes_of_one_workflow_lead_each_to_its_own_nodes(api: Api) -> None:
    """Both `a` and `b` run `clean`. Only `a` leads to `c`, and only `b` to `d`."""
    nodes = {name: {"workflow": "clean"} for name in "ab"} | {name: {"workflow": "notify"} for name in "cd"}
    edges_of_dag = [{"from": "a", "to": "c"}, {"from": "b", "to": "d"}]
    trigger = {"type": "partition", "dataset": "flights"}
    api.put(f"{APP}/dags/daily", {"trigger": trigger, "nodes": nodes, "edges": edges_of_dag, "enabled": True})
    api.schedule("other", workflow="clean")
    view = api.get(f"{NS}/graph")
    own = {node["id"]: node["id"].rpartition("~")[2] for node in view["nodes"] if node["dag"]}
    between = {(own[edge["from"]], own[edge["to"]]) for edge in view["edges"] if {edge["from"], edge["to"]} <= set(own)}
    assert {(start, end) for start, end in between if start in "abcd" and end in "abcd" and start} == {
        ("a", "c"),
        ("b", "d"),
    }
    clean = "workflow:demo.flights.clean"
    assert not [edge for edge in view["edges"] if edge["from"] == clean]
    # Without the schedules before it, what follows from their runs follows from the workflow.
    after = api.get(f"{NS}/graph?around={clean}&up=0&down=1")
    assert {own[edge["to"]] for edge in after["edges"] if edge["from"] == clean} == {"c", "d"}


def test_a_graph_is_cut_at_its_limit_the_nearest_first(chain: Chain) -> None:
    view = chain.api.get(f"{NS}/graph?around=dataset:demo.flights&down=10&limit=2")
    assert [node["id"] for node in view["nodes"]] == ["dataset:demo.flights", "schedule:demo.flights.clean"]
    assert (len(view["edges"]), view["at_least"]) == (1, True)


def test_a_graph_without_a_center_has_all_nodes(chain: Chain) -> None:
    view = chain.api.get(f"{NS}/graph")
    names = {node["id"] for node in view["nodes"]}
    assert {"schedule:demo.flights.off", "workflow:demo.flights.notify", "dataset:demo.flights"} <= names
    assert all(edge["from"] in names and edge["to"] in names for edge in view["edges"])


def test_a_graph_reads_a_hundred_schedules_a_call(chain: Chain) -> None:
    chain.api.get(f"{NS}/graph")  # the versions are known after this
    with counted() as tally:
        view = chain.api.get(f"{NS}/graph?around=demo.flights.join")
    # The namespace; the list of its apps, and of their schedules and workflows; one call for all states.
    assert tally.calls == {"GetItem": 1, "Query": 3, "BatchGetItem": 1}
    assert tally.units <= 1 + 3 + len(ports().catalog.schedules("demo.flights", 100, None).items)
    assert view["at_least"] is False


def test_beyond_its_bound_a_graph_follows_subscriptions(chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "MAX_READ", 1)
    view = chain.api.get(f"{NS}/graph?around=schedule:demo.flights.clean&down=3")
    names = {node["id"] for node in view["nodes"]}
    assert "schedule:demo.flights.slow" in names
    assert "schedule:demo.flights.off" not in names
    assert view["at_least"] is True


@pytest.mark.parametrize(
    ("query", "status", "field"),
    [
        ("around=pool:demo.small", 400, "around"),
        ("around=clean", 400, "around"),
        ("around=dataset:demo.gone", 404, None),
        ("around=demo.flights.gone", 404, None),
        ("up=11", 400, "up"),
        ("limit=301", 400, "limit"),
    ],
)
def test_a_wrong_graph_request_is_refused(chain: Chain, query: str, status: int, field: str | None) -> None:
    assert chain.api.refused(status, "GET", f"{NS}/graph?{query}")["field"] == field
