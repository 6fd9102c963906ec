"""What there is to see of a backfill: how far it is, what runs, and what would run (L12, C14)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from chalicelib.core.backfills import backfill
from chalicelib.core.instants import iso
from chalicelib.core.rows.backfill import Backfill
from chalicelib.flow.backfills.backfill import entry_states
from chalicelib.flow.backfills.plan import Entries, Plan
from chalicelib.ports import Ports

View = dict[str, Any]
Told = str | dict[str, str]  # an instant, or a partition by its keys
SHOWN = 3  # entries at each end of what a dry run tells


def backfill_view(ports: Ports, row: Backfill) -> View:
    """A backfill as it stands at this moment.

    ``total`` is ``waiting`` + ``running`` + ``succeeded`` + ``failed`` + ``cancelled``: whatever was left out because
    the backfill ended counts as cancelled; ``launched`` are those of which there is a run. ``position`` is what will
    be handed out next.
    """
    seen = entry_states(ports, row, row.generation)
    counts = Counter(seen.values())
    entries, over = Entries(ports, row), row.state != "RUNNING"
    left = row.total - row.next
    succeeded, failed = row.succeeded + counts["succeeded"], row.failed + counts["failed"]
    ended = row.cancelled + counts["cancelled"]
    dropped = row.dropped + counts["dropped"] + (counts["again"] if over else 0)
    waiting = counts["waiting"] + (0 if over else left + counts["again"])
    return {
        "backfill_id": row.id,
        "schedule": row.schedule,
        "state": row.state,
        "reason": row.reason or None,
        "from": iso(row.since) if row.since is not None else None,
        "to": iso(row.until) if row.until is not None else None,
        "dataset": row.dataset,
        "order": row.order,
        "concurrency": row.concurrency,
        "properties": dict(row.properties),
        "first": _told(row.first, row.keys),
        "last": _told(row.last, row.keys),
        "position": _told(entries[row.next], row.keys) if left and not over else None,
        "total": row.total,
        "launched": counts["running"] + succeeded + failed + ended,
        "waiting": waiting,
        "running": counts["running"],
        "succeeded": succeeded,
        "failed": failed,
        "cancelled": ended + dropped + (left if over else 0),
        "active": [
            {
                "job_id": backfill.job_id(row, int(entry), row.live[entry]),
                "entry": _told(entries[int(entry)], row.keys),
                "state": state,
            }
            for entry, state in sorted(seen.items(), key=lambda each: int(each[0]))
            if state in ("waiting", "running")
        ],
        "created_at": iso(row.created_at),
        "created_by": row.by,
        "ended_at": iso(row.ended_at) if row.ended_at is not None else None,
    }


def plan_view(name: str, plan: Plan) -> View:
    """What a backfill would run: how many, and the first and last few of them."""
    told = [_told(entry, plan.keys) for entry in plan.entries]
    return {
        "schedule": name,
        "dataset": plan.dataset,
        "total": len(told),
        "first": told[:SHOWN],
        "last": told[SHOWN:][-SHOWN:],
    }


def _told(entry: str, keys: tuple[str, ...]) -> Told:
    return dict(zip(keys, backfill.values_of(entry), strict=True)) if keys else entry
