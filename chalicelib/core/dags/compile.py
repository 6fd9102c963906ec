"""A DAG compiled into ordinary schedules (W4): one for its start, and one for each node. There is no second engine.

The start has the DAG's trigger. Each node waits for the statuses of its upstream nodes. It counts only runs that the
schedules of these nodes started. By the correlation key `rounds.KEY` it counts only those of the same DAG run. A node
with a join rule, or with a pattern for a result, counts one event, which Sluice applies when the rule is met
(`flow/runs/joins.py`).

The names of the nodes' schedules contain a digest of the graph, so another graph has other schedules. A DAG run that
has begun continues with the schedules of its own graph, even if a user changes the DAG.
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

# Longer than a DAG run may take, and as long as the row of an applied event is kept. After this time, no run of a
# replaced graph is active, and Sluice deletes its schedules.
RETIREMENT: Millis = 45 * DAY


@dataclass(frozen=True, slots=True)
class Compiled:
    """The schedules of a DAG: its start, with names as in the document, and its nodes, with full names, by their
    keys."""

    dag: str
    graph: str
    start: Schedule
    nodes: Mapping[str, Schedule]

    @property
    def schedules(self) -> dict[str, Schedule]:
        """All schedules, the start last: each must exist before an upstream run can reach it."""
        own = {ids.dag_node(self.graph, node): schedule for node, schedule in self.nodes.items()}
        return {**own, ids.dag_start(self.dag): self.start}


def resolved(dag: Dag, name: str) -> Dag:
    """The same DAG with the full names of workflows, which do not depend on an app. The names in its trigger and its
    constraints are resolved later, in the schedules that contain them."""
    namespace, app, _ = name.split(".")
    nodes = {
        short: node.model_copy(update={"workflow": full_name(node.workflow, namespace, app)})
        for short, node in dag.nodes.items()
    }
    return dag.model_copy(update={"nodes": nodes})


def compiled(name: str, given: Dag) -> Compiled:
    """The schedules of a DAG. Documents with the same nodes and edges have the same schedules for them."""
    dag = resolved(given, name)
    graph = graph_of(name, dag)
    namespace, app, _ = name.split(".")
    nodes = {node: _node(dag, node, graph).resolved(namespace, app) for node in dag.nodes}
    return Compiled(name, graph, dag.start(graph), nodes)


def graph_of(name: str, dag: Dag) -> str:
    """The full name of the graph of a DAG. It is the workflow of the start, and part of the names of the nodes."""
    content = resolved(dag, name).model_dump(mode="json", include={"nodes", "edges", "zone"}, by_alias=True)
    return f"{name}{ids.DAG}{ids.digest(json.dumps(content, sort_keys=True), length=8)}"


def retired(schedule: Schedule, now: Instant) -> Schedule:
    """The schedule of a node in a replaced graph, with a ``ttl`` that deletes it once no run of the graph can be
    active."""
    return schedule.model_copy(update={"ttl": iso(now + RETIREMENT), "when_done": "delete"})


def _node(dag: Dag, name: str, graph: str) -> Schedule:
    node, edges = dag.nodes[name], dag.into(name)
    document = {
        **node.model_dump(mode="json", exclude={"constraints", "when"}),
        "zone": dag.zone,
        "tags": dag.tags,
        "by": rounds.BY,
        "trigger": _trigger(dag, name, graph),
        "constraints": [*_own(node), *_fresh(dag, edges)],
    }
    try:
        return Schedule.model_validate(document)
    except ValidationError as error:
        raise from_validation(error, Schedule).under(f"nodes.{name}") from None
    except SluiceError as error:
        raise error.under(f"nodes.{name}") from None


def _trigger(dag: Dag, name: str, graph: str) -> dict[str, Any]:
    """The trigger of a node: the start of the run, the statuses of the nodes before it, or a join rule."""
    rule, edges = dag.nodes[name].when, dag.into(name)
    if not edges or rule == "always":
        return {"type": "program_status", "workflow": graph, "schedule": ids.dag_start(ids.dag_of(graph))}
    if dag.is_decided(name):
        names = [edge.from_ for edge in edges]
        before = {name: (dag.nodes[name].workflow, ids.dag_node(graph, name)) for name in names}
        return {"type": "nodes", "rule": rule, "nodes": before}
    upstream = [_leaf(dag, edge, graph) for edge in edges]
    return {"type": "all", "triggers": upstream} if len(upstream) > 1 else upstream[0]


def _leaf(dag: Dag, edge: Edge, graph: str) -> dict[str, Any]:
    started_by = ids.dag_node(graph, edge.from_)
    workflow = dag.nodes[edge.from_].workflow
    return {"type": "program_status", "workflow": workflow, "schedule": started_by, "statuses": edge.on}


def _own(node: Node) -> list[Any]:
    return [constraint.model_dump(mode="json") for constraint in node.constraints]


def _fresh(dag: Dag, edges: tuple[Edge, ...]) -> list[dict[str, Any]]:
    """One ``fresh`` constraint for each ``within`` of the edges, in their order."""
    spans: dict[str, list[str]] = {}
    for edge in edges:
        if edge.within is not None:
            spans.setdefault(edge.within, []).append(dag.nodes[edge.from_].workflow)
    return [
        {"type": "fresh", "workflows": list(dict.fromkeys(workflows)), "within": span, "on_unmet": "abort"}
        for span, workflows in spans.items()
    ]
