"""The document of a DAG: workflows as nodes, their order as edges, and the trigger that starts a run (W4).

The rules here concern one document: its names fit together, and it has no cycle. `core/dags/compile.py` compiles it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
    model_validator,
)

from chalicelib.core.constraints.registry import AnyConstraint
from chalicelib.core.definitions.each import Each
from chalicelib.core.definitions.incomplete import Incomplete
from chalicelib.core.definitions.notify import Notify
from chalicelib.core.definitions.per import Per
from chalicelib.core.definitions.schedule import CatchUp, Schedule, Timeout, TimeoutOrNever
from chalicelib.core.definitions.workflow import Deadline, RunTimeout
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
from chalicelib.core.triggers import patterns
from chalicelib.core.triggers.tree import AnyTrigger

MAX_NODES = 100  # each becomes a schedule, and one request puts them all, one after the other
MAX_EDGES = 1_000
End = Literal["COMPLETED", "FAILED", "KILLED"]
JoinRule = Literal["all_succeeded", "none_failed", "all_done", "one_succeeded", "one_failed", "always"]


class Node(Sparse):
    """One step: a workflow, and the settings of a schedule other than its trigger. Several nodes may run the same
    workflow. ``when`` is its join rule: how the nodes before it must have ended (`core/dags/join.py`). ``each`` makes a
    job for each element of a list (W19)."""

    omitted: ClassVar[Collection[str]] = ("when", "each")

    workflow: Reference
    properties: Properties = Field(default_factory=dict)
    constraints: tuple[AnyConstraint, ...] = Field(default=(), max_length=20)
    priority: int | None = Field(default=None, ge=0, le=9)
    timeout: TimeoutOrNever = Field(default_factory=Timeout)
    when: JoinRule = "all_succeeded"
    each: Each | None = None


def _one_name(given: Any) -> Any:
    """A list of names has become edges of one name each before (`_each_pair`), unless it is empty."""
    if isinstance(given, list | tuple):
        raise invalid("", "the name of a node, or a list of names", list(given), "name a node, or remove the edge")
    return given


# The end of an edge. In a document that is sent, it may be a list: it stands for one edge of each.
NodeName = Annotated[Name, BeforeValidator(_one_name, json_schema_input_type=Name | list[Name])]


class Edge(Sparse):
    """``to`` is launched after ``from`` has ended with a status in ``on``. With ``within``, only while the last success
    of the workflow of ``from`` is no older than that. With ``if``, only if the result of ``from`` matches that pattern;
    if it does not, ``to`` is skipped (W18). Either end may be a list of nodes, which stands for an edge of each."""

    omitted: ClassVar[Collection[str]] = ("if_",)

    from_: NodeName = Field(alias="from")
    to: NodeName
    on: Annotated[tuple[End, ...], Field(min_length=1), ONCE_EACH] = ("COMPLETED",)
    within: Duration | None = None
    if_: dict[str, Any] | None = Field(default=None, alias="if")

    _place: int | None = PrivateAttr(None)  # in the document that was sent, if a list before it makes that another one

    @field_validator("if_")
    @classmethod
    def _known_operators(cls, pattern: dict[str, Any] | None, info: ValidationInfo) -> dict[str, Any] | None:
        if pattern is not None and info.context != STORED:  # it was checked when it was put
            patterns.check_pattern(pattern, "")
        return pattern

    @model_validator(mode="after")
    def _is_about_successes(self) -> Edge:
        hints = {
            "within": "leave within out: it measures the age of the last success",
            "if": "leave if out: only a run that succeeds has a result",
        }
        for field, value in (("within", self.within), ("if", self.if_)):
            if value is not None and self.on != ("COMPLETED",):
                expected = f"{field} only on an edge that waits for COMPLETED alone"
                raise invalid(field, expected, list(self.on), hints[field])
        return self


def _each_pair(given: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """The edges for which one of a document stands: one for each pair of the nodes that its ends name."""
    ends = [given.get(end) if isinstance(given, Mapping) else None for end in ("from", "to")]
    if not any(isinstance(end, list | tuple) and end for end in ends):
        return (validate(given),)
    before, after = (end if isinstance(end, list | tuple) and end else [end] for end in ends)
    return tuple(validate({**given, "from": one, "to": other}) for one in before for other in after)


def _flat(groups: Sequence[Sequence[Edge]]) -> tuple[Edge, ...]:
    found = tuple((place, edge) for place, group in enumerate(groups) for edge in group)
    if len(found) > MAX_EDGES:
        raise invalid("", f"at most {MAX_EDGES} edges", len(found), "divide the DAG")
    for number, (place, edge) in enumerate(found):
        if number != place:
            edge._place = place
    return tuple(edge for _, edge in found)


Edges = Annotated[
    tuple[Annotated[Edge, WrapValidator(_each_pair)], ...], Field(max_length=MAX_EDGES), AfterValidator(_flat)
]


class DagConcurrency(Document):
    """At most ``max`` runs of a DAG at a time, each until it has ended. ``on_unmet`` says what becomes of another one,
    as for the constraint `concurrency` of a schedule."""

    max: int = Field(ge=1, le=100_000)
    on_unmet: Literal["abort", "wait", "cancel_other"] = "abort"


class Dag(Described, Sparse):
    """A graph of workflows. ``trigger`` starts a run of it; the first nodes are those to which no edge leads.

    ``by``, ``per``, ``incomplete``, ``late``, ``timeout``, ``zone`` and ``catch_up`` apply to the schedule that starts
    the DAG. ``zone`` also applies to the windows of nodes, unless a window names another.

    ``concurrency`` limits the runs of the DAG. ``run_timeout`` is how long each may take, and ``deadline`` by when it
    must have ended. ``notify`` names who gets notices of runs that fail or are late (W20).
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
    edges: Edges = ()

    @model_validator(mode="after")
    def _can_start(self, info: ValidationInfo) -> Dag:
        """The trigger and the fields about it are those of a schedule, so they have its rules."""
        if info.context != STORED:
            self.start("start", info.context)
        return self

    @model_validator(mode="after")
    def _is_a_graph(self) -> Dag:
        seen: set[tuple[str, str]] = set()
        for number, edge in self.placed():
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
        _check_each(self)
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

    def placed(self) -> Iterator[tuple[int, Edge]]:
        """The edges, each with the number of the one of the document that was sent, from 0 on."""
        for number, edge in enumerate(self.edges):
            yield number if edge._place is None else edge._place, edge

    def is_decided(self, node: str) -> bool:
        """Whether Sluice decides on a node by the states and results of those before it. Otherwise the status of a run
        reaches the node by itself: of each node before it, or of the start of the DAG."""
        rule = self.nodes[node].when
        return rule not in ("all_succeeded", "always") or any(edge.if_ is not None for edge in self.into(node))


class NewDag(Dag):
    """A DAG as a user sends it. ``enabled`` enables or disables it at once; None keeps its present mode (L2)."""

    enabled: bool | None = None

    def definition(self) -> Dag:
        found = Dag.model_validate(self.model_dump(exclude={"enabled"}, by_alias=True))
        for edge, sent in zip(found.edges, self.edges, strict=True):
            edge._place = sent._place
        return found


def _check_rules(dag: Dag) -> None:
    """Raises ``invalid`` for a join rule of a node without edges, and for an edge that the rule of its node does not
    ask."""
    for name, node in dag.nodes.items():
        if node.when != "all_succeeded" and not dag.into(name):
            hint = "leave when out: a node without edges runs when the run begins"
            raise invalid(f"nodes.{name}.when", "a node to which an edge leads", node.when, hint)
    for number, edge in dag.placed():
        rule = dag.nodes[edge.to].when
        for field, value in (("within", edge.within), ("on", list(edge.on) if edge.on != ("COMPLETED",) else None)):
            if value is not None and rule != "all_succeeded":
                hint = f"leave {field} out, or remove when from {edge.to}"
                expected = f"no {field}: the rule {rule} of {edge.to} says how the nodes before it must end"
                raise invalid(f"edges.{number}.{field}", expected, value, hint)
        if edge.if_ is not None and rule in ("one_failed", "always"):
            hint = f"leave if out, or give {edge.to} another rule"
            raise invalid(f"edges.{number}.if", f"no if: {edge.to} does not wait for successes", rule, hint)
        if edge.if_ is not None and dag.nodes[edge.from_].each is not None:
            hint = f"leave if out, or put a node after {edge.from_} that hands on a result"
            expected = "no if after a node with each: its elements have a result each, and the node has none"
            raise invalid(f"edges.{number}.if", expected, edge.from_, hint)
    _check_patterns(dag)


def _check_patterns(dag: Dag) -> None:
    """Raises ``invalid`` for more patterns than a view of a run may try."""
    work = [patterns.work(edge.if_) for edge in dag.edges if edge.if_ is not None]
    bounds = (
        (patterns.MAX_TRIGGER_LEAVES, sum(part.leaves for part in work), "leaves"),
        (patterns.MAX_OPERATORS, sum(part.operators for part in work), "operators"),
    )
    for most, got, what in bounds:
        if got > most:
            hint = "list plain values, or let a result say in one field which nodes to run"
            raise invalid("edges", f"at most {most} {what} in the patterns of all edges", got, hint)


def _check_each(dag: Dag) -> None:
    """Raises ``invalid`` for a node with ``each`` whose list comes from no node directly before it, or that may begin
    before that node has ended."""
    for name, node in dag.nodes.items():
        if node.each is None:
            continue
        before = [edge.from_ for edge in dag.into(name)]
        if node.each.of not in before:
            hint = meant(
                node.each.of, before, f"add the edge {{from: {node.each.of}, to: {name}}}, or correct the name"
            )
            known = f"a node directly before {name} ({', '.join(before) or 'there is none'})"
            raise invalid(f"nodes.{name}.each.of", known, node.each.of, hint)
        if dag.nodes[node.each.of].each is not None:
            hint = f"put a node between {node.each.of} and {name} whose result is one list"
            expected = "a node without each: the elements of one have a result each"
            raise invalid(f"nodes.{name}.each.of", expected, node.each.of, hint)
        if node.when in ("always", "one_succeeded", "one_failed"):
            hint = (
                f"write all_succeeded, none_failed or all_done: by this rule {name} may begin before its list is there"
            )
            raise invalid(
                f"nodes.{name}.when", "a rule that waits for all nodes before a node with each", node.when, hint
            )


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
