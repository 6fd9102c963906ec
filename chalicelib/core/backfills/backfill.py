"""The decisions of a backfill (L12): what its plan holds, what has become of what is under way, what is next.

An entry of the plan is an instant at which the schedule's times would have fired, or a partition. Each becomes one job
of the kind ``backfill``, which goes through the same lines as any other; never more than ``concurrency`` of them, with
their retries, are under way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from chalicelib.core import ids, states
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import invalid
from chalicelib.core.events import correlation
from chalicelib.core.instants import Instant, iso, parse_instant, parse_when
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.backfill import Backfill, BackfillState, PlanPart
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import HISTORY
from chalicelib.core.time import exclusions, expressions
from chalicelib.core.triggers import occurrences, tree
from chalicelib.core.triggers.occurrences import Recurrence
from chalicelib.core.triggers.partition import partition_key

# More is a mistake, or several backfills: to make a plan takes time, and somebody waits for the answer.
MAX_ENTRIES = 10_000
# Entries in one row of a plan: values of ten keys of 200 characters stay well below DynamoDB's 400 KB.
PART = 100
# Jobs handed out in one transaction, which holds the backfill and the gate besides.
BATCH_SIZE = 50

EntryState = Literal["waiting", "running", "succeeded", "failed", "cancelled", "dropped", "again"]


@dataclass(frozen=True, slots=True)
class Step:
    """The backfill as it stands now, and the entries that are to get a job."""

    row: Backfill
    hand_out: tuple[int, ...]


def instants(schedule: Schedule, anchor: Instant | None, since: Instant, until: Instant) -> tuple[str, ...]:
    """The instants in ``[since, until)`` at which the schedule's times are due, oldest first, each once.

    Intervals keep their step (from ``due_time`` or ``start``, else that of the living timer, ``anchor``), as if they
    had always run; without any they count from ``since``. Exclusions hold. The bounds of the trigger's life and its
    repeats do not: the interval is the bound. Raises ``invalid`` for a schedule without times.
    """
    times = tree.recurrences(schedule.trigger)
    if not times:
        hint = "name partitions for a data trigger; a schedule that waits for others is run by backfilling those"
        raise invalid("from", "a schedule with a time in its trigger", tree.describe(schedule.trigger), hint)
    found: set[Instant] = set()
    for rule in times:
        for instant in _due(rule, anchor, since, until):
            found.add(instant)
            if len(found) > MAX_ENTRIES:
                raise _too_many(f"more than {MAX_ENTRIES} in this interval", "to")
    return tuple(iso(instant) for instant in sorted(found))


def _due(rule: Recurrence, anchor: Instant | None, since: Instant, until: Instant) -> Iterable[Instant]:
    """The nominal instants of one rule, without the bounds of its life: those say when it fires by itself."""
    named = [parse_when(text, since, "from") for text in (rule.due_time, rule.start) if text is not None]
    parsed = expressions.parse(rule.expression) if rule.expression is not None else None
    if parsed is None:
        yield from (at for at in named[:1] if since <= at < until)
    elif isinstance(parsed, expressions.Interval):
        counted = [*named, *(at for at in (parsed.start, anchor) if at is not None), since]
        for instant in range(since + (counted[0] - since) % parsed.every, until, parsed.every):
            if exclusions.end_of(rule.excluding, rule.zone_name, instant) is None:
                yield instant
    else:
        free = rule.unbounded()
        at: Instant | None = since - 1
        while at is not None and (at := occurrences.next_due(free, since - 1, at)) is not None and at < until:
            yield at


def datasets_of(schedule: Schedule) -> tuple[str, ...]:
    """The datasets whose partitions a schedule's trigger waits for, each once."""
    named = (each.name for leaf in tree.leaves(schedule.trigger) for each in leaf.trigger.datasets())
    return tuple(dict.fromkeys(named))


def between(
    keys: Sequence[str],
    known: Iterable[tuple[str, ...]],
    since: Mapping[str, str] | None,
    until: Mapping[str, str] | None,
) -> list[tuple[str, ...]]:
    """The partitions between two bounds that name the first keys, both included; numbers count as numbers."""
    low, high = _bound(keys, since, "partitions.from"), _bound(keys, until, "partitions.to")
    if low and high and low[: len(high)] > high[: len(low)]:
        raise invalid("partitions.to", "an end that is not before the start", dict(until or {}))
    ranks = ((values, tuple(_natural(value) for value in values)) for values in known)
    return [
        values
        for values, rank in ranks
        if (not low or rank[: len(low)] >= low) and (not high or rank[: len(high)] <= high)
    ]


def named(keys: Sequence[str], given: Sequence[Mapping[str, str]]) -> list[tuple[str, ...]]:
    """The partitions that were named one by one; each has a value of every key of the dataset."""
    for number, values in enumerate(given):
        if set(values) != set(keys):
            raise invalid(f"partitions.values.{number}", f"an object with exactly the keys {', '.join(keys)}", values)
    return [tuple(values[key] for key in keys) for values in given]


def entries_of(keys: Sequence[str], partitions: Iterable[tuple[str, ...]], by: tuple[str, ...]) -> tuple[str, ...]:
    """The entries of a plan, oldest first. A schedule whose jobs are told apart by some of the keys (T19) runs once for
    each of their values: for the last of the partitions that share them."""
    if missing := [key for key in by if key not in keys]:
        raise invalid("partitions.dataset", f"a dataset with the key {missing[0]}, by which jobs are told apart", keys)
    ordered = sorted(set(partitions), key=lambda values: [_natural(value) for value in values])
    last = {tuple(values[keys.index(key)] for key in by) if by else values: values for values in ordered}
    if len(last) > MAX_ENTRIES:
        raise _too_many(f"{len(last)} partitions", "partitions")
    return tuple("/".join(values) for values in last.values())


def plan_parts(backfill: str, entries: Sequence[str]) -> tuple[str, tuple[PlanPart, ...]]:
    """The name of a plan and its rows. Each backfill has its own: they get an end when it is over."""
    plan = ids.digest(backfill, *entries, length=32)
    chunks = [tuple(entries[start : start + PART]) for start in range(0, len(entries), PART)]
    return plan, tuple(PlanPart(plan, number, chunk) for number, chunk in enumerate(chunks))


def parts_of(row: Backfill) -> range:
    """The numbers of the parts of a backfill's plan."""
    return range((row.total + PART - 1) // PART)


def entry_state(attempts: Sequence[Run], waits: bool, recorded: bool, current: bool) -> EntryState:
    """What has become of an entry. ``current``: its job lives in the generation that may be claimed from; one that was
    taken off because another has begun (the schedule was enabled, and is the same) is handed out again."""
    if attempts:
        last = attempts[-1]
        if last.state == "RETRYING" or not states.is_terminal(last.state):
            return "running"
        if last.state == "ABORTED":
            return "dropped" if current else "again"
        return "succeeded" if last.state == "SUCCEEDED" else "failed" if last.state == "FAILED" else "cancelled"
    if waits or not recorded:
        return "waiting"  # one that is in neither place is on its way between them: its end will be told
    return "dropped" if current else "again"


def advance(row: Backfill, seen: Mapping[str, EntryState], generation: int, ended: str | None, now: Instant) -> Step:
    """The backfill after a look at what it has under way. ``ended`` is why it must not go on, ``generation`` the one in
    which what it hands out will live."""
    state: BackfillState = "ENDED" if row.state == "RUNNING" and ended else row.state
    goes_on = state == "RUNNING"
    counts = {what: sum(now_is == what for now_is in seen.values()) for what in ("succeeded", "failed", "cancelled")}
    gone = ("dropped",) if goes_on else ("dropped", "again")
    live = {entry: row.live[entry] for entry, now_is in seen.items() if now_is in ("waiting", "running")}
    again = [int(entry) for entry, now_is in seen.items() if now_is == "again"] if goes_on else []
    room = max(0, row.concurrency - len(live) - len(again)) if goes_on else 0
    fresh = range(row.next, min(row.total, row.next + room))
    wanted = [*again, *fresh]
    hand_out = wanted[:BATCH_SIZE]
    # What does not fit into this transaction comes with the next; who is to be handed out again keeps its place.
    live |= {str(entry): generation for entry in hand_out} | {
        str(entry): row.live[str(entry)] for entry in again[BATCH_SIZE:]
    }
    following = row.next + sum(entry >= row.next for entry in hand_out)
    if goes_on and not live and following >= row.total:
        state = "DONE"
    closing = state in ("CANCELLED", "ENDED") and "waiting" in seen.values()
    over = state != "RUNNING" and not live
    moved = replace(
        row,
        state=state,
        reason=ended if row.state == "RUNNING" and ended else row.reason,
        generation=generation,
        next=following,
        live=live,
        succeeded=row.succeeded + counts["succeeded"],
        failed=row.failed + counts["failed"],
        cancelled=row.cancelled + counts["cancelled"],
        dropped=row.dropped + sum(now_is in gone for now_is in seen.values()),
        ended_at=now if over and row.ended_at is None else row.ended_at,
        expires_at=now + HISTORY if over else None,
        rev=row.rev + 1,
        leases=0,
        wake_at=now if len(wanted) > len(hand_out) or (closing and row.state == "RUNNING") else None,
    )
    return Step(moved, tuple(hand_out))


def job_of(row: Backfill, index: int, event: Event, by: tuple[str, ...], created_at: Instant, now: Instant) -> Job:
    """The job of an entry: its id and place follow from it, so it comes into being once in each generation."""
    return Job(
        schedule=row.schedule,
        generation=row.generation,
        sort_key=sort_keys.backfill(row.id, index),
        job_id=job_id(row, index, row.generation),
        kind="backfill",
        state="PENDING_CONSTRAINTS",
        created_at=created_at,
        accepted_at=event.accepted_at,
        correlation=correlation.correlate(by, event) if by else None,
        properties=row.properties,
        event=event,
        backfill=row.id,
        reason=f"backfill {row.id}",
        wake_at=now,
    )


def job_id(row: Backfill, index: int, generation: int) -> str:
    return ids.job_id(row.schedule, generation, f"backfill:{row.id}:{index}")


def fire_event(row: Backfill, entry: str) -> Event:
    """The fire of a past instant, as if it had come then."""
    at = parse_instant(entry)
    source = ids.event_id("time", row.schedule, "backfill", row.id, at)
    return Event(id=source, kind="time", key=f"time:{row.schedule}", instant=at, accepted_at=at)


def partition_event(row: Backfill, values: tuple[str, ...]) -> Event:
    """The event of a partition that nobody has registered: as if it had become ready when the backfill began."""
    folders = "/".join(f"{key}={value}" for key, value in zip(row.keys, values, strict=True))
    return Event(
        id=ids.event_id("partition", row.dataset, *values),
        kind="partition",
        key=partition_key(row.dataset or ""),
        instant=row.created_at,
        accepted_at=row.created_at,
        partition=dict(zip(row.keys, values, strict=True)),
        dataset=row.dataset,
        path=f"{row.base}{folders}/",
    )


def values_of(entry: str) -> tuple[str, ...]:
    """The values of the partition that an entry names."""
    return tuple(entry.split("/"))


def _bound(
    keys: Sequence[str], given: Mapping[str, str] | None, field: str
) -> tuple[tuple[tuple[int, int, str], ...], ...]:
    if given is None:
        return ()
    first = list(keys[: len(given)])
    if not given or set(given) != set(first):
        raise invalid(field, f"the first of the keys {', '.join(keys)}, or all of them", dict(given))
    return tuple(_natural(given[key]) for key in first)


def _natural(value: str) -> tuple[tuple[int, int, str], ...]:
    """A value in an order in which 9 comes before 10, and 2013-9-1 before 2013-10-1."""
    parts = re.findall(r"[0-9]+|[^0-9]+", value)
    return tuple((0, int(part), part) if part[0] in "0123456789" else (1, 0, part) for part in parts)


def _too_many(got: str, field: str) -> Exception:
    return invalid(field, f"at most {MAX_ENTRIES} runs in one backfill", got, "make several of it, one after another")
