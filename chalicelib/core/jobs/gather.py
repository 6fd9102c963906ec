"""The rules of gathering: the state of a job after events have been applied to it (T7, T9, T12, T14, T18, C11).

`gather` is pure. It returns the job after the events. If the partial match of the job before them has expired, or its
time is over, it also returns the record or the detached job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product
from typing import NamedTuple
from urllib.parse import quote

from chalicelib.core import ids
from chalicelib.core.constraints import approval
from chalicelib.core.dags import rounds
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.events.partitions import MAX_SORT_KEY
from chalicelib.core.instants import Instant, format_duration
from chalicelib.core.jobs import timeout
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.job import Job, Progress
from chalicelib.core.rows.records import record_of
from chalicelib.core.rows.run import Record
from chalicelib.core.rows.schedule import Subscription
from chalicelib.core.rows.sort_keys import GATHERING
from chalicelib.core.triggers import parts, registry, tree
from chalicelib.core.triggers.event import values_in
from chalicelib.core.triggers.leaf import Leaf
from chalicelib.core.triggers.patterns import Flattened
from chalicelib.core.why import Mention, Why, mention


@dataclass(frozen=True, slots=True)
class Touch:
    """One event, and the leaves of one schedule that count it. ``parts`` has the number of the part that the event is,
    for leaves that wait for certain ones."""

    event: Event
    leaves: tuple[str, ...]
    parts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Begin:
    """What the job of a period begins with (T25): the parts that its leaves wait for, with those that have come, and
    ``source``, from which its id follows."""

    leaves: Mapping[str, Progress]
    source: str


@dataclass(frozen=True, slots=True)
class Gathered:
    """``job`` is the gathering job after the events; None if there is no change, or no job is left.

    Of the job before: ``dropped`` is its record, if its match expired, its timeout aborted it, or an event undid its
    match. ``detached`` is that job under its own key, if it timed out and its trigger was met, or it runs in spite of
    the timeout.
    """

    job: Job | None
    dropped: Record | None = None
    detached: Job | None = None


class Joined(NamedTuple):
    """The correlation of a job to which an event belongs. ``mark`` names the mark of the event for this job, if it
    belongs to one for each listed value."""

    correlation: Mapping[str, str] | None
    mark: str = ""


def counts_for(event: Event, subscription: Subscription) -> bool:
    """An event counts for a leaf only if it was accepted after the leaf began to gather (L3, L6)."""
    return event.accepted_at >= subscription.since


def correlate(by: tuple[str, ...], event: Event) -> dict[str, str] | None:
    """The values of the correlation keys ``by`` in an event; None if it lacks one of them, or if there are no keys
    (T19). A custom event has them in its payload."""
    values = _carried(event)
    return {key: values[key] for key in by} if by and all(key in values for key in by) else None


def joined(schedule: Schedule, event: Event) -> tuple[Joined, ...]:
    """The jobs to which an event belongs, by the correlation keys: one, or one for each listed value of the keys that
    it lacks (T27): one more than `MAX_JOBS` if there are more. None if it lacks another key, or has a value that is not
    listed."""
    if not schedule.values:
        correlation = correlate(schedule.by, event)
        return () if schedule.by and correlation is None else (Joined(correlation),)
    carried = _carried(event)
    if unlisted(schedule, event) is not None:
        return ()
    known = [(carried[key],) if key in carried else schedule.values.get(key, ()) for key in schedule.by]
    found = [dict(zip(schedule.by, values, strict=True)) for values in islice(product(*known), parts.MAX_JOBS + 1)]
    lacks = any(key not in carried for key in schedule.by)
    return tuple(Joined(each, ids.digest(*each.values()) if lacks else "") for each in found)


def unlisted(schedule: Schedule, event: Event) -> str | None:
    """The first value of an event that the schedule does not list, as ``region=mars``; None if there is none."""
    return unlisted_of(schedule, _carried(event))


def unlisted_of(schedule: Schedule, carried: Mapping[str, str]) -> str | None:
    """As `unlisted`, for the values that an event carries."""
    found = (
        f"{key}={carried[key]}" for key, listed in schedule.values.items() if carried.get(key, listed[0]) not in listed
    )
    return next(found, None)


def _carried(event: Event) -> Mapping[str, str]:
    """The values that an event carries."""
    if event.partition:
        return event.partition
    return {key: str(value) for key, value in values_in(event).items() if _names(value)}


def _names(value: object) -> bool:
    """Whether a value of a payload can be a correlation value: a text that is not empty, or a whole number."""
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""


def gathering_key(correlation: Mapping[str, str] | None) -> str:
    """The sort key of the gathering job: one for each combination of correlation values."""
    if not correlation:
        return GATHERING
    encoded = "/".join(quote(value, safe="").replace("~", "%7E") for value in correlation.values())
    # A sort key holds 1,024 bytes, so a digest replaces long values. No quoted value begins with '~'.
    short = len(encoded) <= MAX_SORT_KEY
    return f"{GATHERING}#{encoded}" if short else f"{GATHERING}#~{ids.digest(*correlation.values())}"


def touched(
    schedule: Schedule, event: Event, rows: Iterable[Subscription], payload: Flattened | None = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The leaves that count an event, and the absent leaves whose absence it ends. ``payload`` is that of the event,
    for callers that bound the steps of the patterns: then it raises `OverBudget`."""
    payload = payload or Flattened(event.payload)
    rules = {leaf.id: leaf.trigger for leaf in tree.leaves(schedule.trigger)}
    # An absent event has no payload that could match the pattern of the feed.
    fits = [row.leaf for row in rows if row.leaf in rules]
    met = [leaf for leaf in fits if event.kind == "absent" or rules[leaf].accepts(payload, event.schedule)]
    against = tuple(leaf for leaf in met if rules[leaf].opposes(event.kind))
    return tuple(leaf for leaf in met if leaf not in against), against


def ended(schedule: Schedule, event: Event, job: Job | None, against: tuple[str, ...]) -> tuple[str, ...]:
    """The absent leaves among ``against`` whose absence this event ends: it is not about another period. The periods
    of datasets must be read."""
    progress, rules = job.leaves if job is not None else {}, {leaf: leaf_of(schedule, leaf) for leaf in against}
    return tuple(leaf for leaf, rule in rules.items() if rule is not None and rule.ends_by(event, progress.get(leaf)))


def gather(
    job: Job | None,
    touches: Iterable[Touch],
    schedule: Schedule,
    subscription: Subscription,
    correlation: Mapping[str, str] | None,
    now: Instant,
    against: tuple[str, ...] = (),
    timed_out: bool = False,
    begin: Begin | None = None,
) -> Gathered:
    """Apply events to a gathering job, or to a new one if there is none. ``against`` are the absent leaves whose
    absence the events end. ``timed_out``: the events were accepted after the job's timeout, so they begin the next
    job. ``begin`` is what the job of a period begins with, if there is no job, or its time is over."""
    given = tuple(touches)
    touches = tuple(touch for touch in given if touch.leaves)
    # The match of a queued job is locked: the job holds permits and has a waiter, which no event removes with it.
    against = () if job is not None and job.queued_in is not None else against
    if job is None or has_expired(job, schedule, now):
        if not touches:
            return Gathered(None)
        dropped = expiry(job, schedule, now) if job is not None else None
        return Gathered(_begun(job, touches, schedule, subscription, correlation, now, begin), dropped)
    if timed_out and touches and (schedule.per is None or begin is not None):
        begun = _begun(job, touches, schedule, subscription, correlation, now, begin)
        if begun.job_id != job.job_id:  # a DAG's node has one job per round: its events stay together
            if job.met_at is None and not timeout.runs_anyway(schedule):
                return Gathered(begun, record_of(job, "ABORTED", timeout.timed_out(job, schedule), now))
            return Gathered(begun, detached=out_of_time(job, now))
    if not touches and not any(leaf in job.leaves for leaf in against):
        return Gathered(None)
    progress = {leaf: gathered for leaf, gathered in job.leaves.items() if leaf not in against}
    for touch in touches:
        _count(progress, touch)
    if not progress:
        over = Why.of("absence_over", "the absent event arrived before the job was launched", *_which(given))
        return Gathered(None, record_of(job, "DROPPED", over, now))
    if progress == job.leaves:
        return Gathered(None)  # the part has come before
    requester = _requester(touches, subscription) or job.requested_by
    grown = replace(job, leaves=progress, requested_by=requester, rev=job.rev + 1)
    if touches and job.approvals:
        grown = replace(grown, approvals=approval.outdated(job.approvals))
    grown = refresh(grown, schedule, now)
    if touches and has_expired(grown, schedule, now):
        # The event ends the quiet span of a match whose window is over. The event is too late for this match, so it
        # begins the next one.
        return Gathered(_begun(job, touches, schedule, subscription, correlation, now), expiry(job, schedule, now))
    return Gathered(grown)


def _which(touches: Sequence[Touch]) -> list[str | Mention]:
    """The partition that ended an absence, as the end of a sentence; nothing for other events."""
    event = next((touch.event for touch in touches if touch.event.dataset and touch.event.partition), None)
    if event is None or event.dataset is None:
        return []
    values = "/".join(f"{key}={value}" for key, value in (event.partition or {}).items())
    return [f": {values} of ", mention("dataset", event.dataset)]


def _begun(
    over: Job | None,
    touches: tuple[Touch, ...],
    schedule: Schedule,
    subscription: Subscription,
    correlation: Mapping[str, str] | None,
    now: Instant,
    begin: Begin | None = None,
) -> Job:
    """A new match with these events. It replaces the row of ``over``, the match that ended, if there was one."""
    source = begin.source if begin is not None else rounds.which(correlation) or touches[0].event.id
    first = _new_job(source, subscription, correlation, now)
    progress: dict[str, Progress] = dict(begin.leaves) if begin is not None else {}
    for touch in touches:
        _count(progress, touch)
    rev = over.rev + 1 if over is not None else first.rev
    requester = _requester(touches, subscription)
    return refresh(replace(first, leaves=progress, requested_by=requester, rev=rev), schedule, now)


def _requester(touches: tuple[Touch, ...], subscription: Subscription) -> str | None:
    """The signer who posted the last of these events that a signer posted."""
    found = [event_requester(touch.event, subscription.schedule) for touch in touches]
    return next((by for by in reversed(found) if by is not None), None)


def event_requester(event: Event, schedule: str) -> str | None:
    """The signer who requested a job of a schedule by an event. The status of a requested run names its signer within
    its DAG only; other downstream schedules start without one."""
    return event.by if event.kind != "program_status" or ids.is_dag_node(schedule) else None


def refresh(job: Job, schedule: Schedule, now: Instant) -> Job:
    """A gathering job with the state, reason and ``wake_at`` that follow from its progress. Unchanged if its match is
    locked: met, and no event may undo it, or the job is queued."""
    if is_locked(job, schedule):
        return job
    verdict = tree.evaluate(schedule.trigger, job.leaves, now)
    if verdict.met:
        accepted = max((gathered.last_at for gathered in job.leaves.values()), default=now)
        met_at = job.met_at if job.met_at is not None else now
        return replace(
            job, state="PENDING_CONSTRAINTS", met_at=met_at, accepted_at=accepted, reason=verdict.why, wake_at=now
        )
    instants_due = [
        timeout.deadline_of(job, schedule),
        tree.expires_at(schedule.trigger, job.leaves),
        verdict.changes_at,
    ]
    wake = min((instant for instant in instants_due if instant is not None), default=None)
    return replace(job, state="PENDING_TRIGGER", met_at=None, reason=verdict.why, wake_at=wake)


def is_locked(job: Job, schedule: Schedule) -> bool:
    """Whether no event can undo the match: the trigger was met, and the job queues or nothing revokes a match."""
    return job.met_at is not None and (job.queued_in is not None or not tree.is_revocable(schedule.trigger))


def detach(job: Job) -> Job:
    """A job whose trigger is met, under a sort key of its own, so that the next event begins a new job (C11)."""
    kind = "detached" if job.traits.gathers else job.kind
    return replace(job, sort_key=detached_key(job), kind=kind, rev=1)


def out_of_time(job: Job, now: Instant) -> Job:
    """A job that has timed out, under a sort key of its own. The check aborts it, or runs it with what it has
    gathered."""
    return replace(detach(job), wake_at=now, leases=0)


def detached_key(job: Job) -> str:
    """The sort key of a detached job, which waits beside the gathering one."""
    return sort_keys.detached(job.created_at, job.job_id)


def has_expired(job: Job, schedule: Schedule, now: Instant) -> bool:
    """Whether a match that is still partial is older than the trigger's ``within`` (T14)."""
    limit = tree.expires_at(schedule.trigger, job.leaves)
    if job.met_at is not None or limit is None or now < limit:
        return False
    # A quiet leaf may have completed the match in time, before this check. Nothing completes a match after its time.
    return not tree.evaluate(schedule.trigger, job.leaves, limit).met


def expiry(job: Job, schedule: Schedule, now: Instant) -> Record:
    """The record of a partial match that is older than the trigger's ``within``."""
    span = format_duration(tree.window_of(schedule.trigger) or 0)
    arrived = "; ".join(tree.evaluate(schedule.trigger, job.leaves, now).arrived)
    reason = f"the partial match was not completed within {span} and is dropped: {arrived}"
    return record_of(job, "EXPIRED", Why.of("match_expired", reason), now)


def _count(progress: dict[str, Progress], touch: Touch) -> None:
    at, amount = touch.event.accepted_at, touch.event.size or 0
    for leaf in touch.leaves:
        before = progress.get(leaf)
        if before is not None and before.parts is not None:
            progress[leaf] = _with_part(before, touch.parts[leaf], touch.event)
            continue
        counted = before.plus(1, at, amount) if before else Progress(1, at, at, amount)
        lacks = registry.lacks(touch.event)
        progress[leaf] = replace(counted, lacks=lacks) if lacks else counted


def _with_part(before: Progress, number: int, event: Event) -> Progress:
    """The progress with a part that has come, which counts once."""
    if before.parts is None:
        return before
    known, at = parts.joined_by(before.parts, event.partition or {}), event.accepted_at
    if known.has(number):
        return before
    grown = before.plus(1, at) if before.count else replace(before, count=1, first_at=at, last_at=at)
    return replace(grown, parts=parts.having(known, number))


def _new_job(source: str, subscription: Subscription, correlation: Mapping[str, str] | None, now: Instant) -> Job:
    """The job that begins by ``source``. A node of a DAG has one job per round, whichever upstream ends first (W4), and
    a period has one job, whichever part comes first. Any other job begins by its first event."""
    return Job(
        schedule=subscription.schedule,
        generation=subscription.generation,
        sort_key=gathering_key(correlation),
        job_id=ids.job_id(subscription.schedule, subscription.generation, source),
        kind="gathering",
        state="PENDING_TRIGGER",
        created_at=now,
        correlation=correlation,
    )


def leaf_of(schedule: Schedule, leaf: str) -> Leaf | None:
    """The leaf with this id; None if the trigger has none."""
    return next((found.trigger for found in tree.leaves(schedule.trigger) if found.id == leaf), None)
