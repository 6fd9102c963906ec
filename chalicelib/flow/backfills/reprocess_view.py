"""Views of a re-processing: its plan, and the progress of its steps (L21)."""

from __future__ import annotations

from typing import Any

from chalicelib.core import ids
from chalicelib.core.backfills import backfill, reprocess
from chalicelib.core.backfills.reprocess import StoredStep
from chalicelib.core.instants import Instant, iso, iso_or_none
from chalicelib.core.rows.reprocess import Reprocess
from chalicelib.flow.backfills.reprocess import Plan
from chalicelib.flow.backfills.view import EntryView, backfill_view, failed_runs
from chalicelib.ports import Ports

View = dict[str, Any]
COUNTS = ("waiting", "running", "succeeded", "failed", "cancelled")
SHOWN = 3  # partitions at each end of a step that a dry run shows


def shown_view(ports: Ports, row: Reprocess) -> View:
    """The present state of a re-processing, with the failed runs of its steps, which take a search for each step."""
    view = reprocess_view(ports, row)
    steps = [
        {**step, "failures": failed_runs(ports, step["schedule"], step["backfill_id"]) if step["failed"] else []}
        for step in view["steps"]
    ]
    return {**view, "steps": steps}


def reprocess_view(ports: Ports, row: Reprocess) -> View:
    """The present state of a re-processing. The counts of each step, and of all steps together, add up to ``total``;
    runs of skipped steps count as cancelled. If runs of a step have failed, its ``failures`` are None: `shown_view` has
    them."""
    steps = [_step_view(ports, row, number, step) for number, step in enumerate(reprocess.steps_of(row))]
    return {
        "reprocess_id": row.id,
        "namespace": row.namespace,
        "state": row.state,
        "reason": row.reason or None,
        **_start(row.dataset, row.run, row.schedule, row.since, row.until),
        "first": _entry(row.first, row.keys),
        "last": _entry(row.last, row.keys),
        "concurrency": row.concurrency,
        "properties": dict(row.properties),
        "total": sum(step["total"] for step in steps),
        **{count: sum(step[count] for step in steps) for count in COUNTS},
        "steps": steps,
        "created_at": iso(row.created_at),
        "created_by": row.by,
        "ended_at": iso_or_none(row.ended_at),
    }


def plan_view(namespace: str, plan: Plan) -> View:
    """What a re-processing would run, in order, and why: each step with the first and last few of its partitions."""
    return {
        "namespace": namespace,
        **_start(plan.dataset, plan.run, plan.schedule, plan.since, plan.until),
        "partitions": len(plan.entries),
        "total": sum(len(step.entries) for step in plan.steps),
        "steps": [
            {
                "step": number,
                "schedule": step.schedule,
                "workflow": step.workflow,
                "after": list(step.after),
                "why": step.why,
                "registered": step.registered,
                "total": len(step.entries),
                "first": _shown(step.entries[:SHOWN], step.upstream, step.keys, plan.keys),
                "last": _shown(step.entries[SHOWN:][-SHOWN:], step.upstream, step.keys, plan.keys),
            }
            for number, step in enumerate(plan.steps)
        ],
    }


def _start(dataset: str, run: str, schedule: str, since: Instant | None, until: Instant | None) -> View:
    """What a re-processing begins with: one of a dataset, a run, and the fires of a schedule."""
    bounds = {"from": iso_or_none(since), "to": iso_or_none(until)}
    name = ids.dag_of(schedule) if ids.is_of_dag(schedule) else schedule
    return {"dataset": dataset or None, "run": run or None, "fires": {"schedule": name, **bounds} if name else None}


def _shown(
    entries: tuple[str, ...], upstream: str | None, own: tuple[str, ...], of_dataset: tuple[str, ...]
) -> list[EntryView]:
    return [_entry(entry, of_dataset if upstream is None else own) for entry in entries]


def _step_view(ports: Ports, row: Reprocess, number: int, step: StoredStep) -> View:
    counts = _counts(ports, row, number, step)
    return {
        "step": number,
        "schedule": step.schedule,
        "workflow": step.workflow,
        "state": step.state,
        "reason": step.reason or None,
        "after": list(step.after),
        "why": step.why,
        "registered": step.registered,
        "backfill_id": ids.step_of(row.id, number) if step.state == "running" or step.ran else None,
        "total": step.total,
        "failures": None if counts["failed"] else [],
        **counts,
    }


def _counts(ports: Ports, row: Reprocess, number: int, step: StoredStep) -> dict[str, int]:
    """The counts of a step; while its backfill runs, those of the backfill."""
    current = ports.jobs.backfill(step.schedule, ids.step_of(row.id, number)) if step.state == "running" else None
    if current is not None:
        seen = backfill_view(ports, current)
        return {count: seen[count] for count in COUNTS}
    ended = {"succeeded": step.succeeded, "failed": step.failed, "cancelled": step.cancelled}
    left = step.total - sum(ended.values())
    if step.state in ("skipped", "cancelled"):
        ended["cancelled"] += left
        left = 0
    return {"waiting": left, "running": 0, **ended}


def _entry(entry: str, keys: tuple[str, ...]) -> EntryView:
    """A partition by its keys, or the instant of a fire; an empty partition for a run that has neither."""
    return dict(zip(keys, backfill.values_of(entry), strict=True)) if keys else entry or {}
