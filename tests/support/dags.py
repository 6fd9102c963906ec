"""Helpers for tests of DAGs: their documents, their runs, and the states of their nodes."""

from __future__ import annotations

import json
from typing import Any

from chalicelib.core.definitions.dag import NewDag
from chalicelib.flow.dags import actions, runs
from tests.support.answers import read
from tests.support.fakes import EmrRun
from tests.support.world import EMR, World, flights, full

Document = dict[str, Any]
DIAMOND = ("a -> b", "a -> c", "b -> d", "c -> d")


def edge(text: str, **fields: Any) -> Document:
    """``a -> b`` as an edge."""
    before, _, after = text.partition(" -> ")
    return {"from": before, "to": after, **fields}


def dag(*edges: str | Document, nodes: Document | None = None, **fields: Any) -> Document:
    """A DAG of these edges, started by a partition, for each day separately. Every node has a workflow with a name of
    its own.
    """
    listed = [edge(each) if isinstance(each, str) else each for each in edges]
    names = sorted({name for each in listed for name in (each["from"], each["to"])})
    made = {name: {"workflow": f"w_{name}"} for name in names} | (nodes or {})
    start = {"trigger": {"type": "partition", "dataset": "flights"}, "by": ["year", "month", "day"], "enabled": True}
    return {**start, "nodes": made, "edges": listed, **fields}


def app(document: Document, schedules: Document | None = None, **workflows: Any) -> Document:
    """An app with the DAG ``daily``, and an EMR workflow for each name that its nodes use."""
    used = {node["workflow"] for node in document["nodes"].values()}
    own = {name: {"target": EMR} for name in sorted(used) if name not in ("clean", "join", "notify")}
    return {**flights(schedules or {}, **(own | workflows)), "dags": {"daily": document}}


def put(world: World, document: Document, name: str = "daily") -> str:
    return actions.put(world.ports, full(name), NewDag.model_validate(document), "tester").did


def views(world: World, name: str = "daily") -> list[Document]:
    """The runs of a DAG, oldest first."""
    found: list[Document] = []
    cursor: str | None = None
    while True:
        page = runs.page(world.ports, full(name), 100, cursor)
        found, cursor = [*reversed(read(page.items)), *found], page.cursor
        if cursor is None:
            return found


def states(world: World, name: str = "daily") -> list[dict[str, str]]:
    """The states of the nodes, for each run."""
    return [{node: answer["state"] for node, answer in view["nodes"].items()} for view in views(world, name)]


def state(world: World, name: str = "daily") -> dict[str, str]:
    """The states of the nodes in the only run."""
    [only] = states(world, name)
    return only


def rerun(
    world: World, what: Any, node: str | None = None, request: str = "r1", name: str = "daily", elements: Any = None
) -> Document:
    """Run a part of the only run again."""
    [only] = views(world, name)
    return runs.rerun(world.ports, full(name), only["run_id"], what, node, "tester", request, elements)


def living(world: World) -> dict[str, str]:
    """The nodes whose runs are active at EMR, with the id of each at EMR."""
    found = {}
    for run in world.targets.emr.runs.values():
        if run.state in ("SUBMITTED", "RUNNING"):
            found[run.request["schedule"].rpartition("~")[2]] = run.id
    return found


def hands_on(world: World, run: EmrRun, result: Any) -> None:
    """The program of a run writes its result into the control bucket."""
    world.payloads.results[run.request["run_id"], run.request["attempt"]] = json.dumps(result).encode()


def ends(world: World, node: str, outcome: str = "SUCCESS", details: str = "", result: Any = None) -> None:
    """The run of a node ends, with this result, and all that follows happens."""
    run_id = living(world)[node]
    if result is not None:
        hands_on(world, world.targets.emr.runs[run_id], result)
    world.emr_says(run_id, "RUNNING")
    world.emr_says(run_id, outcome, details)
    world.settle()


def ran(world: World) -> list[str]:
    """The nodes that were started at EMR, in order."""
    return [run.request["schedule"].rpartition("~")[2] for run in world.targets.emr.runs.values()]
