"""Refuse a request for what is past, and for windows that a timer cannot keep. Stored schedules are not checked: what
was valid stays valid (decision 57)."""

from __future__ import annotations

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import Problems, SluiceError, invalid
from chalicelib.core.fires import fire
from chalicelib.core.instants import MINUTE, Instant, Millis, iso
from chalicelib.core.triggers import tree

# How late a request for a run may arrive: clocks differ, and a request takes time. The run then starts at once.
LATE: Millis = MINUTE


COMPLETED = "the schedule has completed: put it with a time to come, or run it once with POST .../run"


def check(schedule: Schedule, now: Instant, before: Schedule | None = None, hint: str = "") -> None:
    """Raise ``invalid`` if the schedule has ended before ``now``, if a time of its trigger never fires from then on, if
    its trigger is never met before its ``ttl``, or if too many windows of its fires overlap.

    ``before`` is the schedule that this one replaces, unless this one begins. What that one has already is not checked,
    so that an app whose one-off is over stays deployable. The same trigger goes on and may have fired, so a ``ttl`` may
    end it at once. The schedule must be resolved. ``hint`` says what to do about a time that is past; by default, to
    correct it or to remove the schedule.
    """
    problems = Problems()
    kept_end = before is not None and before.ttl == schedule.ttl
    kept_trigger = before is not None and before.trigger == schedule.trigger
    if schedule.ends_at is not None and schedule.ends_at < now and not kept_end:
        problems.add(_past("ttl", schedule.ttl, now, "correct or remove the ttl"))
    if not kept_trigger:
        for field, value in tree.past_fields(schedule.trigger, now):
            bounds = ", its start or its end" if field.endswith(".expression") else ""
            advice = hint or f"correct it{bounds}, or remove the schedule: it would never fire"
            problems.add(_past(field, value, now, advice))
    if before is None or (before.trigger, before.spread) != (schedule.trigger, schedule.spread):
        with problems.caught():
            fire.check_windows(schedule, now)
    if not problems and not kept_trigger:
        _check_fires_by(schedule, now)
    problems.end()


def _check_fires_by(schedule: Schedule, now: Instant) -> None:
    """Raise ``invalid`` if the trigger cannot be met by the ``ttl`` of the schedule."""
    end = schedule.ends_at
    if end is None:
        return
    firsts: dict[str, Instant] = {}
    for leaf in tree.timed_leaves(schedule.trigger):
        after = now - 1 if leaf.trigger.is_due_at(now) else now
        first = leaf.trigger.next_due(now, after)
        if first is not None and first > end:
            firsts[leaf.id] = first
    if not tree.can_be_met(schedule.trigger, without=firsts):
        first = min(firsts.values())
        expected, hint = f"an end at or after the first fire at {iso(first)}", "extend the ttl, or move the first fire"
        raise invalid("ttl", expected, schedule.ttl, hint)


def check_run(at: Instant, now: Instant) -> None:
    """Raise ``invalid`` for a run that is requested for the past."""
    if at < now - LATE:
        raise _past("at", iso(at), now, "leave it out to run now; a backfill runs the past again")


def _past(field: str, value: object, now: Instant, hint: str) -> SluiceError:
    expected = f"an instant from now on (it is {iso(now)})"
    if field.endswith(".expression"):
        expected = f"an expression that still fires (it is {iso(now)})"
    return invalid(field, expected, value, hint)
