"""The limits of an export: which of them move with it, and what its rows hold of all others.

A limit belongs to the namespace in its name; those of EMR belong to none. Rows of one namespace may hold permits of
another one's limits: a grant lets a schedule run a workflow, or use a pool or policy. So in each installation a limit
counts exactly the jobs and active runs that are there, whether or not its namespace is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from chalicelib.core import states
from chalicelib.core.ids import parse_job_id
from chalicelib.core.limits import names, returns
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState, Waiter
from chalicelib.core.rows.run import Run
from chalicelib.core.writes import Row
from sluice.operations.rules.owner import namespace_of, of_limit


@dataclass(frozen=True, slots=True)
class Moving:
    """The limits that move with an export: those of its ``namespaces``, or all of them if it has no list, without the
    ``shared`` ones. Other namespaces use a shared limit in the installation that the rows leave, or arrive in."""

    namespaces: frozenset[str]
    shared: frozenset[str] = frozenset()

    def moves(self, row: Row | LimitState) -> bool:
        """Whether a row is one of the namespaces."""
        return not self.namespaces or namespace_of(row) in self.namespaces

    def has(self, limit_name: str) -> bool:
        return self.is_of_namespaces(limit_name) and limit_name not in self.shared

    def is_of_namespaces(self, limit_name: str) -> bool:
        return not self.namespaces or of_limit(limit_name) in self.namespaces

    def others(self, limit_names: Collection[str]) -> tuple[str, ...]:
        """Those of these limits that do not move."""
        return tuple(name for name in limit_names if not self.has(name))


def is_active(row: Job | Run) -> bool:
    """Whether a row may hold permits."""
    return isinstance(row, Job) or not states.is_terminal(row.state)


def held(row: Job | Run) -> tuple[str, ...]:
    """The limits of which a job, or an active run, holds permits."""
    if isinstance(row, Job):
        return row.held
    return row.permits if is_active(row) else ()


def used(row: Job | Run) -> set[str]:
    """The limits that count a job or a run: as a holder until it ends, or in their queue."""
    queue = [row.queued_in, names.whole(row.queued_in)] if row.queued_in is not None else []
    return {*filter(names.returns_permit, held(row)), *queue}


@dataclass
class Use:
    """How many units the rows of an export hold of each limit, and how many of its jobs and runs queue there."""

    units: Counter[str] = field(default_factory=Counter)
    waiters: Counter[str] = field(default_factory=Counter)

    def add(self, row: object) -> None:
        if isinstance(row, Job | Run):
            self.units.update({name: returns.units_at(name, row.units) for name in held(row)})
        elif isinstance(row, Waiter):
            self.waiters[row.limit_name] += 1


def as_used(state: LimitState, use: Use, namespaces: frozenset[str]) -> LimitState:
    """A limit as the rows of an export use it: rows that stay behind hold nothing of it."""
    name = state.limit_name
    counted = replace(state, waiters=use.waiters[name])
    if not names.returns_permit(name):
        return counted
    starts = {holder: at for holder, at in state.starts.items() if _namespace_of(holder) in namespaces}
    return replace(counted, active=use.units[name], starts=starts)


def _namespace_of(holder: str) -> str:
    """The namespace of the run that holds a slot."""
    parsed = parse_job_id(holder.rpartition("#")[0])
    return (parsed.schedule if parsed is not None else holder).partition(".")[0]
