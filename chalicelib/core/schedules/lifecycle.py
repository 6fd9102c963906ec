"""The plans that create, replace, enable, pause, resume, disable and delete a schedule: one transaction each (L1-L7).

Whatever they close is final with their commit: the gate no longer lets a claim pass, the index no longer leads there,
and a tombstone lies where an event would gather.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from chalicelib.core import ids
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import lifetime
from chalicelib.core.fires import timer as fire_timer
from chalicelib.core.instants import DAY, Instant
from chalicelib.core.jobs import permits
from chalicelib.core.limits import names
from chalicelib.core.limits.writes import TrackRates
from chalicelib.core.rows.definition import Definition, Listing
from chalicelib.core.rows.schedule import HISTORY, WAKE, Failures, ScheduleState, Subscription, Timer, Version
from chalicelib.core.runs import counting
from chalicelib.core.states import GATHERING_MODES, Mode
from chalicelib.core.triggers import tree
from chalicelib.core.writes import CloseGeneration, Create, Delete, Put, PutState, Replace, Row, TrackStarts, Write

PauseMode = Literal["hold", "backlog", "drain"]
TOMBSTONE_LIFE = 45 * DAY  # as long as a marker: no event that is older can still be applied
# Changing these fields changes nothing of what the schedule does, so its generation goes on.
COSMETIC = {"description", "tags", "owner"}
MAX_PAUSES = 20  # spans of stopped timeouts that a gate remembers; the oldest concern jobs that are long gone
MAX_FORMER = 20  # generations that the gate of a DAG's node remembers: it was deleted and came again so often
MAX_SKIPS = 16  # occurrences that may be left out at a time: the gate is read by every claim, so it stays small


def put(
    name: str,
    new: Schedule,
    old: Schedule | None,
    schedule_state: ScheduleState | None,
    enabled: bool | None,
    now: Instant,
    by: str,
    carry: bool = False,
    timer: Timer | None = None,
) -> tuple[ScheduleState, list[Write]]:
    """Create or replace. ``enabled`` None keeps the mode that it has; a new schedule is disabled (L2).

    ``carry`` keeps the generation, and with it what has gathered, if the trigger is the same (L6). ``timer``, which
    then goes on, is the one that was read.
    """
    alive = schedule_state if schedule_state is not None and schedule_state.exists else None
    mode = _mode(alive, enabled)
    same = alive is not None and old is not None and alive.mode == mode and acts_alike(old, new)
    carried = carries(alive, old, new, mode) and carry
    generation = alive.generation if alive and (same or carried) else next_generation(schedule_state, now)
    after = _state_row(schedule_state, name, generation, mode, now, by)
    after = replace(after, uncounted=counting.is_uncounted(schedule_state, new, old))
    version = Version(name, after.version, _document(new), now, by)
    plan: list[Write] = [Create(version), Put(Listing(name)), *_counted(new)]
    if same:
        return after, [PutState(after, schedule_state), *plan]
    if carried and old is not None:
        after = replace(after, wake_at=now)
        return after, [PutState(after, schedule_state), *plan, *_reopen(after, old, new, timer, now)]
    rests = [] if mode in GATHERING_MODES else _rests(after, new)
    keep_timer = bool(rests) or (mode in GATHERING_MODES and fire_timer.first_timer(new, after, now) is not None)
    if alive is not None and old is not None:
        plan += _close(alive, old, now, keep_timer)
    # Whatever the mode, jobs may wait for an event that meets a constraint: a run-now, or what a drain lets go.
    waking: list[Write] = [*(Put(row) for row in subscriptions(after, new, now) if row.leaf == WAKE), *rests]
    opened = _open(after, new, now) if mode in GATHERING_MODES else waking
    return after, [PutState(after, schedule_state), *plan, *opened]


def enable(
    schedule_state: ScheduleState, schedule: Schedule, now: Instant, by: str
) -> tuple[ScheduleState, list[Write]]:
    """A generation of its own: only what is accepted from now on counts, and no fire is caught up on (L3, T5)."""
    after = _changed(
        schedule_state,
        "enabled",
        now,
        by,
        generation=next_generation(schedule_state, now),
        since=now,
        pauses=(),
        skips=(),
    )
    keep_timer = fire_timer.first_timer(schedule, after, now) is not None
    closed = _close(schedule_state, schedule, now, keep_timer)
    plan: list[Write] = [PutState(after, schedule_state), *closed, *_counted(schedule), *_open(after, schedule, now)]
    return after, [*plan, *_forgiven(schedule_state, schedule)]


def pause(
    schedule_state: ScheduleState, schedule: Schedule, mode: PauseMode, stop: bool, now: Instant, by: str,
    reason: str = "",
) -> tuple[ScheduleState, list[Write]]:  # fmt: skip
    """Hold and backlog go on gathering and launch nothing; drain gathers no more and lets go what has gathered (L4).

    ``stop``: timeouts stand still meanwhile.
    """
    pauses = _ended_pauses(schedule_state, now)
    if stop:
        pauses = (*pauses, (now, None))[-MAX_PAUSES:]
    # What waits is looked at: it gives back what it holds in queues, is set apart, or let go; its timeout may change.
    after = _changed(schedule_state, mode, now, by, pauses=pauses, reason=reason, wake_at=now)
    rows = subscriptions(after, schedule, schedule_state.since)
    if mode == "drain":
        # What goes on may still wait for an event that meets a constraint: the rows that wake it stay.
        index: list[Write] = [Delete(row) for row in rows if row.leaf != WAKE]
        return after, [
            PutState(after, schedule_state),
            *index,
            *(_rests(after, schedule) or _timer_gone(schedule_state, schedule)),
        ]
    # Rows are written only where they change: between hold and backlog, or out of a drain.
    opened: list[Write] = []
    if schedule_state.mode == "drain":
        after = replace(after, since=now)
        opened = _open(after, schedule, now)
    elif "backlog" in (mode, schedule_state.mode):
        opened = [Put(row) for row in rows]
    return after, [PutState(after, schedule_state), *opened]


def resume(
    schedule_state: ScheduleState, schedule: Schedule, now: Instant, by: str
) -> tuple[ScheduleState, list[Write]]:
    """Enabled again in the same generation: what waits goes on (L4). The gate is an outbox until all jobs are woken."""
    after = _changed(
        schedule_state, "enabled", now, by, pauses=_ended_pauses(schedule_state, now), reason="", wake_at=now
    )
    plan: list[Write] = []
    if schedule_state.mode == "drain":
        after = replace(after, since=now)
        plan = _open(after, schedule, now)
    elif schedule_state.mode == "backlog" and schedule.coalesce:
        plan = [Put(row) for row in subscriptions(after, schedule, schedule_state.since)]
    return after, [PutState(after, schedule_state), *plan, *_forgiven(schedule_state, schedule)]


def disable(
    schedule_state: ScheduleState, schedule: Schedule, now: Instant, by: str, mode: Mode = "disabled"
) -> tuple[ScheduleState, list[Write]]:
    # A run-now that waits stays. Where its timeout stood still, that goes on now, so it is to be looked at.
    stood_still = mode == "disabled" and any(ended is None for _, ended in schedule_state.pauses)
    pauses, wake_at = _ended_pauses(schedule_state, now), now if stood_still else None
    after = _changed(schedule_state, mode, now, by, pauses=pauses, skips=(), reason="", wake_at=wake_at)
    rests = _rests(after, schedule) if mode != "deleted" else []
    closed = [*_close(schedule_state, schedule, now, keep_timer=bool(rests)), *rests]
    if mode != "deleted":  # the generation stays, and with it what wakes a run-now
        closed = [write for write in closed if not (isinstance(write, Delete) and _wakes(write.row))]
    return after, [PutState(after, schedule_state), *closed]


def delete(
    schedule_state: ScheduleState, schedule: Schedule, now: Instant, by: str
) -> tuple[ScheduleState, list[Write]]:
    """The gate stays as a small tombstone: a schedule of the same name that comes later starts behind it."""
    after, plan = disable(schedule_state, schedule, now, by, mode="deleted")
    if ids.is_of_message(schedule_state.schedule):
        passing = replace(after, expires_at=now + HISTORY)
        plan = [PutState(passing, schedule_state) if isinstance(write, PutState) else write for write in plan]
    # A message takes its own target along (L16).
    own = ids.is_of_message(schedule_state.schedule) and schedule.workflow == schedule_state.schedule
    target: list[Write] = [Delete(Definition("workflow", schedule_state.schedule, {}, 0, now))] if own else []
    return after, [*plan, Delete(Listing(schedule_state.schedule)), *target]


def complete(
    schedule_state: ScheduleState, now: Instant, schedule: Schedule | None = None
) -> tuple[ScheduleState, list[Write]]:
    """All fires are used up, or its ttl is over (L10): what was prepared goes on, nothing is gathered any more.
    ``schedule`` is one that events lead to, whose rows of the index go with it."""
    after = replace(schedule_state, mode="completed", rev=schedule_state.rev + 1, updated_at=now, mode_at=now)
    rows = subscriptions(schedule_state, schedule, schedule_state.since) if schedule else []
    return after, [PutState(after, schedule_state), *(Delete(row) for row in rows if row.leaf != WAKE)]


def skip(
    schedule_state: ScheduleState, at: Instant, wanted: bool, now: Instant, by: str
) -> tuple[ScheduleState, list[Write]]:
    """Leave one occurrence out, or take that back (L19). Those that are long past are forgotten."""
    kept = {instant for instant in schedule_state.skips if instant > now - DAY and instant != at}
    skips = tuple(sorted(kept | {at} if wanted else kept))
    after = replace(schedule_state, skips=skips, rev=schedule_state.rev + 1)
    return after, [PutState(after, schedule_state)]


def subscriptions(schedule_state: ScheduleState, schedule: Schedule, since: Instant) -> list[Subscription]:
    """The rows of the reverse index: one per leaf and event key, and one per event that may meet a constraint."""
    detached = schedule.own_jobs(schedule_state.mode)
    start = (schedule_state.schedule, schedule_state.generation, schedule_state.version)
    rows = [
        Subscription(key, *start, leaf.id, since, detached)
        for leaf in tree.leaves(schedule.trigger)
        for key in leaf.trigger.event_keys()
    ]
    return rows + [Subscription(key, *start, WAKE, since) for key in schedule.wake_keys]


def next_generation(schedule_state: ScheduleState | None, now: Instant) -> int:
    """Generations come from the clock, so that no later schedule of the same name repeats one, and only grow."""
    return max(now, schedule_state.generation + 1) if schedule_state else now


def acts_alike(old: Schedule, new: Schedule) -> bool:
    return old.model_dump(exclude=COSMETIC) == new.model_dump(exclude=COSMETIC)


def carries(alive: ScheduleState | None, old: Schedule | None, new: Schedule, mode: Mode) -> bool:
    """Whether progress can be carried over: the same trigger and keys, and a schedule that gathers and goes on."""
    if alive is None or old is None or alive.mode != mode or mode not in GATHERING_MODES:
        return False
    return (old.trigger, old.by) == (new.trigger, new.by)


def _state_row(
    schedule_state: ScheduleState | None, name: str, generation: int, mode: Mode, now: Instant, by: str
) -> ScheduleState:
    if schedule_state is None:
        return ScheduleState(name, generation, 1, mode, now, by, since=now, mode_at=now)
    same = generation == schedule_state.generation
    # Timeouts that stand still in a pause do so for the jobs of a new generation, too.
    still = tuple((now, None) for _, ended in schedule_state.pauses if ended is None and mode == schedule_state.mode)
    since, pauses = (schedule_state.since, schedule_state.pauses) if same else (now, still)
    skips = schedule_state.skips if mode != "disabled" else ()
    after = replace(
        schedule_state, generation=generation, version=schedule_state.version + 1, mode=mode, updated_at=now, by=by
    )
    # The runs of a DAG's nodes are found by these (W4).
    former = (
        schedule_state.former
        if same or not ids.is_dag_node(name)
        else (*schedule_state.former, schedule_state.generation)[-MAX_FORMER:]
    )
    after = replace(after, expires_at=None, former=former)
    wake_at = schedule_state.wake_at if same else None
    after = replace(after, rev=schedule_state.rev + 1, since=since, pauses=pauses, skips=skips, wake_at=wake_at)
    return after if mode == schedule_state.mode else replace(after, mode_at=now, reason="")


def _changed(schedule_state: ScheduleState, mode: Mode, now: Instant, by: str, **fields: Any) -> ScheduleState:
    told: dict[str, Any] = {"mode": mode, "updated_at": now, "by": by, "rev": schedule_state.rev + 1}
    told |= {"wake_at": None, "expires_at": None}
    told["mode_at"] = schedule_state.mode_at if mode == schedule_state.mode else now
    return replace(schedule_state, **(told | fields))


def _ended_pauses(schedule_state: ScheduleState, now: Instant) -> tuple[tuple[Instant, Instant | None], ...]:
    return tuple((began, now if ended is None else ended) for began, ended in schedule_state.pauses)


def _open(schedule_state: ScheduleState, schedule: Schedule, now: Instant) -> list[Write]:
    plan: list[Write] = [Put(row) for row in subscriptions(schedule_state, schedule, now)]
    timer = fire_timer.first_timer(schedule, schedule_state, now)
    return [*plan, Put(timer)] if timer else plan


def _reopen(
    schedule_state: ScheduleState, old: Schedule, new: Schedule, timer: Timer | None, now: Instant
) -> list[Write]:
    """The same leaves under a new version: the index keeps its ``since``, the timer its instants."""
    rows = subscriptions(schedule_state, new, schedule_state.since)
    kept = {(row.event_key, row.leaf) for row in rows}
    gone = [
        row for row in subscriptions(schedule_state, old, schedule_state.since) if (row.event_key, row.leaf) not in kept
    ]
    plan: list[Write] = [*(Put(row) for row in rows), *(Delete(row) for row in gone)]
    if timer is None:
        return [*plan, *_rests(schedule_state, new)]
    return [*plan, Replace(fire_timer.carried(timer, old, new, schedule_state.version, now))]


def _close(schedule_state: ScheduleState, schedule: Schedule, now: Instant, keep_timer: bool) -> list[Write]:
    """Out of the index and the timers, and a tombstone over what gathers. ``keep_timer``: another is put over it."""
    # No event gathers for a message, and each of its jobs wakes by itself: nothing lies in the tombstone's place.
    closed = CloseGeneration(schedule_state.schedule, schedule_state.generation, now)
    plan: list[Write] = [] if ids.is_of_message(schedule_state.schedule) else [closed]
    gathers = schedule_state.mode in GATHERING_MODES
    plan += [Delete(row) for row in subscriptions(schedule_state, schedule, now) if gathers or row.leaf == WAKE]
    has_timer = gathers or schedule_state.mode == "completed" or schedule.ttl is not None
    return [*plan, *_timer_gone(schedule_state, schedule)] if has_timer and not keep_timer else plan


def _wakes(row: Row) -> bool:
    return isinstance(row, Subscription) and row.leaf == WAKE


def _timer_gone(schedule_state: ScheduleState, schedule: Schedule) -> list[Write]:
    if not tree.timed_leaves(schedule.trigger) and schedule.ttl is None:
        return []
    return [Delete(Timer(schedule_state.schedule, schedule_state.generation, schedule_state.version, 0, {}))]


def _rests(schedule_state: ScheduleState, schedule: Schedule) -> list[Write]:
    """While it gathers nothing, its timer wakes for the end of its life alone, if that has one."""
    timer = lifetime.resting(schedule_state, schedule)
    return [Put(timer)] if timer else []


def _counted(schedule: Schedule) -> list[Write]:
    """From its first version on, a rate or an elapsed leaf counts every start of the workflow, whoever causes it."""
    rates = permits.rates_of(schedule)
    plan: list[Write] = [TrackRates(names.workflow_limit(schedule.workflow), rates)] if rates else []
    counts = permits.asks_for_starts(schedule) and not ids.is_dag_graph(schedule.workflow)  # whose starts always are
    return [*plan, TrackStarts(schedule.workflow)] if counts else plan


def _forgiven(schedule_state: ScheduleState, schedule: Schedule) -> list[Write]:
    """Whoever lets a schedule go on forgives it the failures so far (L19)."""
    return [Put(Failures(schedule_state.schedule, 0))] if schedule.pause_after_failures else []


def _mode(alive: ScheduleState | None, enabled: bool | None) -> Mode:
    """The state is kept unless the document says otherwise; what is paused counts as enabled (L2)."""
    if alive is None:
        return "enabled" if enabled else "disabled"
    if enabled is None:
        return alive.mode
    if not enabled:
        return "disabled"
    return alive.mode if alive.mode in GATHERING_MODES or alive.mode == "drain" else "enabled"


def _document(schedule: Schedule) -> Mapping[str, Any]:
    document: Mapping[str, Any] = schedule.model_dump(mode="json")
    return document
