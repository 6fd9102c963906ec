"""The document of a DAG: workflows as nodes, what must have ended before what as edges, and what starts it (W4).

Pure rules about one document: names that fit together, and no cycle. `core/dags/compile.py` compiles it.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Literal

from pydantic import Field, field_validator, model_validator

from chalicelib.core import instants
from chalicelib.core.constraints.registry import AnyConstraint
from chalicelib.core.definitions.schedule import CatchUp, Timeout, TimeoutOrNever
from chalicelib.core.documents import Described, Document, Duration, Name, Properties, Reference
from chalicelib.core.errors import SluiceError, invalid
from chalicelib.core.triggers.tree import AnyTrigger

MAX_NODES = 100  # each is a schedule, put one after the other in one request
MAX_EDGES = 1_000
End = Literal["COMPLETED", "FAILED", "KILLED"]


class Node(Document):
    """One step: a workflow, and what a schedule may say of it besides its trigger. Several nodes may run the same
    workflow."""

    workflow: Reference
    properties: Properties = Field(default_factory=dict)
    constraints: tuple[AnyConstraint, ...] = Field(default=(), max_length=20)
    priority: int | None = Field(default=None, ge=0, le=9)
    timeout: TimeoutOrNever = Field(default_factory=Timeout)


class Edge(Document):
    """``to`` is launched after ``from`` has ended as ``on`` says. ``within``: only while the success of the workflow of
    ``from`` is no older than that."""

    from_: Name = Field(alias="from")
    to: Name
    on: tuple[End, ...] = Field(default=("COMPLETED",), min_length=1)
    within: Duration | None = None

    @field_validator("on")
    @classmethod
    def _once_each(cls, on: tuple[End, ...]) -> tuple[End, ...]:
        return tuple(dict.fromkeys(on))

    @model_validator(mode="after")
    def _measures_successes(self) -> Edge:
        if self.within is not None and self.on != ("COMPLETED",):
            hint = "leave within out: how fresh something is, is a question about its last success"
            raise invalid("within", "within only on an edge that waits for COMPLETED alone", list(self.on), hint)
        return self


class Dag(Described):
    """A graph of workflows. ``trigger`` starts a run of it; nodes without an edge to them are first.

    ``by``, ``zone`` and ``catch_up`` are those of the schedule that the start is; ``zone`` is also that of the nodes'
    windows unless they name one.
    """

    trigger: AnyTrigger
    by: tuple[str, ...] = Field(default=(), max_length=10)
    zone: str = "UTC"
    catch_up: CatchUp = Field(default_factory=CatchUp)
    nodes: dict[Name, Node] = Field(min_length=1, max_length=MAX_NODES)
    edges: tuple[Edge, ...] = Field(default=(), max_length=MAX_EDGES)

    @field_validator("zone")
    @classmethod
    def _is_a_zone(cls, zone: str) -> str:
        instants.zone(zone, "")
        return zone

    @model_validator(mode="after")
    def _is_a_graph(self) -> Dag:
        seen: set[tuple[str, str]] = set()
        for number, edge in enumerate(self.edges):
            for field, name in (("from", edge.from_), ("to", edge.to)):
                if name not in self.nodes:
                    near = get_close_matches(name, list(self.nodes), n=1)
                    hint = f"did you mean {near[0]!r}?" if near else "add the node, or correct the name"
                    raise invalid(f"edges.{number}.{field}", "the name of a node of this DAG", name, hint)
            if (edge.from_, edge.to) in seen:
                got = f"a second one from {edge.from_} to {edge.to}"
                raise invalid(f"edges.{number}", "one edge between two nodes", got, "put all statuses into its on")
            seen.add((edge.from_, edge.to))
        check_acyclic(self)
        return self

    def into(self, node: str) -> tuple[Edge, ...]:
        """The edges that lead to a node."""
        return tuple(edge for edge in self.edges if edge.to == node)


class NewDag(Dag):
    """A DAG as it is sent, with the wish that it be enabled at once; None keeps the state that it has (L2)."""

    enabled: bool | None = None

    def definition(self) -> Dag:
        return Dag.model_validate(self.model_dump(exclude={"enabled"}, by_alias=True))


def check_acyclic(dag: Dag) -> None:
    """Refuse a graph in which a node waits for itself, naming the way round. Every other node can be reached: going
    back from it, edge by edge, ends at one that nothing leads to."""
    left = set(dag.nodes) - set(in_order(dag))
    if not left:
        return
    # Each node that is left has an upstream that is left: going back must come round.
    way = [min(left)]
    while way.count(way[-1]) < 2:
        way.append(min(edge.from_ for edge in dag.into(way[-1]) if edge.from_ in left))
    circle = " -> ".join(reversed(way[way.index(way[-1]) :]))
    hint = "take one of these edges out: a node that waits for itself never runs, nor does what follows it"
    raise SluiceError("cycle", f"expected edges without a cycle, got {circle}", "edges", hint)


def in_order(dag: Dag) -> list[str]:
    """The nodes, each after all that lead to it; those on a cycle, and behind one, are left out."""
    waits = {node: {edge.from_ for edge in dag.into(node)} for node in dag.nodes}
    found: list[str] = []
    while ready := [node for node, upstream in waits.items() if not upstream]:
        found += ready
        waits = {node: upstream - set(ready) for node, upstream in waits.items() if node not in ready}
    return found


def downstream(dag: Dag, node: str) -> frozenset[str]:
    """A node, and all that follow it."""
    found = {node}
    for each in in_order(dag):
        if any(edge.from_ in found for edge in dag.into(each)):
            found.add(each)
    return frozenset(found)
