"""What users do to DAGs: put, view, delete (W4). A DAG is its document and the schedules to which it is compiled.

A put first writes the nodes of the new graph. Then one transaction writes the document and the start schedule. Last,
the nodes of the former graph are retired. So the same request finishes a put that was interrupted at any point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from chalicelib.core import errors, ids
from chalicelib.core.dags import compile
from chalicelib.core.dags.compile import Compiled
from chalicelib.core.definitions.dag import Dag, NewDag
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import iso
from chalicelib.core.rows import authors
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.rows.stops import marks_of
from chalicelib.core.schedules import effect, past, relative
from chalicelib.core.triggers import tree
from chalicelib.core.views import stored
from chalicelib.core.writes import Put, PutDefinition, RemoveDefinition, Write
from chalicelib.flow import lookup, many
from chalicelib.flow.definitions import references, store
from chalicelib.flow.definitions.store import Change
from chalicelib.flow.fires import calendars as of_fires
from chalicelib.flow.schedules import actions, over
from chalicelib.flow.schedules.actions import MayChange
from chalicelib.flow.schedules.stops import view_of
from chalicelib.ports import MAX_CONFLICTS, Ports

Body = Mapping[str, Any]
T = TypeVar("T")


def put(
    ports: Ports,
    name: str,
    document: NewDag,
    by: str,
    if_match: int | None = None,
    checked: bool = False,
    may_put: MayChange = actions.always,
) -> Change:
    """Create or replace a DAG. Runs that have begun continue with their graph. An identical document changes nothing.

    ``checked`` means that the caller has checked the references, together with other documents of the same deploy.
    Raises SluiceError for a bad document or reference, if ``if_match`` is not the present version, and if ``may_put``
    does not allow the put in the present state of the start.
    """
    dag = document.definition()
    made, body = compile.compiled(name, dag), body_of(dag)
    store.check_size(body)
    if not checked:
        _check_sent(ports, dag, made, body, document.enabled)
    for _ in range(MAX_CONFLICTS):
        old = ports.rows.get(Definition, "dag", name)
        if if_match is not None and if_match != (old.version if old else None):
            raise errors.changed_meanwhile(f"dag {name}")
        if old is not None and is_same(ports, old, body, made, document.enabled):
            tidy(ports, name, by)
            return Change("unchanged", old.version)
        for node, schedule in made.nodes.items():
            _put(ports, ids.dag_node(made.graph, node), schedule, enabled=True, by=by)
        now = ports.clock.now()
        new = _replacing(old, Definition("dag", name, body, 1, now, by))
        graph = Definition("dag", made.graph, body_of(compile.resolved(dag, name)), 1, now, by)
        along: list[Write] = [PutDefinition(new, old.version if old else None, before=old), Put(graph)]
        if _put(ports, ids.dag_start(name), made.start, document.enabled, by, along, may_put):
            tidy(ports, name, by)
            return Change("replaced" if old else "created", new.version)
    raise errors.changed_meanwhile(f"dag {name}")


def _check_sent(ports: Ports, dag: Dag, made: Compiled, body: Body, enabled: bool | None) -> None:
    check(ports, dag, made)
    row = ports.rows.get(Definition, "dag", made.dag)
    if row is None or not is_same(ports, row, body, made, enabled):
        check_past(ports, dag, made, enabled)


def _replacing(old: Definition | None, new: Definition) -> Definition:
    """The row of a DAG in the place of the stored one."""
    if old is None:
        return new
    written = authors.after(old, old.document, new.document, new.by)
    return replace(new, version=old.version + 1, authors=written, unknown=old.unknown)


def check(ports: Ports, dag: Dag, made: Compiled) -> None:
    """Raise SluiceError if a DAG names an unknown workflow or triggers itself, or if a node with downstreams has a
    target without a lifecycle."""
    # First the grants: an error must not tell the target of a workflow that is not granted.
    workflows = _of_nodes(made, partial(references.granted_workflow, ports))
    for number, edge in dag.placed():
        target = workflows[edge.from_].target
        if not target.reports_end(target.model_dump(mode="json")):
            expected = "a node whose target reports how its runs end"
            got = f"{edge.from_}, whose {target.type} target reports none"
            hint = "remove the edges from this node, or give its workflow a target with a lifecycle"
            raise errors.invalid(f"edges.{number}.from", expected, got, hint)
    for name, mapped in dag.nodes.items():
        target = workflows[name].target
        if mapped.each is not None and not target.reports_end(target.model_dump(mode="json")):
            expected = "a workflow whose target reports how its runs end: the node is done when each element is"
            hint = "give the workflow a target with a lifecycle, or send the whole list to one run"
            raise errors.invalid(f"nodes.{name}.workflow", expected, f"one with a {target.type} target", hint)
    _of_nodes(made, partial(references.check, ports))
    starts = [(ids.dag_node(made.graph, node), schedule.workflow) for node, schedule in made.nodes.items()]
    namespace, app, _ = made.dag.split(".")
    start = made.start.resolved(namespace, app, ports.clock.now())
    references.check(ports, ids.dag_start(made.dag), start, starts)
    for each, schedule in made.nodes.items():
        references.check_registered(ports, start, schedule.workflow, workflows[each])


def _of_nodes(made: Compiled, read: Callable[[str, Schedule], T]) -> dict[str, T]:
    """What a check returns for the schedule of each node. Its errors name the node."""
    found = {}
    for node, schedule in made.nodes.items():
        try:
            found[node] = read(ids.dag_node(made.graph, node), schedule)
        except SluiceError as error:
            raise error.under(f"nodes.{node}") from None
    return found


def check_past(ports: Ports, dag: Dag, made: Compiled, enabled: bool | None) -> None:
    """Raise ``invalid`` if the trigger of a DAG that is created, changed or enabled never fires any more."""
    found = over.read(ports, ids.dag_start(made.dag), made.start, enabled)
    alive = found.alive if ports.rows.get(Definition, "dag", made.dag) is not None else None
    old = found.old.definition if found.old is not None and not effect.begins(alive, enabled) else None
    past.check(found.new.definition, found.now, old)


def is_same(ports: Ports, old: Definition, body: Body, made: Compiled, enabled: bool | None) -> bool:
    """Whether a sent DAG equals the stored one, and its start has the requested mode."""
    start = ids.dag_start(made.dag)
    schedule_state = ports.rows.get(ScheduleState, start)
    if schedule_state is None or not schedule_state.exists or dict(old.document) != dict(body):
        return False
    has_mode = enabled is None or schedule_state.mode == "completed" or enabled == (schedule_state.mode != "disabled")
    stored = lookup.stored(ports, schedule_state)
    return has_mode and stored is not None and relative.is_same(made.start, start, stored)


def dag_view(ports: Ports, name: str) -> dict[str, Any]:
    """A stored DAG, with the mode and the skips of its start and the names of its present schedules."""
    row, schedule_state = existing(ports, name)
    made = compile.compiled(name, Dag.model_validate(row.document))
    return {
        **stored(name, "dag", row.document, row.version, row),
        "state": schedule_state.mode,
        "enabled": schedule_state.mode == "enabled",
        "stops": [view_of(stop) for stop in marks_of(schedule_state)],
        "skips": [iso(at) for at in schedule_state.skips],
        "triggered_by": ids.plain_in(tree.describe(made.start.trigger)),
        "schedules": sorted(made.schedules),
    }


def existing(ports: Ports, name: str) -> tuple[Definition, ScheduleState]:
    """A DAG and the schedule state of its start. Raises ``not_found`` (404) if it does not exist."""
    row = store.get(ports, "dag", name)
    return row, lookup.existing(ports, ids.dag_start(name))[0]


def delete(
    ports: Ports, name: str, by: str, if_match: int | None = None, may_delete: MayChange = actions.always
) -> None:
    """Delete a DAG and its schedules: the start first, the document last, so a repeat finishes it.

    Once this returns, no job of the DAG starts any more; active runs continue. If ``may_delete`` does not allow it in
    the present state of the start, the DAG stays.
    """
    row = store.get(ports, "dag", name)
    if if_match is not None and if_match != row.version:
        raise errors.changed_meanwhile(f"dag {name}")
    for schedule in sorted(owned(ports, name)):  # the name of the start sorts before the names of the nodes
        try:
            may = may_delete if schedule == ids.dag_start(name) else actions.always
            if not actions.delete(ports, schedule, by, may_delete=may):
                return
        except SluiceError as error:
            if error.code != "not_found":  # another request has deleted it
                raise
    if ports.ledger.commit([RemoveDefinition(row)]) is not None and ports.rows.get(Definition, "dag", name) is not None:
        raise errors.changed_meanwhile(f"dag {name}")


def owned(ports: Ports, name: str) -> list[str]:
    """The names of the schedules of a DAG, including those of its former graphs."""
    app, _, short = name.rpartition(".")
    return lookup.schedules_of(ports, app, beginning=f"{short}{ids.DAG}")


def tidy(ports: Ports, name: str, by: str) -> None:
    """Give the nodes of former graphs a ``ttl``, and remove it from nodes of the present graph."""
    row = ports.rows.get(Definition, "dag", name)
    if row is None:
        return
    made = compile.compiled(name, Dag.model_validate(row.document))
    nodes = [schedule for schedule in owned(ports, name) if schedule != ids.dag_start(name)]
    seen = many.rows_of(ports, nodes)
    for schedule in nodes:
        found = lookup.definition_of(seen, seen.rows.get(ScheduleState, schedule))
        wanted = made.schedules.get(schedule)
        if wanted is not None:
            if found is None or found.ttl is not None:
                _put(ports, schedule, wanted, enabled=True, by=by)
        elif found is not None and found.ttl is None:
            _put(ports, schedule, compile.retired(found, ports.clock.now()), enabled=True, by=by)


def graph_body(row: Definition) -> Body:
    """A stored DAG with the full names of its workflows."""
    return body_of(compile.resolved(Dag.model_validate(row.document), row.name))


def body_of(dag: Dag) -> Body:
    """A DAG as it is stored."""
    body: Body = dag.model_dump(mode="json", by_alias=True)
    return body


def _put(
    ports: Ports,
    name: str,
    sent: Schedule,
    enabled: bool | None,
    by: str,
    along: list[Write] | None = None,
    may_put: MayChange = actions.always,
) -> bool:
    """Put one schedule of a DAG, with the writes ``along`` in one transaction. Gathered events stay if its trigger is
    the same (L6). Returns False if a row in ``along`` was changed by another request."""
    for _ in range(MAX_CONFLICTS):
        found = over.read(ports, name, sent, enabled)
        if not may_put(name, found.schedule_state):
            raise errors.changed_meanwhile(f"dag {ids.dag_of(name)}")
        if found.is_same and not along:
            return True
        after, plan = found.plan(name, enabled, by, carry=True)
        refused = ports.ledger.commit([*plan, *(along or [])])
        if refused is None:
            of_fires.after_change(ports, name, found.new.definition)
            actions.wake_changed(ports, found.alive, after)
            return True
        if any(isinstance(write, PutDefinition) for write in refused.writes):
            return False
    raise errors.changed_meanwhile(f"schedule {name}")
