"""Deliver due fires to targets that have no lifecycle, at least once and always under the same id (E6).

A single delivery is a batch of one. Lease the jobs, so that no other invocation sends them too, and wait for their
instant. Then, for each sub-batch: check the time left, read again what may have been closed, send, record the results.
A sub-batch has up to five calls of ten messages. Each of them begins soon after the read, or the rest is read again.
After a slow read, one call is made at once, so that a busy machine slows a burst down and does not stop it.
What is read again are the schedule states and jobs, and whether the starts of the workflows are counted by now. If the
count of closings of their namespace is still that from before they were read, nothing was closed since, and only the
count is read (`core/schedules/closings.py`).
After a crash the fire is sent again under the same id, so it is never lost and the consumer can drop the repeat. A fire
that cannot be delivered becomes a failed run and a dead letter, in one transaction with the end of its job.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Any

from chalicelib.core.changes import replace
from chalicelib.core.fires import bundles, fire
from chalicelib.core.instants import SECOND, Instant, Millis
from chalicelib.core.jobs import check, claim
from chalicelib.core.jobs.check import Launch
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.rows import delivery_lease, kinds
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.grants import GrantsRow
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.kinds import Key, Stamp, stamp_of
from chalicelib.core.rows.ref import Ref, ref_of
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.runs import metrics
from chalicelib.core.runs.target_roles import MAX_ASSUME
from chalicelib.core.schedules.closings import Counts
from chalicelib.core.targets import sub_batches
from chalicelib.core.targets.answers import Answer, Never, NoAnswer, NotNow
from chalicelib.core.why import Why
from chalicelib.flow import lookup
from chalicelib.flow.definitions import allowed, target_roles
from chalicelib.flow.deliveries.books import Books
from chalicelib.flow.deliveries.ends import Answered, Ready
from chalicelib.flow.deliveries.leases import AGAIN, CLOCKS, Leases
from chalicelib.flow.runs.context import build
from chalicelib.log import logger
from chalicelib.ports import Ports

# The rows of a job are at most FRESH old when it is sent (C13). After a slower read of at most OLDEST, one call is made
# at once, and the next read is for one call. A still slower read is repeated. If reads stay that slow for SLOW_TABLES,
# the jobs are handed on. They are not handed on at once, because another invocation would prepare them again, which
# makes tables slow that are slow from too much work.
FRESH: Millis = 100
OLDEST: Millis = 2 * SECOND
SLOW_TABLES: Millis = 10 * SECOND
PAUSE: Millis = 20  # between slow reads
TOGETHER: Millis = 50  # the events of a bundle that are due within this time are sent in one call, at the last instant

# Reserved at the end of an invocation for recording results and for the hints that follow the last send.
BOOKS_TIME: Millis = 10 * SECOND

HANDED_ON = 250  # jobs per hint


BUSY = Why.of("leased", "another invocation is delivering it")


NONE: Counts = {}


# The answers to calls that are not made.
Refused = Mapping[Ref, Never | NotNow]


NO_TIME = Why.of("leased", "handed on: this invocation has no time left to deliver it")


@dataclass(frozen=True, slots=True)
class Leased:
    """Jobs for this invocation to deliver, and its leases on them.

    ``counts`` are the counts of closings before their rows were read, if they were leased before their instant. The
    rows of a namespace without a count are read again before each sub-batch. ``again`` are rows that another invocation
    has leased until the instant of the batch at the latest: they are hinted then.
    """

    ready: tuple[Ready, ...]
    leases: Leases
    counts: Counts
    again: tuple[Ref, ...] = ()


@dataclass(frozen=True, slots=True)
class Sent:
    """The results of a batch.

    ``ends`` has each delivery that was sent: None if it is final, else why it is tried again. ``changed`` was not sent
    because its schedule state or job has changed: decide it again. ``failed`` could not be read, or may have been sent
    without a recorded result: this invocation must not send it again. ``lost`` was leased by another invocation after
    the lease of this one had ended. It is hinted, in case the other one gives it up, too.
    """

    ends: dict[Ref, Why | None]
    changed: tuple[Ref, ...]
    failed: dict[Ref, Exception]
    lost: frozenset[Ref] = frozenset()


def deliver(
    ports: Ports, job: Job, facts: Facts, why: Why, now: Instant, serving: str | None = None
) -> tuple[bool, Why] | None:  # fmt: skip
    """Deliver one job, as a batch of one.

    Returns whether the delivery is final, with its reason or the reason why the job still waits. Returns None if the
    job has to be decided again. Raises RuntimeError if the result could not be recorded.
    """
    run = called_run(ports, job, facts, why, now)
    delivery = Ready(ref_of(job), job, facts, run, build(ports, run), serving)
    leased = lease(ports, [delivery], now)
    if not leased.ready:
        return False, BUSY
    sent = send(ports, leased)
    if delivery.ref in sent.failed:
        message = f"the delivery of job {job.job_id} could not be read or recorded; the sweep will hint the job again"
        raise RuntimeError(message) from sent.failed[delivery.ref]
    if delivery.ref in sent.ends:
        retry_why = sent.ends[delivery.ref]
        return retry_why is None, retry_why or why
    if delivery.ref in sent.changed:
        return None
    return False, BUSY if delivery.ref in sent.lost else NO_TIME


def called_run(ports: Ports, job: Job, facts: Facts, why: Why, now: Instant) -> Run:
    """The run that a job becomes if it is delivered now, with this call counted as its next try."""
    ready = replace(job, reason=why, event=fire.event_of(job))
    run = claim.build_run(ready, facts, (), ports.payloads.context_uri(job.job_id), now)
    return _called_at(run, job, now, job.tries + 1)


def lease(ports: Ports, ready: Sequence[Ready], begin: Instant, counts: Counts = NONE) -> Leased:
    """Lease the jobs for sends that begin at ``begin``. Returns those that this invocation may deliver.

    Jobs that another invocation delivers are hinted for the end of its lease, in case it has crashed. If that is not
    after ``begin``, the caller hints them then (``again``): a hint arrives before its instant, and one that is sent now
    would arrive at once, and be sent again, until the lease ends. Jobs that it has just leased, too, are hinted for two
    seconds later. ``counts``: as in `Leased`.
    """
    leases = Leases(ports)
    if not ready:
        return Leased((), leases, counts)
    allowed.read_ahead(ports, [each.run for each in ready])
    ready = with_roles(ports, ready)
    # The first use of a target imports and creates its client: 20 ms of CPU, better spent before the instant.
    target_roles.assume(ports, [each.run for each in ready])
    longest = longest_of(ready)
    rows = _rows(ready)
    busy = leases.take(rows, longest, begin)
    later: dict[Instant, list[Ref]] = {}
    for row in rows:
        until = busy.get(delivery_lease.mark(row))
        if until is not None:
            later.setdefault(until, []).append(ref_of(row))
    again = [ref for until, refs in later.items() if until <= begin for ref in refs]
    for until, refs in later.items():
        if until > begin:
            _hint(ports, refs, until)
    # From its instant on, another invocation may have sent a job after its row was read, and its lease may have ended.
    # The count does not show that, so the rows are read again. One whose clock is ahead may have sent a job before, but
    # its lease still covers what it sent.
    may_be_sent = ports.clock.now() >= min(map(delivery_lease.due_of, rows))
    left = tuple(each for each in ready if delivery_lease.mark(each.row) not in busy)
    return Leased(left, leases, NONE if may_be_sent else counts, tuple(again))


def _rows(ready: Iterable[Ready]) -> list[Job]:
    """The stored rows of deliveries, each once."""
    return list({each.row_ref: each.row for each in ready}.values())


def with_roles(ports: Ports, ready: Sequence[Ready]) -> list[Ready]:
    """The deliveries with the roles that their namespaces have now."""
    runs = target_roles.present_of(ports, [each.run for each in ready])
    return [each if run is each.run else replace(each, run=run) for each, run in zip(ready, runs, strict=True)]


def send(ports: Ports, leased: Leased) -> Sent:
    """Send the leased jobs, one sub-batch after the other, and record the results. Never raises for a job that was
    sent."""
    books, leases = Books(ports, leased.leases), leased.leases
    changed: list[Ref] = []
    unread: dict[Ref, Exception] = {}
    sent_of: set[Ref] = set()  # rows: of a bundle, some events may be left
    batch = _Batch(ports, leases, leased.ready, leased.counts)
    while batch.calls:
        try:
            sub_batch = batch.next()
        except _NoTime as no_time:
            books.keep()
            _hand_on(ports, leases, books, [each for call in batch.calls for each in call], no_time.until, sent_of)
            break
        except Exception as error:  # the tables cannot be read, so none of the remaining jobs was sent
            logger.exception("sub-batch not read", extra={"size": sum(map(len, batch.calls))})
            unread = dict.fromkeys(batch.rows(), error)
            break
        if sub_batch is None:
            continue
        changed += dict.fromkeys(each.row_ref for each in sub_batch.stale)
        for number, call in enumerate(sub_batch.calls):
            if number and not batch.may_send(sub_batch, call):
                batch.put_back(sub_batch.calls[number:], made=number)
                break
            books.add(send_call(ports, call, sub_batch.refused))
            sent_of |= {each.row_ref for each in call}
    books.keep()
    if changed and not books.failed:
        given_up = set(changed)
        _give_up(ports, leases, [each for each in leased.ready if each.row_ref in given_up], sent_of)
    if batch.lost:
        _hint(ports, list(batch.lost), ports.clock.now() + AGAIN)
    return Sent(books.ends, tuple(dict.fromkeys(changed)), {**books.failed, **unread}, frozenset(batch.lost))


class _NoTime(Exception):
    """The invocation has no time for another sub-batch, or the tables are too slow. Delivery may continue at
    ``until``."""

    def __init__(self, until: Instant) -> None:
        super().__init__(until)
        self.until = until


@dataclass(frozen=True, slots=True)
class _SubBatch:
    """The calls that may be made now, by a read that began at ``read_at``, and the deliveries to decide again.

    Neither has jobs that another invocation has leased since. ``refused`` has the answers to calls that are not made:
    the target may no longer be called, or its role has no credentials (O10).
    """

    calls: list[list[Ready]]
    stale: list[Ready]
    refused: Refused
    read_at: Instant


class _Batch:
    """The calls that are left of a batch, and how many of them one read covers. ``counts``: as in `Leased`."""

    def __init__(self, ports: Ports, leases: Leases, ready: Sequence[Ready], counts: Counts) -> None:
        self._ports = ports
        self._leases = leases
        self._counts = counts
        self._is_single = len(ready) == 1
        self.calls = deque(_calls(ready))
        self._width = sub_batches.MAX_BATCHES
        self._slow_since: Instant | None = None
        self.lost: dict[Ref, None] = {}  # in their order

    def rows(self) -> list[Ref]:
        return [ref_of(row) for row in _rows(each for call in self.calls for each in call)]

    def next(self) -> _SubBatch | None:
        """Take the next sub-batch, and read its rows. Returns None if a namespace has another role now. Then all
        that is left is split anew. Returns None, too, if the read took longer than ``OLDEST``. Then the calls are left,
        with the revisions that were read, and the next read is for one call. So it is after a read that took longer
        than ``FRESH``, of whose calls `may_send` allows only the first.

        Raises _NoTime if too little time is left, or if reads have been slow for ``SLOW_TABLES``.
        """
        begin = max(self._ports.clock.now(), _due_of(self.calls[0]))
        next_calls = takewhile(lambda call: self._is_like_first(call) and _due_of(call) <= begin, self.calls)
        calls = list(islice(next_calls, min(self._width, _calls_of(self.calls[0]))))
        part = [each for call in calls for each in call]
        longest = longest_of(part)
        if self._is_split_anew(part):
            return None
        # STS is called here if credentials end soon: neither the leases nor the read get older meanwhile.
        needed = longest + (MAX_ASSUME if any(each.run.target_role for each in part) else 0)
        if not self._has_time(needed + begin - self._ports.clock.now()):
            raise _NoTime(begin)
        self._ports.clock.wait_until(begin)
        missing = target_roles.assume(self._ports, [each.run for each in part])
        refused = refusals(self._ports, part, missing)
        # A stall between this instant and the sends counts as a slow read: the lease may end during it.
        before = self._ports.clock.now()
        kept = self._leases.keep(_rows(part), longest + OLDEST)
        held = [each for each in part if delivery_lease.mark(each.row) not in kept.lost]
        if kept.lapsed:
            self._counts = NONE  # others may have sent these jobs, which no count shows
        found = _relied_on(self._ports, held if self._nothing_closed(held) else self._read_again(held))
        if self._ports.clock.now() - before > FRESH:  # the allow-list and the roles must not get older by that
            refused = refusals(self._ports, part, missing)
            if self._is_split_anew(part):
                return None
        now = self._ports.clock.now()
        is_slow = now - before > FRESH
        for _ in calls:
            self.calls.popleft()
        # A slow read has used time of the invocation.
        if is_slow and (now - before > OLDEST or not self._has_time(longest)):
            present = {each.ref: each for each in found}
            self.calls.extendleft([present.get(each.ref, each) for each in call] for call in reversed(calls))
            self._pause(now, len(held))
            return None
        self._width = 1 if is_slow else min(self._width + 1, sub_batches.MAX_BATCHES)
        self._slow_since = None
        self.lost |= {each.row_ref: None for each in part if delivery_lease.mark(each.row) in kept.lost}
        going = {each.ref: decided for each in found if (decided := _decided(each, now)) is not None}
        may_go = [[going[each.ref] for each in call if each.ref in going] for call in calls]
        stale = [each for each in held if each.ref not in going]
        self._leave_out({each.row_ref for each in stale if each.bundle is not None} | self.lost.keys())
        return _SubBatch([call for call in may_go if call], stale, refused, before)

    def _leave_out(self, rows: Collection[Ref]) -> None:
        """Leave out the other events of bundles that are decided again: events are sent in the order of their
        numbers."""
        if rows:
            left = ([each for each in call if each.row_ref not in rows] for call in self.calls)
            self.calls = deque(call for call in left if call)

    def _is_split_anew(self, part: Sequence[Ready]) -> bool:
        """Split the rest anew, if the namespace of a delivery has another role than that with which it was split."""
        present = with_roles(self._ports, part)
        if all(each is before for each, before in zip(present, part, strict=True)):
            return False
        changed = {each.ref: each for each in present}
        left = [changed.get(each.ref, each) for call in self.calls for each in call]
        self.calls = deque(_calls(left))
        return True

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
        # A single job was decided just now. The states and jobs are read last, right before the call.
        return _as_read(self._ports, part if self._is_single else _uncounted(self._ports, part))

    def put_back(self, calls: Sequence[list[Ready]], made: int) -> None:
        """Put back the calls for which a read was too old after ``made`` calls. The next read is for as many."""
        self.calls.extendleft(reversed(calls))
        self._width = made

    def may_send(self, sub_batch: _SubBatch, call: Sequence[Ready]) -> bool:
        """Whether another call may begin now. Otherwise its rows are read again."""
        return self._ports.clock.now() - sub_batch.read_at <= FRESH and self._has_time(longest_of(call))

    def _has_time(self, longest: Millis) -> bool:
        return self._ports.has_time(longest + BOOKS_TIME)

    def _is_like_first(self, call: Sequence[Ready]) -> bool:
        return bool(target_of(call[0])["type"] == target_of(self.calls[0][0])["type"])

    def _pause(self, now: Instant, size: int) -> None:
        self._width = 1
        self._slow_since = self._slow_since if self._slow_since is not None else now
        if now - self._slow_since >= SLOW_TABLES:
            logger.warning("tables slow", extra={"hint": f"no read of {size} jobs within {OLDEST} ms"})
            raise _NoTime(now + SECOND)
        self._ports.clock.wait_until(now + PAUSE)


def _calls(ready: Iterable[Ready]) -> list[list[Ready]]:
    """The deliveries of each call, in the order of their instants."""
    calls = (part for call in sub_batches.split(ready, run_of) for part in _together(call))
    return sorted(calls, key=_due_of)


def _together(call: Sequence[Ready]) -> Iterator[list[Ready]]:
    """The parts of a call whose events are due together: at most `TOGETHER` after the first of them."""
    together: list[Ready] = []
    for each in call:
        if together and _due_of([each]) - _due_of(together[:1]) > TOGETHER:
            yield together
            together = []
        together.append(each)
    yield together


def _due_of(call: Sequence[Ready]) -> Instant:
    """When the last event of a call is due."""
    return max((each.job.due_at or 0 for each in call if each.bundle is not None), default=0)


def run_of(each: Ready) -> Run:
    return each.run


def target_of(each: Ready) -> Mapping[str, Any]:
    return each.run.request.target


def refusals(ports: Ports, ready: Sequence[Ready], missing: target_roles.Missing) -> dict[Ref, Never | NotNow]:
    """The answers to calls that are not made. ``missing`` are the roles without credentials."""
    runs = [each.run for each in ready]
    reasons, unassumed = allowed.refusals(ports, runs), target_roles.instead_of_calls(missing, runs)
    answers = [Never(why) if why is not None else answer for why, answer in zip(reasons, unassumed, strict=True)]
    return {each.ref: answer for each, answer in zip(ready, answers, strict=True) if answer is not None}


def _calls_of(call: Sequence[Ready]) -> int:
    return sub_batches.calls_of(target_of(call[0]))


def longest_of(part: Sequence[Ready]) -> Millis:
    return max(sub_batches.longest_call(target_of(each)) for each in part)


def unchanged(ports: Ports, part: Sequence[Ready]) -> list[Ready]:
    """The deliveries for which all that their decision relied on is as it was read."""
    return _relied_on(ports, _as_read(ports, part))


def _as_read(ports: Ports, part: Sequence[Ready]) -> list[Ready]:
    """The deliveries whose schedule state and job are still those of the decision.

    Equal stamps prove that in most cases. Rows whose stamp has changed are read in full, since a sweep's lease changes
    the stamp but not the decision.
    """
    stamps = ports.prefetch.stamps(_wanted(part))
    stamped = {each.ref for each in part if _is_as_stamped(stamps, each)}
    others = [each for each in part if each.ref not in stamped]
    seen = ports.prefetch.read(ports, _wanted(others)) if others else ports
    found = [each if each.ref in stamped else _still(seen, each) for each in part]
    return [each for each in found if each is not None]


def _uncounted(ports: Ports, part: Sequence[Ready]) -> list[Ready]:
    """The deliveries of workflows whose starts are still not counted. The others need permits now."""
    names = {each.run.workflow for each in part if not each.facts.counted}
    counted = {
        name for name in names if (row := ports.rows.get(Definition, "workflow", name)) is not None and row.counted
    }
    return [each for each in part if each.facts.counted or each.run.workflow not in counted]


def _relied_on(ports: Ports, part: Sequence[Ready]) -> list[Ready]:
    """The deliveries whose grants and workflow are those of the decision, and whose backfill goes on. Few deliveries
    have any of these; no count covers them."""
    present, backfills = _Present(ports), _Backfills(ports)
    return [each for each in part if present.is_unchanged(each) and backfills.goes_on(each)]


class _Present:
    """The present grants of other namespaces, and the present definitions of workflows, each read once."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._read: dict[str, GrantsRow | None] = {}
        self._workflows: dict[str, Definition | None] = {}

    def is_unchanged(self, each: Ready) -> bool:
        """Whether the grants and the workflow on which a delivery relies are those of its decision."""
        row = each.facts.relied_on
        if row is not None and self._workflow(row.name) != row:
            return False
        return all(self._of(owner) == read for owner, read in each.facts.granted.rows.items())

    def _workflow(self, name: str) -> Definition | None:
        if name not in self._workflows:
            self._workflows[name] = self._ports.rows.get(Definition, "workflow", name)
        return self._workflows[name]

    def _of(self, owner: str) -> GrantsRow | None:
        if owner not in self._read:
            self._read[owner] = self._ports.rows.get(GrantsRow, owner)
        return self._read[owner]


class _Backfills:
    """Whether the backfills of deliveries still run, each read once."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._read: dict[tuple[str, str], bool] = {}

    def goes_on(self, each: Ready) -> bool:
        if each.job.backfill is None:
            return True
        key = each.job.schedule, each.job.backfill
        if key not in self._read:
            self._read[key] = lookup.goes_on(self._ports, *key)
        return self._read[key]


def send_call(ports: Ports, going: Sequence[Ready], refused: Refused) -> list[Answered]:
    """Make one call for the deliveries that are not refused. Returns the answers, each with its instant."""
    now = ports.clock.now()
    called = [_called_at(each.run, each.job, now, each.run.calls) for each in going]
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


def _called_at(run: Run, job: Job, now: Instant, calls: int) -> Run:
    """The run with its call at ``now``, the instant from which its lateness is measured (T4). It is the call number
    ``calls``."""
    first = job.first_try_at if job.first_try_at is not None else now
    late = job.window_end is not None and now >= job.window_end
    return replace(run, calls=calls, claimed_at=now, start_requested_at=first, late=late)


def _wanted(part: Sequence[Ready]) -> list[Key]:
    wanted: list[Key] = [kinds.key(ScheduleState, name) for name in dict.fromkeys(each.job.schedule for each in part)]
    return wanted + [kinds.key_of(row) for row in _rows(part)]


def _is_as_stamped(stamps: Mapping[Key, Stamp], each: Ready) -> bool:
    schedule_state = each.facts.schedule_state
    if schedule_state is None or stamps.get(kinds.key_of(schedule_state)) != stamp_of(schedule_state):
        return False
    return stamps.get(kinds.key_of(each.row)) == stamp_of(each.row)


def _still(seen: Ports, each: Ready) -> Ready | None:
    """The delivery with the present revision of its job; None if the job or its schedule state has changed.

    A lease by the sweep raises the revision but changes nothing that the decision depends on.
    """
    job = seen.rows.get(Job, each.row.schedule, each.row.generation, each.row.sort_key)
    if job is None or job.closed or seen.rows.get(ScheduleState, each.job.schedule) != each.facts.schedule_state:
        return None
    if _identity(job) != _identity(each.row):
        return None
    if each.bundle is not None:
        return replace(each, bundle=job) if bundles.has(job, each.job) else None
    return each if job.rev == each.job.rev else replace(each, job=replace(each.job, rev=job.rev))


def _identity(job: Job) -> tuple[object, ...]:
    return job.job_id, job.attempt, job.tries, job.queued_in, job.held, job.units, job.plan


def still_launches(each: Ready, now: Instant) -> Launch | None:
    """The decision if the same facts still launch the job at ``now``: a window or timeout can end while others are
    sent."""
    decision = check.decide(each.job, each.facts, now, each.serving)
    return decision if isinstance(decision, Launch) else None


def _decided(each: Ready, now: Instant) -> Ready | None:
    decision = still_launches(each, now)
    return each if decision is not None and not decision.asks else None


def _give_up(ports: Ports, leases: Leases, left: Iterable[Ready], sent_of: Collection[Ref]) -> None:
    """Give up the leases on rows of which this invocation sends nothing more. Within a second after its instant, a
    bundle of which it has sent a part stays leased: by a clock that is behind, another invocation could take the lease
    before the instant, and rely on what it read then."""
    now = ports.clock.now()
    rows = [each for each in _rows(left) if ref_of(each) not in sent_of or now >= delivery_lease.due_of(each) + CLOCKS]
    leases.give_up(frozenset(delivery_lease.mark(row) for row in rows))


def _hand_on(
    ports: Ports, leases: Leases, books: Books, left: Sequence[Ready], until: Instant, sent_of: Collection[Ref]
) -> None:  # fmt: skip
    """Hint the remaining jobs, for other invocations. If a result was not recorded the lease stays, so that they wait
    until it expires."""
    if not books.failed:
        _give_up(ports, leases, left, sent_of)
    logger.warning("handed on", extra={"size": len(left)})
    _hint(ports, [ref_of(row) for row in _rows(left)], until)


def _hint(ports: Ports, refs: Sequence[Ref], due: Instant) -> None:
    now = ports.clock.now()
    for start in range(0, len(refs), HANDED_ON):
        ports.hints.send(refs[start : start + HANDED_ON], max(due, now), now)
