"""Views of a backfill: its progress, its active entries, and its plan (L12, C14)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from chalicelib.core.backfills import backfill
from chalicelib.core.dags import rounds
from chalicelib.core.instants import iso, iso_or_none
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.backfill import Backfill
from chalicelib.flow.backfills.backfill import entry_states
from chalicelib.flow.backfills.plan import Entries, Plan
from chalicelib.flow.runs import failures
from chalicelib.ports import Ports

View = dict[str, Any]
EntryView = str | dict[str, str]  # an instant, or a partition by its keys
SHOWN = 3  # entries at each end of the plan that a dry run shows
MAX_FAILED = 3  # failed runs that a view shows, with their errors
MAX_SEARCHED = 100  # attempts of a schedule among which they are searched


def shown_view(ports: Ports, row: Backfill) -> View:
    """The present state of a backfill, with its failed runs, which take a search."""
    view = backfill_view(ports, row)
    return {**view, "failures": failed_runs(ports, row.schedule, row.id) if view["failed"] else []}


def failed_runs(ports: Ports, schedule: str, backfill_id: str) -> list[View]:
    """The newest failed runs of a backfill, each with the error of its program: at most `MAX_FAILED`, among the last
    `MAX_SEARCHED` attempts of the schedule. A DAG's nodes fail, not the run of its start, so a DAG has none here."""
    attempts = ports.runs.runs("schedule", schedule, MAX_SEARCHED, None).items
    failed = [run for run in attempts if run.backfill == backfill_id and run.state == "FAILED"]
    return [
        {"run_id": run.run_id, "partition": rounds.without(run.partition), "reason": run.reason.text}
        for run in (failures.with_reason(ports, run) for run in failed[:MAX_FAILED])
    ]


def backfill_views(ports: Ports, rows: Sequence[Backfill]) -> list[View]:
    """The present states of backfills. The jobs of all of them are read a hundred per call."""
    jobs = [
        ("job", row.schedule, lives_in, sort_keys.backfill(row.id, int(entry)))
        for row in rows
        for entry, lives_in in row.live.items()
    ]
    known = ports.prefetch.read(ports, jobs) if jobs else ports
    return [backfill_view(known, row) for row in rows]


def backfill_view(ports: Ports, row: Backfill) -> View:
    """The present state of a backfill. If runs have failed, ``failures`` is None: `shown_view` has them.

    ``total`` is ``waiting`` + ``running`` + ``succeeded`` + ``failed`` + ``cancelled``; entries that were left out
    because the backfill ended count as cancelled. ``launched`` counts the entries that have a run. ``position`` is the
    entry that gets the next job.
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
        "from": iso_or_none(row.since),
        "to": iso_or_none(row.until),
        "dataset": row.dataset,
        "order": row.order,
        "concurrency": row.concurrency,
        "properties": dict(row.properties),
        "first": _entry_view(row.first, row.keys),
        "last": _entry_view(row.last, row.keys),
        "position": _entry_view(entries[row.next], row.keys) if left and not over else None,
        "total": row.total,
        "launched": counts["running"] + succeeded + failed + ended,
        "waiting": waiting,
        "running": counts["running"],
        "succeeded": succeeded,
        "failed": failed,
        "cancelled": ended + dropped + (left if over else 0),
        "failures": None if failed else [],
        "active": [
            {
                "job_id": backfill.job_id(row, int(entry), row.live[entry]),
                "entry": _entry_view(entries[int(entry)], row.keys),
                "state": state,
            }
            for entry, state in sorted(seen.items(), key=lambda item: int(item[0]))
            if state in ("waiting", "running")
        ],
        "created_at": iso(row.created_at),
        "created_by": row.by,
        "ended_at": iso_or_none(row.ended_at),
    }


def plan_view(name: str, plan: Plan) -> View:
    """The plan of a backfill: the number of entries, and the first and last few of them."""
    entries = [_entry_view(entry, plan.keys) for entry in plan.entries]
    return {
        "schedule": name,
        "dataset": plan.dataset,
        "total": len(entries),
        "first": entries[:SHOWN],
        "last": entries[SHOWN:][-SHOWN:],
    }


def _entry_view(entry: str, keys: tuple[str, ...]) -> EntryView:
    return dict(zip(keys, backfill.values_of(entry), strict=True)) if keys else entry
