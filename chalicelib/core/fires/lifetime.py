"""The end of a schedule's life (L10): its fires are used up, or its ``ttl`` is over.

A *completed* schedule gathers nothing more, and its prepared jobs still run. It is *removed* once its last job and run
have ended, if its ``ttl`` is over or it has ``when_done: delete``. A schedule that is on hold or disabled at the end of
its ttl is deleted at once. None of its jobs may start after that instant.
"""

from __future__ import annotations

from typing import Literal

from chalicelib.core.changes import replace
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.instants import HOUR, SECOND, Instant, Millis
from chalicelib.core.rows.schedule import ScheduleState, Timer
from chalicelib.core.triggers import tree

Ending = Literal["complete", "remove", "delete"]

# How long after a ttl a schedule closes: the ttl includes its last instant, and a fire that is due then still fires.
LINGER: Millis = 1 * SECOND
# The pause between two checks whether the last run has ended: as long as the schedule has been completed so far.
MIN_CHECK_PAUSE, MAX_CHECK_PAUSE = 10 * SECOND, HOUR
BY = "sluice"  # the user in the rows of a schedule that Sluice itself ends


def closes_at(schedule: Schedule) -> Instant | None:
    """When the life of a schedule is over; None if it lasts until a user deletes the schedule."""
    if schedule.ends_at is None:
        return None
    return schedule.ends_at + (LINGER if tree.timed_leaves(schedule.trigger) else 0)


def is_used_up(timer: Timer, schedule: Schedule) -> bool:
    """Whether no fire will follow, so that a schedule whose trigger is one time leaf is complete."""
    return not timer.next and not timer.begun and tree.is_single_time(schedule.trigger)


def decide(schedule_state: ScheduleState, timer: Timer, schedule: Schedule, now: Instant) -> Ending | None:
    """What to do at the end of a schedule's life; None before it, or if nothing is left to do."""
    end = closes_at(schedule)
    over = end is not None and now >= end and not timer.next and not timer.begun
    mode = schedule_state.mode
    if mode == "enabled":
        return "complete" if over or is_used_up(timer, schedule) else None
    if mode == "completed":
        return "remove" if over or schedule.when_done == "delete" else None
    if mode == "deleted" or not over:
        return None
    return "remove" if mode == "drain" else "delete"


def resting(schedule_state: ScheduleState, schedule: Schedule) -> Timer | None:
    """The timer of a schedule that gathers nothing: it wakes at the end of the schedule's life. None without an end."""
    end, of = closes_at(schedule), schedule_state
    return None if end is None else Timer(of.schedule, of.generation, of.version, of.since, {}, wake_at=end)


def completed(timer: Timer, schedule: Schedule, last_due: Instant) -> Timer:
    """The timer after the last fire. It wakes to remove the schedule, if it has a ttl or ``when_done: delete``."""
    first_check = last_due + LINGER if schedule.when_done == "delete" else None
    instants_due = [instant for instant in (first_check, closes_at(schedule)) if instant is not None]
    return replace(timer, next={}, begun=(), wake_at=min(instants_due, default=None))


def check_again(timer: Timer, schedule_state: ScheduleState, now: Instant) -> Timer:
    """The timer of a schedule whose last run has not ended."""
    span = min(max(now - schedule_state.mode_at, MIN_CHECK_PAUSE), MAX_CHECK_PAUSE)
    return replace(timer, rev=timer.rev + 1, wake_at=now + span)
