"""Count what arrives at limits that did not move with it: those of EMR, and of namespaces that are elsewhere or were
here before. An installation counts the runs that it has, beyond the limit if necessary. So each of them can end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from chalicelib.core.ids import holder_of
from chalicelib.core.instants import Instant
from chalicelib.core.limits import names
from chalicelib.core.limits.permits import rate_window_of
from chalicelib.core.limits.writes import RecordStart
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.run import Run
from chalicelib.core.runs import counting
from chalicelib.core.targets import registry
from chalicelib.core.writes import Replace, Write
from chalicelib.ports import MAX_CONFLICTS, Ports, too_many_conflicts
from sluice.operations.ports import Copies, StoredCopy
from sluice.operations.rules.arriving import lacking
from sluice.operations.rules.limits import Moving, is_active


def count(ports: Ports, copies: Copies, exported: Iterable[StoredCopy], limits: Moving) -> None:
    """Count the active runs among these copies, and remember the starts of all. A repeat changes nothing."""
    now = ports.clock.now()
    later: defaultdict[str, defaultdict[str, Instant]] = defaultdict(lambda: defaultdict(int))
    for copy in exported:
        run = copy.row
        if not isinstance(run, Run) or not limits.moves(run):
            continue
        if missing := lacking(run, limits):
            _count(ports, run, missing)
        for name in limits.others(_remembering(run)):
            if names.is_rate_window(name):
                _enter(ports, run, name, now)
            elif names.is_of_workflow(name):
                for attribute, at in _instants_of(run).items():
                    later[name][attribute] = max(later[name][attribute], at)
    for name, instants in later.items():
        copies.put_later(name, instants)


def _count(ports: Ports, arrived: Run, missing: tuple[str, ...]) -> None:
    for _ in range(MAX_CONFLICTS):
        run = ports.rows.get(Run, arrived.run_id, arrived.attempt)
        if run is None or not is_active(run):
            return
        after, plan = run, list[Write]()
        for name in missing:
            if name not in run.permits:
                pool = ports.rows.get(Definition, "pool", names.pool_of(name)) if names.is_pool(name) else None
                after, writes = counting.with_permit(after, ports.jobs.limit_state(name), pool)
                plan += writes
        if not plan or ports.ledger.commit([Replace(replace(after, rev=run.rev + 1)), *plan]) is None:
            return
    raise too_many_conflicts(f"counting run {arrived.run_id}", "repeat the import")


def _enter(ports: Ports, run: Run, limit_name: str, now: Instant) -> None:
    """Enter the start of a run into a rate window, if it still counts."""
    _, workflow, rule = limit_name.split(":", 2)
    ask, holder = rate_window_of(workflow, rule, binding=False), holder_of(run.run_id, run.attempt)
    if run.claimed_at <= now - ask.span:
        return
    for _ in range(MAX_CONFLICTS):
        state = ports.jobs.limit_state(limit_name)
        known = holder in state.starts
        if known or ports.ledger.commit([RecordStart(ask, run.claimed_at, state, holder)]) is None:
            return
    raise too_many_conflicts(f"a start of run {run.run_id}", "repeat the import")


def _remembering(run: Run) -> tuple[str, ...]:
    """The limits that remember a run: those of its permits, and of a node with elements that of its workflow."""
    return (names.workflow_limit(run.workflow),) if registry.of_run(run).of_elements else run.permits


def _instants_of(run: Run) -> dict[str, Instant]:
    """What the limit of its workflow remembers of a run when it has ended, by the attributes of `LimitState`."""
    success = {"last_success_at": run.state_at} if run.state == "SUCCEEDED" and run.state_at is not None else {}
    if registry.of_run(run).of_elements:
        return success
    started = {"last_success_start": run.claimed_at} if success else {}
    return {"last_start": run.claimed_at, **started, **(success if run.element is None else {})}
