"""Deliver what is due to targets that have no lifecycle, at least once and always under the same id (E3, E6).

One loop sends lone jobs, bursts, the events of bundles, and jobs that have permits of a policy. The deliveries are
leased before, so that no other invocation sends them, too. Then, for each call: wait for its instant, check the time
left, read again what may have been closed unless that was read in the last 100 ms, send, record the result. A read
covers a sub-batch: the calls that begin soon after it, of 50 messages at most. It is made shortly before the instant of
the first of them. After a slow read, one call is made at once, so that a busy machine slows a burst down and does not
stop it.
What is read again are the schedule states and jobs, and whether the starts of the workflows are counted by now. If the
count of closings of their namespace is still that from before they were read, nothing was closed since, and only the
count is read (`core/schedules/closings.py`).
After a crash the fire is sent again under the same id, so it is never lost and the consumer can drop the repeat. A fire
that cannot be delivered becomes a failed run and a dead letter, in one transaction with the end of its job.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Any

from chalicelib.core.changes import replace
from chalicelib.core.instants import SECOND, Instant, Millis
from chalicelib.core.jobs import check
from chalicelib.core.jobs.check import Launch
from chalicelib.core.limits import blocks, names
from chalicelib.core.rows import delivery_lease
from chalicelib.core.rows.ref import Ref, by_instant, ref_of
from chalicelib.core.rows.run import Run
from chalicelib.core.runs import metrics
from chalicelib.core.runs.target_roles import MAX_ASSUME
from chalicelib.core.schedules.closings import Counts
from chalicelib.core.targets import sub_batches
from chalicelib.core.targets.answers import Answer, Never, NoAnswer, NotNow
from chalicelib.core.why import Why
from chalicelib.flow.definitions import allowed, target_roles
from chalicelib.flow.deliveries import unchanged
from chalicelib.flow.deliveries.books import Books
from chalicelib.flow.deliveries.ends import Answered, Ends, Ready, called_at
from chalicelib.flow.deliveries.leases import AGAIN, CLOCKS, Leases
from chalicelib.flow.deliveries.unchanged import rows_of
from chalicelib.log import logger
from chalicelib.ports import Ports

# The rows of a job are at most FRESH old when it is sent (C13). They are read READ_AHEAD of an instant, and must then
# leave half of that time for a call that comes late. After a slower read of at most OLDEST, one call is made at once,
# and the next read is for one call. A still slower read is repeated. If reads stay that slow for SLOW_TABLES, the jobs
# are handed on. They are not handed on at once, because another invocation would prepare them again, which makes tables
# slow that are slow from too much work.
FRESH: Millis = 100
READ_AHEAD: Millis = 40
OLDEST: Millis = 2 * SECOND
SLOW_TABLES: Millis = 10 * SECOND
PAUSE: Millis = 20  # between slow reads
TOGETHER: Millis = 50  # the events of a bundle that are due within this time are sent in one call, at the last instant

# Reserved at the end of an invocation for recording results and for the hints that follow the last send.
BOOKS_TIME: Millis = 10 * SECOND

HANDED_ON = 250  # jobs per hint


BUSY = Why.of("leased", "another invocation is delivering it")


NO_TIME = Why.of("leased", "handed on: this invocation has no time left to deliver it")


NONE: Counts = {}


# The answers to calls that are not made: the target may no longer be called, or its role has no credentials (O10).
Refused = Mapping[Ref, Never | NotNow]


@dataclass(frozen=True, slots=True)
class Leased:
    """Deliveries for this invocation to make, and its leases on them.

    ``counts`` are the counts of closings before their rows were read, if they were leased before their instant. The
    rows of a namespace without a count are read again before each sub-batch. ``again`` are rows that another invocation
    has leased until the instant of the batch at the latest: they are hinted then.
    """

    ready: tuple[Ready, ...]
    leases: Leases
    counts: Counts
    again: tuple[Ref, ...] = ()

    @property
    def in_queue(self) -> bool:
        """Whether these deliveries have permits of a policy, in whose queue they are."""
        return any(each.until is not None for each in self.ready[:1])


@dataclass(frozen=True, slots=True)
class Sent:
    """The results of deliveries.

    ``ends`` has each delivery that was sent: None if it is final, else why it is tried again. ``changed`` was not sent
    because its schedule state or job has changed: decide it again. ``failed`` could not be read, or may have been sent
    without a recorded result: this invocation must not send it again. ``lost`` was leased by another invocation after
    the lease of this one had ended. It is hinted, in case the other one gives it up, too. ``error`` ended the reads.
    """

    ends: Ends
    changed: tuple[Ref, ...]
    failed: dict[Ref, Exception]
    lost: frozenset[Ref] = frozenset()
    error: Exception | None = None


def deliver(ports: Ports, ready: Sequence[Ready], why: Why, now: Instant) -> tuple[bool, Why] | None:
    """Deliver one job, or all events of a bundle, at once.

    Returns whether the delivery is final, with its reason or the reason why the job still waits. Returns None if the
    job has to be decided again. Raises RuntimeError if the result could not be recorded.
    """
    leased = lease(ports, ready, now)
    if not leased.ready:
        _hint(ports, leased.again, now)
        return False, BUSY
    sent, ref = send(ports, leased), ready[0].row_ref
    if ref in sent.failed:
        message = f"the delivery of {ready[0].row.job_id} could not be read or recorded; the sweep will hint it again"
        raise RuntimeError(message) from sent.failed[ref]
    if ref in sent.changed:
        return None
    if len(sent.ends) < len(leased.ready):
        return False, BUSY if ref in sent.lost else NO_TIME
    retry_why = sent.ends.get(ref)  # events of a bundle have refs of their own: those that are tried again have left it
    return retry_why is None, retry_why or why


def lease(ports: Ports, ready: Sequence[Ready], begin: Instant, counts: Counts = NONE) -> Leased:
    """Lease deliveries for sends that begin at ``begin``. Returns those that this invocation may make.

    Jobs that another invocation delivers are hinted for the end of its lease, in case it has crashed. If that is not
    after ``begin``, the caller hints them then (``again``): a hint arrives before its instant, and one that is sent now
    would arrive at once, and be sent again, until the lease ends. Jobs that it has just leased, too, are hinted for two
    seconds later. Those of a queue are not hinted: they get another permit.
    ``counts``: as in `Leased`.
    """
    leases = Leases(ports)
    if not ready:
        return Leased((), leases, counts)
    allowed.read_ahead(ports, [each.run for each in ready])
    ready = with_roles(ports, ready)
    # The first use of a target imports and creates its client: 20 ms of CPU, better spent before the instant.
    target_roles.assume(ports, [each.run for each in ready])
    longest = longest_of(ready)
    last = ready[-1].until
    if last is not None:
        taken = leases.take_alone([each.leased for each in ready], longest, last)
        return Leased(tuple(each for each in ready if each.mark not in taken), leases, NONE)
    rows = rows_of(ready)
    busy = leases.take(rows, longest, begin)
    later = by_instant((ref_of(row), busy[mark]) for row in rows if (mark := delivery_lease.mark(row)) in busy)
    again = [ref for until, refs in later if until <= begin for ref in refs]
    for until, refs in later:
        if until > begin:
            _hint(ports, refs, until)
    # From its instant on, another invocation may have sent a job after its row was read, and its lease may have ended.
    # The count does not show that, so the rows are read again. One whose clock is ahead may have sent a job before, but
    # its lease still covers what it sent.
    may_be_sent = ports.clock.now() >= min(map(delivery_lease.due_of, rows))
    left = tuple(each for each in ready if each.mark not in busy)
    return Leased(left, leases, NONE if may_be_sent else counts, tuple(again))


def with_roles(ports: Ports, ready: Sequence[Ready]) -> list[Ready]:
    """The deliveries with the roles that their namespaces have now."""
    runs = target_roles.present_of(ports, [each.run for each in ready])
    return [each if run is each.run else replace(each, run=run) for each, run in zip(ready, runs, strict=True)]


def send(ports: Ports, leased: Leased) -> Sent:
    """Send the leased deliveries, and record the results. Never raises for one that was sent."""
    loop, leases = _Sender(ports, leased), leased.leases
    loop.run()
    books, left = loop.books, list(loop.left.values())
    failed = {**books.failed, **{each.row_ref: loop.error for each in left if loop.error is not None}}
    given_up = [*loop.changed, *([] if loop.error is not None else left)]
    if leased.in_queue:
        if not failed:  # what is left stays in its queue
            leases.end()
    else:
        # If a result was not recorded the leases stay, so that the jobs wait until they expire.
        if given_up and not books.failed:
            _give_up(ports, leases, given_up, loop.sent_of)
        if left and loop.error is None:
            logger.warning("handed on", extra={"size": len(left)})
            _hint(ports, [ref_of(row) for row in rows_of(left)], loop.goes_on_at)
        if loop.lost:
            _hint(ports, list(loop.lost), ports.clock.now() + AGAIN)
    changed = tuple(dict.fromkeys(each.row_ref for each in loop.changed))
    return Sent(books.ends, changed, failed, frozenset(loop.lost), loop.error)


class _Sender:
    """Sends deliveries, one call after the other. ``left`` has those that are not sent yet, in the order of their
    instants, ``lost`` the rows that another invocation has leased since. Delivery of what is left may continue at
    ``goes_on_at``."""

    def __init__(self, ports: Ports, leased: Leased) -> None:
        self._ports, self._leases, self._counts = ports, leased.leases, leased.counts
        # A single job was decided just now, and so were those of a queue.
        self._is_decided_now = len(leased.ready) == 1 or leased.in_queue
        self._covered: set[Ref] = set()  # by the last read, and not sent
        self._read_at: Instant = 0
        self._refused: Refused = {}
        self._width = sub_batches.MAX_SIZE  # how many deliveries the next read covers
        self._made = 0  # deliveries since the last read
        self._slow_since: Instant | None = None
        self.left = {each.ref: each for each in _in_order(leased.ready)}
        self.books = Books(ports, None if leased.in_queue else leased.leases)
        self.changed: list[Ready] = []
        self.lost: dict[Ref, None] = {}  # in their order
        self.sent_of: set[Ref] = set()  # rows: of a bundle, some events may be left
        self.goes_on_at: Instant = 0
        self.error: Exception | None = None

    def run(self) -> None:
        """Send what can be sent in time, and record all results, even if the tables cannot be read any more."""
        try:
            while self._has_some() and self._step():
                pass
        except Exception as error:  # the tables cannot be read, so none of the remaining deliveries was sent
            logger.exception("sub-batch not read", extra={"size": len(self.left)})
            self.error = error
        self.books.keep()

    def _has_some(self) -> bool:
        """Whether anything is left, without what has missed its appointment: that gets another permit."""
        now = self._ports.clock.now()
        late = list(takewhile(lambda each: each.until is not None and now >= each.until, self.left.values()))
        for each in late:
            del self.left[each.ref]
            logger.info("start not made", extra={"job": each.job.job_id, "why": "the permit is too old"})
        return bool(self.left)

    def _step(self) -> bool:
        """Make the next call, or read the rows of the next ones. Returns False if too little time is left, or if reads
        have been slow for ``SLOW_TABLES``."""
        call = self._next_call()
        at = max(self._ports.clock.now(), call[-1].at)
        if not self._has_time(call, at):
            self.goes_on_at = at
            return False
        if self._is_fresh(at) and all(each.ref in self._covered for each in call):
            self._wait_until(at)
            self._send(call, FRESH)
            return True
        self._wait_until(at - READ_AHEAD)
        return self._read(call, at)

    def _wait_until(self, instant: Instant) -> None:
        if instant > self._ports.clock.now():
            self._ports.clock.wait_until(instant)

    def _next_call(self) -> list[Ready]:
        """The deliveries of the next call. It begins at the last of their instants, or now."""
        first = next(iter(self.left.values()))
        wait = TOGETHER if first.until is None else int((first.until - first.at) * blocks.TOGETHER)
        latest = max(self._ports.clock.now(), first.at + wait)
        near = takewhile(lambda each: each.at <= latest, islice(self.left.values(), sub_batches.MAX_SIZE))
        return sub_batches.first_call(near, _run_of)

    def _has_time(self, call: Sequence[Ready], at: Instant) -> bool:
        # STS is called before a read if credentials end soon.
        needed = longest_of(call) + (MAX_ASSUME if any(each.run.target_role for each in call) else 0)
        return self._ports.has_time(max(0, at - self._ports.clock.now()) + needed + BOOKS_TIME)

    def _is_fresh(self, at: Instant) -> bool:
        """Whether the last read is recent enough for a call at ``at``."""
        now = self._ports.clock.now()
        return max(at, now) - self._read_at <= (FRESH if at <= now else FRESH - READ_AHEAD // 2)

    def _read(self, call: Sequence[Ready], at: Instant) -> bool:
        """Keep the leases of the next calls, and read again what they rely on. After a slow read, make one call.
        Returns False if reads have been slow for ``SLOW_TABLES``."""
        part = self._next_part(call, at)
        if self._has_new_roles(part):
            return True
        missing = target_roles.assume(self._ports, [each.run for each in part])
        self._refused = _refusals(self._ports, part, missing)
        # A stall between this instant and the sends counts as a slow read: the leases may end during it.
        self._read_at = self._ports.clock.now()
        held = self._keep_leases(part)
        found = unchanged.relied_on(self._ports, held if self._nothing_closed(held) else self._read_again(held))
        self._covered = {each.ref for each in found}
        self._made = 0
        self.left.update((each.ref, each) for each in found)
        self._leave_to_decide([each for each in held if each.ref not in self._covered])
        if self._is_fresh(at):
            self._slow_since = None
            return True
        self._width = 0
        # The allow-lists and the roles must not get older by a slow read.
        self._refused = _refusals(self._ports, found, missing)
        if self._has_new_roles(found):
            return True
        if self._ports.clock.now() - self._read_at > OLDEST:
            return self._pause(len(held))
        self._slow_since = None
        call = [self.left[each.ref] for each in call if each.ref in self.left]
        if call and self._has_time(call, at):
            self._send(call, OLDEST)
        return True

    def _next_part(self, call: Sequence[Ready], at: Instant) -> list[Ready]:
        """The deliveries that the next read covers: those of this call, and of others to the same type of target that
        begin within `FRESH`. After a read that was too old for some, it has as many as were made in time."""
        most = sub_batches.size_of(_target_of(call[0]))
        few = max(self._made, len(call), sub_batches.MAX_ENTRIES)
        self._width = min(most, few if self._covered else self._width + sub_batches.MAX_ENTRIES)
        latest = max(at, self._ports.clock.now() + FRESH)
        near = takewhile(lambda each: each.at <= latest, islice(self.left.values(), self._width))
        alike = (each for each in near if each.run.target_kind == call[0].run.target_kind)
        return list({each.ref: each for each in (*call, *alike)}.values())[: max(self._width, len(call))]

    def _has_new_roles(self, part: Sequence[Ready]) -> bool:
        """Whether the namespace of a delivery has another role than before. Then the calls are put together anew."""
        present = with_roles(self._ports, part)
        changed = {each.ref: each for each, before in zip(present, part, strict=True) if each is not before}
        if changed:
            self._covered.clear()
            self.left = {each.ref: each for each in _in_order([*(self.left | changed).values()])}
        return bool(changed)

    def _keep_leases(self, part: Sequence[Ready]) -> list[Ready]:
        """The deliveries on which this invocation still has its leases."""
        leased = {each.leased_ref: each.leased for each in part}
        kept = self._leases.keep(leased.values(), longest_of(part) + OLDEST)
        if kept.lapsed:
            self._counts = NONE  # others may have sent these jobs, which no count shows
        lost = [each for each in part if kept.lost and each.mark in kept.lost]
        self.lost |= {each.row_ref: None for each in lost}
        self._leave_out(lost)
        return [each for each in part if each.ref in self.left] if lost else list(part)

    def _nothing_closed(self, part: Sequence[Ready]) -> bool:
        """Whether nothing was closed in the namespaces of these jobs since their rows were read."""
        namespaces = {each.job.schedule.partition(".")[0] for each in part}
        if not namespaces <= self._counts.keys():
            return False
        found = self._ports.jobs.closings(namespaces)
        changed = {name for name, row in found.items() if (row.closings if row else 0) != self._counts[name]}
        self._counts = {name: count for name, count in self._counts.items() if name not in changed}
        return not changed

    def _read_again(self, part: Sequence[Ready]) -> list[Ready]:
        # The states and jobs are read last, right before the call.
        return unchanged.as_read(self._ports, part if self._is_decided_now else unchanged.uncounted(self._ports, part))

    def _pause(self, size: int) -> bool:
        now = self._ports.clock.now()
        self._slow_since = self._slow_since if self._slow_since is not None else now
        if now - self._slow_since >= SLOW_TABLES:
            logger.warning("tables slow", extra={"hint": f"no read of {size} jobs within {OLDEST} ms"})
            self.goes_on_at = now + SECOND
            return False
        self._ports.clock.wait_until(now + PAUSE)
        return True

    def _send(self, call: Sequence[Ready], oldest: Millis) -> None:
        """Make one call, unless the read has become older than ``oldest``. Its deliveries are decided again: a window
        or timeout can end while others are sent. Events of a bundle are sent in the order of their numbers, so those
        before one that is not launched are sent, and none after it."""
        now, unmet, ready = self._ports.clock.now(), dict[Ref, Ready](), list[Ready]()
        for each in call:
            if each.leased_ref not in unmet and _still_launches(each, now):
                ready.append(each)
            else:
                unmet.setdefault(each.leased_ref, each)
        now = self._ports.clock.now()
        if now - self._read_at > oldest:
            return
        # The clock shows whole milliseconds: at the last one a start may begin almost a millisecond too late.
        going = [each for each in ready if each.until is None or now < each.until]
        if going:
            # Nothing may come between the read of the clock and the call.
            self.books.add(_send_call(self._ports, going, self._refused))
        self._made += len(going)
        for each in going:
            del self.left[each.ref]
            self._covered.discard(each.ref)
            self.sent_of.add(each.row_ref)
        self._leave_to_decide(list(unmet.values()))

    def _leave_to_decide(self, stale: Sequence[Ready]) -> None:
        self.changed += stale
        self._leave_out(stale)

    def _leave_out(self, some: Sequence[Ready]) -> None:
        """Leave out deliveries, and with an event of a bundle the others under the same lease: they are sent in the
        order of their numbers."""
        if some:
            gone = {each.leased_ref for each in some}
            self.left = {ref: each for ref, each in self.left.items() if each.leased_ref not in gone}
            self._covered &= self.left.keys()


def _in_order(ready: Iterable[Ready]) -> list[Ready]:
    """The deliveries in the order of their instants, and those of an instant by the addresses of their targets."""
    return sorted(ready, key=lambda each: (each.at, sub_batches.address(each.run)))


def _run_of(each: Ready) -> Run:
    return each.run


def _target_of(each: Ready) -> Mapping[str, Any]:
    return each.run.request.target


def longest_of(part: Iterable[Ready]) -> Millis:
    return max(sub_batches.longest_call(_target_of(each)) for each in part)


def _refusals(ports: Ports, ready: Sequence[Ready], missing: target_roles.Missing) -> Refused:
    """The answers to calls that are not made. ``missing`` are the roles without credentials."""
    runs = [each.run for each in ready]
    reasons, unassumed = allowed.refusals(ports, runs), target_roles.instead_of_calls(ports, missing, runs)
    answers = [Never(why) if why is not None else answer for why, answer in zip(reasons, unassumed, strict=True)]
    return {each.ref: answer for each, answer in zip(ready, answers, strict=True) if answer is not None}


def _still_launches(each: Ready, now: Instant) -> bool:
    """Whether the same facts still launch the job at ``now``, with the permit that it has, and with no other."""
    decision = check.decide(each.job, each.facts, now, each.serving)
    if not isinstance(decision, Launch):
        return False
    permits = [names.whole(each.serving)] if each.until is not None and each.serving is not None else []
    return [ask.limit_name for ask in decision.asks] == permits


def _send_call(ports: Ports, going: Sequence[Ready], refused: Refused) -> list[Answered]:
    """Make one call for the deliveries that are not refused. Returns the answers, each with its instant."""
    now = ports.clock.now()
    called = [called_at(each.run, each.job, now, each.run.calls) for each in going]
    sent = [(run, each.context) for run, each in zip(called, going, strict=True) if each.ref not in refused]
    answered = iter(_answers(ports, sent))
    answers = [refused[each.ref] if each.ref in refused else next(answered) for each in going]
    measured = [metrics.start_of(run, each.job.reason, now) for each, run in zip(going, called, strict=True)]
    starts = [start for start in measured if start is not None]
    for measure, late in starts:
        ports.metrics.add(measure, late)
    fields = {"size": len(going), "runs": [run.run_id for run in called]}
    logger.info("sent", extra=fields | ({"late_ms": max(late for _, late in starts)} if starts else {}))
    return [Answered(*each, now) for each in zip(going, called, answers, strict=True)]


def _answers(ports: Ports, sent: Sequence[tuple[Run, Mapping[str, Any]]]) -> Sequence[Answer]:
    if not sent:
        return []
    try:
        return target_roles.adapter(ports, sent[0][0]).start_many(sent)
    except Exception as error:  # the outcome is unknown, so the delivery policy decides on the next try
        logger.exception("target failed", extra={"size": len(sent)})
        return [NoAnswer(f"the call failed: {error}")] * len(sent)


def _give_up(ports: Ports, leases: Leases, left: Iterable[Ready], sent_of: Collection[Ref]) -> None:
    """Give up the leases on rows of which this invocation sends nothing more. Within a second after its instant, a
    bundle of which it has sent a part stays leased: by a clock that is behind, another invocation could take the lease
    before the instant, and rely on what it read then."""
    now = ports.clock.now()
    rows = [
        each for each in rows_of(left) if ref_of(each) not in sent_of or now >= delivery_lease.due_of(each) + CLOCKS
    ]
    leases.give_up(frozenset(delivery_lease.mark(row) for row in rows))


def _hint(ports: Ports, refs: Sequence[Ref], due: Instant) -> None:
    now = ports.clock.now()
    for start in range(0, len(refs), HANDED_ON):
        ports.hints.send(refs[start : start + HANDED_ON], max(due, now), now)
