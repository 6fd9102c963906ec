"""Dry run of a trigger: which events it would count and when it would be met, by the rules of gathering (L11).

Nothing is stored. Constraints are left out, since they depend on what else runs at the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from chalicelib.core import ids, instants
from chalicelib.core.changes import replace
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.events.periods import period_of, written
from chalicelib.core.instants import Instant
from chalicelib.core.jobs import gather, of_period, timeout
from chalicelib.core.jobs.gather import Begin, Touch
from chalicelib.core.names import Names
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.job import Job, Progress
from chalicelib.core.rows.parts import Parts
from chalicelib.core.rows.schedule import Subscription
from chalicelib.core.steps import Steps
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.leaf import Given
from chalicelib.core.triggers.parts import MAX_JOBS
from chalicelib.core.triggers.patterns import Flattened
from chalicelib.core.triggers.time import Recurrence, rule_of
from chalicelib.core.why import Why, plain

# What a dry run may take: 0.4 s on a core, and 1.5 ms for each event.
MAX_STEPS, STEPS_OF_AN_EVENT = 1_000_000, 3_750
STEPS_OF_A_LEAF = 90  # to evaluate and describe it
STEPS_OF_A_PART = 90  # to compute it for the job of a period
STEPS_OF_A_TIME = 60  # to ask whether it has an occurrence at an instant


@dataclass(frozen=True, slots=True)
class Step:
    """One event, and the verdict on the trigger after it. If no leaf counts the event, ``why`` has the reason."""

    at: Instant
    event: str
    verdict: tree.Verdict
    why: Why
    touched: bool
    fires: bool


class _Waiting(NamedTuple):
    """A job that waits, and the first instant at which time alone may meet its trigger."""

    job: Job
    changes_at: Instant | None


def dry_run(
    name: str, schedule: Schedule, given: Sequence[Given], now: Instant, datasets: Mapping[str, Dataset] | None = None
) -> tuple[list[Step], list[Job]]:
    """Apply events, in the order of their instants, to an empty trigger. Returns the steps, and the jobs that still
    wait. Raises `OverBudget` if that takes more steps than a dry run of so many events may. ``datasets`` are those of
    the trigger, if there is one job for each period.

    Time passes between the events, and may complete a match by itself. It ends with the last event.
    """
    waiting: dict[str, _Waiting] = {}
    steps: list[Step] = []
    rows = list(_rows(name, schedule))
    budget = Steps(MAX_STEPS + STEPS_OF_AN_EVENT * len(given))
    size = len(tree.leaves(schedule.trigger)) * STEPS_OF_A_LEAF
    known: dict[str, dict[str, Parts]] = {}
    rules = [(leaf, rule_of(leaf.trigger)) for leaf in tree.timed_leaves(schedule.trigger)]
    for number, (at, event, description, timed) in enumerate(
        sorted(_events(name, schedule, given, now), key=lambda item: item[0])
    ):
        found = [row for row in rows if row.event_key == event.key]
        budget.spend(size + (len(rules) * STEPS_OF_A_TIME if timed else 0))
        steps += _let_time_pass(schedule, waiting, at, budget, size)
        payload = Flattened(event.payload, budget)
        touched, against = gather.touched(schedule, event, found, payload)
        touched = (*touched, *(leaf.id for leaf, rule in rules if leaf.trigger.type == timed and _fires(rule, at)))
        played = list[Step]()
        for place in _places(schedule, event, datasets or {}, touched, known, waiting):
            budget.spend(place.cost + (size if played else 0))
            played.append(_play(schedule, waiting, event, description, (touched, against), f"{number}", place))
        steps += [step for step in played if step.fires] or played[:1]
    return steps, [each.job for each in waiting.values()]


def _play(
    schedule: Schedule,
    waiting: dict[str, _Waiting],
    event: Event,
    description: str,
    leaves_met: tuple[tuple[str, ...], tuple[str, ...]],
    number: str,
    place: _Placed,
) -> Step:
    touched, against = leaves_met
    at = event.accepted_at
    correlation, lost = place.correlation, place.lost is not None
    sort_key = gather.gathering_key(correlation)
    row = Subscription(event.key, "demo.dry.run", 0, 0, number, 0)
    before = waiting.get(sort_key)
    job = before.job if before is not None else None
    against = gather.ended(schedule, event, job, against)
    over = job is not None and timeout.is_over(job, schedule, None, at)
    begin = Begin({leaf: Progress(0, at, at, parts=parts) for leaf, parts in place.leaves.items()}, sort_key)
    touches = [Touch(event, () if lost else tuple(place.parts) or touched, place.parts)]
    gathered = gather.gather(
        job, touches, schedule, row, correlation, at, against, over, begin if place.leaves else None
    )
    after = gathered.job if gathered.job is not None else None if gathered.dropped else job
    verdict = tree.evaluate(schedule.trigger, after.leaves if after else {}, at)
    fires = after is not None and verdict.met
    waiting.pop(sort_key, None)
    if after is not None and not fires:
        waiting[sort_key] = _Waiting(after, verdict.changes_at)
    if not touched and not against:
        unseen = plain("no leaf of the trigger counts this event")
        return Step(at, description, verdict, unseen, touched=False, fires=fires)
    if lost:
        return Step(at, description, verdict, plain(place.lost or ""), touched=False, fires=fires)
    return Step(at, description, verdict, verdict.why, touched=True, fires=fires)


class _Placed(NamedTuple):
    """The job to which an event belongs: its correlation; for the job of a period also the parts that its ``leaves``
    wait for, and those (``parts``) that the event is. ``lost`` says why the event belongs to none; None: to one.
    ``cost`` are the steps that it took to compute the parts."""

    correlation: Mapping[str, str] | None
    leaves: Mapping[str, Parts] = {}
    parts: Mapping[str, int] = {}
    lost: str | None = None
    cost: int = 0


def _places(
    schedule: Schedule,
    event: Event,
    datasets: Mapping[str, Dataset],
    touched: Sequence[str],
    known: dict[str, dict[str, Parts]],
    waiting: Mapping[str, _Waiting],
) -> list[_Placed]:
    """The jobs to which an event belongs. ``known`` are the parts with which those before began, and ``waiting`` those
    that wait, by their sort keys."""
    joined = gather.joined(schedule, event)
    if not joined:
        unlisted = gather.unlisted(schedule, event)
        keys = f"the event does not carry a value of every correlation key ({', '.join(schedule.by)})"
        return [_Placed(None, lost=f"the schedule does not list {unlisted} in values" if unlisted else keys)]
    if not touched:
        return [_Placed(joined[0].correlation)]
    if schedule.per is None:
        return [_Placed(each.correlation) for each in joined]
    dataset = datasets.get(event.key.partition(":")[2])
    period = period_of(dataset, event.partition or {}) if dataset is not None else None
    if dataset is None or period is None:
        return [_Placed(None, lost="the partition names no period of its dataset")]
    event = replace(event, partition=written(dataset, event.partition or {}))
    places, found = of_period.places_of(schedule, dataset, period, joined, touched), list[_Placed]()
    if len(places) > MAX_JOBS:
        return [_Placed(None, lost=f"the partition {of_period.TOO_MANY}")]
    for place in places:
        sort_key = gather.gathering_key(place.correlation)
        cost = 0 if sort_key in known else STEPS_OF_A_PART
        leaves = known.setdefault(sort_key, {}) or of_period.parts_by_leaf(schedule, place, datasets, event.accepted_at)
        known[sort_key] = leaves
        job = waiting[sort_key].job if sort_key in waiting else None
        parts = of_period.numbers(place, event, _parts_now(job) if job is not None else leaves)
        lost = None if parts else f"it is none of the partitions that {place.period.label} waits for"
        cost *= sum(each.need for each in leaves.values())
        found.append(_Placed(place.correlation, leaves, parts, lost, cost))
    return found or [_Placed(None, lost="the partition is in no window")]


def _parts_now(job: Job) -> dict[str, Parts | None]:
    return {leaf: progress.parts for leaf, progress in job.leaves.items()}


def _let_time_pass(
    schedule: Schedule, waiting: dict[str, _Waiting], until: Instant, budget: Steps, size: int
) -> list[Step]:
    """Steps for the matches that time alone completes by ``until``, since no event came for long enough (T12)."""
    steps: list[Step] = []
    for sort_key in [key for key, each in waiting.items() if each.changes_at is not None and each.changes_at <= until]:
        job, at = waiting[sort_key]
        while at is not None and at <= until:
            budget.spend(size)
            verdict = tree.evaluate(schedule.trigger, job.leaves, at)
            if verdict.met:
                break
            at = verdict.changes_at
        if at is not None and at <= until and not gather.has_expired(job, schedule, at):
            steps.append(Step(at, "time passes", verdict, verdict.why, touched=True, fires=True))
            del waiting[sort_key]
        else:
            waiting[sort_key] = _Waiting(job, None if at is None or at <= until else at)
    return sorted(steps, key=lambda step: step.at)


def _rows(name: str, schedule: Schedule) -> Iterator[Subscription]:
    for leaf in tree.leaves(schedule.trigger):
        for key in leaf.trigger.event_keys():
            yield Subscription(key, name, 0, 0, leaf.id, 0)


def _fires(rule: Recurrence | None, at: Instant) -> bool:
    """Whether a timed leaf may fire at an instant: a time leaf if it has an occurrence there. An interval may at any,
    since it counts from the enabling, and so may a leaf without a rule."""
    return rule is None or rule.counts_from_anchor or rule.is_occurrence(0, at)


def _events(
    name: str, schedule: Schedule, given: Sequence[Given], now: Instant
) -> Iterator[tuple[Instant, Event, str, str | None]]:
    namespace, app, _ = name.split(".")
    names = Names(namespace, app, schedule.zone, now)
    for number, sample in enumerate(given):
        at = instants.parse_instant(sample.at) if sample.at else now
        event = sample.as_event(ids.event_id("rehearsed", number), names, at)
        yield at, event, sample.describe(), sample.type if sample.timed else None
