"""What of a run or a record goes into the lake of history, and under which name (H3). `docs/history.md` has the fields.

The day and hour of a line are those of its **end**, which is fixed once it is written: whatever comes later about the
same attempt lands in the same day, so one day can be settled by itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from chalicelib.core import states
from chalicelib.core.dags import rounds
from chalicelib.core.instants import HOUR, MINUTE, Instant, Millis, iso
from chalicelib.core.limits import names
from chalicelib.core.notices import deadlines
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.runs import workers
from chalicelib.core.runs.costs import Prices, Usage, cost_usd

# Of the fields of a line. More are added and none changes its meaning, so who reads takes what it knows by its name.
SCHEMA = 2
ROOT = "history/"
LATE_ROOT = "history_late/"
MAX_REASON = 500  # characters; the run's own row has all of it
# The daily compaction runs after this much of the next day. What of a day comes later is told to the late one.
FINAL_AFTER: Millis = HOUR
# Late lines of one day that come within this are told as one. Shorter, by more than it takes to put them, than what
# the late settling waits after the first of them (`sluice/system_app.yaml`): so it finds them all.
LATE_SLOT: Millis = 5 * MINUTE

Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """A row as a table's stream tells it. ``sequence`` is the stream's number of the change, which it orders by."""

    sequence: str
    row: Run | Record


@dataclass(frozen=True, slots=True)
class Part:
    """Lines of one hour, as one object of the lake. ``sequences`` are the changes that they came from."""

    key: str
    lines: tuple[Line, ...]
    sequences: tuple[str, ...]


def is_final(row: Run | Record) -> bool:
    """Whether a row has all that its history needs: a record, or an attempt that has ended and has told everybody so.
    What it was billed may follow, as a later revision of the same line. A lease by the sweep says nothing new."""
    return isinstance(row, Record) or (states.is_terminal(row.state) and not row.announce and not row.leases)


def ended_at(row: Run | Record) -> Instant:
    if isinstance(row, Record):
        return row.recorded_at
    return row.ended_at if row.ended_at is not None else row.claimed_at


def waited(run: Run) -> Millis:
    """How long its job waited: from when all that it was for was there, or it was due, to the claim. A retry waits from
    when it was due."""
    begun = run.accepted_at if run.accepted_at is not None and run.kind != "retry" else run.due_at
    return max(0, run.claimed_at - (begun if begun is not None else run.created_at))


def line_of(row: Run | Record, prices: Prices) -> Line:
    """One line of the lake; what is not known, or does not apply, is left out. Instants in ms, durations in ms."""
    told = _record_line(row) if isinstance(row, Record) else _run_line(row, prices)
    return {name: value for name, value in told.items() if value is not None}


def parts(changes: Iterable[Change], prices: Prices) -> list[Part]:
    """What is final, as one object for each hour. The name follows from the changes: repeated, it is overwritten."""
    hours: dict[str, list[Change]] = {}
    for change in changes:
        if is_final(change.row):
            hours.setdefault(_hour(ended_at(change.row)), []).append(change)
    return [_part(hour, found, prices) for hour, found in sorted(hours.items())]


def late_days(found: Sequence[Part], now: Instant) -> list[str]:
    """The objects that tell of days which were compacted before: one for each day and slot of arrival, named so that
    the dataset of late days has one partition for each. A partition counts once (T7): what comes after its day was
    settled again needs another."""
    days = {part.key.removeprefix(ROOT).partition("/")[0] for part in found}
    settled = f"day={iso(now - FINAL_AFTER)[:10]}"
    arrived = iso(now - now % LATE_SLOT)[:16].replace("T", "-").replace(":", "-")
    return [f"{LATE_ROOT}{day}/arrived={arrived}/late" for day in sorted(days) if day < settled]


def text_of(lines: Sequence[Line]) -> str:
    """JSON lines."""
    return "".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in lines)


def _hour(at: Instant) -> str:
    text = iso(at)
    return f"{ROOT}day={text[:10]}/hour={text[11:13]}/"


def _part(hour: str, changes: list[Change], prices: Prices) -> Part:
    sequences = tuple(change.sequence for change in changes)
    # Numbers of a stream grow within a shard and repeat in none; the count tells a part that was cut elsewhere.
    name = f"{sequences[0]}-{sequences[-1]}-{len(sequences)}.json.gz"
    return Part(f"{hour}{name}", tuple(line_of(change.row, prices) for change in changes), sequences)


def _run_line(run: Run, prices: Prices) -> Line:
    usage = Usage.of(run.billed)
    return {
        "schema": SCHEMA,
        "kind": "run",
        "id": run.run_id,
        "attempt": run.attempt,
        "rev": run.rev,
        **_owner(run.schedule),
        "workflow": run.workflow,
        "state": run.state,
        "outcome": run.outcome,
        "reason": run.reason[:MAX_REASON] or None,
        "job": run.kind,
        "fired_by": run.fired_by[:MAX_REASON],
        "number": run.number or None,
        "priority": run.priority,
        "attempts": run.attempts,
        "version": run.version,
        "target": run.target_kind,
        "target_id": run.target_id,
        "worker_pool": workers.pool_of(run) if workers.is_pulled(run) else None,
        "pool": next((names.pool_of(line) for line in run.permits if names.is_pool(line)), None),
        "units": run.units or None,
        "metrics": _text(run.metrics),
        "backfill": run.backfill,
        "rerun_of": run.rerun_of,
        **_dag(run),
        "correlation": rounds.without(run.correlation),
        "partition": rounds.without(run.partition),
        "late": run.late or None,
        "nominal_at": run.nominal_at,
        "due_at": run.due_at,
        "accepted_at": run.accepted_at,
        "created_at": run.created_at,
        "claimed_at": run.claimed_at,
        "start_requested_at": run.start_requested_at,
        "started_at": run.started_at,
        "ended_at": ended_at(run),
        "start_by": run.start_by,
        "end_by": run.end_by,
        **_missed(run),
        "lateness_ms": run.lateness,
        "waited_for": run.waited_for or None,
        "waited_ms": waited(run),
        "calls": run.calls,
        "vcpu_hours": usage.vcpu_hours if usage else None,
        "memory_gb_hours": usage.memory_gb_hours if usage else None,
        "storage_gb_hours": usage.storage_gb_hours if usage else None,
        "cost_usd": cost_usd(usage, prices) if usage else None,
    }


def _missed(run: Run) -> Line:
    """Which of its deadlines a run has missed, as its watch judges (`core/notices/deadlines`). Of a run with several
    attempts the first tells of the start, the last of the end; what failed before its time is told as that alone."""
    ended = ended_at(run)
    begun = deadlines.began(run)
    started = begun if begun is not None else ended
    return {
        "missed_start": started > run.start_by if run.start_by is not None and run.attempt == 1 else None,
        "missed_end": ended > run.end_by if run.end_by is not None and run.state != "RETRYING" else None,
    }


def _dag(run: Run) -> Line:
    """The run of a DAG that a run belongs to, its round, and the node that it is; the run that begins it is none."""
    own = rounds.told(run)
    return (
        {}
        if own is None
        else {"dag": own["name"], "dag_run": own["run_id"], "dag_round": own["round"], "node": own["node"]}
    )


def _text(document: Any) -> str | None:
    """A document as text: its fields are its author's, and no columns."""
    return json.dumps(document, separators=(",", ":")) if document else None


def _record_line(record: Record) -> Line:
    return {
        "schema": SCHEMA,
        "kind": "record",
        "id": record.id,
        "attempt": 0,
        "rev": 1,
        **_owner(record.schedule),
        "state": record.kind,
        "reason": record.reason[:MAX_REASON] or None,
        "count": record.count,
        "created_at": record.created_at,
        "ended_at": record.recorded_at,
    }


def _owner(schedule: str) -> Line:
    namespace, app, _ = schedule.split(".", 2)
    return {"namespace": namespace, "app": f"{namespace}.{app}", "schedule": schedule}
