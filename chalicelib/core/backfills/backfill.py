"""The decisions of a backfill (L12): the entries of its plan, the state of the active ones, and which come next.

An entry of the plan is an instant at which the schedule's times would have fired, a partition, or a period of a
schedule with ``per``. Each becomes one job of the kind ``backfill``, which needs the same permits as any other. At most
``concurrency`` of the entries are active, retries included.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from chalicelib.core import ids, states
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import invalid
from chalicelib.core.events import build
from chalicelib.core.events.values import Rank, rank
from chalicelib.core.instants import MINUTE, Instant, iso, parse_instant, parse_when
from chalicelib.core.jobs import gather
from chalicelib.core.partition_values import decoded
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.backfill import Backfill, BackfillState, PlanPart
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import HISTORY
from chalicelib.core.time import days, expressions
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.program_status import status_key
from chalicelib.core.triggers.time import Recurrence
from chalicelib.core.why import Why, mention

# A user who needs more starts several backfills: planning takes time, and the caller waits for the answer.
MAX_ENTRIES = 10_000
MAX_PARTS = 50_000  # partitions that the periods of a plan need: 500 reads of a hundred
# Entries in one row of a plan: values of ten keys of 200 characters stay well below DynamoDB's 400 KB.
PART = 100
# Jobs created in one transaction, which also writes the backfill and expects the schedule state.
BATCH_SIZE = 50
MAX_BYTES, ROW_BYTES = 3_000_000, 4_000  # of a transaction, which takes 4 MB, and of a job without properties

# How often entries that end with DAG runs are checked: no transaction of a node's run names the backfill (L21).
DAG_CHECK = MINUTE

EntryState = Literal["waiting", "running", "succeeded", "failed", "cancelled", "dropped", "again"]


@dataclass(frozen=True, slots=True)
class Step:
    """The backfill after a check, and the numbers of the entries that get a job now."""

    row: Backfill
    hand_out: tuple[int, ...]


def instants(schedule: Schedule, anchor: Instant | None, since: Instant, until: Instant) -> tuple[str, ...]:
    """The instants in ``[since, until)`` at which the schedule's times are due, oldest first, each once.

    Intervals count from ``due_time`` or ``start``, or else from ``anchor``, that of the schedule's timer, as if they
    had always run. Without any of these they count from ``since``. Exclusions apply. The bounds of the trigger and its
    repeats do not: the interval is the bound. Raises `SluiceError` (``invalid``) for a schedule without times, and for
    more than `MAX_ENTRIES` instants.
    """
    times = tree.recurrences(schedule.trigger)
    if not times:
        hint = "for a data trigger, name partitions; for a schedule that waits for other schedules, backfill those"
        raise invalid("from", "a schedule with a time in its trigger", tree.describe(schedule.trigger), hint)
    found: set[Instant] = set()
    for rule in times:
        for instant in _due(rule, anchor, since, until):
            found.add(instant)
            if len(found) > MAX_ENTRIES:
                raise _too_many(f"more than {MAX_ENTRIES} in this interval", "to")
    return tuple(iso(instant) for instant in sorted(found))


def _due(rule: Recurrence, anchor: Instant | None, since: Instant, until: Instant) -> Iterable[Instant]:
    """The nominal instants of one rule. Its own bounds do not apply, since they limit the fires of the timer alone."""
    named = [parse_when(text, since, "from") for text in (rule.due_time, rule.start) if text is not None]
    parsed = expressions.parse(rule.expression) if rule.expression is not None else None
    if parsed is None:
        yield from (at for at in named[:1] if since <= at < until)
    elif isinstance(parsed, expressions.Interval):
        counted = [*named, *(at for at in (parsed.start, anchor) if at is not None), since]
        for instant in range(since + (counted[0] - since) % parsed.every, until, parsed.every):
            if days.end_of(rule.excluding, rule.zone_name, instant) is None:
                yield instant
    else:
        free = rule.unbounded()
        at: Instant | None = since - 1
        while at is not None and (at := free.next_due(since - 1, at)) is not None and at < until:
            yield at


def datasets_of(schedule: Schedule) -> tuple[str, ...]:
    """The datasets for whose partitions a schedule's trigger waits, each once."""
    named = (dataset.name for leaf in tree.leaves(schedule.trigger) for dataset in leaf.trigger.datasets())
    return tuple(dict.fromkeys(named))


def between(
    keys: Sequence[str],
    known: Iterable[tuple[str, ...]],
    since: Mapping[str, str] | None,
    until: Mapping[str, str] | None,
) -> list[tuple[str, ...]]:
    """The partitions between two bounds, both included, that name the first keys. Numbers compare as numbers, with or
    without leading zeros. Raises `SluiceError` if a bound has other keys, or the bounds are in the wrong order."""
    low, high = _bound(keys, since, "partitions.from"), _bound(keys, until, "partitions.to")
    if low and high and low[: len(high)] > high[: len(low)]:
        raise invalid("partitions.to", "an end that is not before the start", dict(until or {}))
    ranks = ((values, tuple(map(rank, values))) for values in known)
    return [
        values
        for values, place in ranks
        if (not low or place[: len(low)] >= low) and (not high or place[: len(high)] <= high)
    ]


def named(keys: Sequence[str], given: Sequence[Mapping[str, str]]) -> list[tuple[str, ...]]:
    """The partitions that a request names one by one. Raises `SluiceError` unless each has all keys of the dataset."""
    for number, values in enumerate(given):
        if set(values) != set(keys):
            hint = f"write each key once: {'/'.join(f'{key}=...' for key in keys)}"
            expected = f"an object with exactly the keys {', '.join(keys)}"
            raise invalid(f"partitions.values.{number}", expected, values, hint)
    return [tuple(values[key] for key in keys) for values in given]


def entries_of(keys: Sequence[str], partitions: Iterable[tuple[str, ...]], by: tuple[str, ...]) -> tuple[str, ...]:
    """The entries of a plan, oldest first. A schedule with correlation keys (T19) runs once for each of their values:
    for the last of the partitions that share them. Raises `SluiceError` for an unknown key, or for too many entries."""
    if missing := [key for key in by if key not in keys]:
        raise invalid("partitions.dataset", f"a dataset with the correlation key {missing[0]}", keys)
    ordered = in_order(partitions)
    last = {tuple(values[keys.index(key)] for key in by) if by else values: values for values in ordered}
    if len(last) > MAX_ENTRIES:
        raise _too_many(f"{len(last)} partitions", "partitions")
    return tuple("/".join(values) for values in last.values())


def in_order(partitions: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Different partitions, oldest first: numbers compare as numbers, and texts decide between equal numbers."""
    return sorted(set(partitions), key=lambda values: (tuple(map(rank, values)), values))


def plan_parts(backfill: str, entries: Sequence[str]) -> tuple[str, tuple[PlanPart, ...]]:
    """The name of a plan, and its rows. Each backfill has its own rows, which expire some time after its end."""
    plan = ids.digest(backfill, *entries, length=32)
    chunks = [tuple(entries[start : start + PART]) for start in range(0, len(entries), PART)]
    return plan, tuple(PlanPart(plan, number, chunk) for number, chunk in enumerate(chunks))


def parts_of(total: int) -> range:
    """The numbers of the parts of a plan with ``total`` entries."""
    return range((total + PART - 1) // PART)


def entry_state(attempts: Sequence[Run], waits: bool, recorded: bool, current: bool) -> EntryState:
    """The state of an entry, by the attempts of its run and whether it has a job or a record. ``current``: its job
    belongs to the present generation. The job of a former generation is dropped, since the schedule was enabled again.
    If the schedule is otherwise the same, the entry gets another job."""
    if attempts:
        last = attempts[-1]
        if last.state == "RETRYING" or not states.is_terminal(last.state):
            return "running"
        if last.state == "ABORTED":
            return "dropped" if current else "again"
        return "succeeded" if last.state == "SUCCEEDED" else "failed" if last.state == "FAILED" else "cancelled"
    if waits or not recorded:
        return "waiting"  # without a job and a record, another transaction moves it; a later check finds its end
    return "dropped" if current else "again"


def advance(row: Backfill, seen: Mapping[str, EntryState], generation: int, ended: str | None, now: Instant) -> Step:
    """The backfill after a check of its active entries. ``seen`` has their states. ``ended`` is the reason why the
    backfill must stop; None if it need not. ``generation`` is that of the jobs to create."""
    stopped = ended if row.state == "RUNNING" else None
    state: BackfillState = "ENDED" if stopped else row.state
    goes_on = state == "RUNNING"
    counts = Counter(seen.values())
    dropped = counts["dropped"] + (0 if goes_on else counts["again"])
    live = {entry: row.live[entry] for entry, entry_is in seen.items() if entry_is in ("waiting", "running")}
    again = [int(entry) for entry, entry_is in seen.items() if entry_is == "again"] if goes_on else []
    free = max(0, row.concurrency - len(live) - len(again)) if goes_on else 0
    wanted = [*again, *range(row.next, min(row.total, row.next + free))]
    most = _batch_size(row)
    hand_out = wanted[:most]
    # The next transaction creates the jobs that do not fit into this one. Entries that need another job stay active.
    live |= {str(entry): row.live[str(entry)] for entry in again}
    live |= {str(entry): generation for entry in hand_out}
    following = row.next + sum(entry >= row.next for entry in hand_out)
    if goes_on and not live and following >= row.total:
        state = "DONE"
    closing = state in ("CANCELLED", "ENDED") and "waiting" in seen.values()
    over = state != "RUNNING" and not live
    moved = replace(
        row,
        state=state,
        reason=stopped or row.reason,
        generation=generation,
        next=following,
        live=live,
        succeeded=row.succeeded + counts["succeeded"],
        failed=row.failed + counts["failed"],
        cancelled=row.cancelled + counts["cancelled"],
        dropped=row.dropped + dropped,
        ended_at=now if over and row.ended_at is None else row.ended_at,
        expires_at=now + HISTORY if over else None,
        rev=row.rev + 1,
        leases=0,
        wake_at=now if len(wanted) > len(hand_out) or (closing and row.state == "RUNNING") else None,
    )
    return Step(moved, tuple(hand_out))


def _batch_size(row: Backfill) -> int:
    """How many jobs one transaction creates: each has the properties of the backfill."""
    return max(1, min(BATCH_SIZE, MAX_BYTES // (ROW_BYTES + len(json.dumps(dict(row.properties))))))


def ends_with_dag(row: Backfill) -> bool:
    """Whether the entries of a backfill end with the DAG runs that they start, as those of a DAG's start do."""
    return ids.is_of_dag(row.schedule)


def job_of(row: Backfill, index: int, event: Event, by: tuple[str, ...], created_at: Instant, now: Instant) -> Job:
    """The job of an entry."""
    correlated = gather.correlate(by, event)
    job = replace(_job(row, index, now), created_at=created_at, event=event, accepted_at=event.accepted_at)
    reason = Why.of("backfill", f"backfill {row.id}")
    return replace(job, correlation=correlated, properties=row.properties, reason=reason)


def job_of_period(row: Backfill, index: int, entry: str, created_at: Instant, now: Instant) -> Job:
    """The job of a period. It has no event: its run gets the partitions that are there at its claim (T25)."""
    job = replace(_job(row, index, now), created_at=created_at, accepted_at=now, correlation=values_by_key(row, entry))
    return replace(job, properties=row.properties, reason=Why.of("backfill", f"backfill {row.id}"))


def job_of_run(row: Backfill, run: Run, now: Instant) -> Job:
    """The job of a step that begins with a run (L21): the data, properties and correlation of that run."""
    job = replace(_job(row, 0, now), event=run.event, accepted_at=now, correlation=run.correlation)
    properties = {**run.request.properties, **row.properties}
    reason = Why.of("run_again", "runs ", mention("run", run.run_id), " again")
    return replace(job, properties=properties, rerun_of=run.rerun_of or run.run_id, reason=reason)


def _job(row: Backfill, index: int, now: Instant) -> Job:
    """Its id and sort key follow from the entry, so each generation has it once."""
    return Job(
        schedule=row.schedule,
        generation=row.generation,
        sort_key=sort_keys.backfill(row.id, index),
        job_id=job_id(row, index, row.generation),
        kind="backfill",
        state="PENDING_CONSTRAINTS",
        created_at=now,
        backfill=row.id,
        requested_by=row.requested_by,
        wake_at=now,
    )


def job_id(row: Backfill, index: int, generation: int) -> str:
    """The id of the job of an entry in a generation."""
    return ids.job_id(row.schedule, generation, f"backfill:{row.id}:{index}")


def fire_event(row: Backfill, entry: str) -> Event:
    """The event of a fire at a past instant, accepted at that instant."""
    at = parse_instant(entry)
    source = ids.event_id("time", row.schedule, "backfill", row.id, at)
    return Event(id=source, kind="time", key=f"time:{row.schedule}", instant=at, accepted_at=at)


def partition_event(row: Backfill, entry: str) -> Event:
    """The event of a partition that is not registered, accepted when the backfill began."""
    return build.event_of(row.dataset or "", row.keys, row.base, texts_of(entry), row.created_at, row.created_at)


def unregistered(name: str, dataset: Dataset, texts: tuple[str, ...], at: Instant) -> Event:
    """The event of a partition of a dataset that is not registered, as if it had come at an instant."""
    return build.partition_event(name, dataset, texts, at, at)


def status_event(row: Backfill, entry: str, run: Run | None) -> Event:
    """The event of an entry of a downstream step: the upstream has completed for these values (L21). ``run`` is the run
    of the parent step for them; None if there is none, or if it is no longer stored."""
    values = dict(zip(row.keys, values_of(entry), strict=True)) if row.keys else None
    if run is not None:
        # The run of a DAG's start stands for the runs of its nodes, one of which has the upstream workflow.
        key = status_key(row.upstream or "", "COMPLETED")
        return replace(build.status_event(run, "COMPLETED"), partition=values, workflow=row.upstream, key=key)
    return Event(
        id=ids.event_id("reprocess", row.schedule, row.id, entry),
        kind="program_status",
        key=status_key(row.upstream or "", "COMPLETED"),
        instant=row.created_at,
        accepted_at=row.created_at,
        partition=values,
        workflow=row.upstream,
        status="COMPLETED",
    )


def is_for(entry: str, keys: Sequence[str], parent_entry: str, parent_keys: Sequence[str]) -> bool:
    """Whether an entry follows from an entry of its parent step: both name the same values of the keys they share, or
    the same fire."""
    if not keys:
        return entry == parent_entry
    known = dict(zip(parent_keys, values_of(parent_entry), strict=True))
    return all(known.get(key) == value for key, value in zip(keys, values_of(entry), strict=True))


def texts_of(entry: str) -> tuple[str, ...]:
    """The values of the partition that an entry names, as they stand in its folder."""
    return tuple(entry.split("/"))


def values_of(entry: str) -> tuple[str, ...]:
    """The values of the partition that an entry names."""
    return tuple(map(decoded, texts_of(entry)))


def values_by_key(row: Backfill, entry: str) -> dict[str, str]:
    """The values of an entry of a backfill, by its keys: those of a partition, or the correlation of a period."""
    return dict(zip(row.keys, values_of(entry), strict=True))


def _bound(keys: Sequence[str], given: Mapping[str, str] | None, field: str) -> tuple[Rank, ...]:
    if given is None:
        return ()
    first = list(keys[: len(given)])
    if not given or set(given) != set(first):
        raise invalid(field, f"the first of the keys {', '.join(keys)}, or all of them", dict(given))
    return tuple(rank(decoded(given[key])) for key in first)


def _too_many(got: str, field: str) -> Exception:
    return invalid(
        field, f"at most {MAX_ENTRIES} runs in one backfill", got, "start several backfills, one after another"
    )
