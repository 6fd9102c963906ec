"""How the schedules, workflows and datasets of a namespace trigger each other, as nodes and edges.

A workflow has no index of the schedules that run it, and a schedule that is off has no subscriptions. So the schedules
and workflows of the namespace are read, a bounded number of each, and the graph follows from their definitions. Beyond
the bound, subscriptions show the enabled schedules downstream.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, NamedTuple, cast

from chalicelib.core import errors, ids
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.schedule import WAKE
from chalicelib.core.states import Mode
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.partition import partition_key
from chalicelib.core.triggers.program_status import status_key
from chalicelib.core.triggers.size import size_key
from chalicelib.core.views import FromText, View, shown
from chalicelib.flow import many
from chalicelib.flow.definitions import store
from chalicelib.flow.lookup import definitions_in
from chalicelib.flow.many import Found
from chalicelib.ports import Kind, Ports

MAX_READ = 2_000  # schedules whose definitions a graph is made from
MAX_KEYS = 60  # event keys whose subscriptions are read, in a namespace with more schedules
FOLLOWERS = 100  # subscriptions that are read of each
STATUSES = ("STARTED", "COMPLETED", "FAILED", "KILLED")


class NodeOfGraphView(View):
    """A schedule, workflow or dataset. ``depth`` is its distance from the node around which the graph is, negative
    before it; ``state`` is the mode of a schedule, null for one that was not read."""

    id: str
    kind: Literal["schedule", "workflow", "dataset"]
    name: str
    depth: int | None
    state: Mode | None
    dag: str | None


class EdgeOfGraphView(FromText):
    """A schedule ``runs`` a workflow, or ``counts`` the partitions of a dataset, the statuses of a workflow, or those
    of the runs that another schedule started. A workflow ``reads`` a dataset, which is the start of the edge, or
    ``produces`` one."""

    to: str
    kind: Literal["runs", "counts", "reads", "produces"]
    text: str


class GraphView(View):
    """How schedules, workflows and datasets trigger each other. ``at_least``: there are more nodes."""

    around: str | None
    nodes: list[NodeOfGraphView]
    edges: list[EdgeOfGraphView]
    at_least: bool


class Thing(NamedTuple):
    """A node of the graph: its kind (schedule, workflow, dataset) and its full name."""

    kind: str
    name: str

    @property
    def id(self) -> str:
        return f"{self.kind}:{self.name}"


class Edge(NamedTuple):
    """``of`` is the workflow whose statuses count, if only those of the runs that ``start`` started do."""

    start: Thing
    end: Thing
    kind: str
    text: str
    of: Thing | None = None


@dataclass(slots=True)
class _Known:
    """The schedules that were read, and the edges of what was read, by both ends. ``cut``: there is more."""

    schedules: dict[str, Found] = field(default_factory=dict)
    down: dict[Thing, list[Edge]] = field(default_factory=dict)
    up: dict[Thing, list[Edge]] = field(default_factory=dict)
    started: dict[Thing, list[Edge]] = field(default_factory=dict)  # those from a schedule, by the workflow it runs
    cut: bool = False
    keys: set[str] = field(default_factory=set)

    def add(self, found: dict[str, Found]) -> None:
        for name, (state, schedule) in found.items():
            if name not in self.schedules:
                self.schedules[name] = state, schedule
                self.link(edges_of(name, schedule))

    def link(self, edges: Iterable[Edge]) -> None:
        for edge in edges:
            self.down.setdefault(edge.start, []).append(edge)
            self.up.setdefault(edge.end, []).append(edge)
            if edge.of is not None:
                self.started.setdefault(edge.of, []).append(edge)


def thing_of(text: str) -> Thing:
    """The node that a text names: ``schedule:demo.flights.clean``, or a name with three parts, which is that of a
    schedule, or with two, which is that of a dataset. Raises ``invalid`` for any other text."""
    kind, colon, name = text.rpartition(":")
    kind = kind if colon else "schedule" if name.count(".") == 2 else "dataset"
    parts = {"schedule": 2, "workflow": 2, "dataset": 1}
    if kind not in parts or name.count(".") != parts[kind]:
        raise errors.invalid(
            "around",
            "schedule:NAME, workflow:NAME or dataset:NAME, with a full name",
            text,
            "such as dataset:demo.flights",
        )
    return Thing(kind, name)


def edges_of(name: str, schedule: Schedule) -> Iterator[Edge]:
    """What a schedule runs, and what its trigger counts."""
    own = Thing("schedule", name)
    yield Edge(own, Thing("workflow", schedule.workflow), "runs", "runs")
    for leaf in tree.leaves(schedule.trigger):
        text = ids.plain_in(leaf.trigger.describe())
        for dataset in leaf.trigger.datasets():
            yield Edge(Thing("dataset", dataset.name), own, "counts", text)
        for upstream in leaf.trigger.upstreams():
            workflow = Thing("workflow", upstream.workflow)
            if upstream.schedule is None:
                yield Edge(workflow, own, "counts", text)
            else:
                yield Edge(Thing("schedule", upstream.schedule), own, "counts", text, workflow)


def edges_of_workflow(name: str, workflow: Workflow) -> Iterator[Edge]:
    """The datasets that a workflow reads, and those that it produces."""
    own, namespace = Thing("workflow", name), name.partition(".")[0]
    yield from (Edge(Thing("dataset", each), own, "reads", "reads") for each in workflow.datasets_read(namespace))
    yield from (
        Edge(own, Thing("dataset", each), "produces", "produces") for each in workflow.datasets_produced(namespace)
    )


def graph(ports: Ports, namespace: str, around: str | None, up: int, down: int, limit: int) -> GraphView:
    """The nodes at most ``up`` steps before ``around`` and ``down`` steps after it, the nearest first. Without
    ``around``, they are the first schedules by name, with what they name. Raises ``not_found`` (404) for an unknown
    node."""
    center = thing_of(around) if around is not None else None
    known = _read(ports, namespace, center)
    if center is None:
        depths: dict[Thing, int | None] = _first(known, limit)
    else:
        _check(ports, known, center)
        ahead = _walk(ports, known, center, down, limit, forward=True)
        back = _walk(ports, known, center, up, limit, forward=False)
        distances: dict[Thing, int] = {center: 0} | {thing: -depth for thing, depth in back.items()} | ahead
        nearest = sorted(distances.items(), key=lambda item: (abs(item[1]), item[0]))
        depths = {}
        depths.update(nearest)
    kept = dict(list(depths.items())[:limit])
    edges = {edge: None for thing in kept for edge in _after(known, thing, kept) if edge.end in kept}
    return {
        "around": center.id if center is not None else None,
        "nodes": [_node(known, thing, depth) for thing, depth in kept.items()],
        "edges": [shown(EdgeOfGraphView, edge, **{"from": edge.start.id, "to": edge.end.id}) for edge in edges],
        "at_least": known.cut or len(depths) > limit,
    }


def _after(known: _Known, thing: Thing, kept: Container[Thing]) -> Iterator[Edge]:
    """The edges that begin at a node. What follows from the runs of a schedule that is not shown, follows from their
    workflow."""
    yield from known.down.get(thing, ())
    for edge in known.started.get(thing, ()):
        if edge.start not in kept:
            yield edge._replace(start=thing)


def _read(ports: Ports, namespace: str, center: Thing | None) -> _Known:
    """The schedules and workflows of a namespace, up to a bound; those of the app of ``center`` come first."""
    known, names = _Known(), list[str]()
    own = center.name.rpartition(".")[0] if center is not None and center.kind != "dataset" else ""
    apps = sorted((row.name for row in definitions_in(ports, "app", namespace)), key=lambda app: (app != own, app))
    for app in apps:
        cursor: str | None = None
        while len(names) <= MAX_READ:
            page = ports.catalog.schedules(app, min(1_000, MAX_READ + 1 - len(names)), cursor)
            names += page.items
            cursor = page.cursor
            if cursor is None:
                break
        if len(names) > MAX_READ:
            known.cut = True
            break
    wanted = dict.fromkeys([*([center.name] if center is not None and center.kind == "schedule" else []), *names])
    known.add(many.schedules(ports, list(wanted)[:MAX_READ]))
    workflows = list(islice((row for app in apps for row in definitions_in(ports, "workflow", app)), MAX_READ + 1))
    known.cut |= len(workflows) > MAX_READ
    for row in workflows[:MAX_READ]:
        workflow = store.of_datasets(row)
        known.link(edges_of_workflow(row.name, workflow) if workflow is not None else ())
    return known


def _check(ports: Ports, known: _Known, center: Thing) -> None:
    if center in known.down or center in known.up:
        return
    if center.kind == "schedule" or ports.rows.get(Definition, cast(Kind, center.kind), center.name) is None:
        raise unknown(center)


def unknown(center: Thing) -> SluiceError:
    """The error for a node that does not exist."""
    return errors.not_found(center.kind, center.name, "name a schedule, workflow or dataset of the namespace")


def _walk(ports: Ports, known: _Known, center: Thing, steps: int, limit: int, *, forward: bool) -> dict[Thing, int]:
    """The nodes that follow ``center``, or lead to it, with their distance; at most one more than ``limit``."""
    found: dict[Thing, int] = {}
    level = [center]
    for depth in range(1, steps + 1):
        if forward and known.cut:
            _read_followers(ports, known, level)
        beyond = dict.fromkeys(other for thing in level for other in _beside(known, thing, forward=forward))
        level = [thing for thing in beyond if thing not in found and thing != center]
        found |= dict.fromkeys(level, depth)
        if len(found) > limit or not level:
            break
    return dict(list(found.items())[: limit + 1])


def _beside(known: _Known, thing: Thing, *, forward: bool) -> list[Thing]:
    """The nodes one step after a node, or before it."""
    if forward:
        return [edge.end for edge in (*known.down.get(thing, ()), *known.started.get(thing, ()))]
    return [edge.start for edge in known.up.get(thing, ())]


def _read_followers(ports: Ports, known: _Known, things: Iterable[Thing]) -> None:
    """Read the schedules that subscribe to the events of these nodes, for a namespace that was not read whole."""
    names: list[str] = []
    for thing in things:
        for key in _keys(known, thing):
            if key not in known.keys and len(known.keys) < MAX_KEYS:
                known.keys.add(key)
                rows = ports.catalog.subscriptions(key, FOLLOWERS, None).items
                names += [row.schedule for row in rows if row.leaf != WAKE]
    unknown = [name for name in dict.fromkeys(names) if name not in known.schedules]
    known.add(many.schedules(ports, unknown))


def _keys(known: _Known, thing: Thing) -> tuple[str, ...]:
    if thing.kind == "dataset":
        return partition_key(thing.name), size_key(thing.name)
    workflows = [thing.name] if thing.kind == "workflow" else [edge.end.name for edge in _runs(known, thing)]
    return tuple(status_key(workflow, status) for workflow in workflows for status in STATUSES)


def _runs(known: _Known, schedule: Thing) -> list[Edge]:
    return [edge for edge in known.down.get(schedule, ()) if edge.kind == "runs"]


def _first(known: _Known, limit: int) -> dict[Thing, int | None]:
    found: dict[Thing, int | None] = {}
    for name in sorted(known.schedules):
        own = Thing("schedule", name)
        after = _beside(known, own, forward=True)
        data = [edge.start for thing in after for edge in known.up[thing] if edge.kind == "reads"]
        data += [thing for workflow in after for thing in _beside(known, workflow, forward=True)]
        found |= dict.fromkeys([own, *_beside(known, own, forward=False), *after])
        found |= dict.fromkeys(thing for thing in data if thing.kind == "dataset")
        if len(found) > limit:
            break
    return found


def _node(known: _Known, thing: Thing, depth: int | None) -> NodeOfGraphView:
    found = known.schedules.get(thing.name) if thing.kind == "schedule" else None
    state = found[0].mode if found is not None else None
    dag = ids.dag_of(thing.name) if thing.kind != "dataset" and ids.is_of_dag(thing.name) else None
    return shown(NodeOfGraphView, thing, depth=depth, state=state, dag=dag)
