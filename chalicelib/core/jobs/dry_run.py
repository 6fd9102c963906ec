"""Dry run of a trigger: what it would make of given events, by the rules that gather them (L11). Nothing is stored.

Constraints are left out: they depend on what else runs at the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chalicelib.core import ids, instants
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.events import correlation as event_correlation
from chalicelib.core.instants import Instant
from chalicelib.core.jobs import gather, timeout
from chalicelib.core.jobs.gather import Touch
from chalicelib.core.names import Names
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.schedule import Subscription
from chalicelib.core.triggers import occurrences, tree
from chalicelib.core.triggers.given import Given
from chalicelib.core.triggers.occurrences import Recurrence


@dataclass(frozen=True, slots=True)
class Step:
    """One event, and how the trigger stands after it. ``why`` is about the event if no leaf counts it."""

    at: Instant
    event: str
    touched: bool
    fires: bool
    verdict: tree.Verdict
    why: str


def dry_run(name: str, schedule: Schedule, given: Sequence[Given], now: Instant) -> tuple[list[Step], list[Job]]:
    """Play events, in the order of their instants, to an empty trigger. Returns the steps and the jobs left waiting.

    Time passes between events, and may complete a match by itself; after the last one it stands still.
    """
    waiting: dict[str, Job] = {}
    steps: list[Step] = []
    rows = list(_rows(name, schedule))
    for number, (at, event, words, timed) in enumerate(
        sorted(_events(name, schedule, given, now), key=lambda each: each[0])
    ):
        found = [row for row in rows if row.event_key == event.key]
        steps += _let_time_pass(schedule, waiting, at)
        touched, against = gather.touched(schedule, event, found)
        touched = (*touched, *_timed(schedule, timed, at))
        steps.append(_play(schedule, waiting, event, words, (touched, against), f"{number}"))
    return steps, list(waiting.values())


def _play(
    schedule: Schedule,
    waiting: dict[str, Job],
    event: Event,
    words: str,
    leaves_met: tuple[tuple[str, ...], tuple[str, ...]],
    number: str,
) -> Step:
    touched, against = leaves_met
    at = event.accepted_at
    correlation = event_correlation.correlate(schedule.by, event) if schedule.by else None
    lost = bool(schedule.by) and correlation is None
    sort_key = event_correlation.gathering_key(correlation)
    row = Subscription(event.key, "demo.dry.run", 0, 0, number, 0)
    job = waiting.get(sort_key)
    over = job is not None and timeout.is_over(job, schedule, None, at)
    touches = [Touch(event, () if lost else touched)]
    gathered = gather.gather(job, touches, schedule, row, correlation, at, against, over)
    after = gathered.job if gathered.job is not None else None if gathered.dropped else job
    verdict = tree.evaluate(schedule.trigger, after.leaves if after else {}, at)
    fires = after is not None and verdict.met
    waiting.pop(sort_key, None)
    if after is not None and not fires:
        waiting[sort_key] = after
    if not touched and not against:
        return Step(at, words, False, fires, verdict, "no leaf of the trigger waits for it")
    if lost:
        why = f"it carries no value of every correlation key ({', '.join(schedule.by)})"
        return Step(at, words, False, fires, verdict, why)
    return Step(at, words, True, fires, verdict, verdict.why)


def _let_time_pass(schedule: Schedule, waiting: dict[str, Job], until: Instant) -> list[Step]:
    """The matches that time alone completes by ``until``: no other event came for long enough (T12)."""
    steps: list[Step] = []
    for sort_key, job in list(waiting.items()):
        at = job.created_at
        verdict = tree.evaluate(schedule.trigger, job.leaves, at)
        while not verdict.met and verdict.changes_at is not None and verdict.changes_at <= until:
            at = verdict.changes_at
            verdict = tree.evaluate(schedule.trigger, job.leaves, at)
        if verdict.met and not gather.has_expired(job, schedule, at):
            steps.append(Step(at, "time passes", True, True, verdict, verdict.why))
            del waiting[sort_key]
    return sorted(steps, key=lambda step: step.at)


def _rows(name: str, schedule: Schedule) -> Iterator[Subscription]:
    for leaf in tree.leaves(schedule.trigger):
        for key in leaf.trigger.event_keys():
            yield Subscription(key, name, 0, 0, leaf.id, 0)


def _timed(schedule: Schedule, kind: str | None, at: Instant) -> tuple[str, ...]:
    """The timed leaves that are meant: of a time only those that fire at this very instant."""
    meant = (
        (leaf.id, leaf.trigger.recurrence())
        for leaf in tree.timed_leaves(schedule.trigger)
        if leaf.trigger.type == kind
    )
    return tuple(leaf for leaf, rule in meant if rule is None or _fires(rule, at))


def _fires(rule: Recurrence, at: Instant) -> bool:
    """Whether a time may fire at an instant. An interval may at any: it counts from when its schedule is enabled."""
    return occurrences.counts_from_anchor(rule) or occurrences.is_occurrence(rule, 0, at)


def _events(
    name: str, schedule: Schedule, given: Sequence[Given], now: Instant
) -> Iterator[tuple[Instant, Event, str, str | None]]:
    namespace, app, _ = name.split(".")
    names = Names(namespace, app, schedule.zone, now)
    for number, each in enumerate(given):
        at = instants.parse_instant(each.at) if each.at else now
        made = each.as_event(ids.event_id("rehearsed", number), names, at)
        yield at, made, each.describe(), each.type if each.timed else None
