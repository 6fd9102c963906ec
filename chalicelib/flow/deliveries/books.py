"""Record the results of deliveries: one transaction decides whether a job becomes a run or a record, never both.

`[Create(run), DeleteJob(job)]` is committed for many jobs together. A job with a conflict is handled alone: another
invocation was faster, or a user dropped the job while its message was being sent. After such a drop, the run is written
nevertheless and replaces the record of a job that never ran.

Of a bundle, one transaction settles many events (`core/fires/bundles.py`). The run of a bundle says which of its events
were sent. It is written with the first of them, in the transaction that changes or deletes the bundle. So what was sent
has a run, also if the other events are dropped. Events that the target has not taken leave the bundle, in the same
transaction: each is a job with a next try, or a failed run with its dead letter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import TypeVar

from chalicelib.core import ids
from chalicelib.core.changes import replace
from chalicelib.core.errors import SluiceError
from chalicelib.core.fires import bundles, fire
from chalicelib.core.fires.bundles import Plan
from chalicelib.core.instants import SECOND, Instant, Millis
from chalicelib.core.jobs import claim
from chalicelib.core.limits.writes import LeaveQueue
from chalicelib.core.rows import kinds
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.ref import Ref, ref_of
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.runs import queued, sends
from chalicelib.core.targets.answers import Started
from chalicelib.core.why import Why
from chalicelib.core.writes import Create, Delete, DeleteJob, Put, RemoveWaiter, Replace, WakeBackfill, Write
from chalicelib.flow.deliveries.ends import MAX_BYTES, Answered, Ends, bytes_of, ended, next_of
from chalicelib.flow.deliveries.leases import Leases
from chalicelib.flow.limits import queues
from chalicelib.flow.notices import notices
from chalicelib.log import logger
from chalicelib.ports import MAX_CONFLICTS, Ports, too_many_conflicts

T = TypeVar("T")

MAX_WRITES = 100  # per transaction
LEAVERS = 25  # events that leave their bundle in one transaction; each takes up to three writes
PLAIN_WRITES, QUEUED_WRITES = 2, 4  # of a delivery, and of one from a queue, which may need one for its queue alone
# Results of quick sends are recorded together, so that recording does not delay a burst. A result waits at most
# BOOKED_WITHIN. After a send of SLOW or longer it is recorded at once, because recording is short beside such a send. A
# send that is slower than usual because of too much work is not SLOW: to record each ten alone would add to that work.
BOOKED_WITHIN: Millis = 10 * SECOND
SLOW: Millis = SECOND
# While the tables are busy, results are recorded again as long as the invocation has time for one more try: without a
# record, the jobs would be sent again. The lease is renewed for each try.
ONE_TRY: Millis = 10 * SECOND
MAX_TRIES = 12  # of a group


class Books:
    """Collects the results of deliveries and records them.

    ``ends`` has each recorded delivery: None if it is final, else why it is tried again. ``failed`` has the deliveries
    whose results could not be recorded.
    """

    def __init__(self, ports: Ports, leases: Leases | None = None) -> None:
        self._ports = ports
        self._leases = leases
        self._open: list[Answered] = []
        self.ends: Ends = {}
        self.failed: dict[Ref, Exception] = {}

    def add(self, answered: Sequence[Answered]) -> None:
        """Add deliveries that were just sent. They are recorded at once, or together with later ones."""
        self._open += answered
        now = self._ports.clock.now()
        if answered and (now - answered[0].at >= SLOW or now - self._open[0].at >= BOOKED_WITHIN):
            self.keep()

    def keep(self) -> None:
        """Record all results so far. Never raises: an error goes to ``failed``, and nothing is sent again."""
        answered, self._open = self._open, []
        in_bundles = [each for each in answered if each.ready.bundle is not None]
        answered = [each for each in answered if each.ready.bundle is None]
        answered += self._settle(in_bundles)
        # Sorted by queue, so that a transaction writes to the counts of few queues: others write to them, too.
        together = [each for each in answered if _is_plain(each)]
        together.sort(key=lambda each: each.ready.job.queued_in or "")
        alone = [each for each in answered if not _is_plain(each)]
        for group in _parts(together, MAX_WRITES, _weight):
            try:
                alone += self._patiently(group, partial(self._commit, group))
            except Exception as error:
                self._fail(group, error)
        for each in alone:
            try:
                self._alone(each)
            except Exception as error:
                self._fail([each], error)
        self._wake_backfills(answered)

    def _settle(self, answered: Sequence[Answered]) -> list[Answered]:
        """Record the deliveries of bundles. Returns those of events that had left their bundle."""
        alone: list[Answered] = []
        for group in _by_row(answered).values():
            try:
                settled = self._patiently(group, partial(_settle_bundle, self._ports, group))
                self.ends |= settled.ends
                alone += settled.alone
            except Exception as error:
                self._fail(group, error)
        return alone

    def _patiently(self, group: Sequence[Answered], record: Callable[[], T]) -> T:
        for tried in count(1):
            try:
                self._keep_leases(group)
                return record()
            except SluiceError as error:
                if error.code != "unavailable" or tried == MAX_TRIES or not self._ports.has_time(ONE_TRY):
                    raise
                logger.warning("deliveries not recorded yet", extra={"size": len(group), "tried": tried})
        raise AssertionError("unreachable")

    def _keep_leases(self, group: Sequence[Answered]) -> None:
        """Renew the leases of the group if they end during the next try, so that no other invocation sends its jobs."""
        if self._leases is not None:
            self._leases.keep(list({each.ready.row_ref: each.ready.row for each in group}.values()), ONE_TRY)

    def _commit(self, group: list[Answered]) -> list[Answered]:
        """Record a group in one transaction. Returns the deliveries that were left out because of a conflict."""
        plans = [(each, _plan(each)) for each in group]
        left_out: list[Answered] = []
        while plans:
            recorded = [each for each, _ in plans]
            shared: list[Write] = [*_left_queues(recorded), *_woken_backfills(recorded, self._ports.clock.now())]
            conflict = self._ports.ledger.commit([*(write for _, plan in plans for write in plan), *shared])
            if conflict is None:
                break
            refused = {id(write) for write in conflict.writes}
            if any(id(write) in refused for write in shared):
                return [*left_out, *(each for each, _ in plans)]
            left_out += [each for each, plan in plans if any(id(write) in refused for write in plan)]
            plans = [(each, plan) for each, plan in plans if not any(id(write) in refused for write in plan)]
        self.ends |= {each.ready.ref: None for each, _ in plans}
        return left_out

    def _alone(self, each: Answered) -> None:
        if isinstance(each.answer, Started):
            _book(self._ports, each)
            self.ends[each.ready.ref] = None
        else:
            self.ends[each.ready.ref] = _not_taken(self._ports, each)

    def _wake_backfills(self, answered: Sequence[Answered]) -> None:
        """Hint the backfills of what is final, which the records have woken: each starts its next jobs."""
        ended = [each.ready.job for each in answered if self.ends.get(each.ready.ref, "") is None]
        refs = {kinds.ref(Backfill, job.schedule, job.backfill): None for job in ended if job.backfill is not None}
        if refs:
            now = self._ports.clock.now()
            self._ports.hints.send(list(refs), now, now)

    def _fail(self, group: Sequence[Answered], error: Exception) -> None:
        logger.exception("deliveries not recorded", extra={"size": len(group)})
        self.failed |= {each.ready.row_ref: error for each in group}


def _is_plain(each: Answered) -> bool:
    """Whether the target accepted the delivery and the job holds no permit. Then two writes record it. If the job
    waited for a permit of its policy, a third one takes it out of the queue."""
    return isinstance(each.answer, Started) and not each.ready.job.held


def _plan(each: Answered) -> list[Write]:
    waiter = queued.waiter_of(each.ready.job)
    left: list[Write] = [RemoveWaiter(waiter)] if waiter is not None else []
    return [Create(_delivered(each)), DeleteJob(each.ready.job), *left]


def _left_queues(group: Sequence[Answered]) -> list[LeaveQueue]:
    """The writes that count the jobs of a group out of their queues: one for each queue."""
    left = Counter(each.ready.job.queued_in for each in group if each.ready.job.queued_in is not None)
    return [LeaveQueue(limit_name, count) for limit_name, count in left.items()]


def _woken_backfills(group: Sequence[Answered], now: Instant) -> list[WakeBackfill]:
    """The writes that wake the backfills of a group: one for each backfill."""
    found = {(each.ready.job.schedule, each.ready.job.backfill) for each in group}
    return [WakeBackfill(name, backfill, now) for name, backfill in sorted(found, key=str) if backfill is not None]


def _woken_backfill(ports: Ports, job: Job, now: Instant) -> list[WakeBackfill]:
    """The write that wakes the backfill of a job whose delivery is final, if its row still exists."""
    known = job.backfill is not None and ports.rows.get(Backfill, job.schedule, job.backfill) is not None
    return [WakeBackfill(job.schedule, job.backfill, now)] if known and job.backfill is not None else []


def _delivered(each: Answered) -> Run:
    if not isinstance(each.answer, Started):
        raise TypeError("expected a delivery that was taken")
    return ended(each.called, each.answer, each.at)


def _book(ports: Ports, each: Answered) -> None:
    """Record a delivery, even if its job no longer exists. A run that already exists is not changed."""
    run, job_id = _delivered(each), each.ready.job.job_id
    for _ in range(MAX_CONFLICTS):
        if ports.rows.get(Run, run.run_id, run.attempt) is not None:
            return  # another invocation was faster
        job, record = _what_became_of(ports, each.ready.job)
        stored = run if record is None else replace(run, dropped_at=record.recorded_at)
        plan: list[Write] = [Create(stored), *_woken_backfill(ports, each.ready.job, ports.clock.now())]
        if job is not None:
            plan += _taken_off(ports, queues.regained(ports, job), each.at)
        elif record is not None:
            plan.append(Delete(record))
        if ports.ledger.commit(plan) is None:
            return
    raise too_many_conflicts(f"recording the delivery of job {job_id}", "the sweep will hint the job again")


def _what_became_of(ports: Ports, job: Job) -> tuple[Job | None, Record | None]:
    """The job under its present sort key, or the record of its end.

    A job that had to wait since has another sort key; a job of a closed generation lies under a tombstone. The record
    is read after the job, because one transaction deletes the job and writes the record.
    """
    here = ports.rows.get(Job, job.schedule, job.generation, job.sort_key)
    if here is not None and here.job_id == job.job_id:
        return here, None
    if job.traits.redelivers:
        return None, None  # a record of this id is that of an earlier attempt
    record = ports.rows.get(Record, job.job_id)
    if record is not None:
        return None, record
    moved = ports.jobs.find(job.job_id)
    return moved, ports.rows.get(Record, job.job_id) if moved is None else None


def _taken_off(ports: Ports, job: Job, now: Instant) -> list[Write]:
    """The writes that delete a job and release what it holds. A tombstone over it stays, so that no event joins it."""
    plan = claim.delete_plan(job, {limit_name: ports.jobs.limit_state(limit_name) for limit_name in job.held}, now)
    if not job.closed:
        return plan
    bare = replace(job, job_id="", queued_in=None, rank=None, held=(), units=0, rev=job.rev + 1)
    return [Replace(bare, over=job), *(write for write in plan if not isinstance(write, DeleteJob))]


def _not_taken(ports: Ports, each: Answered) -> Why | None:
    """Schedule the next try and return its reason, or give the delivery up and return None.

    Giving up writes a failed run and a dead letter, in one transaction with the end of the job.
    """
    now, job = ports.clock.now(), each.ready.job
    after = next_of(ports, each, now)
    if after.job is None:
        held = {limit_name: ports.jobs.limit_state(limit_name) for limit_name in job.held}
        # A conflict means that another invocation has delivered it or given it up: that result is the final one.
        woken = _woken_backfill(ports, job, now)
        if ports.ledger.commit([*after.plan, *claim.delete_plan(job, held, now), *woken]) is None:
            notices.hint(ports, after.notices)
        return None
    for _ in range(MAX_CONFLICTS):
        later = claim.detached_from_emitter(job, replace(after.job, rev=job.rev + 1))
        # A job that waits for its next try waits in no queue: others would wait behind it.
        plan = claim.moved(job, later) if job.queued_in is None else claim.yield_queue(job, later, {}, now)
        if ports.ledger.commit(plan) is None:
            ports.hints.send([ref_of(later)], after.job.wake_at or now, now)
            break
        # The sweep may have leased the job during the call; the try must be counted nevertheless.
        found = ports.rows.get(Job, job.schedule, job.generation, job.sort_key)
        if found is None or found.closed or (found.job_id, found.tries) != (job.job_id, job.tries):
            break
        job = replace(job, rev=found.rev, queued_in=found.queued_in, rank=found.rank)
    return after.why


def _parts(
    answered: Sequence[Answered], most: int, weight_of: Callable[[Answered], tuple[int, int]]
) -> Iterator[list[Answered]]:
    """The deliveries in parts that fit into one DynamoDB transaction: at most so many writes, and bytes. ``weight_of``
    says what a delivery adds to both."""
    part: list[Answered] = []
    size = writes = 0
    for each in answered:
        more, own = weight_of(each)
        if part and (writes + more > most or size + own > MAX_BYTES):
            yield part
            part, writes, size = [], 0, 0
        part.append(each)
        writes, size = writes + more, size + own
    if part:
        yield part


def _weight(each: Answered) -> tuple[int, int]:
    job = each.ready.job
    return (QUEUED_WRITES if job.queued_in is not None else PLAIN_WRITES) + (job.backfill is not None), bytes_of(each)


# -- the events of a bundle -----------------------------------------------------------------------------------------


@dataclass
class _Settled:
    """What became of the deliveries of a bundle. ``ends`` as in `Books`. ``alone`` are those of events
    that had left the bundle before they were recorded."""

    ends: Ends = field(default_factory=dict)
    alone: list[Answered] = field(default_factory=list)


def _settle_bundle(ports: Ports, answered: Sequence[Answered]) -> _Settled:
    """Record the deliveries of one bundle, given in the order of their numbers. Raises RuntimeError after
    ``MAX_CONFLICTS`` conflicts in a row."""
    found = _Settled()
    for part in _parts(answered, LEAVERS, _weight_in_bundle):
        _settle(ports, part, found)
    return found


def _weight_in_bundle(each: Answered) -> tuple[int, int]:
    """Of the events of a bundle, only those that leave it have rows of their own."""
    return (0, 0) if isinstance(each.answer, Started) else (1, bytes_of(each))


def _settle(ports: Ports, answered: Sequence[Answered], found: _Settled) -> None:
    row = answered[0].ready.row
    for _ in range(MAX_CONFLICTS):
        bundle = ports.rows.get(Job, row.schedule, row.generation, row.sort_key)
        run = ports.rows.get(Run, row.job_id, row.attempt)
        if bundle is None or bundle.closed or bundle.job_id != row.job_id:
            if _after_the_end(ports, answered, run, found):
                return
            continue
        inside = [each for each in answered if bundles.has(bundle, each.ready.job)]
        if not inside or _settle_inside(ports, bundle, run, inside, found):
            found.alone += [each for each in answered if each not in inside and not _is_sent(run, each)]
            return
    raise too_many_conflicts(f"recording the deliveries of {row.job_id}", "the sweep will hint the bundle again")


def _settle_inside(ports: Ports, bundle: Job, run: Run | None, inside: Sequence[Answered], found: _Settled) -> bool:
    """Settle events of a bundle. Returns whether no other write came first."""
    now = ports.clock.now()
    nexts = {each.ready.ref: next_of(ports, each, now) for each in inside if not isinstance(each.answer, Started)}
    taken = [each for each in inside if isinstance(each.answer, Started)]
    left = {each.ready.job.index for each in inside if each.ready.ref in nexts}
    later = bundles.settled(bundle, {each.ready.job.index for each in taken}, left)
    plan: list[Write] = (
        [Replace(later)] if later is not None else [DeleteJob(bundle, exact=True), *queued.leave(bundle)]
    )
    if taken:
        plan.append(_written(run, _run_of(ports, bundle, run, taken, {*bundle.left, *left})))
    for each_next in nexts.values():
        plan += each_next.plan
    if ports.ledger.commit(plan) is not None:
        return False
    found.ends |= {each.ready.ref: None for each in taken}
    for ref, each_next in nexts.items():
        found.ends[ref] = each_next.why
        notices.hint(ports, each_next.notices)
        if each_next.job is not None and each_next.job.wake_at is not None:
            ports.hints.send([ref_of(each_next.job)], each_next.job.wake_at, now)
    return True


def _run_of(
    ports: Ports, bundle: Job, run: Run | None, taken: Sequence[Answered], left: Collection[int]
) -> Run:  # fmt: skip
    """The run of a bundle, with these deliveries. Events in ``left`` have left the bundle."""
    sent = [(each.ready.job.due_at or each.at, each.at) for each in taken]
    known = run or replace(_first_run(ports, bundle, taken[0]), count=0, ended_at=taken[-1].at)
    ahead = {*known.ahead, *(each.ready.job.index for each in taken)}
    count = bundles.next_gap(bundle.index, known.count, {*ahead, *left})
    # The run keeps its first end, which names the day of its line in the history.
    return replace(
        known,
        count=count,
        ahead=tuple(sorted(number for number in ahead if number >= bundle.index + count)),
        left=tuple(sorted(number for number in left if number < bundle.index + count)),
        sends=sends.of(sent, known.sends),
        rev=known.rev if run is None else known.rev + 1,
    )


def _written(stored: Run | None, run: Run) -> Write:
    return Create(run) if stored is None else Replace(run)


def _first_run(ports: Ports, bundle: Job, taken: Answered) -> Run:
    """The run of a bundle, from that of the first of its events that was sent."""
    if not isinstance(taken.answer, Started):
        raise TypeError("expected a delivery that was taken")
    own = bundle.job_id
    run = ended(taken.called, taken.answer, taken.at)
    request = replace(
        run.request,
        context_uri=ports.payloads.context_uri(own),
        client_token=ids.client_token(own, 1),
        name=f"{own}-1"[-256:],
    )
    due = bundles.due(bundle, bundle.index)
    return replace(
        run,
        run_id=own,
        request=request,
        target_id=None,
        created_at=bundle.created_at,
        due_at=due,
        accepted_at=due,
        event=fire.fire_event(bundles.event_of(bundle, bundle.index)),
        spread=(bundle.index, Plan(*bundle.plan).events),
        plan=bundle.plan,
    )


def _is_sent(run: Run | None, each: Answered) -> bool:
    """Whether the run of a bundle says that an event was sent: another invocation was faster."""
    fire_id = bundles.fire_of_bundle(each.ready.row.job_id)
    return run is not None and bundles.run_of_event(run, fire_id, each.ready.job.index) is not None


def _after_the_end(ports: Ports, answered: Sequence[Answered], run: Run | None, found: _Settled) -> bool:
    """Record what was sent of a bundle that was dropped, or divided, meanwhile. Returns whether no other write came
    first."""
    bundle = answered[0].ready.row
    record = ports.rows.get(Record, bundle.job_id)
    unknown = [each for each in answered if not _is_sent(run, each)]
    taken = [each for each in unknown if isinstance(each.answer, Started)]
    if record is None or not taken:
        found.alone += unknown
        return True
    left = bundle.left if run is None else (*bundle.left, *run.left)
    rest = record.count - len(taken)
    replaced = record.recorded_at if rest <= 0 else None
    dropped = replace(_run_of(ports, bundle, run, taken, set(left)), dropped_at=replaced)
    kept: Write = Put(replace(record, count=rest, rev=record.rev + 1)) if rest > 0 else Delete(record)
    if ports.ledger.commit([_written(run, dropped), kept]) is not None:
        return False
    found.ends |= {each.ready.ref: None for each in answered}
    return True


def _by_row(answered: Sequence[Answered]) -> dict[Ref, list[Answered]]:
    """The deliveries of each bundle, in the order of their numbers."""
    groups: dict[Ref, list[Answered]] = {}
    for each in answered:
        groups.setdefault(each.ready.row_ref, []).append(each)
    return {ref: sorted(group, key=lambda each: each.ready.job.index) for ref, group in groups.items()}
