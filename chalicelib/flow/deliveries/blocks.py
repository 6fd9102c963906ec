"""Permits in blocks: read the head of a policy's queue, acquire the appointments of its jobs together, and send each
job at its appointment (E3).

The invocation that serves the queue acquires a block, hints the next service of the queue, and sends the first jobs
itself. If there are many, it hands the others on. The jobs stay in the queue until they have been sent. So after a
crash the queue has every job, and only permits are lost. A delivery lease keeps two invocations from sending one job.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile

from chalicelib.core import ids
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
from chalicelib.flow.definitions import allowed, target_roles
from chalicelib.flow.deliveries.batch import is_paced, prepare_queued
from chalicelib.flow.deliveries.books import Books
from chalicelib.flow.deliveries.bundles import row_of
from chalicelib.flow.deliveries.deliver import (
    BOOKS_TIME,
    FRESH,
    OLDEST,
    Refused,
    longest_of,
    refusals,
    send_call,
    still_launches,
    unchanged,
    with_roles,
)
from chalicelib.flow.deliveries.ends import Ready
from chalicelib.flow.deliveries.joining import needs_permit_alone, with_definitions
from chalicelib.flow.deliveries.leases import Leases
from chalicelib.log import logger
from chalicelib.ports import Ports

# A job is on its way until so long after the last appointment of its block: then it has been sent and recorded, or it
# has missed its appointment, and gets another one. Where many are recorded at a time, that takes longer.
RECORDED: Millis = SECOND // 2
RECORDED_IN_PARTS: Millis = 2 * SECOND
# The schedule states are read this long before a call, and again if the read would be too old for the call. A read that
# is too old when it ends covers one call, which is made at once if the permit tolerates that. Otherwise no job would
# start while reads are slow.
READ_AHEAD: Millis = 40
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


@dataclass(frozen=True, slots=True)
class Due:
    """A delivery that is ready, with its appointment."""

    at: Instant
    waiter: Waiter
    ready: Ready


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


def send(ports: Ports, slots: Sequence[Slot], tolerance: Millis) -> list[Waiter]:
    """Send each job within its tolerance after its appointment, or not at all. Returns the waiters that need a check of
    their own, because they need more than a delivery or have changed."""
    if not slots:
        return []
    prepared = dict(prepare_queued(ports, [slot.waiter for slot in slots], slots[0].at))
    others = [slot.waiter for slot in slots if slot.waiter not in prepared]
    leases = Leases(ports)
    if not prepared:
        return _unleased(ports, others)
    allowed.read_ahead(ports, [each.run for each in prepared.values()])
    ready = with_roles(ports, list(prepared.values()))
    prepared = dict(zip(prepared, ready, strict=True))
    missing = target_roles.assume(ports, [each.run for each in ready])
    busy = leases.take_alone([each.leased for each in ready], longest_of(ready), slots[-1].at + tolerance)
    due = [
        Due(slot.at, _present(slot.waiter, prepared[slot.waiter]), prepared[slot.waiter])
        for slot in slots
        if slot.waiter in prepared and delivery_lease.mark(prepared[slot.waiter].leased) not in busy
    ]
    sender = _Sender(ports, due, tolerance, missing)
    sender.run()
    if not sender.books.failed:
        leases.end()
    return list(dict.fromkeys([*_unleased(ports, others), *map(row_of, sender.changed)]))


def _present(waiter: Waiter, ready: Ready) -> Waiter:
    """The waiter of a delivery: its job may have been detached since."""
    return waiter if ready.bundle is not None else queued.waiter_of(ready.job) or waiter


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


class _Sender:
    """Sends the deliveries of a part of a block, one call after the other. ``missing`` are the roles without
    credentials; the others have some for longer than a block lasts."""

    def __init__(self, ports: Ports, due: Sequence[Due], tolerance: Millis, missing: target_roles.Missing) -> None:
        self._ports, self._tolerance, self._missing = ports, tolerance, missing
        self._left = deque(due)
        self._read_at: Instant | None = None
        self._present: dict[Ref, Ready] = {}
        self._refused: Refused = {}
        self.books = Books(ports)
        self.changed: list[Waiter] = []

    def run(self) -> None:
        """Send what can be sent in time, and record all results, even if the tables cannot be read any more."""
        try:
            while self._left:
                self._leave_out_late()
                if not self._left or not self._step():
                    break
        finally:
            self.books.keep()

    def _step(self) -> bool:
        """Read the rows for the next calls, or make these calls. Returns False if the invocation has too little time
        left."""
        part = self._next_part()
        at = part[-1].at
        takes = max(0, at - self._ports.clock.now()) + longest_of([each.ready for each in part]) + BOOKS_TIME
        if not self._ports.has_time(takes):
            return False
        if not self._is_read_for(part, at):
            self._ports.clock.wait_until(at - READ_AHEAD)
            self._read(at)
            self._send_after_slow_read(part, at)
            return True  # the read may have taken long
        self._ports.clock.wait_until(at)
        for call in sub_batches.split(part, lambda each: each.ready.run):
            if not self._send(call):
                break
        return True

    def _leave_out_late(self) -> None:
        """Leave out what has missed its appointment. It stays in the queue, and gets another permit."""
        now = self._ports.clock.now()
        while self._left and now >= self._left[0].at + self._tolerance:
            late = self._left.popleft()
            logger.info("start not made", extra={"job": late.waiter.job_id, "why": "the permit is too old"})

    def _next_part(self) -> list[Due]:
        """The deliveries whose calls begin together: no later than a part of the tolerance after the first of them."""
        begin = max(self._ports.clock.now(), self._left[0].at)
        until = max(begin, self._left[0].at + int(self._tolerance * blocks.TOGETHER))
        together = takewhile(lambda each: each.at <= until, self._left)
        return list(islice(together, sub_batches.MAX_ENTRIES))

    def _is_read_for(self, part: Sequence[Due], at: Instant) -> bool:
        begin = max(at, self._ports.clock.now())
        fresh = self._read_at is not None and begin - self._read_at <= FRESH - READ_AHEAD // 2
        return fresh and all(each.ready.ref in self._present for each in part)

    def _read(self, at: Instant) -> None:
        """Read the schedule states and jobs of all calls up to the instant ``at``, and of those that may begin within
        `FRESH` of this read."""
        self._read_at = self._ports.clock.now()
        near = [each for each in self._left if each.at <= max(at, self._read_at + FRESH)]
        ready = self._look_at_lists([self._present.get(each.ready.ref, each.ready) for each in near])
        self._present = {each.ref: each for each in unchanged(self._ports, ready)}
        gone = {each.waiter for each in near if each.ready.ref not in self._present}
        self._leave_out(gone)
        self.changed += [each.waiter for each in near if each.waiter in gone]

    def _look_at_lists(self, ready: Sequence[Ready]) -> list[Ready]:
        """Look which calls the allow-lists refuse. Returns the deliveries whose namespaces still have the same role.
        The others are decided anew, because their credentials would come too late."""
        same = [each for each, now in zip(ready, with_roles(self._ports, ready), strict=True) if now is each]
        self._refused = refusals(self._ports, same, self._missing)
        return same

    def _send_after_slow_read(self, part: Sequence[Due], at: Instant) -> None:
        """Make the first call of a part at once, if the read that has just ended is too old for more."""
        present = [each for each in part if each.ready.ref in self._present]
        if self._is_read_for(present, at):
            return
        # The allow-lists must not get older by a slow read.
        same = {each.ref for each in self._look_at_lists([self._present[each.ready.ref] for each in present])}
        present = [each for each in present if each.ready.ref in same]
        if present and self._ports.has_time(longest_of([each.ready for each in present]) + BOOKS_TIME):
            self._send(next(sub_batches.split(present, lambda each: each.ready.run)), OLDEST)

    def _leave_out(self, waiters: Collection[Waiter]) -> None:
        self._left = deque(each for each in self._left if each.waiter not in waiters)

    def _send(self, call: Sequence[Due], oldest: Millis = FRESH) -> bool:
        """Make one call, if it may begin now. Returns False if the read is older than ``oldest``: then the rows have to
        be read again."""
        decided = self._ports.clock.now()
        unmet = {each.waiter for each in call if not self._still(each, decided)}
        self._leave_out(unmet)
        self.changed += [each.waiter for each in call if each.waiter in unmet]
        present = {each.waiter: self._present[each.ready.ref] for each in call}
        now = self._ports.clock.now()
        if self._read_at is None or now - self._read_at > oldest:
            return False
        # The clock shows whole milliseconds: at the last one a start may begin almost a millisecond too late.
        going = [each for each in call if each.waiter not in unmet and each.at <= now < each.at + self._tolerance]
        if going:
            # Nothing may come between the read of the clock and the call.
            self.books.add(send_call(self._ports, [present[each.waiter] for each in going], self._refused))
        self._leave_out({each.waiter for each in going})
        return True

    def _still(self, each: Due, now: Instant) -> bool:
        decision = still_launches(each.ready, now)
        return decision is not None and is_paced(each.ready.job, each.ready.facts, decision)
