"""Permits in blocks: read the head of a policy's queue, acquire the appointments of its jobs together, and send each
job at its appointment (E3).

The invocation that serves the queue acquires a block, hints the next service of the queue, and sends the first jobs
itself. If there are many, it hands the others on. The jobs stay in the queue until they have been sent. So after a
crash the queue has every job, and only permits are lost. A delivery lease keeps two invocations from sending one job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from chalicelib.core import ids
from chalicelib.core.changes import replace
from chalicelib.core.fires import bundles
from chalicelib.core.instants import SECOND, Instant, Millis
from chalicelib.core.limits import blocks, names
from chalicelib.core.limits.permits import Pace
from chalicelib.core.limits.writes import AcquireBlock
from chalicelib.core.rows import delivery_lease, sort_keys
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import Waiter
from chalicelib.core.rows.ref import Ref, block_ref
from chalicelib.core.runs import queued
from chalicelib.core.targets import sub_batches
from chalicelib.flow.deliveries.bundles import row_of
from chalicelib.flow.deliveries.join import needs_permit_alone, with_definitions
from chalicelib.flow.deliveries.prepare import prepare_queued
from chalicelib.flow.deliveries.send import lease, send
from chalicelib.ports import Ports

# A job is on its way until so long after the last appointment of its block: then it has been sent and recorded, or it
# has missed its appointment, and gets another one. Where many are recorded at a time, that takes longer.
RECORDED: Millis = SECOND // 2
RECORDED_IN_PARTS: Millis = 2 * SECOND
# So many waiters are looked at for one block.
MAX_READ = 1_500
MIN_SCHEDULES = 3
_MARK = 8
_FIELDS = 6  # of a job in a ref


@dataclass(frozen=True, slots=True)
class Slot:
    """A job of a queue, and its appointment."""

    at: Instant
    waiter: Waiter


class OnTheirWay:
    """The jobs whose blocks are on their way, by mark, with the instants until which they are left alone."""

    def __init__(self, texts: Sequence[str], now: Instant) -> None:
        self._until: dict[str, Instant] = {}
        for text in texts:
            until, _, marks = text.partition(":")
            if int(until, 36) > now:
                self._until |= {marks[start : start + _MARK]: int(until, 36) for start in range(0, len(marks), _MARK)}

    def __len__(self) -> int:
        return len(self._until)

    def __contains__(self, waiter: Waiter) -> bool:
        return _mark(waiter) in self._until

    def add(self, slots: Sequence[Slot], until: Instant) -> None:
        self._until |= {_mark(slot.waiter): until for slot in slots}

    @property
    def texts(self) -> list[str]:
        """One text for each instant, as a hint carries it."""
        marks: dict[Instant, list[str]] = {}
        for mark, until in self._until.items():
            marks.setdefault(until, []).append(mark)
        return [f"{ids.base36(until)}:{''.join(found)}" for until, found in marks.items()]


def _mark(waiter: Waiter) -> str:
    return ids.digest(waiter.rank, waiter.job_id, length=_MARK)


def expanded(ports: Ports, waiters: Sequence[Waiter], most: int) -> list[Waiter]:
    """The first waiters of a queue, with the events of bundles in place of these; about ``most``."""
    if not any(sort_keys.events_of(waiter.job_sort_key) > 1 for waiter in waiters):
        return list(waiters)
    found: list[Waiter] = []
    for waiter in waiters:
        if len(found) >= most:
            break
        if waiter.run is not None or sort_keys.events_of(waiter.job_sort_key) == 1:
            found.append(waiter)
            continue
        bundle = ports.rows.get(Job, waiter.job_schedule, waiter.job_generation, waiter.job_sort_key)
        if bundle is not None and bundle.is_bundle and queued.waiter_of(bundle) == waiter:
            found += bundles.waiters(bundle, waiter, ports.clock.now())
    return found


# -- acquire -------------------------------------------------------------------------------------------------------


def plain_head(ports: Ports, waiters: Sequence[Waiter]) -> list[Waiter]:
    """The waiters before the first one that needs a claim. Such a waiter is a run, or a job of a schedule whose jobs
    need more than a permit of their policy."""
    known: dict[str, bool] = {}
    seen = _seen(ports, waiters)

    def is_plain(waiter: Waiter) -> bool:
        if waiter.run is not None:
            return False
        if waiter.job_schedule not in known:
            known[waiter.job_schedule] = needs_permit_alone(seen, waiter.job_schedule)
        return known[waiter.job_schedule]

    if not waiters:
        return []
    return list(takewhile(is_plain, waiters))


def _seen(ports: Ports, waiters: Sequence[Waiter]) -> Ports:
    """Ports that have read what `needs_permit_alone` needs, if several schedules wait."""
    schedules = list(dict.fromkeys(waiter.job_schedule for waiter in waiters))
    return ports if len(schedules) < MIN_SCHEDULES else with_definitions(ports, schedules)


def acquire(ports: Ports, pace: Pace, head: Instant, waiters: Sequence[Waiter]) -> tuple[list[Slot], Instant]:
    """Acquire the next appointments for these waiters. Returns their slots and the ``head`` after them; no slots if the
    next appointment lies too far ahead, or after a conflict."""
    block = blocks.next_block(pace, head, ports.clock.now(), len(waiters))
    if block is None or ports.ledger.commit([AcquireBlock(pace.limit_name, head, block.head)]) is not None:
        return [], head
    return [Slot(at, waiter) for at, waiter in zip(block.appointments, waiters, strict=False)], block.head


def parts_of(slots: Sequence[Slot], tolerance: Millis) -> list[Sequence[Slot]]:
    """The slots of each invocation. Those whose calls begin together are a stretch, and the stretches go to the
    invocations in turn. So each has time for its call, and to read the rows of its next stretch, while others send."""
    if not slots:
        return []
    stretches: list[list[Slot]] = []
    for slot in slots:
        if stretches and _are_together(stretches[-1], slot, tolerance):
            stretches[-1].append(slot)
        else:
            stretches.append([slot])
    apart = max(1, (slots[-1].at - slots[0].at) // len(stretches))
    count = min(len(stretches), max(-(-len(slots) // blocks.PART), -(-blocks.BETWEEN // apart)))
    return [[slot for stretch in stretches[first::count] for slot in stretch] for first in range(count)]


def _are_together(stretch: Sequence[Slot], slot: Slot, tolerance: Millis) -> bool:
    near = slot.at <= stretch[0].at + int(tolerance * blocks.TOGETHER)
    return near and len(stretch) < sub_batches.MAX_ENTRIES


def ref_of_part(pace: Pace, part: Sequence[Slot]) -> Ref:
    """The ref with which another invocation sends a part of a block."""
    fields = [
        (
            f"{ids.base36(slot.at)}{slot.waiter.limit_name.removeprefix(pace.limit_name)}",
            slot.waiter.rank,
            slot.waiter.job_schedule,
            ids.base36(slot.waiter.job_generation),
            slot.waiter.job_sort_key,
            slot.waiter.job_id,
        )
        for slot in part
    ]
    return block_ref(pace.limit_name, str(pace.tolerance), *(field for slot in fields for field in slot))


def read_part(ref: Ref) -> tuple[list[Slot], Millis]:
    """The slots that a ref names, and the tolerance of their pace."""
    limit_name, tolerance, *fields = ref.parts
    slots = []
    for start in range(0, len(fields), _FIELDS):
        when, rank, schedule, generation, sort_key, job_id = fields[start : start + _FIELDS]
        at, _, number = when.partition("/")
        queue = names.part(limit_name, int(number)) if number else limit_name
        slots.append(Slot(int(at, 36), Waiter(queue, rank, schedule, int(generation, 36), sort_key, job_id)))
    return slots, int(tolerance)


# -- send ----------------------------------------------------------------------------------------------------------


def send_part(ports: Ports, slots: Sequence[Slot], tolerance: Millis) -> list[Waiter]:
    """Send each job within its tolerance after its appointment, or not at all. Returns the waiters that need a check of
    their own, because they need more than a delivery or have changed."""
    if not slots:
        return []
    prepared = dict(prepare_queued(ports, [slot.waiter for slot in slots], slots[0].at))
    others = [slot.waiter for slot in slots if slot.waiter not in prepared]
    timed = [(slot.at, prepared[slot.waiter]) for slot in slots if slot.waiter in prepared]
    ready = [replace(each, at=at, until=at + tolerance) for at, each in timed]
    sent = send(ports, lease(ports, ready, slots[0].at))
    if sent.error is not None:
        raise sent.error
    rows = {each.row_ref: each.row for each in ready}
    changed = [waiter for ref in sent.changed if (waiter := queued.waiter_of(rows[ref])) is not None]
    return list(dict.fromkeys([*_unleased(ports, others), *changed]))


def _unleased(ports: Ports, waiters: Sequence[Waiter]) -> list[Waiter]:
    """The rows of those whose job no other invocation is sending at present."""
    return list(dict.fromkeys(row_of(waiter) for waiter in waiters if not is_leased(ports, waiter)))


def is_leased(ports: Ports, waiter: Waiter) -> bool:
    """Whether another invocation may be sending the job of a waiter at present."""
    found = bundles.waiter_of(waiter)
    row, number = found if found is not None else (waiter, 0)
    job = ports.rows.get(Job, row.job_schedule, row.job_generation, row.job_sort_key)
    if job is None or waiter.run is not None:
        return False
    if found is not None:
        job = bundles.leased_as(job, number)
    now, mark = ports.clock.now(), delivery_lease.mark(job)
    leases = ports.jobs.delivery_leases(delivery_lease.due_of(job), [mark])
    return any(mark in lease.covered for lease in leases if lease.leased_until > now)
