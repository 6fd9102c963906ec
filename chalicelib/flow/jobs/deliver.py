"""deliver: send due fires to targets that have no lifecycle, at least once and always under the same id (E6).

There is one road, and a single delivery is a batch of one: lease the jobs, so that no other invocation sends them too;
wait for their instant; then, for one sub-batch after the other, look at the time that the invocation has left, read
gates and jobs again, send, and keep the books. A crash in between sends again under the same id, by which the consumer
drops the repeat; it can never lose the fire. What cannot be delivered becomes a failed run and a dead letter, in one
transaction with the end of its job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from chalicelib.core.fires import timer
from chalicelib.core.instants import SECOND, Instant, Millis
from chalicelib.core.jobs import check, claim
from chalicelib.core.jobs.check import Launch
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.rows import delivery_lease
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.ref import Ref, ref_of
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.stamps import Stamp, stamp_of
from chalicelib.core.runs import metrics
from chalicelib.core.targets import sub_batches
from chalicelib.core.targets.answers import NoAnswer
from chalicelib.flow.jobs.delivery_books import Answered, Books, Ready
from chalicelib.flow.jobs.delivery_leases import Leases
from chalicelib.flow.runs.context import build
from chalicelib.log import logger
from chalicelib.ports import Ports, RowRequest

# What was read of a job is at most so old when it is sent (C13); tables that are slower are tried so often.
FRESH: Millis = 100


MAX_READS = 5


# What is kept of an invocation's time for the books and the hints that follow the last send.
BOOKS_TIME: Millis = 10 * SECOND


HANDED_ON = 250  # jobs to a hint


BUSY = "another invocation is delivering it"


NO_TIME = "handed on: this invocation has no time left to deliver it"


@dataclass(frozen=True, slots=True)
class Leased:
    """Jobs that this invocation is to deliver, and its leases on them."""

    ready: tuple[Ready, ...]
    leases: Leases


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of a batch. ``ends`` says of each that was sent why it is tried again, None if that was its end.

    ``changed`` was not sent, for its gate or job is not what it was: it is to be decided anew. ``failed`` was sent or
    may have been, and its books were not kept, or it could not be read: it is not to be sent again by this invocation.
    """

    ends: dict[Ref, str | None]
    changed: tuple[Ref, ...]
    failed: dict[Ref, Exception]


def deliver(
    ports: Ports, job: Job, facts: Facts, why: str, now: Instant, serving: str | None = None
) -> tuple[bool, str] | None:  # fmt: skip
    """Deliver one job: a batch of one. Returns whether that was its end, and if not, why it is still there; None if
    it is to be decided anew."""
    run = called_run(ports, job, facts, why, now)
    each = Ready(ref_of(job), job, facts, run, build(ports, run), serving)
    leased = lease(ports, [each], now)
    if not leased.ready:
        return False, BUSY
    sent = send(ports, leased)
    if each.ref in sent.failed:
        raise RuntimeError(f"the delivery of job {job.job_id} was not settled") from sent.failed[each.ref]
    if each.ref in sent.ends:
        again = sent.ends[each.ref]
        return again is None, again or why
    return None if each.ref in sent.changed else (False, NO_TIME)


def called_run(ports: Ports, job: Job, facts: Facts, why: str, now: Instant) -> Run:
    """The run that a job becomes when it is delivered at this moment: its call is the next try."""
    ready = replace(job, reason=why, event=timer.fire_event(job))
    run = claim.build_run(ready, facts, (), ports.payloads.context_uri(job.job_id), now)
    return _called_at(replace(run, calls=job.tries + 1), job, now)


def lease(ports: Ports, ready: Sequence[Ready], begin: Instant) -> Leased:
    """Lease the jobs for sends that begin at ``begin``. What another invocation is delivering is left to it, and looked
    at again when its lease has expired: it may have died."""
    leases = Leases(ports)
    if not ready:
        return Leased((), leases)
    longest = max(sub_batches.longest_call(each.run.request.target) for each in ready)
    busy = leases.take([each.job for each in ready], longest, begin)
    later: dict[Instant, list[Ref]] = {}
    for each in ready:
        until = busy.get(delivery_lease.mark(each.job))
        if until is not None:
            later.setdefault(until, []).append(each.ref)
    for until, refs in later.items():
        _hint(ports, refs, until)
    return Leased(tuple(each for each in ready if delivery_lease.mark(each.job) not in busy), leases)


def send(ports: Ports, leased: Leased) -> Sent:
    """Send what is leased, one sub-batch after the other, and keep the books. Never raises for what was sent."""
    books, leases = Books(ports), leased.leases
    changed: list[Ref] = []
    unread: dict[Ref, Exception] = {}
    parts = list(sub_batches.split(leased.ready, lambda each: each.run.request.target))
    for number, part in enumerate(parts):
        longest = max(sub_batches.longest_call(each.run.request.target) for each in part)
        try:
            going, stale = _next(ports, leases, part, longest)
        except _NoTime as told:
            left = [each.ref for rest in parts[number:] for each in rest]
            books.keep()
            _hand_on(ports, leases, books, left, told.until)
            break
        except Exception as error:  # the tables cannot be read: what is left was not sent
            logger.exception("sub-batch not read", extra={"size": len(part)})
            unread |= {each.ref: error for rest in parts[number:] for each in rest}
            break
        changed += [each.ref for each in stale]
        if going:
            books.add(_send(ports, going))
    books.keep()
    if changed and not books.failed:
        leases.end()
    return Sent(books.ends, tuple(changed), {**books.failed, **unread})


class _NoTime(Exception):
    """The invocation has no time for another sub-batch, or the tables are too slow; it may go on at ``until``."""

    def __init__(self, until: Instant) -> None:
        super().__init__(until)
        self.until = until


def _next(ports: Ports, leases: Leases, part: list[Ready], longest: Millis) -> tuple[list[Ready], list[Ready]]:
    """What of a sub-batch may go at this moment, and what is to be decided anew. What another invocation has leased by
    now is in neither."""
    if not ports.has_time(longest + BOOKS_TIME):
        raise _NoTime(ports.clock.now())
    lost = leases.keep([each.job for each in part], longest)
    mine = [each for each in part if delivery_lease.mark(each.job) not in lost]
    for _ in range(MAX_READS):
        before = ports.clock.now()
        found = _unchanged(ports, mine)
        now = ports.clock.now()
        if now - before <= FRESH:
            going = [again for each in found if (again := _decided(each, now)) is not None]
            refs = {each.ref for each in going}
            return going, [each for each in mine if each.ref not in refs]
    logger.warning("tables slow", extra={"hint": f"no read of {len(mine)} jobs within {FRESH} ms"})
    raise _NoTime(ports.clock.now() + SECOND)


def _unchanged(ports: Ports, part: Sequence[Ready]) -> list[Ready]:
    """Those whose gate and job are what was decided on. Mostly their stamps tell; the rows whose stamp has changed are
    read as well."""
    stamps = ports.prefetch.stamps(_wanted(part))
    stamped = {each.ref for each in part if _is_as_stamped(stamps, each)}
    others = [each for each in part if each.ref not in stamped]
    seen = ports.prefetch.read(ports, _wanted(others)) if others else ports
    found = (each if each.ref in stamped else _still(seen, each) for each in part)
    return [each for each in found if each is not None]


def _send(ports: Ports, going: Sequence[Ready]) -> list[Answered]:
    """One sub-batch, under the instant at which it is sent."""
    now = ports.clock.now()
    called = [_called_at(each.run, each.job, now) for each in going]
    target = ports.targets.of(called[0].target_kind)
    try:
        answers = target.start_many([(run, each.context) for run, each in zip(called, going, strict=True)])
    except Exception as error:  # nothing is known: the policy decides about the next try
        logger.exception("target failed", extra={"size": len(going)})
        answers = [NoAnswer(f"the call failed: {error}")] * len(going)
    measured = [metrics.start_of(run, each.job.reason, now) for each, run in zip(going, called, strict=True)]
    starts = [start for start in measured if start is not None]
    for measure, late in starts:
        ports.metrics.add(measure, late)
    told = {"size": len(going), "runs": [run.run_id for run in called]}
    logger.info("sent", extra=told | ({"late_ms": max(late for _, late in starts)} if starts else {}))
    return [Answered(*each, now) for each in zip(going, called, answers, strict=True)]


def _called_at(run: Run, job: Job, now: Instant) -> Run:
    """A run whose call is made at an instant: how late it is, is told from that (T4)."""
    first = job.first_try_at if job.first_try_at is not None else now
    late = job.window_end is not None and now >= job.window_end
    return replace(run, claimed_at=now, start_requested_at=first, late=late)


def _wanted(part: Sequence[Ready]) -> list[RowRequest]:
    wanted: list[RowRequest] = [("schedule_state", name) for name in dict.fromkeys(each.job.schedule for each in part)]
    return wanted + [_place_of(each.job) for each in part]


def _place_of(job: Job) -> RowRequest:
    return "job", job.schedule, job.generation, job.sort_key


def _is_as_stamped(stamps: Mapping[RowRequest, Stamp], each: Ready) -> bool:
    schedule_state = each.facts.schedule_state
    if schedule_state is None or stamps.get(("schedule_state", schedule_state.schedule)) != stamp_of(schedule_state):
        return False
    return stamps.get(_place_of(each.job)) == stamp_of(each.job)


def _still(seen: Ports, each: Ready) -> Ready | None:
    """A job with its present revision, if it and its gate are what was decided on. The sweep leases it: no change."""
    job = seen.jobs.job(each.job.schedule, each.job.generation, each.job.sort_key)
    if job is None or job.closed or seen.catalog.schedule_state(each.job.schedule) != each.facts.schedule_state:
        return None
    if _identity(job) != _identity(each.job):
        return None
    return each if job.rev == each.job.rev else replace(each, job=replace(each.job, rev=job.rev))


def _identity(job: Job) -> tuple[object, ...]:
    return job.job_id, job.attempt, job.tries, job.queued_in, job.held, job.units


def _decided(each: Ready, now: Instant) -> Ready | None:
    """The same decision on the same facts at this instant: windows and timeouts end while others are sent."""
    decision = check.decide(each.job, each.facts, now, each.serving)
    return each if isinstance(decision, Launch) and not decision.asks else None


def _hand_on(ports: Ports, leases: Leases, books: Books, refs: Sequence[Ref], until: Instant) -> None:
    """What is left goes to other invocations. Without books the lease stays: then they wait until it has expired."""
    if not books.failed:
        leases.end()
    logger.warning("handed on", extra={"size": len(refs)})
    _hint(ports, refs, until)


def _hint(ports: Ports, refs: Sequence[Ref], due: Instant) -> None:
    now = ports.clock.now()
    for start in range(0, len(refs), HANDED_ON):
        ports.hints.send(refs[start : start + HANDED_ON], max(due, now), now)
