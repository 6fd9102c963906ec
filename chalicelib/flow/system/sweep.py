"""Sweep: find rows that are overdue because a hint was lost or a Lambda crashed, and hint them again (O3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from chalicelib.core.instants import SECOND, Instant, Millis
from chalicelib.core.rows import delivery_lease, kinds
from chalicelib.core.rows.event import Outbox
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.kinds import TableName
from chalicelib.core.rows.ref import Ref, ShardPart, by_instant, run_ref
from chalicelib.core.runs import launch, metrics
from chalicelib.core.system import sweep
from chalicelib.core.writes import Put, Replace
from chalicelib.flow import shards
from chalicelib.flow.deliveries.leases import Elsewhere
from chalicelib.flow.each import committed, run_each
from chalicelib.log import logger
from chalicelib.ports import Ports

if TYPE_CHECKING:
    from chalicelib.flow.deliveries import join

T = TypeVar("T")
Found = Any  # a row that wakes: it has a `wake_at`
NEXT_TICK = 75 * SECOND  # a minute, and a margin for a late tick
GRACES: dict[TableName, Millis] = {
    "jobs": sweep.GRACE,
    "runs": 0,  # rows with a grace are filtered when they are read
    "catalog": sweep.GRACE,
}
MAX_BYTES = 3_000_000  # of rows that are leased in one transaction; DynamoDB allows 4 MB
MAX_SINGLE = 4  # so many rows are leased one by one, for half of the write units
SLOW: Millis = 5 * SECOND  # needed for one slice


def sweep_all(ports: Ports, tick_began: Instant | None = None) -> int:
    """Hint and lease overdue rows, oldest first, slice by slice, up to a page of each shard. Returns how many were
    hinted.

    The rest of a full shard is handed on. Rows that nothing reaches are hinted by the next tick. The first slice is
    handled in any case. Raises an ExceptionGroup of all errors at the end.
    """
    now = ports.clock.now()
    ends_at = (now if tick_began is None else tick_began) + sweep.MAX_TICK
    found: list[Ref] = []
    rest: list[ShardPart] = []
    for table, grace in GRACES.items():
        of_table: list[tuple[Ref, Instant]] = []
        for shard in range(ports.settings.wake_shards):
            page = ports.wakes.due(table, shard, now - grace, shards.PAGE, None)
            of_table += page.items
            if page.cursor is not None and table != "catalog":  # emission hands on the catalog, with its timers
                rest.append(ShardPart(table, shard, now - grace, page.cursor))
        found += [ref for ref, _ in sorted(of_table, key=lambda row: row[1])]
    if rest:
        shards.hand_on(ports, rest)
    swept = _sweep(ports, found, now, ends_at, sweep.MAX_POLLS)
    ports.metrics.add(metrics.OVERDUE_AGE, swept.oldest)
    if swept.failed:
        raise ExceptionGroup(f"{len(swept.failed)} of {swept.hinted} overdue rows failed", swept.failed)
    return swept.hinted


def handle_part(ports: Ports, part: ShardPart) -> None:
    """Handle a part of a shard that was handed on: hint its timers, hint and lease its overdue rows.

    Of overdue rows, the rest of the shard is handed on first. If the time is used up, the part is handed on again: the
    lease of a row moves it out of the part. The next tick finds the rows of a lost part; a repeated one does no harm,
    because each row is read before it is hinted.
    """
    now = ports.clock.now()
    if part.table == "catalog":
        from chalicelib.flow.fires import emit

        refs = emit.split(ports, part)  # its first rows are swept by the tick, too; by then they are leased
    else:
        table: TableName = "jobs" if part.table == "jobs" else "runs"
        page = ports.wakes.due(table, part.shard, part.until, shards.PAGE, part.cursor)
        if page.cursor is not None:
            shards.hand_on(ports, [replace(part, cursor=page.cursor)])
        refs = tuple(ref for ref, _ in page.items)
    swept = _sweep(ports, refs, ports.clock.now(), now + sweep.MAX_PART, 0)
    if swept.left and part.table != "catalog":
        shards.hand_on(ports, [part])
    for error in swept.failed:
        logger.error("overdue row failed", exc_info=error, extra={"table": part.table, "shard": part.shard})


@dataclass
class Swept:
    """What was swept: the rows that were hinted, the oldest age in ms, the refs that were not reached, the errors."""

    hinted: int = 0
    oldest: Millis = 0
    left: int = 0
    failed: list[Exception] = field(default_factory=list)


def _sweep(ports: Ports, refs: Sequence[Ref], now: Instant, ends_at: Instant, polls: int) -> Swept:
    """Hint and lease the overdue rows among these refs of an eventually consistent index. ``polls``: about how many
    runs EMR may be asked. The tick alone sends such hints, because all of them share EMR's rate."""
    swept, asked, deferred, elsewhere = Swept(), 0, _Deferred(ports), Elsewhere(ports)
    for start in range(0, len(refs), sweep.SLICE):
        if start and (ports.clock.now() >= ends_at or not ports.has_time(SLOW)):
            swept.left = len(refs) - start
            logger.warning("sweep broken off", extra={"left": swept.left})
            break
        found = deferred.left_out(_examine(ports, now, refs[start : start + sweep.SLICE], swept.failed))
        swept.oldest = max([swept.oldest, *(now - row.wake_at for _, row in found if row.wake_at is not None)])
        found, asks = _with_polls(found, now, max(0, polls - asked))
        busy = _busy(elsewhere, found, now)
        _hint(ports, found, asks, busy, now, asked)
        swept.failed += _lease_all(ports, now, [(ref, row) for ref, row in found if ref not in busy])
        swept.hinted, asked = swept.hinted + len(found), asked + len(asks)
    return swept


def _with_polls(
    found: Sequence[tuple[Ref, Found]], now: Instant, most: int
) -> tuple[list[tuple[Ref, Found]], list[Ref]]:
    """The rows without those that EMR may not be asked about now, and among them the first ``most`` to ask about."""
    questions = [ref for ref, row in found if sweep.is_question(row, now)]
    asks = questions[:most]
    return [(ref, row) for ref, row in found if ref in asks or ref not in questions], asks


def _busy(elsewhere: Elsewhere, found: Sequence[tuple[Ref, Found]], now: Instant) -> dict[Ref, Instant]:
    """The jobs that an invocation delivers in a batch, each with the end of its lease. Their rows are not leased: that
    would be a write for each, while a burst that is late has too much work already."""
    jobs = {ref: row for ref, row in found if isinstance(row, Job) and row.traits.timed}
    ends = elsewhere.ends(jobs.values(), now)
    return {ref: until for ref, job in jobs.items() if (until := ends.get(delivery_lease.mark(job))) is not None}


def _hint(
    ports: Ports, found: Sequence[tuple[Ref, Found]], asks: Sequence[Ref], busy: Mapping[Ref, Instant],
    now: Instant, asked: int,
) -> None:  # fmt: skip
    """Hint rows before their leases, so no row is leased without a hint. The hints are delayed until after the leases.
    While the queue is down this raises and no row is leased, so the first tick after that finds all rows.

    A job in ``busy`` is hinted for the end of the lease on its delivery, in case that has crashed."""
    plain = by_instant((ref, busy.get(ref, now)) for ref, _ in found if ref not in asks)
    hints = [*plain, *sweep.in_slices(asks, now, asked)]
    if hints:
        ports.hints.send_all(hints, now, ahead=True, must=True)


class _Deferred:
    """Leaves out the jobs that join the queue of their policy later (`flow/deliveries/join.py`)."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._deferred: join.Deferred | None = None

    def left_out(self, found: list[tuple[Ref, Found]]) -> list[tuple[Ref, Found]]:
        """The overdue rows without those jobs."""
        jobs = [row for _, row in found if isinstance(row, Job)]
        if not any(job.traits.timed and job.queued_in is None for job in jobs):
            return found
        from chalicelib.flow.deliveries import join

        try:
            self._deferred = self._deferred or join.Deferred(self._ports)
            deferred = self._deferred.among(jobs)
        except Exception:  # an overdue row must not stay without a hint; a second hint of a deferred job does no harm
            logger.exception("deferred jobs not read", extra={"size": len(jobs)})
            return found
        return [(ref, row) for ref, row in found if row not in deferred]


def hint_soon(ports: Ports) -> int:
    """Hint the jobs whose ``wake_at`` comes before the next tick: windows that open, delays and timeouts that end. Also
    the runs whose start call is on record without an answer, for the end of the lease of that call.

    Returns how many rows were hinted. A wait longer than the maximum delay of a message needs no other hint.
    """
    now = ports.clock.now()
    upcoming = ports.wakes.upcoming(now - sweep.GRACE, now + NEXT_TICK)
    found = [*upcoming, *_unanswered(ports, now)]
    if found:
        ports.hints.send_all(by_instant(found), now)
    return len(found)


def _unanswered(ports: Ports, now: Instant) -> list[tuple[Ref, Instant]]:
    """The runs whose start call is on record without an answer, and the end of the lease of that call.

    The lease outlasts the call. So when it ends, the caller has crashed, or the run has moved on and a hint does
    nothing. Other runs that are due soon are being polled; their rows are read, a hundred per call, and left out.
    """
    since, until = now - sweep.GRACE, now + launch.CALL_LEASE
    pages = [ports.wakes.due("runs", shard, until, shards.PAGE, None) for shard in range(ports.settings.wake_shards)]
    refs = [ref for page in pages for ref, at in page.items if ref.kind == "run" and at > since]
    runs = ports.runs.several([(ref.parts[0], int(ref.parts[1])) for ref in refs]) if refs else ()
    return [(run_ref(run.run_id, run.attempt), run.lease_until) for run in runs
            if run.lease_until is not None and run.lease_until > since and launch.is_on_record(run)]  # fmt: skip


def _examine(ports: Ports, now: Instant, refs: Sequence[Ref], failed: list[Exception]) -> list[tuple[Ref, Found]]:
    """Read rows strongly, a hundred per call where that is possible. Returns those that are overdue."""
    found: list[tuple[Ref, Found]] = []

    def examine(seen: Ports, ref: Ref) -> None:
        row: Found = seen.rows.of(ref)
        if row is not None and sweep.overdue(row.wake_at, now, sweep.grace_of(row)):
            found.append((ref, row))

    places = [(ref, place) for ref in refs if (place := kinds.at(ref)) is not None and not place[0].unswept]
    wanted = [key for _, (_, key) in places]
    try:
        seen = ports.prefetch.read(ports, wanted) if len(wanted) > 1 else ports
    except Exception:  # the rows are read one by one then, so only the one that caused the error fails
        logger.exception("rows not read together", extra={"size": len(wanted)})
        seen = ports
    failed += _failures([ref for ref, _ in places], partial(examine, seen))
    return found


def _lease_all(ports: Ports, now: Instant, found: Sequence[tuple[Ref, Found]]) -> Sequence[Exception]:
    """Lease rows that were hinted: many in transactions, few one by one. Returns the errors.

    A row that changed is left out of its transaction. After any other error each row is leased alone.
    """
    if len(found) <= MAX_SINGLE:
        return _failures(found, partial(_lease, ports, now))
    together = [one for one in found if not isinstance(one[1], Outbox)]
    alone = [one for one in found if isinstance(one[1], Outbox)]
    for part in _in_parts(together):
        try:
            committed(ports, [write for one in part if (write := _leased(ports, one, now)) is not None])
        except Exception:
            logger.exception("rows not leased together", extra={"size": len(part)})
            alone += part
    return _failures(alone, partial(_lease, ports, now))


def _in_parts(found: Sequence[tuple[Ref, Found]]) -> Iterator[list[tuple[Ref, Found]]]:
    """The rows of a slice that one transaction leases, by their bytes: a run may have 300 KB of properties."""
    part: list[tuple[Ref, Found]] = []
    size = 0
    for ref, row in found:
        own = len(repr(row))
        if part and size + own > MAX_BYTES:
            yield part
            part, size = [], 0
        part.append((ref, row))
        size += own
    if part:
        yield part


def _lease(ports: Ports, now: Instant, found: tuple[Ref, Found]) -> None:
    """Lease a row that was hinted, so that the next sweep skips it. After a conflict a step already handles it."""
    write = _leased(ports, found, now)
    if isinstance(write, Put):
        ports.ledger.put_all([write])
    elif write is not None:
        ports.ledger.commit([write])


def _leased(ports: Ports, found: tuple[Ref, Found], now: Instant) -> Put | Replace | None:
    """The write that leases a row. None for a row that counts no ``leases``, such as a limit or a schedule state: the
    receiver of the hint leases it itself, or clears its ``wake_at``."""
    ref, row = found
    if not hasattr(row, "leases"):
        return None
    lease = sweep.lease(row, now)
    if lease.parked:
        hint = "this row keeps failing; see its reason"
        logger.error("parked", extra={"ref": ref, "leases": row.leases, "hint": hint})
        ports.metrics.add(metrics.ROWS_PARKED, 1)
    if isinstance(row, Outbox):
        return Put(replace(row, wake_at=lease.until, leases=row.leases + 1))
    return Replace(replace(row, wake_at=lease.until, leases=row.leases + 1, rev=row.rev + 1))


def _failures(things: Sequence[T], act: Callable[[T], None]) -> Sequence[Exception]:
    """Act on each thing. Returns the errors."""
    try:
        run_each(things, act)
    except ExceptionGroup as group:
        return group.exceptions
    return ()
