"""A DAG compiled into ordinary schedules (W4): one for its start, one for each node. There is no second engine.

The start has the DAG's trigger. Each node waits for the statuses of what leads to it: only for runs which the schedule
of that node started, and, by the correlation key `dag_keys.KEY`, only for those of the same run of the DAG.

The nodes live under a digest of the graph, so another graph is other schedules: a run that has begun goes on with those
of its own, whatever the DAG has become meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from chalicelib.core import ids
from chalicelib.core.dags import rounds
from chalicelib.core.definitions.dag import Dag, Edge, Node
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import SluiceError, from_validation
from chalicelib.core.instants import DAY, Instant, Millis, iso
from chalicelib.core.names import full_name

# Longer than a run of a DAG may take, and as long as the mark of an event that was applied: by then nothing is left of
# the runs of a graph that was replaced, and its schedules go.
RETIREMENT: Millis = 45 * DAY


@dataclass(frozen=True, slots=True)
class Compiled:
    """The schedules of a DAG: its start, as it is sent, and its nodes by the names in the document, with full names."""

    dag: str
    graph: str
    start: Schedule
    nodes: Mapping[str, Schedule]

    @property
    def schedules(self) -> dict[str, Schedule]:
        """All of them, what is downstream first: none may be reached before it is there."""
        own = {ids.dag_node(self.graph, node): schedule for node, schedule in self.nodes.items()}
        return {**own, ids.dag_start(self.dag): self.start}


def resolved(dag: Dag, name: str) -> Dag:
    """The same DAG with the full names of workflows, so that it means the same wherever it is read. Its trigger and its
    constraints are made full with the schedules that they become part of."""
    namespace, app, _ = name.split(".")
    nodes = {
        short: node.model_copy(update={"workflow": full_name(node.workflow, namespace, app)})
        for short, node in dag.nodes.items()
    }
    return dag.model_copy(update={"nodes": nodes})


def compiled(name: str, given: Dag) -> Compiled:
    """The schedules of a DAG. Two documents with the same nodes and edges have the same schedules for these."""
    dag = resolved(given, name)
    graph = graph_of(name, dag)
    namespace, app, _ = name.split(".")
    nodes = {node: _node(dag, node, graph).resolved(namespace, app) for node in dag.nodes}
    start = Schedule.model_validate({**dag.model_dump(mode="json", exclude={"nodes", "edges"}), "workflow": graph})
    return Compiled(name, graph, start, nodes)


def graph_of(name: str, dag: Dag) -> str:
    """The full name of the graph of a DAG: what its start stands for, and what its nodes live under."""
    content = resolved(dag, name).model_dump(mode="json", include={"nodes", "edges", "zone"}, by_alias=True)
    return f"{name}{ids.DAG}{ids.digest(json.dumps(content, sort_keys=True), length=8)}"


def retired(schedule: Schedule, now: Instant) -> Schedule:
    """A node of a graph that is the DAG's no more: it goes by itself when nothing of its runs can be left."""
    return schedule.model_copy(update={"ttl": iso(now + RETIREMENT), "when_done": "delete"})


def _node(dag: Dag, name: str, graph: str) -> Schedule:
    node, edges = dag.nodes[name], dag.into(name)
    waits = [_leaf(dag, edge, graph) for edge in edges]
    begins = {"type": "program_status", "workflow": graph, "schedule": ids.dag_start(ids.dag_of(graph))}
    document = {
        **node.model_dump(mode="json", exclude={"constraints"}),
        "zone": dag.zone,
        "by": rounds.BY,
        "trigger": {"type": "all", "triggers": waits} if len(waits) > 1 else waits[0] if waits else begins,
        "constraints": [*_own(node), *_fresh(dag, edges)],
    }
    try:
        return Schedule.model_validate(document)
    except ValidationError as error:
        raise from_validation(error).under(f"nodes.{name}") from None
    except SluiceError as error:
        raise error.under(f"nodes.{name}") from None


def _leaf(dag: Dag, edge: Edge, graph: str) -> dict[str, Any]:
    started_by = ids.dag_node(graph, edge.from_)
    workflow = dag.nodes[edge.from_].workflow
    return {"type": "program_status", "workflow": workflow, "schedule": started_by, "statuses": edge.on}


def _own(node: Node) -> list[Any]:
    return [each.model_dump(mode="json") for each in node.constraints]


def _fresh(dag: Dag, edges: tuple[Edge, ...]) -> list[dict[str, Any]]:
    """One constraint for each span, in the order in which the edges name them."""
    spans: dict[str, list[str]] = {}
    for edge in edges:
        if edge.within is not None:
            spans.setdefault(edge.within, []).append(dag.nodes[edge.from_].workflow)
    return [
        {"type": "fresh", "workflows": list(dict.fromkeys(workflows)), "within": span, "on_unmet": "abort"}
        for span, workflows in spans.items()
    ]
