"""Views of a re-processing: its plan, and the progress of its steps (L21)."""

from __future__ import annotations

from typing import Any, NotRequired

from chalicelib.core import ids
from chalicelib.core.backfills import reprocess
from chalicelib.core.backfills.lineage import Step
from chalicelib.core.backfills.reprocess import StoredStep
from chalicelib.core.instants import Instant, iso_or_none
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.reprocess import Reprocess, ReprocessState, StepState
from chalicelib.core.views import At, FromMaybe, View, shown
from chalicelib.flow.backfills.reprocess import Plan
from chalicelib.flow.backfills.view import SHOWN, EntryView, FailedRunView, backfill_view, entry_view, failed_runs
from chalicelib.ports import Ports

COUNTS = ("waiting", "running", "succeeded", "failed", "cancelled")


class StepOfReprocessView(View):
    step: int
    schedule: str
    workflow: str
    after: list[int]
    why: str
    registered: bool
    total: int


class CountsOfReprocessView(View):
    waiting: int
    running: int
    succeeded: int
    failed: int
    cancelled: int


class StoredStepOfReprocessView(StepOfReprocessView, CountsOfReprocessView):
    """A step and its progress. ``failures`` are its newest failed runs, at most 3; a list of re-processings
    has null in place of failed runs."""

    state: StepState
    reason: str | None
    backfill_id: str | None
    failures: list[FailedRunView] | None


class PlannedStepOfReprocessView(StepOfReprocessView):
    first: list[Any]
    last: list[Any]


class FiresOfReprocessView(FromMaybe):
    """The fires of a schedule with which a re-processing begins, from an instant to another that is excluded."""

    schedule: str
    to: NotRequired[At | None]


class _StartView(View):
    dataset: str | None
    run: str | None
    fires: FiresOfReprocessView | None


class StoredReprocessView(_StartView, CountsOfReprocessView):
    """The progress of a re-processing, which begins with a dataset, a run, or fires. The counts of its steps add up to
    ``total``."""

    reprocess_id: str
    namespace: str
    state: ReprocessState
    reason: str | None
    first: Any
    last: Any
    concurrency: int
    properties: dict[str, Any]
    total: int
    steps: list[StoredStepOfReprocessView]
    created_at: At
    created_by: str
    ended_at: At | None


class NotFollowedView(View):
    """A schedule that counts data which a workflow of the plan produces, and why the plan does not run it."""

    schedule: str
    dataset: str
    workflow: str
    why: str


class PlanOfReprocessView(_StartView):
    """What a re-processing would run, and why; and which schedules on data that it produces it does not run."""

    namespace: str
    partitions: int
    total: int
    steps: list[PlannedStepOfReprocessView]
    not_followed: list[NotFollowedView]


def shown_view(ports: Ports, row: Reprocess) -> StoredReprocessView:
    """The present state of a re-processing, with the failed runs of its steps, which take a search for each step."""
    view = reprocess_view(ports, row)
    for step in view["steps"]:
        step["failures"] = failed_runs(ports, step["schedule"], str(step["backfill_id"])) if step["failed"] else []
    return view


def reprocess_view(ports: Ports, row: Reprocess) -> StoredReprocessView:
    """The present state of a re-processing. The counts of each step, and of all steps together, add up to ``total``;
    runs of skipped steps count as cancelled. If runs of a step have failed, its ``failures`` are None: `shown_view` has
    them."""
    steps: list[Any] = [_step_view(ports, row, number, step) for number, step in enumerate(reprocess.steps_of(row))]
    return shown(
        StoredReprocessView,
        row,
        **_start(row.dataset, row.run, row.schedule, row.since, row.until),
        **{count: sum(step[count] for step in steps) for count in COUNTS},
        reprocess_id=row.id,
        first=entry_view(row.first, row.keys) or {},
        last=entry_view(row.last, row.keys) or {},
        properties=dict(row.properties),
        total=sum(step["total"] for step in steps),
        steps=steps,
        created_by=row.by,
    )


def plan_view(namespace: str, plan: Plan) -> PlanOfReprocessView:
    """What a re-processing would run, in order, and why: each step with the first and last few of its partitions."""
    return {
        "namespace": namespace,
        **_start(plan.dataset, plan.run, plan.schedule, plan.since, plan.until),
        "partitions": len(plan.entries),
        "total": sum(len(step.entries) for step in plan.steps),
        "steps": [
            shown(
                PlannedStepOfReprocessView,
                step,
                step=number,
                total=len(step.entries),
                first=_shown(step.entries[:SHOWN], step, plan.keys),
                last=_shown(step.entries[SHOWN:][-SHOWN:], step, plan.keys),
            )
            for number, step in enumerate(plan.steps)
        ],
        "not_followed": [shown(NotFollowedView, each) for each in plan.not_followed],
    }


def _start(dataset: str, run: str, schedule: str, since: Instant | None, until: Instant | None) -> _StartView:
    """What a re-processing begins with: one of a dataset, a run, and the fires of a schedule."""
    name = ids.dag_of(schedule) if ids.is_of_dag(schedule) else schedule
    fires: FiresOfReprocessView = {"schedule": name, "from": iso_or_none(since), "to": iso_or_none(until)}
    return {"dataset": dataset or None, "run": run or None, "fires": fires if name else None}


def _shown(entries: tuple[str, ...], step: Step, of_dataset: tuple[str, ...]) -> list[EntryView]:
    keys = of_dataset if step.upstream is None and not step.periods else step.keys
    return [entry_view(entry, keys) or {} for entry in entries]  # empty for a run without a partition or an instant


def _step_view(ports: Ports, row: Reprocess, number: int, step: StoredStep) -> StoredStepOfReprocessView:
    counts = _counts(ports, row, number, step)
    backfill_id = ids.step_of(row.id, number) if step.state == "running" or step.ran else None
    own: Any = {"step": number, "backfill_id": backfill_id, "failures": None if counts["failed"] else []}
    return shown(StoredStepOfReprocessView, step, **own, **counts)


def _counts(ports: Ports, row: Reprocess, number: int, step: StoredStep) -> dict[str, int]:
    """The counts of a step; while its backfill runs, those of the backfill."""
    current = ports.rows.get(Backfill, step.schedule, ids.step_of(row.id, number)) if step.state == "running" else None
    if current is not None:
        seen: Any = backfill_view(ports, current)
        return {count: seen[count] for count in COUNTS}
    ended = {"succeeded": step.succeeded, "failed": step.failed, "cancelled": step.cancelled}
    left = step.total - sum(ended.values())
    if step.state in ("skipped", "cancelled"):
        ended["cancelled"] += left
        left = 0
    return {"waiting": left, "running": 0, **ended}
