"""The JSON rows of the history lake: one for each final run or record, and the objects that hold them (H3).

`docs/history.md` has the fields. The day and hour of a row are those of its **end**, which never changes. A later
revision of the same attempt belongs to the same day, so each day can be compacted alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from chalicelib.core import masks, states
from chalicelib.core.dags import rounds
from chalicelib.core.fires import bundles
from chalicelib.core.history.durations import waited
from chalicelib.core.instants import HOUR, MINUTE, Instant, Millis, iso
from chalicelib.core.limits import names
from chalicelib.core.notices import deadlines
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.runs import costs, sends, workers
from chalicelib.core.targets.bills import Prices
from chalicelib.core.why import Why, readers_of

# The version of the fields. Later versions add fields and change no meaning, so readers can select fields by name.
SCHEMA = 3
ROOT = "history/"
LATE_ROOT = "history_late/"
# The state in a later revision of the line of a record that does not hold any more: the job has run after all.
WITHDRAWN = "WITHDRAWN"
MAX_REASON = 500  # characters; the run's own row has the full text
# The daily compaction runs this long after the end of a day. The late compaction handles rows that arrive afterwards.
FINAL_AFTER: Millis = HOUR
# Late rows of one day that arrive within this slot share one announcement. The late compaction waits longer after the
# first of them (`sluice/system_app.yaml`), by more than the time to put the objects, so it finds them all.
LATE_SLOT: Millis = 5 * MINUTE

Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """A row as the stream of a table delivers it. ``sequence`` is the sequence number of the change in the stream."""

    sequence: str
    row: Run | Record


@dataclass(frozen=True, slots=True)
class Part:
    """Lines of one hour, as one object. ``sequences`` are the sequence numbers of their changes."""

    key: str
    lines: tuple[Line, ...]
    sequences: tuple[str, ...]


def is_final(row: Run | Record) -> bool:
    """Whether a row is ready for the history: a record, or an attempt that has ended and has announced its statuses.

    Its bill may follow, as a later revision. A row that only the sweep has leased since is left out, as it has nothing
    new."""
    return isinstance(row, Record) or (states.is_terminal(row.state) and not row.announce and not row.leases)


def ended_at(row: Run | Record) -> Instant:
    """The end of an attempt, or of a run without a known end its claim; the instant of a record."""
    if isinstance(row, Record):
        return row.recorded_at
    return row.ended_at if row.ended_at is not None else row.claimed_at


def line_of(row: Run | Record, prices: Prices) -> Line:
    """The fields of a row in the lake, without those that are unknown or do not apply. Instants and durations in ms."""
    fields = _record_line(row) if isinstance(row, Record) else _run_line(row, prices)
    return {name: value for name, value in fields.items() if value is not None}


def parts(changes: Iterable[Change], prices: Prices) -> list[Part]:
    """The final rows of the changes, as one object for each hour. The name of an object follows from its changes, so a
    repeated export overwrites it."""
    final = (change for change in changes if is_final(change.row))
    lines = ((change.sequence, line) for change in final for line in _lines_of(change.row, prices))
    return by_hour(ROOT, ((line["ended_at"], sequence, line) for sequence, line in lines))


def _lines_of(row: Run | Record, prices: Prices) -> list[Line]:
    """The line of a row. A run that has replaced the record of its job withdraws the line of the record, which may lie
    in another day. The record of a bundle has no more revisions than the run has events."""
    line = line_of(row, prices)
    if isinstance(row, Record) or row.dropped_at is None:
        return [line]
    key = {"schema": SCHEMA, "kind": "record", "id": row.run_id, "attempt": 0, "rev": row.events + 1}
    return [line, {**key, **_owner(row.schedule), "state": WITHDRAWN, "ended_at": row.dropped_at}]


def late_days(found: Sequence[Part], now: Instant) -> list[str]:
    """The keys of the objects that announce rows of days that are compacted already.

    There is one for each day and slot of arrival, and each is a partition of the dataset of late days. A partition
    counts once (T7), so rows that arrive after a further compaction of their day need a new one."""
    days = {part.key.removeprefix(ROOT).partition("/")[0] for part in found}
    first_open = f"day={iso(now - FINAL_AFTER)[:10]}"
    arrived = iso(now - now % LATE_SLOT)[:16].replace("T", "-").replace(":", "-")
    return [f"{LATE_ROOT}{day}/arrived={arrived}/late" for day in sorted(days) if day < first_open]


def text_of(lines: Sequence[Line]) -> str:
    """The rows as JSON Lines."""
    return "".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in lines)


def by_hour(root: str, found: Iterable[tuple[Instant, str, Line]]) -> list[Part]:
    """Lines with their instants and sequence numbers as one object for each hour, below a root."""
    hours: dict[str, list[tuple[str, Line]]] = {}
    for at, sequence, line in found:
        text = iso(at)
        hours.setdefault(f"{root}day={text[:10]}/hour={text[11:13]}/", []).append((sequence, line))
    return [_part(folder, lines) for folder, lines in sorted(hours.items())]


def _part(folder: str, found: list[tuple[str, Line]]) -> Part:
    sequences = tuple(dict.fromkeys(sequence for sequence, _ in found))
    # Sequence numbers grow within a shard and are unique; the count distinguishes a part with the same first and last.
    name = f"{sequences[0]}-{sequences[-1]}-{len(sequences)}.json.gz"
    return Part(f"{folder}{name}", tuple(line for _, line in found), sequences)


def _run_line(run: Run, prices: Prices) -> Line:
    usage, cost = costs.bill_of(run, prices) or (None, None)
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
        "reason": _reason(run.reason, run.schedule),
        "job": run.kind,
        "fired_by": _reason(run.fired_by, run.schedule) or "",
        "number": run.number or None,
        "priority": run.priority,
        "attempts": run.attempts,
        "version": run.version,
        "target": run.target_kind,
        "target_id": run.target_id,
        "worker_pool": workers.pool_of(run) if workers.is_pulled(run) else None,
        "pool": next((names.pool_of(limit) for limit in run.permits if names.is_pool(limit)), None),
        "units": run.units or None,
        "metrics": _text(run.metrics or None),
        "result": _text(run.result),
        "result_refused": run.result_refused or None,
        "backfill": run.backfill,
        "rerun_of": run.rerun_of,
        **_dag(run),
        "fire": bundles.fire_of(run.run_id),
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
        **_many(run),
        "waited_for": _reason(run.waited_for, run.schedule),
        "waited_ms": waited(run),
        "calls": run.calls,
        "vcpu_hours": usage.vcpu_hours if usage else None,
        "memory_gb_hours": usage.memory_gb_hours if usage else None,
        "storage_gb_hours": usage.storage_gb_hours if usage else None,
        "cost_usd": cost,
    }


def _many(run: Run) -> Line:
    """How many sent events the run of a bundle stands for, and how late they were; empty for any other run."""
    if run.sends is None:
        return {}
    return {
        "count": run.events,
        "lateness_p50_ms": sends.median(run.sends),
        "lateness_counts": {str(bound): int(count) for bound, count in run.sends["late"].items()},
    }


def _missed(run: Run) -> Line:
    """The deadlines that a run has missed, by the same rules as its watch (`core/notices/deadlines`). The first attempt
    of a run has the field for the start, the last one that for the end; None where it does not apply."""
    ended = ended_at(run)
    begun = deadlines.began(run)
    started = begun if begun is not None else ended
    return {
        "missed_start": started > run.start_by if run.start_by is not None and run.attempt == 1 else None,
        "missed_end": ended > run.end_by if run.end_by is not None and run.state != "RETRYING" else None,
    }


def _dag(run: Run) -> Line:
    """The DAG, DAG run, round and node of a run; empty for a run outside DAGs and for the run that starts a DAG."""
    own = rounds.dag_view(run)
    return (
        {}
        if own is None
        else {"dag": own["name"], "dag_run": own["run_id"], "dag_round": own["round"], "node": own["node"]}
    )


def _text(document: Any) -> str | None:
    """A document as JSON text: its fields are defined by users, so they cannot be columns."""
    return json.dumps(document, separators=(",", ":")) if document is not None else None


def _record_line(record: Record) -> Line:
    return {
        "schema": SCHEMA,
        "kind": "record",
        "id": record.id,
        "attempt": 0,
        "rev": record.rev,
        **_owner(record.schedule),
        "state": record.kind,
        "reason": _reason(record.reason, record.schedule),
        "count": record.count,
        "created_at": record.created_at,
        "ended_at": record.recorded_at,
    }


def _reason(why: Why, schedule: str) -> str | None:
    """A reason without secrets, and without names of other namespaces: the lake does not know who reads it."""
    return masks.text(why.seen(readers_of(schedule)))[:MAX_REASON] or None


def _owner(schedule: str) -> Line:
    namespace, app, _ = schedule.split(".", 2)
    return {"namespace": namespace, "app": f"{namespace}.{app}", "schedule": schedule}
