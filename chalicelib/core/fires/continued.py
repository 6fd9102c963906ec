"""The timer of a schedule whose trigger goes on in another generation, because an update did not change it (L6).

The clock of the trigger goes on: its anchor, its instants, and the count of its fires. The update divides the fires by
their due instants. Those that were due until then belong to the old generation: they have run, or are dropped, on
record. Later ones are prepared again in the new generation, also if the old one has prepared them. For example, of
`@every 10m` from 12:00 and prepared up to 12:41:

    12:39:50  an update           the fire of 12:40 is deleted without a record, and prepared again
    12:40:00  the fire is due     it runs once, with the new properties

A resume after a drain begins the timer anew (`fire.is_left`). What waits from before the drain is in no timer any more:
an update drops it, on record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chalicelib.core.definitions.schedule import MAX_EVENTS, Schedule
from chalicelib.core.fires import bundles, fire
from chalicelib.core.fires import timer as fire_timer
from chalicelib.core.fires.fire import Begun, Shape
from chalicelib.core.instants import Instant
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.schedule import ScheduleState, Timer
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.leaf import TimedLeaf
from chalicelib.core.triggers.time import Recurrence, rule_of
from chalicelib.core.triggers.tree import NumberedLeaf


def asks_for_prepared(timer: Timer, old: Schedule, new: Schedule) -> bool:
    """Whether the timer alone does not show which fires are prepared: a leaf has no next instant any more, or a fire
    has several events."""
    used_up = any(leaf.id not in timer.next for leaf in tree.timed_leaves(new.trigger))
    return used_up or old.spread is not None or new.spread is not None


def continued(
    timer: Timer, old: Schedule, new: Schedule, after: ScheduleState, prepared: Sequence[Job], now: Instant
) -> Timer:
    """The timer in the generation of ``after``, which an update at ``now`` begins. ``prepared`` are the prepared fires
    of the old generation, if `asks_for_prepared`."""
    ahead = [job for job in prepared if not fire.is_left(job, old, after)]
    due_later = [left for job in ahead if (left := bundles.first_after(job, now)) is not None]
    upcoming: dict[str, Instant] = {}
    fired = dict(timer.fired)
    for leaf in tree.timed_leaves(new.trigger):
        own = [fire.nominal_of(job) for job in due_later if job.leaf == leaf.id]
        rule = rule_of(leaf.trigger)
        if rule is None:
            nominal = _span(timer, leaf, own, old, new, now)
        else:
            nominal, again = _times(timer, leaf, rule, own, old, new, now)
            if rule.repeats is not None:
                fired[leaf.id] = fired.get(leaf.id, 0) - again
        if nominal is not None and (new.ends_at is None or nominal <= new.ends_at):
            upcoming[leaf.id] = nominal
    later = replace(
        timer,
        generation=after.generation,
        version=after.version,
        next=upcoming,
        fired={leaf: count for leaf, count in fired.items() if count},
        begun=_begun(timer, old, new, due_later, now),
        shapes=(),  # what is left of a fire follows the new definition
        rev=timer.rev + 1,
    )
    return fire_timer.set_to(later, new)


def is_again(job: Job, schedule_state: ScheduleState, schedule: Schedule) -> bool:
    """Whether the fire of a closed generation is prepared again in the present one, so that it is no lost work."""
    updated_at = _updated_at(job, schedule_state)
    if not job.traits.timed or updated_at is None or fire_timer.after_end(job, schedule):
        return False
    if job.index >= _kept_events(job, schedule, updated_at) or fire.is_left(job, schedule, schedule_state):
        return False
    return job.due_at is not None and job.due_at > updated_at


def _kept_events(job: Job, schedule: Schedule, updated_at: Instant) -> int:
    """How many events of a prepared fire are not lost by an update: those that the fire has still. A fire that had not
    come then loses none: it comes with the number of events that the update gives it."""
    came = fire.nominal_of(job) <= updated_at
    return fire.shape(schedule).events if came else MAX_EVENTS


def _updated_at(job: Job, schedule_state: ScheduleState) -> Instant | None:
    """When an update closed the generation of a job: the next one is named after that instant. None if none has."""
    chain = (*schedule_state.former, schedule_state.generation)
    return chain[chain.index(job.generation) + 1] if job.generation in schedule_state.former else None


def lost_of(job: Job, schedule_state: ScheduleState, schedule: Schedule) -> Job | None:
    """What is lost of a fire of a closed generation: the job, or the part of a bundle that is not prepared again; None
    if nothing is."""
    if not job.is_bundle or fire.is_left(job, schedule, schedule_state):
        return None if is_again(job, schedule_state, schedule) else job
    last, updated_at = bundles.event_of(job, bundles.numbers(job)[-1]), _updated_at(job, schedule_state)
    if updated_at is None:
        return job
    count = _kept_events(job, schedule, updated_at)
    keeps = is_again(last, schedule_state, schedule) or last.index >= count
    return bundles.until(job, updated_at, count) if keeps else job


def double_of(job: Job, schedule_state: ScheduleState) -> Job | None:
    """The fire of the former generation that may have run in place of this one, because it was due before an update was
    committed; None if there is none."""
    due = job.due_at
    if job.leaf is None or due is None or not schedule_state.former or due > schedule_state.since + fire.COMMITTED:
        return None
    former = Timer(job.schedule, schedule_state.former[-1], 0, 0, {})
    return fire.fire_of(former, job.leaf, fire.nominal_of(job), due, job.index)


def _times(
    timer: Timer,
    leaf: NumberedLeaf[TimedLeaf],
    rule: Recurrence,
    own: Sequence[Instant],
    old: Schedule,
    new: Schedule,
    now: Instant,
) -> tuple[Instant | None, int]:
    """The next nominal instant of a time leaf, and how many fires that count as fired are prepared again. ``own`` are
    the nominal instants of its prepared fires; they matter only if the leaf has no next instant."""
    series, stop = fire.series(timer, new, leaf.id, rule), timer.next.get(leaf.id)
    if stop is not None and series.due(stop) <= now:
        return stop, 0  # an outage: nothing after this fire is prepared
    first = fire.first_ahead(series, now)
    if rule.repeats is None or first is None:
        return first, 0
    if stop is None:
        again = sorted({nominal for nominal in own if nominal >= first})
        return (again[0], len(again)) if again else (fire_timer.reopened(timer, leaf, old, new, now), 0)
    count, _ = series.count(first, stop, rule.repeats)
    return first, count


def _span(
    timer: Timer,
    leaf: NumberedLeaf[TimedLeaf],
    own: Sequence[Instant],
    old: Schedule,
    new: Schedule,
    now: Instant,
) -> Instant | None:
    """The next instant of a leaf that is evaluated when it is due, and has one prepared fire at most."""
    upcoming, span = timer.next.get(leaf.id), leaf.trigger.span
    if upcoming is not None and upcoming <= now:
        return upcoming
    if span is None:
        return leaf.trigger.next_due(timer.anchor, now, new.ends_at)
    if upcoming is None:
        return min(own, default=None) or fire_timer.reopened(timer, leaf, old, new, now)
    prepared = upcoming - span
    return prepared if prepared > now else upcoming


def _begun(
    timer: Timer,
    old: Schedule,
    new: Schedule,
    due_later: Sequence[Job],
    now: Instant,
) -> tuple[tuple[int, ...], ...]:
    """The fires of which the first event was due until ``now`` and others are due later, or are not written."""
    known = {one.nominal: one for one in fire.begun(timer)}
    for job in sorted(due_later, key=lambda job: job.index, reverse=True):
        nominal, due = fire.nominal_of(job), job.due_at or now
        one = known.get(nominal) or _planned(fire.shape_of(job, old), job, nominal, due)
        known[nominal] = one._replace(written=min(one.written, job.index))
    begun = [known[nominal] for nominal in sorted(known)]
    left = [one for one in begun if one.first <= now and one.written < fire.shape(new).events]
    return tuple(one.stored for one in left)


def _planned(shape: Shape, job: Job, nominal: Instant, due: Instant) -> Begun:
    """The fire of a prepared event, all of whose events are prepared. An event that is not due as planned at first was
    overdue, and the rest was planned anew."""
    one = Begun(nominal, due if job.window_end is None else job.window_end - shape.span, shape.events)
    as_planned = fire.due_of(shape, one, job.index) == due
    return one if as_planned else one._replace(resumed_at=due, resumed_from=job.index)
