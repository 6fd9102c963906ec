"""The namespace of each stored row."""

from __future__ import annotations

from chalicelib.core.rows import kinds
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.reprocess import Reprocess
from chalicelib.core.writes import Row


def namespace_of(row: Row | LimitState) -> str | None:
    """The namespace that a row belongs to. None for a row of the whole installation, such as the limit of an EMR
    application. None also for a part of a plan, because the backfill or re-processing that names it has the
    namespace."""
    if isinstance(row, LimitState):
        return of_limit(row.limit_name)
    owner = kinds.ROWS[type(row)].owner
    name: str | None = getattr(row, owner) if owner else None
    return namespace_in(name) if name is not None else None


def plans_of(row: Row | LimitState) -> tuple[str, ...]:
    """The plans that a row names: that of a backfill, and those of the steps of a re-processing."""
    match row:
        case Backfill():
            return (row.plan,)
        case Reprocess():
            return tuple(str(step["plan"]) for step in row.steps)
        case _:
            return ()


def of_limit(limit_name: str) -> str | None:
    """The namespace of a limit; None for one that all namespaces share: an EMR application, and EMR's start rate."""
    kind, _, name = limit_name.partition(":")
    return None if kind in ("application", "emr") else namespace_in(name)


def namespace_in(full_name: str) -> str:
    """The namespace in a full name."""
    return full_name.partition(".")[0]
