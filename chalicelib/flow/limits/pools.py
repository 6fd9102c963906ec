"""Pools: permit requests of jobs, the queues to serve when a pool changes, and the workflows that name one (W3)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from chalicelib.core.access.grants import ForeignUse
from chalicelib.core.definitions import overrides
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.instants import Instant
from chalicelib.core.jobs import permits
from chalicelib.core.limits import names as limit_names
from chalicelib.core.limits import pools
from chalicelib.core.limits.permits import Slots
from chalicelib.core.limits.pools import Pool
from chalicelib.core.limits.writes import LeaseQueue
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.ref import limit_ref
from chalicelib.core.targets.target import require_lifecycle
from chalicelib.flow import grants, lookup
from chalicelib.ports import Ports

PAGE = 1000
ONLY_WITH_AN_END = "a pool only for a target with a lifecycle"


def pool_of(ports: Ports, name: str) -> Pool | None:
    definition = ports.rows.get(Definition, "pool", name)
    return Pool.model_validate(definition.document) if definition else None


def ask_of(ports: Ports, workflow: Workflow, schedule: Schedule) -> tuple[Slots, Definition] | None:
    """The permit request of this schedule's jobs to their pool, and the pool's definition. None if the schedule uses no
    pool, or if the pool was deleted."""
    name = overrides.pool_of(workflow, schedule)
    row = ports.rows.get(Definition, "pool", name) if name is not None else None
    if name is None or row is None:
        return None
    pool = Pool.model_validate(row.document)
    ask = permits.ask_of(name, pool, workflow, schedule)
    if not set(row.shrunk) - {ask.limit_name}:
        return ask, row
    return _withheld(
        ask, name, pool, {limit_name: ports.jobs.limit_state(limit_name) for limit_name in row.shrunk}
    ), row


def _withheld(ask: Slots, name: str, pool: Pool, states: Mapping[str, LimitState]) -> Slots:
    """The permit request to a pool whose division changed: it does not use the units that other shares have in use
    beyond their new size."""
    others = {limit_name: state for limit_name, state in states.items() if limit_name != ask.limit_name}
    fallback = _withheld(ask.fallback, name, pool, states) if ask.fallback is not None else None
    return replace(ask, overdrawn=pools.overdrawn(name, pool, others), fallback=fallback)


def check(ports: Ports, workflow: Workflow, schedule: Schedule, by: str) -> None:
    """Raise SluiceError if the pool of a schedule of namespace ``by`` does not exist or is too small for its runs.
    Raise it also if the target never releases units."""
    name = overrides.pool_of(workflow, schedule)
    if name is None:
        return
    field = "pool" if schedule.pool is not None else "workflow"
    require_lifecycle(workflow.target, field, ONLY_WITH_AN_END)
    by = by if schedule.pool is not None else schedule.workflow.partition(".")[0]
    permits.check_fit(name, existing(ports, name, field, by), workflow, schedule, "slots" if schedule.slots else field)


def check_workflow(ports: Ports, name: str, document: Mapping[str, Any]) -> None:
    """The same for a workflow, before any schedule names it."""
    if document.get("pool") is None:
        return
    workflow = Workflow.model_validate(document)
    require_lifecycle(workflow.target, "pool", ONLY_WITH_AN_END)
    pool = str(document["pool"])
    own = name.partition(".")[0]
    existing(ports, pool if "." in pool else f"{own}.{pool}", "pool", own)


def existing(ports: Ports, name: str, field: str, by: str) -> Pool:
    """The pool that a document of namespace ``by`` names. Raises SluiceError with the existing pools if there is no
    such pool, or none that is granted."""
    grants.require(ports, [ForeignUse("pools", name, by)] if name.partition(".")[0] != by else [], field)
    found = pool_of(ports, name)
    if found is None:
        known = [row.name for row in ports.catalog.definitions("pool", name.partition(".")[0], PAGE, None).items]
        raise grants.unknown(ports, by, field, "pool", name, known)
    return found


def serve_again(ports: Ports, new: Definition, old: Definition) -> tuple[Definition, list[LeaseQueue]]:
    """The definition of a changed pool with its shrunk shares, and the writes that wake the pool's queues.

    The queues are served at once because the pool may be larger, or divided in another way.
    """
    before, after = (Pool.model_validate(row.document) for row in (old, new))
    names = {*pools.limits_of(new.name, before), *pools.limits_of(new.name, after), *old.shrunk}
    states = {name: ports.jobs.limit_state(name) for name in sorted(names)}
    shrunk = pools.shrunk_by(new.name, before, after, old.shrunk, states)
    return replace(new, shrunk=shrunk), _woken([*states.values()], new.updated_at)


def serve_shares(ports: Ports, freed: Collection[str], now: Instant) -> None:
    """Wake the queues of other shares that may use permits just released to the limits ``freed``.

    Permits of a pool's common part may go to any share, and those of a shrunk share to all parts. If this invocation
    crashes before, the waiters only wait for the lease of their own queue to end.
    """
    for limit_name in (item for item in freed if limit_names.is_pool(item)):
        name = limit_name.split(":")[1]
        row = ports.rows.get(Definition, "pool", name)
        concerns = row is not None and (limit_name == limit_names.pool_limit(name) or limit_name in row.shrunk)
        parts = pools.limits_of(name, Pool.model_validate(row.document)) if row is not None and concerns else {}
        for lease in _woken([ports.jobs.limit_state(part) for part in parts if part != limit_name], now):
            if ports.ledger.commit([lease]) is None:
                ports.hints.send([limit_ref(lease.limit_name)], now, now)


def _woken(states: list[LimitState], now: Instant) -> list[LeaseQueue]:
    waiting = [state for state in states if state.waiters]
    return [LeaseQueue(state.limit_name, state.wake_at, now) for state in waiting if state.wake_at is not None]


def view(ports: Ports, row: Definition) -> dict[str, Any]:
    """The use of a pool and its waiters, in total and by share."""
    pool = Pool.model_validate(row.document)
    return pools.use_of(
        row.name,
        pool,
        {limit_name: ports.jobs.limit_state(limit_name) for limit_name in pools.limits_of(row.name, pool)},
    )


def workflows_in(ports: Ports, pool: str) -> list[str]:
    """The workflows that name a pool in any of their fields, as ``workflow <full name>``."""
    spaces = [row.name for row in lookup.definitions_in(ports, "namespace", "")]
    apps = [row.name for space in spaces for row in lookup.definitions_in(ports, "app", space)]
    found = [row for app in apps for row in lookup.definitions_in(ports, "workflow", app)]
    return [f"workflow {row.name}" for row in found if pool in _named(row)]


def _named(row: Definition) -> set[str]:
    """The full names of the pools that a workflow names: for its units, and for the workers that run it."""
    named = (row.document.get("pool"), (row.document.get("target") or {}).get("pool"))
    namespace = row.name.partition(".")[0]
    return {str(name) if "." in str(name) else f"{namespace}.{name}" for name in named if name}
