"""What a put does to a schedule: to its trigger, its spans and its waiting jobs (L6).

One function says it: for the put itself, for the plan of a deployment, and for a dry run. What a put does not change,
it does not restart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.documents import DESCRIPTIVE
from chalicelib.core.fires import continued
from chalicelib.core.fires import timer as fire_timer
from chalicelib.core.instants import Instant
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.schedule import ScheduleState, Timer
from chalicelib.core.states import Mode
from chalicelib.core.triggers import tree

Code = Literal["begins", "described", "carried", "goes_on", "begins_again", "ended", "idle", "stops", "deleted"]

TEXTS: dict[Code, str] = {
    "begins": "begins now",
    "described": "goes on",
    "carried": "goes on",
    "goes_on": "times and spans go on",
    "begins_again": "begins again, because what starts it changes",
    "ended": "has ended and stays so",
    "idle": "does not run in its mode",
    "stops": "stops",
    "deleted": "is deleted",
}


@dataclass(frozen=True, slots=True)
class Effect:
    """``mode`` is the mode of the schedule after the put. ``keeps_trigger``: its clock goes on, with all spans.
    ``keeps_jobs``: what has gathered and what waits stays, in the same generation."""

    code: Code
    mode: Mode
    keeps_trigger: bool = False
    keeps_jobs: bool = False

    @property
    def text(self) -> str:
        return TEXTS[self.code]


def of_put(
    new: Schedule,
    old: Schedule | None,
    schedule_state: ScheduleState | None,
    enabled: bool | None,
    now: Instant,
    carry: bool = False,
    timer: Timer | None = None,
    prepared: Sequence[Job] = (),
) -> Effect:
    """The effect of a put of ``new`` over ``old``. Both have instants in place of spans: `relative.counted`.

    ``timer`` and ``prepared`` are the timer of the present generation and its prepared fires; they show whether a
    completed schedule has fires again.
    """
    if schedule_state is None or not schedule_state.exists:
        return Effect("begins", "enabled" if enabled else "disabled")
    before, mode = schedule_state.mode, _mode_after(schedule_state, enabled)
    if old is None:  # a message, which each put means anew
        return Effect("begins", "enabled" if mode == "completed" else mode)
    if "disabled" in (before, mode) and before != mode:
        return Effect("stops" if mode == "disabled" else "begins", mode)
    if acts_alike(old, new):
        return Effect("ended" if mode == "completed" else "described", mode, keeps_trigger=True, keeps_jobs=True)
    if mode in ("disabled", "drain"):
        return Effect("idle", mode, keeps_jobs=carry and old.gathering == new.gathering)
    if old.gathering != new.gathering:
        return Effect("begins_again", "enabled" if mode == "completed" else mode)
    if mode == "completed" and not _has_fires(new, old, schedule_state, now, carry, timer, prepared):
        return Effect("ended", mode, keeps_trigger=True, keeps_jobs=carry)
    if mode == "completed" and not tree.is_single_time(new.trigger):
        carry = False  # its end has closed the job that gathers events, so they need another generation
    mode = "enabled" if mode == "completed" else mode
    return Effect("carried" if carry else "goes_on", mode, keeps_trigger=True, keeps_jobs=carry)


def _mode_after(alive: ScheduleState, enabled: bool | None) -> Mode:
    """The mode that a put asks for: the present one unless ``enabled`` changes it. A paused schedule counts as enabled
    (L2), and so does a completed one: what it has done, it does not do again."""
    if enabled is None:
        return alive.mode
    if not enabled:
        return "disabled"
    return "enabled" if alive.mode == "disabled" else alive.mode


def begins(alive: ScheduleState | None, enabled: bool | None) -> bool:
    """Whether a put with this ``enabled`` creates a schedule, or enables it."""
    return alive is None or (enabled is True and alive.mode == "disabled")


def acts_alike(old: Schedule, new: Schedule) -> bool:
    """Whether two versions differ in descriptive fields only. These do not affect the behaviour of a schedule, so a
    change of them keeps its generation."""
    return old.model_dump(exclude=DESCRIPTIVE) == new.model_dump(exclude=DESCRIPTIVE)


def _has_fires(
    new: Schedule,
    old: Schedule,
    schedule_state: ScheduleState,
    now: Instant,
    carry: bool,
    timer: Timer | None,
    prepared: Sequence[Job],
) -> bool:
    """Whether a completed schedule prepares fires again by a new definition with the same trigger: its last ones are
    prepared, not due, and not carried; or its ``ttl`` ended it and ends later now."""
    if not tree.is_single_time(new.trigger):
        return new.ends_at is None or new.ends_at > now
    if timer is None:
        return False
    if carry:
        later = fire_timer.carried(timer, old, new, timer.version, now)
    else:
        later = continued.continued(timer, old, new, schedule_state, prepared, now)
    return bool(later.next or later.begun)
