"""Serve the queue of a limit: check its waiters from the head on, until no permit is left.

A conditional write of the limit's ``wake_at`` leases the queue to one invocation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chalicelib.core.instants import MINUTE, SECOND, Instant, Millis
from chalicelib.core.limits import blocks as core_blocks
from chalicelib.core.limits import names, permits, route
from chalicelib.core.limits import parts as core_parts
from chalicelib.core.limits.permits import Pace, PermitRequest
from chalicelib.core.limits.writes import ClearQueueWake, LeaseQueue, LeaveQueue, WakeQueue
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState, Waiter
from chalicelib.core.rows.ref import Ref, limit_ref, queue_ref
from chalicelib.core.rows.run import Run
from chalicelib.core.runs import metrics
from chalicelib.core.writes import ExpectNotWaiting, RemoveWaiter
from chalicelib.flow import facts
from chalicelib.flow.deliveries import appointments
from chalicelib.flow.each import run_each
from chalicelib.flow.jobs.check import check_job
from chalicelib.flow.jobs.drop import drain
from chalicelib.flow.limits import queues
from chalicelib.flow.limits.policies import pace_of
from chalicelib.flow.runs import launch
from chalicelib.ports import Ports

BESIDE = 3  # waiters read beyond those that failed, in case one that was already served is among them
# A claimed job may return to the queue as a run whose permit is too old. One invocation serves a run this often.
MAX_ROUNDS = 3
# How long one invocation serves an endless queue before it hands the limit on: other messages wait in its batch.
MAX_SERVICE: Millis = 10 * SECOND
# A lease that ends sooner is renewed before the next start, because a start takes time and may wait for its instant.
RENEWED_BEFORE: Millis = 3 * SECOND


# When the queue is read again after a block, at the earliest, and if the blocks of all jobs are on their way.
SOON: Millis = 50
AGAIN: Millis = 200
# When the queue is served again if the job at its head is leased.
LEASED_AGAIN: Millis = SECOND
# The hint of a block that is later than this is lost: any other hint, or the tick, serves the queue then.
HINT_LOST: Millis = 2 * SECOND
# So long after a change of a policy, jobs that were to be sent in a block may still be on their way.
CAREFUL_AFTER_CHANGE: Millis = MINUTE


@dataclass
class _Service:
    """The limit whose queue this invocation serves: it holds the lease until ``lease`` and stops at ``until``.

    ``sent``: the jobs whose blocks are on their way. ``alone``: only waiters that need a claim are served, before the
    first one that may be sent in a block. ``careful``: another invocation may be sending a job of the queue. ``pause``:
    how long the queue rests after this service, although permits may be left, because another invocation may be sending
    the job at the head, or has died while it did."""

    limit_name: str
    lease: Instant
    until: Instant
    sent: appointments.OnTheirWay
    alone: bool = False
    careful: bool = False
    pause: Millis = 0


def serve(ports: Ports, limit_name: str, longest: Millis = MAX_SERVICE, sent: Sequence[str] | None = None) -> int:
    """Launch from the head of a queue until no permit is left. Returns how many waiters left the queue, or acquired a
    permit of a block.

    ``sent`` names the jobs whose blocks are on their way (`appointments.OnTheirWay`); None: the caller does not know.
    If this invocation crashes, another one serves the queue when the lease ends, a few seconds later. Raises an
    ExceptionGroup with the errors of single waiters, after the others were served.
    """
    now = ports.clock.now()
    if names.whole(limit_name) != limit_name:
        return _serve_whole(ports, limit_name, longest)
    state = ports.jobs.limit_state(limit_name)
    if state.wake_at is None:
        return 0
    if state.waiters == 0 and not state.parts:
        ports.ledger.commit([ClearQueueWake(limit_name)])
        return 0
    if state.wake_at > now:
        return 0  # too early: the write that set this instant sent a hint for it, and the sweep finds it otherwise
    if sent is None and state.wake_at == state.block_at and now - state.wake_at < HINT_LOST:
        return 0  # the hint of the last block is on its way, and knows which jobs have permits
    service = _Service(limit_name, now + permits.SERVER_LEASE, now + longest, appointments.OnTheirWay(sent or (), now))
    if ports.ledger.commit([LeaseQueue(limit_name, state.wake_at, service.lease)]) is not None:
        return 0  # another invocation serves it
    try:
        request, changed_at = pace_of(ports, limit_name)
        if request is not None and core_blocks.is_fast(request):
            plain = _next_plain(ports, service, request, state)
            if plain is not None:
                return _serve_in_block(ports, service, request, state, plain)
            service.alone = True
        service.careful = service.alone or now - changed_at < CAREFUL_AFTER_CHANGE
        served = _serve_head(ports, service)
    except Exception:
        _schedule_next(ports, service)
        raise
    _schedule_next(ports, service)
    return served


def _serve_whole(ports: Ports, part: str, longest: Millis) -> int:
    """Serve the queue to which a part belongs, as the part is due: a job may have joined it without waking it."""
    now, state = ports.clock.now(), ports.jobs.limit_state(part)
    if state.wake_at is None or state.wake_at > now:
        return 0
    if state.waiters == 0:
        ports.ledger.commit([ClearQueueWake(part)])
        return 0
    if ports.ledger.commit([LeaseQueue(part, state.wake_at, now + core_parts.CHECKED)]) is not None:
        return 0
    whole = names.whole(part)
    request, _ = pace_of(ports, whole)
    number = max(names.number_of(part), request.parts if request is not None else 0)
    ports.ledger.commit([WakeQueue(whole, now, number)])
    return serve(ports, whole, longest)


def send_block(ports: Ports, ref: Ref) -> None:
    """Send the part of a block that the ref names. Raises an ExceptionGroup with the errors of single waiters."""
    slots, tolerance = appointments.read_part(ref)
    run_each(appointments.send_part(ports, slots, tolerance), lambda waiter: _serve_one(ports, waiter))


def _next_plain(ports: Ports, service: _Service, request: Pace, state: LimitState) -> list[Waiter] | None:
    """The next waiters of a policy that may be sent in a block. None if the first one needs a claim; then it acquires a
    permit of its own."""
    wanted = min(appointments.MAX_READ, len(service.sent) + core_blocks.most(request))
    head = appointments.expanded(ports, queues.head_of(ports, state, wanted), wanted)
    waiters = [waiter for waiter in head if waiter not in service.sent]
    plain = appointments.plain_head(ports, waiters[: core_blocks.most(request)])
    return plain if plain or not waiters else None


def _serve_in_block(
    ports: Ports, service: _Service, request: Pace, state: LimitState, waiters: Sequence[Waiter]
) -> int:  # fmt: skip
    """Acquire a block for these waiters, let another invocation serve the queue from then on, and send the block.

    Returns how many waiters acquired a permit."""
    if state.parts and not waiters and not len(service.sent) and _rests(ports, service, state):
        return 0
    slots, head = appointments.acquire(ports, request, state.head, waiters)
    now = ports.clock.now()
    served_at = max(core_blocks.served_at(head, now), now + (SOON if slots else AGAIN))
    shares = appointments.parts_of(slots, request.tolerance)
    if slots:
        recorded = appointments.RECORDED_IN_PARTS if state.parts else appointments.RECORDED
        service.sent.add(slots, slots[-1].at + request.tolerance + recorded)
    waiting = queues.counted(ports, state).waiters
    ports.metrics.add(metrics.QUEUE_LENGTH, waiting, metrics.wait_reason_of(service.limit_name))
    hints = [(now, [appointments.ref_of_part(request, part)]) for part in shares[1:]]
    if ports.ledger.commit([LeaseQueue(service.limit_name, service.lease, served_at, in_block=True)]) is None:
        hints.append((served_at, [queue_ref(service.limit_name, *service.sent.texts)]))
    if hints:
        ports.hints.send_all(hints, now)
    alone = appointments.send_part(ports, shares[0], request.tolerance) if shares else []
    run_each(alone, lambda waiter: _serve_one(ports, waiter))
    return len(slots)


def _rests(ports: Ports, service: _Service, state: LimitState) -> bool:
    """Whether no job waits in any part of a queue, which then sleeps. A job that joins wakes the queue after that, so
    the parts are read again after the queue has been put to sleep."""
    if ports.ledger.commit([ClearQueueWake(service.limit_name, service.lease)]) is not None:
        return False
    if queues.head_of(ports, state, 1):
        now = ports.clock.now()
        ports.ledger.commit([WakeQueue(service.limit_name, now, state.parts)])
        ports.hints.send([limit_ref(service.limit_name)], now, now)
    return True


def _goes_on(ports: Ports, service: _Service) -> bool:
    """Whether this invocation may serve the next waiter: it has time, and still holds or can renew the lease."""
    now = ports.clock.now()
    if now >= service.until:
        return False
    if service.lease - now >= RENEWED_BEFORE:
        return True
    renewed = now + permits.SERVER_LEASE
    if ports.ledger.commit([LeaseQueue(service.limit_name, service.lease, renewed)]) is not None:
        # Either a released permit woke the queue, so this invocation may lease it again, or another one serves it.
        woken = ports.jobs.limit_state(service.limit_name).wake_at
        if (
            woken is None
            or woken > now
            or ports.ledger.commit([LeaseQueue(service.limit_name, woken, renewed)]) is not None
        ):
            return False
    service.lease = renewed
    return True


def _serve_head(ports: Ports, service: _Service) -> int:
    """Serve the waiters from the head on. Returns how many left the queue.

    The head is read again after each waiter: a start takes time, and a more urgent waiter may have joined (W2). If the
    check of a waiter raises, the waiter is skipped and does not block the others. Its error is raised at the end.
    """
    rounds: Counter[tuple[str, str]] = Counter()
    failed: list[Exception] = []
    served = 0
    while _goes_on(ports, service):
        if served and _is_spent(ports, service.limit_name):
            break
        state = ports.jobs.limit_state(service.limit_name)
        head = queues.head_of(ports, state, len(failed) + len(service.sent) + BESIDE)
        fresh = [
            waiter
            for waiter in head
            if waiter not in service.sent and rounds[_name(waiter)] < (MAX_ROUNDS if waiter.run else 1)
        ]
        if not fresh and head and head[0] in service.sent:
            service.pause = AGAIN  # a block of a policy that was faster
            break
        if not fresh or (service.alone and served and appointments.plain_head(ports, fresh[:1])):
            break
        if service.careful and appointments.is_leased(ports, fresh[0]):
            service.pause = LEASED_AGAIN
            break
        rounds[_name(fresh[0])] += 1
        try:
            if not _serve_one(ports, fresh[0]):
                return _result(served, failed)
        except Exception as error:  # raised after the others were served
            rounds[_name(fresh[0])] = MAX_ROUNDS
            failed.append(error)
        else:
            served += 1
    return _result(served, failed)


def _is_spent(ports: Ports, limit_name: str) -> bool:
    """Whether a policy certainly has no permit for a while. This takes one read; checking a waiter takes a dozen."""
    if not names.is_pace(limit_name) or names.is_target_pace(limit_name):
        return False
    now = ports.clock.now()
    return ports.jobs.limit_state(limit_name).head > now + permits.LEAD


def _name(waiter: Waiter) -> tuple[str, str]:
    """The key that counts how often a waiter is served. A job whose rank or sort key changed is served again."""
    return waiter.rank, waiter.job_sort_key


def _result(served: int, failed: list[Exception]) -> int:
    if failed:
        raise ExceptionGroup(f"{len(failed)} waiters could not be checked", failed)
    return served


def _serve_one(ports: Ports, waiter: Waiter) -> bool:
    """Check one waiter. Returns False if it must keep waiting; then all waiters after it must wait, too."""
    if waiter.run is not None:
        return _serve_run(ports, waiter, *waiter.run)
    key = (waiter.job_schedule, waiter.job_generation, waiter.job_sort_key)
    job = ports.rows.get(Job, *key)
    if job is not None and job.closed:
        drain(ports, waiter.job_schedule, waiter.job_generation)
        job = ports.rows.get(Job, *key)
    if job is None or job.job_id != waiter.job_id or job.queued_in != waiter.limit_name:
        # The read is stale: a job that leaves a queue deletes its waiter in the same transaction.
        ports.ledger.commit([ExpectNotWaiting(waiter, job), RemoveWaiter(waiter), LeaveQueue(waiter.limit_name)])
        return True
    return check_job(ports, key, serving=waiter.limit_name, only=waiter.job_id).ended != "waiting"


def _serve_run(ports: Ports, waiter: Waiter, run_id: str, attempt: int) -> bool:
    """The same as `_serve_one`, for a run whose next start call needs a permit."""
    run = ports.rows.get(Run, run_id, attempt)
    if run is None or run.queued_in != waiter.limit_name or run.rank != waiter.rank:
        # The run may have left and queued again since this read. Then its revision differs, and its waiter stays.
        ports.ledger.commit([ExpectNotWaiting(waiter, run), RemoveWaiter(waiter), LeaveQueue(waiter.limit_name)])
        return True
    return not launch.start(ports, run_id, attempt, serving=waiter.limit_name)


def _schedule_next(ports: Ports, service: _Service) -> None:
    """Set the instant at which the queue is served next, unless a write that released a permit has set it already."""
    now, limit_name = ports.clock.now(), service.limit_name
    state = queues.state_of(ports, limit_name)
    ports.metrics.add(metrics.QUEUE_LENGTH, state.waiters, metrics.wait_reason_of(limit_name))
    if state.waiters == 0 and state.parts:
        _rests(ports, service, state)
        return
    if state.waiters == 0:
        ports.ledger.commit([ClearQueueWake(limit_name)])
        return
    asks, states = _asks_of_head(ports, state)
    served_at = route.served_again_at(asks, limit_name, states, now) or service.lease
    timed = permits.is_timed(next((ask for ask in asks if ask.limit_name == limit_name), None))
    if now >= service.until and not timed:
        served_at, timed = now, True  # permits may be left, so another invocation continues at once
    if service.pause:
        served_at, timed = max(served_at, now + service.pause), True
    asked = now if permits.polls_holders(state, now) else None
    if ports.ledger.commit([LeaseQueue(limit_name, service.lease, served_at, asked)]) is not None:
        return
    if timed:
        ref = queue_ref(limit_name, *service.sent.texts) if len(service.sent) else limit_ref(limit_name)
        ports.hints.send([ref], served_at, now)
    if asked is not None:
        queues.poll_holders(ports, state, now)


def _asks_of_head(ports: Ports, state: LimitState) -> tuple[tuple[PermitRequest, ...], Mapping[str, LimitState]]:
    """The permit requests of the waiter at the head and the states of their limits; empty if its row does not exist."""
    head = queues.head_of(ports, state, 1)
    if not head:
        return (), {}
    if head[0].run is not None:
        run = ports.rows.get(Run, *head[0].run)
        return launch.of_run(ports, run) if run else ((), {})
    job = ports.rows.get(Job, head[0].job_schedule, head[0].job_generation, head[0].job_sort_key)
    known = facts.read(ports, job) if job else None
    return (known.asks(head[0].job_schedule.partition(".")[0]), known.limit_states) if known else ((), {})
