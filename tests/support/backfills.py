"""Backfills in the scenarios: begin, read and cancel them, and check what must always hold."""

from __future__ import annotations

from collections import Counter
from typing import Any

from chalicelib.core import states
from chalicelib.core.backfills import request as bodies
from chalicelib.core.instants import iso
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.run import Run
from chalicelib.flow.backfills import backfill
from chalicelib.flow.backfills import view as backfill_view
from tests.support.world import World, full

COUNTS = ("waiting", "running", "succeeded", "failed", "cancelled")


def begin(world: World, name: str, request: str = "b1", **fields: Any) -> str:
    """Begin a backfill. Returns its id."""
    asked = bodies.Backfill.model_validate({key.rstrip("_"): value for key, value in fields.items()})
    return backfill.begin(world.ports, full(name), asked, "tester", request).id


def preview(world: World, name: str, **fields: Any) -> dict[str, Any]:
    asked = bodies.Backfill.model_validate({key.rstrip("_"): value for key, value in fields.items()})
    return backfill_view.plan_view(full(name), backfill.preview(world.ports, full(name), asked))


def stop(world: World, name: str, backfill_id: str, runs: bool = False) -> dict[str, Any]:
    row = backfill.stop(world.ports, full(name), backfill_id, runs, "tester")
    return backfill_view.backfill_view(world.ports, row)


def seen(world: World, name: str, backfill_id: str) -> dict[str, Any]:
    """A backfill as the API shows it."""
    row = backfill.existing(world.ports, full(name), backfill_id)
    return backfill_view.backfill_view(world.ports, row)


def counts(world: World, name: str, backfill_id: str) -> dict[str, int]:
    """The backfill's counts that are not zero; together they are its total."""
    view = seen(world, name, backfill_id)
    assert sum(view[what] for what in COUNTS) == view["total"], view
    return {what: view[what] for what in COUNTS if view[what]}


def about(run: Run) -> str:
    """The day, period, or values of the partition, that a run of a backfill processes; or the run that it follows."""
    if run.nominal_at is not None:
        return iso(run.nominal_at)[:10]
    if run.period_parts is not None:
        return "/".join((run.correlation or {}).values())
    return ("/".join((run.event.partition or {}).values()) or run.event.run_id or "") if run.event else ""


def ran(world: World, name: str) -> list[Run]:
    """The runs of a schedule in the order of their claims; runs of one instant in the order of their jobs."""
    return sorted(world.runs(name), key=lambda run: (run.claimed_at, run.created_at))


def living(world: World, name: str) -> list[str]:
    return [about(run) for run in ran(world, name) if not states.is_terminal(run.state)]


def check(row: Backfill, runs: list[Run]) -> None:
    """Check what must always hold: no more active runs than requested, and every entry at most once."""
    mine = [run for run in runs if run.backfill == row.id]
    active = [run for run in mine if not states.is_terminal(run.state)]
    assert len(row.live) <= row.concurrency, f"{row} has more under way than it may"
    assert len(active) <= row.concurrency, f"{len(active)} runs of {row}"
    started = Counter((run.nominal_at, about(run)) for run in mine if run.attempt == 1 and run.state != "ABORTED")
    assert [entry for entry, count in started.items() if count > 1] == [], f"an entry of {row} ran twice"
    handed_out = row.succeeded + row.failed + row.cancelled + row.dropped + len(row.live)
    assert handed_out == row.next <= row.total, f"{row} has lost count"
