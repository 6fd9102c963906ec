"""The document of a DAG: workflows as nodes, their order as edges, and the trigger that starts a run (W4).

The rules here concern one document: its names fit together, and it has no cycle. `core/dags/compile.py` compiles it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, ValidationError, ValidationInfo, model_validator

from chalicelib.core.constraints.registry import AnyConstraint
from chalicelib.core.definitions.incomplete import Incomplete
from chalicelib.core.definitions.per import Per
from chalicelib.core.definitions.schedule import CatchUp, Schedule, Timeout, TimeoutOrNever
from chalicelib.core.definitions.workflow import Deadline, Notify, RunTimeout
from chalicelib.core.documents import (
    ONCE_EACH,
    STORED,
    Described,
    Document,
    Duration,
    Name,
    Properties,
    Reference,
    Sparse,
    Zone,
)
from chalicelib.core.errors import SluiceError, from_validation, invalid, meant
from chalicelib.core.triggers.tree import AnyTrigger

MAX_NODES = 100  # each becomes a schedule, and one request puts them all, one after the other
MAX_EDGES = 1_000
End = Literal["COMPLETED", "FAILED", "KILLED"]
JoinRule = Literal["all_succeeded", "none_failed", "all_done", "one_succeeded", "one_failed", "always"]


class Node(Sparse):
    """One step: a workflow, and the settings of a schedule other than its trigger. Several nodes may run the same
    workflow. ``when`` is its join rule: how the nodes before it must have ended (`core/dags/join.py`)."""

    omitted: ClassVar[Collection[str]] = ("when",)

    workflow: Reference
    properties: Properties = Field(default_factory=dict)
    constraints: tuple[AnyConstraint, ...] = Field(default=(), max_length=20)
    priority: int | None = Field(default=None, ge=0, le=9)
    timeout: TimeoutOrNever = Field(default_factory=Timeout)
    when: JoinRule = "all_succeeded"


class Edge(Document):
    """``to`` is launched after ``from`` has ended with a status in ``on``. With ``within``, only while the last success
    of the workflow of ``from`` is no older than that."""

    from_: Name = Field(alias="from")
    to: Name
    on: Annotated[tuple[End, ...], Field(min_length=1), ONCE_EACH] = ("COMPLETED",)
    within: Duration | None = None

    @model_validator(mode="after")
    def _measures_successes(self) -> Edge:
        if self.within is not None and self.on != ("COMPLETED",):
            hint = "leave within out: it measures the age of the last success"
            raise invalid("within", "within only on an edge that waits for COMPLETED alone", list(self.on), hint)
        return self


class DagConcurrency(Document):
    """At most ``max`` runs of a DAG at a time, each until it has ended. ``on_unmet`` says what becomes of another one,
    as for the constraint `concurrency` of a schedule."""

    max: int = Field(ge=1, le=100_000)
    on_unmet: Literal["abort", "wait", "cancel_other"] = "abort"


class Dag(Described, Sparse):
    """A graph of workflows. ``trigger`` starts a run of it; the first nodes are those to which no edge leads.

    ``by``, ``per``, ``incomplete``, ``late``, ``timeout``, ``zone`` and ``catch_up`` apply to the schedule that starts
    the DAG. ``zone`` also applies to the windows of nodes, unless a window names another.

    ``concurrency`` limits the runs of the DAG, ``run_timeout`` is how long each may take, ``deadline`` by when each
    must have ended, and ``notify`` who is told of a failed or late one (W20).
    """

    omitted: ClassVar[Collection[str]] = (
        "per", "incomplete", "late", "timeout", "concurrency", "deadline", "run_timeout", "notify",
    )  # fmt: skip

    trigger: AnyTrigger
    by: tuple[str, ...] = Field(default=(), max_length=10)
    per: Per | None = None
    incomplete: Incomplete | None = None
    late: Literal["ignore", "again"] = "ignore"
    timeout: TimeoutOrNever = Field(default_factory=Timeout)
    zone: Zone = "UTC"
    catch_up: CatchUp = Field(default_factory=CatchUp)
    concurrency: DagConcurrency | None = None
    run_timeout: RunTimeout | None = None
    deadline: Deadline | None = None
    notify: tuple[Notify, ...] = Field(default=(), max_length=5)
    nodes: dict[Name, Node] = Field(min_length=1, max_length=MAX_NODES)
    edges: tuple[Edge, ...] = Field(default=(), max_length=MAX_EDGES)

    @model_validator(mode="after")
    def _can_start(self, info: ValidationInfo) -> Dag:
        """The trigger and the fields about it are those of a schedule, so they have its rules."""
        if info.context != STORED:
            self.start("start", info.context)
        return self

    @model_validator(mode="after")
    def _is_a_graph(self) -> Dag:
        seen: set[tuple[str, str]] = set()
        for number, edge in enumerate(self.edges):
            for field, name in (("from", edge.from_), ("to", edge.to)):
                if name not in self.nodes:
                    hint = meant(name, self.nodes, "add the node, or correct the name")
                    raise invalid(f"edges.{number}.{field}", "the name of a node of this DAG", name, hint)
            if (edge.from_, edge.to) in seen:
                got = f"a second one from {edge.from_} to {edge.to}"
                raise invalid(f"edges.{number}", "one edge between two nodes", got, "put all statuses into its on")
            seen.add((edge.from_, edge.to))
        check_acyclic(self)
        _check_rules(self)
        return self

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        """A stored document may name a zone that the present rules no longer have. One that is sent may not."""
        return super().model_validate(obj, **({"context": STORED} if cls is Dag else {}) | options)

    def start(self, workflow: str, context: Any = STORED) -> Schedule:
        """The schedule that starts a run of the DAG by running ``workflow``. Raises `SluiceError` (``invalid``) if its
        fields do not fit together."""
        own = {name: getattr(self, name) for name in Dag.model_fields if name not in ("nodes", "edges", "concurrency")}
        limit = self.concurrency
        own["constraints"] = [{"type": "concurrency", **limit.model_dump()}] if limit is not None else []
        try:
            return Schedule.model_validate({**own, "workflow": workflow}, context=context)
        except ValidationError as error:
            raise from_validation(error, Schedule) from None

    def into(self, node: str) -> tuple[Edge, ...]:
        """The edges that lead to a node."""
        return tuple(edge for edge in self.edges if edge.to == node)


class NewDag(Dag):
    """A DAG as a user sends it. ``enabled`` enables or disables it at once; None keeps its present mode (L2)."""

    enabled: bool | None = None

    def definition(self) -> Dag:
        return Dag.model_validate(self.model_dump(exclude={"enabled"}, by_alias=True))


def _check_rules(dag: Dag) -> None:
    """Raises ``invalid`` for a join rule of a node without edges, and for an edge that says more than the rule of its
    node."""
    for name, node in dag.nodes.items():
        if node.when != "all_succeeded" and not dag.into(name):
            hint = "leave when out: a node without edges runs when the run begins"
            raise invalid(f"nodes.{name}.when", "a node to which an edge leads", node.when, hint)
    for number, edge in enumerate(dag.edges):
        rule = dag.nodes[edge.to].when
        for field, value in (("within", edge.within), ("on", list(edge.on) if edge.on != ("COMPLETED",) else None)):
            if value is not None and rule != "all_succeeded":
                hint = f"leave {field} out, or remove when from {edge.to}"
                expected = f"no {field}: the rule {rule} of {edge.to} says how the nodes before it must end"
                raise invalid(f"edges.{number}.{field}", expected, value, hint)


def check_acyclic(dag: Dag) -> None:
    """Raises ``cycle`` for a graph in which a node waits for itself, with the nodes of the cycle. Without a cycle every
    node can be reached, because the edges lead back from each node to one without upstream nodes."""
    unordered = set(dag.nodes) - set(in_order(dag))
    if not unordered:
        return
    # Each of these nodes has an upstream node among them, so the path back must meet itself.
    path = [min(unordered)]
    while path.count(path[-1]) < 2:
        path.append(min(edge.from_ for edge in dag.into(path[-1]) if edge.from_ in unordered))
    cycle = " -> ".join(reversed(path[path.index(path[-1]) :]))
    hint = "remove one of these edges: a node that waits for itself never runs, nor do the nodes after it"
    raise SluiceError("cycle", f"expected edges without a cycle, got {cycle}", "edges", hint)


def in_order(dag: Dag) -> list[str]:
    """The nodes, each after all its upstream nodes. Nodes on a cycle and downstream of one are left out."""
    waits = {node: {edge.from_ for edge in dag.into(node)} for node in dag.nodes}
    found: list[str] = []
    while ready := [node for node, upstream in waits.items() if not upstream]:
        found += ready
        waits = {node: upstream - set(ready) for node, upstream in waits.items() if node not in ready}
    return found


def downstream(dag: Dag, node: str) -> frozenset[str]:
    """A node and all its downstream nodes."""
    found = {node}
    for candidate in in_order(dag):
        if any(edge.from_ in found for edge in dag.into(candidate)):
            found.add(candidate)
    return frozenset(found)
