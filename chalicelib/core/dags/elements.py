"""The elements of a node with ``each``: which begin next, how the node ends, and the job of each (W19).

A node with ``each`` has a run of its own, the *whole*: it has the list, and is RUNNING until each element has ended.
The nodes after it see this run alone. An element is a job of the same schedule, and becomes a run as any job does. The
row `Elements` counts the ends as sets of bits. So an end costs the same among 10 elements and among 1,000.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from chalicelib.core import ids
from chalicelib.core.dags import rounds
from chalicelib.core.dags.rounds import Round
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.instants import Instant
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.elements import Elements
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import HISTORY
from chalicelib.core.states import RunState
from chalicelib.core.targets.each import EachElement
from chalicelib.core.targets.retries import Retries
from chalicelib.core.text import count_of
from chalicelib.core.why import Why

BATCH = 40  # elements that one transaction begins; it may have 100 writes
SHOWN = 5  # failed elements that a reason names

State = Literal["succeeded", "failed", "active", "waiting"]


def bits(text: str) -> int:
    """The set that a text of the row stands for, as a number."""
    return int(text, 16)


def text_of(members: int) -> str:
    return f"{members:x}"


def set_of(indexes: Collection[int]) -> int:
    return sum(1 << index for index in set(indexes))


def members(found: int) -> Iterator[int]:
    """The indexes in a set, in order."""
    while found:
        lowest = found & -found
        yield lowest.bit_length() - 1
        found ^= lowest


def first(run_id: str, count: int, at_once: int | None, now: Instant) -> Elements:
    """The row of a list of which nothing has begun."""
    return Elements(run_id, count, at_once=at_once or 0, wake_at=now)


def again(
    run_id: str, before: Elements, round_: str, indexes: Collection[int], at_once: int | None, now: int
) -> Elements:
    """The row of a round in which only these elements run again. The others keep their ends. ``round_`` is the text of
    the round of the row ``before``."""
    chosen = set_of(indexes)
    others = bits(before.ended) & ~chosen
    kept = {name: text_of(bits(held) & others) for name, held in before.kept.items() if bits(held) & others}
    own = others & ~set_of([index for held in kept.values() for index in members(bits(held))])
    if own:
        kept[round_] = text_of(own)
    kept_ends, failed = text_of(others), text_of(bits(before.failed) & others)
    row = Elements(run_id, before.count, kept_ends, kept_ends, failed, at_once or 0, wake_at=now)
    return replace(row, kept=kept)


def with_end(row: Elements, index: int, well: bool) -> Elements:
    """The row after the end of an element. An end that it has already changes nothing."""
    own = 1 << index
    if bits(row.ended) & own:
        return row
    failed = row.failed if well else text_of(bits(row.failed) | own)
    return replace(row, ended=text_of(bits(row.ended) | own), failed=failed)


def next_of(row: Elements) -> list[int]:
    """The elements that begin next, in the order of the list: at most `BATCH`, and as many as may be under way."""
    begun, ended = bits(row.begun), bits(row.ended)
    if row.stopped:
        return []
    free = row.at_once - (begun & ~ended).bit_count() if row.at_once else row.count
    left = members(((1 << row.count) - 1) & ~begun)
    return [index for index, _ in zip(left, range(min(BATCH, max(0, free))), strict=False)]


def with_begun(row: Elements, indexes: Sequence[int]) -> Elements:
    return replace(row, begun=text_of(bits(row.begun) | set_of(indexes)))


def stopped(row: Elements, why: str) -> Elements:
    """The row of which no further element begins: those that have not begun have failed."""
    never = ((1 << row.count) - 1) & ~bits(row.begun)
    ended, failed = text_of(bits(row.ended) | never), text_of(bits(row.failed) | never)
    return replace(row, begun=text_of(bits(row.begun) | never), ended=ended, failed=failed, stopped=row.stopped or why)


def active_of(row: Elements) -> Iterator[int]:
    """The elements that have begun and not ended, in order."""
    return members(bits(row.begun) & ~bits(row.ended))


def is_over(row: Elements) -> bool:
    """Whether each element has ended."""
    return bits(row.ended).bit_count() == row.count


def written(row: Elements, now: Instant) -> Elements:
    """The row as it is written: it wakes if elements are to begin, or the run of the node is to end."""
    is_due = is_over(row) or bool(next_of(row))
    return replace(row, rev=row.rev + 1, leases=0, wake_at=now if is_due else None, expires_at=None)


def closed(row: Elements, now: Instant) -> Elements:
    """The row after the run of the node has ended."""
    return replace(row, rev=row.rev + 1, leases=0, wake_at=None, expires_at=now + HISTORY)


def end_of(row: Elements, name: str, cancelled: bool) -> tuple[RunState, Why]:
    """How the run of a node ends whose elements have all ended, and why."""
    failed = list(members(bits(row.failed)))
    if cancelled:
        return "CANCELLED", Why.of("elements_cancelled", f"{said(row)}: the node was cancelled")
    if not failed:
        return "SUCCEEDED", Why.of("elements_ended", said(row))
    named = ", ".join(f"{name}[{index}]" for index in failed[:SHOWN])
    more = f" and {len(failed) - SHOWN:,} more" if len(failed) > SHOWN else ""
    stop = f"; {row.stopped}" if row.stopped else ""
    return "FAILED", Why.of(
        "elements_failed", f"{len(failed):,} of {count_of(row.count, 'element')} failed: {named}{more}{stop}"
    )


def said(row: Elements) -> str:
    """How far the elements are, as text for users."""
    ended, failed = bits(row.ended).bit_count(), bits(row.failed).bit_count()
    bad = f", {failed:,} failed" if failed else ""
    return f"{ended - failed:,} of {count_of(row.count, 'element')} succeeded{bad}"


def id_of(whole: str, index: int) -> str:
    """The id of the job, and run, of an element of the run ``whole``."""
    own = ids.parse_job_id(whole)
    assert own is not None, f"expected the id of a run, got {whole}"
    return ids.job_id(own.schedule, own.generation, f"{whole}[{index}]")


def whole_of(row: Elements, index: int) -> str:
    """The id of the node's run of which the element is: that of an earlier round, if it did not run again."""
    held = next((name for name, held in row.kept.items() if bits(held) >> index & 1), None)
    return row.run_id if held is None else in_round(row.run_id, held)


def in_round(run_id: str, round_: str) -> str:
    """The id of the run of the same node in another round of its DAG run."""
    own = ids.parse_job_id(run_id)
    assert own is not None, f"expected the id of a run, got {run_id}"
    return ids.job_id(own.schedule, own.generation, round_)


def job_of(whole: Run, index: int, now: Instant) -> Job:
    """The job of an element. One that is later in the list is 1 ms younger, so that queues keep the order."""
    values = whole.elements or ()
    element = {"index": index, "count": len(values), "value": values[index], "of": whole.run_id}
    return Job(
        schedule=whole.schedule,
        generation=whole.generation,
        sort_key=sort_keys.element(id_of(whole.run_id, index), index),
        job_id=id_of(whole.run_id, index),
        kind="detached",
        state="PENDING_CONSTRAINTS",
        created_at=now - len(values) + index,
        met_at=now,
        accepted_at=now,
        correlation=whole.correlation,
        element=element,
        requested_by=whole.requested_by,
        reason=reason(element),
        wake_at=now,
    )


def reason(element: Mapping[str, Any]) -> Why:
    """Why an element runs."""
    return Why.of(
        "element", f"element {element['index']} of its node, which has {count_of(element['count'], 'element')}"
    )


def seen_by(job: Job, schedule: Schedule, workflow: Workflow) -> tuple[Schedule, Workflow]:
    """The documents as they count for a job of a node with ``each``.

    For that of the whole, an approval and ``fresh`` count: they are asked once. The other constraints, the limits and
    the pool count for each element. For other schedules the documents are as given."""
    if schedule.each is None:
        return schedule, workflow
    whole = job.element is None
    own = schedule.model_copy(update={"constraints": tuple(c for c in schedule.constraints if c.once is whole)})
    if not whole:
        return own, workflow.model_copy(update={"approval": None})
    alone: dict[str, Any] = {"target": EachElement(), "retries": Retries(), "timeout": "never", "deadline": None}
    return own, workflow.model_copy(update={**alone, "pool": None, "slots": None, "resources": None, "expected": None})


def context_of(element: Mapping[str, Any]) -> dict[str, Any]:
    """An element as run contexts and views have it."""
    return {name: element[name] for name in ("index", "count", "value")}


def chosen(spec: str | Sequence[int], row: Elements) -> list[int]:
    """The elements that a re-run names: indexes, or ``failed`` for all that failed."""
    return list(members(bits(row.failed))) if spec == "failed" else sorted(set(map(int, spec)))


def round_of(run: Run) -> Round | None:
    """The round in which a node's run, or the run of one of its elements, is."""
    value = rounds.which(run.correlation)
    return rounds.parse(value) if value is not None else None
