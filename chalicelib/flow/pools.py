"""Pools: what a job asks of one, who is served when one changes, and who names one (W3)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from chalicelib.core import errors, lines, pool_asks, pools
from chalicelib.core.calendar import Instant
from chalicelib.core.lines import LineState, Slots
from chalicelib.core.model import Schedule, Workflow
from chalicelib.core.pools import Pool
from chalicelib.core.rows import Definition
from chalicelib.core.sweep import Ref
from chalicelib.core.writes import LeaseLine
from chalicelib.ports import Kind, Ports

PAGE = 1000


def pool_of(ports: Ports, name: str) -> Pool | None:
    definition = ports.catalog.definition("pool", name)
    return Pool.model_validate(definition.document) if definition else None


def ask_of(ports: Ports, workflow: Workflow, schedule: Schedule) -> Slots | None:
    """What a job of this schedule asks of its pool; None if it takes from none, or the pool is gone."""
    name = pool_asks.pool_of(workflow, schedule)
    pool = pool_of(ports, name) if name is not None else None
    return pool_asks.ask_of(name, pool, workflow, schedule) if name is not None and pool is not None else None


def check(ports: Ports, workflow: Workflow, schedule: Schedule) -> None:
    """Refuse a schedule whose pool is not there, whose runs give nothing back, or whose runs could never start."""
    name = pool_asks.pool_of(workflow, schedule)
    if name is None:
        return
    field = "pool" if schedule.pool is not None else "workflow"
    if not workflow.target.has_lifecycle:
        got = f"one for a {workflow.target.type} target, whose runs have no end that could be seen"
        raise errors.invalid(field, "a pool only for a target with a lifecycle", got)
    pool_asks.check_fit(name, existing(ports, name, field), workflow, schedule, "slots" if schedule.slots else field)


def check_workflow(ports: Ports, name: str, document: Mapping[str, Any]) -> None:
    """The same for a workflow before any schedule names it."""
    if document.get("pool") is None:
        return
    workflow = Workflow.model_validate(document)
    if not workflow.target.has_lifecycle:
        got = f"one for a {workflow.target.type} target, whose runs have no end that could be seen"
        raise errors.invalid("pool", "a pool only for a target with a lifecycle", got)
    pool = str(document["pool"])
    existing(ports, pool if "." in pool else f"{name.partition('.')[0]}.{pool}", "pool")


def existing(ports: Ports, name: str, field: str) -> Pool:
    """The pool that a document names; refused, with those that there are, if there is none."""
    found = pool_of(ports, name)
    if found is None:
        known = [row.name for row in ports.catalog.definitions("pool", name.partition(".")[0], PAGE, None).items]
        raise errors.unknown_reference(field, "pool", name, known)
    return found


def serve_anew(ports: Ports, new: Definition, old: Definition) -> list[LeaseLine]:
    """The writes that have the queues of a changed pool served at once: it may be larger, or shared otherwise."""
    names = {name for row in (new, old) for name in pools.lines_of(row.name, Pool.model_validate(row.document))}
    return _woken([ports.jobs.line(name) for name in sorted(names)], new.updated_at)


def wake_borrowers(ports: Ports, freed: Collection[str], now: Instant) -> None:
    """Where a permit of a pool's common part came back and nobody waits there, those with a share may take it.

    A death before this costs no more than the lease of a line that has waiters: then it is looked at anyway.
    """
    for line in freed:
        pool = pool_of(ports, line.partition(":")[2]) if lines.is_pool(line) and line.count(":") == 1 else None
        shares = pools.lines_of(line.partition(":")[2], pool) if pool is not None and pool.shares else {}
        for lease in _woken([ports.jobs.line(share) for share in shares if share != line], now):
            if ports.ledger.commit([lease]) is None:
                ports.hints.send([Ref("line", (lease.line,))], now, now)


def _woken(states: list[LineState], now: Instant) -> list[LeaseLine]:
    waiting = [state for state in states if state.waiters]
    return [LeaseLine(state.line, state.wake_at, now) for state in waiting if state.wake_at is not None]


def view(ports: Ports, row: Definition) -> dict[str, Any]:
    """How much of a pool is in use, and who waits for it, in all and by share."""
    pool = Pool.model_validate(row.document)
    return pools.use_of(row.name, pool, {line: ports.jobs.line(line) for line in pools.lines_of(row.name, pool)})


def workflows_in(ports: Ports, pool: str) -> list[str]:
    """The workflows that name a pool, ``workflow <full name>``, wherever in them that is."""
    spaces = [row.name for row in _all(ports, "namespace", "")]
    apps = [row.name for space in spaces for row in _all(ports, "app", space)]
    found = [row for app in apps for row in _all(ports, "workflow", app)]
    return [f"workflow {row.name}" for row in found if pool in _named(row)]


def _named(row: Definition) -> set[str]:
    """The pools that a workflow names: where it takes its units from, and whose workers it wants."""
    told = (row.document.get("pool"), (row.document.get("target") or {}).get("pool"))
    namespace = row.name.partition(".")[0]
    return {str(name) if "." in str(name) else f"{namespace}.{name}" for name in told if name}


def _all(ports: Ports, kind: Kind, parent: str) -> Iterator[Definition]:
    cursor: str | None = None
    while True:
        page = ports.catalog.definitions(kind, parent, PAGE, cursor)
        yield from page.items
        cursor = page.cursor
        if cursor is None:
            return
