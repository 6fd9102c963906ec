"""Views of a backfill: its progress, its active entries, and its plan (L12, C14)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NotRequired

from chalicelib.core.backfills import backfill, periods
from chalicelib.core.backfills.periods import PeriodState, PeriodStatus
from chalicelib.core.dags import rounds
from chalicelib.core.instants import iso_or_none
from chalicelib.core.rows import kinds, sort_keys
from chalicelib.core.rows.backfill import Backfill, BackfillOnly, BackfillOrder, BackfillState
from chalicelib.core.rows.job import Job
from chalicelib.core.views import At, Code, FromMaybe, Sentence, View, shown
from chalicelib.core.why import Why
from chalicelib.flow.backfills.backfill import entry_states
from chalicelib.flow.backfills.plan import Entries, Plan
from chalicelib.flow.runs import failures
from chalicelib.ports import Ports

EntryView = str | dict[str, str]  # an instant, or a partition by its keys
SHOWN = 3  # entries at each end of the plan that a dry run shows
MAX_FAILED = 3  # failed runs that a view shows, with their errors
MAX_ENTRIES = 1_000  # entries of a range of which a dry run says what became of them
MAX_SEARCHED = 100  # attempts of a schedule among which they are searched


class ActiveEntryView(View):
    job_id: str
    entry: Any
    state: str


class FailedRunView(View):
    """A failed run of a backfill, with the error of its program."""

    run_id: str
    partition: dict[str, str] | None
    reason: Sentence
    code: Code | None


class StoredBackfillView(FromMaybe):
    """The progress of a backfill. ``first`` and ``last`` are partitions, ``from`` and ``to`` instants. ``failures`` are
    the newest failed runs, at most 3; a list of backfills has null in place of failed runs. ``left_alone`` entries of
    the range were in flight when it began, so it does not run them; ``in_flight`` has the first 20. Of a schedule with
    ``per``, ``left_out`` periods lacked partitions; ``incomplete`` has the first 20."""

    backfill_id: str
    schedule: str
    state: BackfillState
    reason: str | None
    order: BackfillOrder
    only: BackfillOnly
    left_alone: int
    in_flight: list[Any]
    left_out: int
    incomplete: list[Any]
    concurrency: int
    dataset: str | None
    total: int | None
    launched: int
    waiting: int | None
    running: int
    succeeded: int
    failed: int
    cancelled: int
    position: Any
    properties: dict[str, Any]
    failures: list[FailedRunView] | None
    active: list[ActiveEntryView]
    created_at: At
    created_by: str
    ended_at: At | None
    first: NotRequired[Any]
    last: NotRequired[Any]
    to: NotRequired[At | None]


class EntryNowView(View):
    """What became of an entry of a range so far, and whether the backfill runs it. Of one that is in flight, ``why``
    says what it waits for, and of a failed one why it failed. A period of a schedule with ``per`` has ``have`` of its
    ``need`` partitions; if its trigger would not start it with these, ``why`` says what it lacks."""

    entry: Any
    state: PeriodState
    runs: bool
    have: NotRequired[int]
    need: NotRequired[int]
    why: Sentence | None
    code: Code | None
    run_id: str | None


class PlanOfBackfillView(View):
    """What a backfill would run: the first and the last few of its entries. ``now`` counts what became of the entries
    of the range so far. ``entries`` has the first 1,000 of these, in the order of the plan."""

    schedule: str
    dataset: NotRequired[str | None]
    total: int | None
    first: list[Any]
    last: list[Any]
    now: dict[PeriodState, int]
    entries: list[EntryNowView]


def shown_view(ports: Ports, row: Backfill) -> StoredBackfillView:
    """The present state of a backfill, with its failed runs, which take a search."""
    view = backfill_view(ports, row)
    view["failures"] = failed_runs(ports, row.schedule, row.id) if view["failed"] else []
    return view


def failed_runs(ports: Ports, schedule: str, backfill_id: str) -> list[FailedRunView]:
    """The newest failed runs of a backfill, each with the error of its program: at most `MAX_FAILED`, among the last
    `MAX_SEARCHED` attempts of the schedule. A DAG's nodes fail, not the run of its start, so a DAG has none here."""
    attempts = ports.runs.runs("schedule", schedule, MAX_SEARCHED, None).items
    failed = [run for run in attempts if run.backfill == backfill_id and run.state == "FAILED"]
    return [
        shown(FailedRunView, run, partition=rounds.without(run.partition))
        for run in (failures.with_reason(ports, run) for run in failed[:MAX_FAILED])
    ]


def backfill_views(ports: Ports, rows: Sequence[Backfill]) -> list[StoredBackfillView]:
    """The present states of backfills. The jobs of all of them are read a hundred per call."""
    jobs = [
        kinds.key(Job, row.schedule, lives_in, sort_keys.backfill(row.id, int(entry)))
        for row in rows
        for entry, lives_in in row.live.items()
    ]
    known = ports.prefetch.read(ports, jobs) if jobs else ports
    return [backfill_view(known, row) for row in rows]


def backfill_view(ports: Ports, row: Backfill) -> StoredBackfillView:
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
    return shown(
        StoredBackfillView,
        row,
        **{"from": iso_or_none(row.since), "to": iso_or_none(row.until)},
        backfill_id=row.id,
        properties=dict(row.properties),
        first=entry_view(row.first, row.keys),
        last=entry_view(row.last, row.keys),
        in_flight=[entry_view(entry, row.keys) for entry in row.in_flight],
        incomplete=[entry_view(entry, row.keys) for entry in row.incomplete],
        position=entry_view(entries[row.next], row.keys) if left and not over else None,
        launched=counts["running"] + succeeded + failed + ended,
        waiting=waiting,
        running=counts["running"],
        succeeded=succeeded,
        failed=failed,
        cancelled=ended + dropped + (left if over else 0),
        failures=None if failed else [],
        active=[
            {
                "job_id": backfill.job_id(row, int(entry), row.live[entry]),
                "entry": entry_view(entries[int(entry)], row.keys),
                "state": state,
            }
            for entry, state in sorted(seen.items(), key=lambda item: int(item[0]))
            if state in ("waiting", "running")
        ],
        created_by=row.by,
    )


def plan_view(name: str, plan: Plan) -> PlanOfBackfillView:
    """The plan of a backfill: the number of entries, the first and last few of them, and what became of each so far."""
    entries = [entry_view(entry, plan.keys) for entry in plan.entries]
    return {
        "schedule": name,
        "dataset": plan.dataset,
        "total": len(entries),
        "first": entries[:SHOWN],
        "last": entries[SHOWN:][-SHOWN:],
        "now": periods.counted(plan.now.values()),
        "entries": [_now_view(plan, entry, plan.now[entry]) for entry in list(plan.now)[:MAX_ENTRIES]],
    }


def _now_view(plan: Plan, entry: str, status: PeriodStatus) -> EntryNowView:
    whole, why = plan.whole.get(entry), status.why
    if whole is not None and whole.lacks and entry not in plan.in_flight:
        why = Why.of("trigger_unmet", f"lacks {whole.lacks}")
    found: EntryNowView = {
        "entry": entry_view(entry, plan.keys),
        "state": status.state,
        "runs": entry in plan.chosen,
        "why": why or None,
        "code": why.code or None,
        "run_id": status.runs[0] if status.runs else None,
    }
    return found if whole is None else {**found, "have": whole.have, "need": whole.need}


def entry_view(entry: str, keys: tuple[str, ...]) -> EntryView:
    return dict(zip(keys, backfill.values_of(entry), strict=True)) if keys else entry
