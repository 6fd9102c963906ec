"""The decisions of a re-processing (L21): which step runs, which are skipped, and when it ends.

A step is a backfill of one schedule. One step runs at a time, so its concurrency is that of the whole re-processing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from chalicelib.core import ids
from chalicelib.core.backfills import backfill, lineage
from chalicelib.core.backfills.lineage import Step
from chalicelib.core.instants import Instant
from chalicelib.core.rows.backfill import Backfill, PlanPart
from chalicelib.core.rows.reprocess import Reprocess, ReprocessState, StepState
from chalicelib.core.rows.schedule import HISTORY
from chalicelib.core.text import count_of


@dataclass(frozen=True, slots=True)
class StoredStep:
    """A step as the row stores it. ``plan``, ``total``, ``first`` and ``last`` are of its backfill; the counts are set
    when the backfill has ended. ``parent`` is -1 for a step without one."""

    schedule: str
    workflow: str
    generation: int
    version: int
    keys: tuple[str, ...]
    plan: str
    total: int
    first: str
    last: str
    after: tuple[int, ...]
    upstream: str
    why: str
    state: StepState = "waiting"
    reason: str = ""
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    parent: int = -1
    registered: bool = True
    dataset: str = ""
    base: str = ""
    periods: bool = False

    @property
    def ran(self) -> bool:
        """Whether its backfill has ended. A step that was skipped or cancelled before it began has none."""
        return self.succeeded + self.failed + self.cancelled == self.total


def store(reprocess_id: str, steps: Sequence[Step]) -> tuple[tuple[StoredStep, ...], tuple[PlanPart, ...]]:
    """The steps of a new re-processing as its row stores them, and the rows of their plans."""
    stored: list[StoredStep] = []
    rows: list[PlanPart] = []
    for number, step in enumerate(steps):
        plan, parts = backfill.plan_parts(ids.step_of(reprocess_id, number), step.entries)
        rows += parts
        stored.append(
            StoredStep(
                schedule=step.schedule,
                workflow=step.workflow,
                generation=step.generation,
                version=step.version,
                keys=step.keys,
                plan=plan,
                total=len(step.entries),
                first=step.entries[0],
                last=step.entries[-1],
                after=step.after,
                upstream=step.upstream or "",
                why=step.why,
                parent=-1 if step.parent is None else step.parent,
                registered=step.registered,
                dataset=step.dataset,
                base=step.base,
                periods=step.periods,
            )
        )
    return tuple(stored), tuple(rows)


def steps_of(row: Reprocess) -> tuple[StoredStep, ...]:
    """The steps of a row."""
    names = StoredStep.__dataclass_fields__
    return tuple(StoredStep(**{key: value for key, value in step.items() if key in names}) for step in row.steps)


def with_steps(row: Reprocess, steps: Sequence[StoredStep]) -> Reprocess:
    """The row with the new fields of these steps. Fields that newer code has added to a step stay."""
    known = row.steps or ({},) * len(steps)
    merged: list[Mapping[str, Any]] = [{**old, **asdict(step)} for old, step in zip(known, steps, strict=True)]
    return replace(row, steps=tuple(merged))


def running(row: Reprocess) -> int | None:
    """The number of the step that runs; None between two steps."""
    return next((number for number, step in enumerate(steps_of(row)) if step.state == "running"), None)


def advance(row: Reprocess, current: Backfill | None, now: Instant) -> tuple[Reprocess, int | None]:
    """The row after a check of the running step's backfill, and the number of the step that begins now, or None."""
    steps = list(steps_of(row))
    number = running(row)
    if number is not None:
        if current is not None and current.ended_at is None:
            return replace(row, rev=row.rev + 1, leases=0, wake_at=None), None
        steps[number] = _ended(steps[number], current, row.state)
    if row.state == "CANCELLED":
        steps = [replace(step, state="cancelled") if step.state == "waiting" else step for step in steps]
    lost = lineage.skipped_by([step.after for step in steps], {n for n, step in enumerate(steps) if _is_lost(step)})
    for each in lost:
        if steps[each].state == "waiting":
            steps[each] = replace(steps[each], state="skipped", reason="a step that starts it has not succeeded")
    begins = next((n for n, step in enumerate(steps) if step.state == "waiting"), None)
    if begins is not None:
        steps[begins] = replace(steps[begins], state="running")
    over = begins is None
    moved = replace(
        row,
        state=_state(row, steps) if over else row.state,
        ended_at=now if over and row.ended_at is None else row.ended_at,
        expires_at=now + HISTORY if over else None,
        rev=row.rev + 1,
        leases=0,
        wake_at=None,
    )
    return with_steps(moved, steps), begins


def _is_lost(step: StoredStep) -> bool:
    return step.state in ("failed", "skipped", "cancelled")


def _state(row: Reprocess, steps: Sequence[StoredStep]) -> ReprocessState:
    if row.state != "RUNNING":
        return row.state
    return "DONE" if all(step.state == "succeeded" for step in steps) else "FAILED"


def _ended(step: StoredStep, current: Backfill | None, state: ReprocessState) -> StoredStep:
    """The step after the end of its backfill. The step has succeeded only if all its runs have."""
    if current is None:
        return replace(step, state="failed", reason="its backfill no longer exists")
    left = current.total - current.succeeded - current.failed
    counted = replace(step, succeeded=current.succeeded, failed=current.failed, cancelled=left)
    if current.succeeded == current.total:
        return replace(counted, state="succeeded")
    if state == "CANCELLED":
        return replace(counted, state="cancelled", reason=current.reason)
    why = f"{current.succeeded} of {count_of(current.total, 'run')} succeeded"
    return replace(counted, state="failed", reason=current.reason or why)


def backfill_of(row: Reprocess, number: int, now: Instant) -> Backfill:
    """The backfill of a step. Its schedule has the generation and version of the plan: if the schedule has been
    replaced since, the backfill ends (C13)."""
    steps = steps_of(row)
    step = steps[number]
    first, has_parent = not step.upstream, step.parent >= 0
    of_dataset = first and not step.periods
    return Backfill(
        schedule=step.schedule,
        id=ids.step_of(row.id, number),
        generation=step.generation,
        version=step.version,
        state="RUNNING",
        plan=step.plan,
        total=step.total,
        first=step.first,
        last=step.last,
        order="oldest",
        concurrency=row.concurrency,
        created_at=now,
        by=row.by,
        properties=row.properties,
        since=row.since if first else None,
        until=row.until if first else None,
        dataset=(row.dataset if of_dataset else step.dataset) or None,
        keys=row.keys if of_dataset else step.keys,
        base=row.base if of_dataset else step.base,
        periods=step.periods,
        upstream=(step.upstream or None) if not step.dataset and not step.periods else None,
        namespace=row.namespace,
        run=(row.run or None) if first else None,
        parent_schedule=steps[step.parent].schedule if has_parent else None,
        parent=ids.step_of(row.id, step.parent) if has_parent else None,
        wake_at=now,
    )


def woken(row: Reprocess, now: Instant) -> Reprocess:
    """The row with ``wake_at`` now, after the end of the running step's backfill or a cancel."""
    return replace(row, rev=row.rev + 1, leases=0, wake_at=now)
