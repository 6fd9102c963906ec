"""The plans that create, replace, enable, pause, resume, disable and delete a schedule: one transaction each (L1-L7).

A generation that a plan closes is closed with the commit. The schedule state refuses its claims, the reverse index no
longer lists it, and a tombstone replaces its gathering job.

Each plan function returns the schedule state after the change and the writes of the transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from chalicelib.core import ids
from chalicelib.core.changes import replace
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import continued, fire, lifetime, upcoming
from chalicelib.core.fires import timer as fire_timer
from chalicelib.core.fires.fire import Unprepared
from chalicelib.core.instants import DAY, Instant, Millis
from chalicelib.core.jobs import permits
from chalicelib.core.limits import names
from chalicelib.core.limits.writes import TrackRates
from chalicelib.core.rows import authors
from chalicelib.core.rows.definition import Definition, Listing
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.records import new_record
from chalicelib.core.rows.run import Record
from chalicelib.core.rows.schedule import HISTORY, WAKE, Failures, ScheduleState, Subscription, Timer, Version
from chalicelib.core.runs import counting
from chalicelib.core.schedules import effect
from chalicelib.core.schedules.effect import Effect
from chalicelib.core.states import GATHERING_MODES, HOLDING_MODES, Mode
from chalicelib.core.triggers import tree
from chalicelib.core.why import Why
from chalicelib.core.writes import (
    CloseGeneration,
    Create,
    Delete,
    EndTimer,
    Put,
    PutState,
    Replace,
    Row,
    TrackStarts,
    Write,
)

PauseMode = Literal["hold", "backlog", "drain"]
TOMBSTONE_LIFE = 45 * DAY  # as long as an applied event: no older event can still be applied
REPLACED = "an update took them from their fires"
MAX_PAUSES = 20  # pauses with stopped timeouts that a schedule state remembers; no waiting job needs older ones
_TIMED: tuple[Mode, ...] = (*GATHERING_MODES, "completed")  # their timer may prepare fires
MAX_FORMER = 20  # generations that a schedule state remembers
MAX_SKIPS = 16  # occurrences that may be skipped at a time: every claim reads the schedule state, so it stays small


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
    prepared: Sequence[Job] = (),
    spans_from: tuple[Instant, Instant] | None = None,
    former: Version | None = None,
) -> tuple[ScheduleState, list[Write]]:
    """Creates or replaces a schedule, as `effect.of_put` says. ``enabled`` None keeps its mode; a new schedule is
    disabled (L2).

    If the trigger is the same, ``timer``, the timer that was read, goes on; ``prepared`` are its prepared fires. What
    the timer of another trigger has not prepared goes on record. ``carry`` also keeps the generation and its progress
    (L6). ``spans_from``: as in `relative.Counted`; None: ``now``. ``former`` is the version of ``old``.
    """
    alive = schedule_state if schedule_state is not None and schedule_state.exists else None
    change = effect.of_put(new, old, schedule_state, enabled, now, carry, timer, prepared)
    generation = alive.generation if alive and change.keeps_jobs else next_generation(schedule_state, now)
    # What has run of its periods is known, also if it was disabled between.
    same_periods = new.per is not None and old is not None and old.gathering == new.gathering
    after = _state_row(schedule_state, name, generation, change, now, by, same_periods)
    after = replace(after, uncounted=counting.is_uncounted(schedule_state, new, old))
    trigger_from, ttl_from = (None if at == now else at for at in spans_from or (now, now))
    document = _document(new)
    version = Version(name, after.version, document, now, by, trigger_from=trigger_from, ttl_from=ttl_from)
    if old is not None:
        version = replace(version, authors=authors.after(former, _document(old), document, by))
    plan: list[Write] = [Create(version), Put(Listing(name, fires=upcoming.counted(new))), *_counted(new)]
    if old is not None and effect.acts_alike(old, new) and change.keeps_jobs:
        return after, [PutState(after, schedule_state), *plan]
    if alive is not None and old is not None and change.keeps_jobs:
        reopened = alive.mode not in GATHERING_MODES and change.mode in GATHERING_MODES
        after = replace(after, wake_at=now, since=now if reopened else after.since)
        gone = _removed(alive, old, new, timer, prepared, now, keeps_jobs=True)
        return after, [PutState(after, schedule_state), *plan, *_reopen(after, old, new, timer, now), *gone]
    # In every mode, jobs may wait for an event that meets a constraint: a run-now, or the jobs that a drain launches.
    rows = [row for row in subscriptions(after, new, now) if change.mode in GATHERING_MODES or row.leaf == WAKE]
    going = timer if change.keeps_trigger else None
    timers = _timer_after(after, old, new, going, prepared, now)
    if alive is not None and old is not None:
        plan += _close(alive, old, now, keep_timer=bool(timers))
    whole: list[Write] = [PutState(after, schedule_state), *plan, *map(Put, rows), *timers]
    if going is not None and old is not None and alive is not None:
        return after, [*whole, *_removed(alive, old, new, going, prepared, now, keeps_jobs=False)]
    why = "disabled" if change.code == "stops" else "replaced"
    ended = fire.beside(timer, prepared) if timer is not None else None
    return after, _with_rest(whole, alive, old, ended, now, f"the schedule was {why}")


def enable(
    schedule_state: ScheduleState, schedule: Schedule, now: Instant, by: str
) -> tuple[ScheduleState, list[Write]]:
    """Enables a schedule in a new generation: only events accepted from now on count, and there is no catch-up of fires
    (L3, T5)."""
    after = _changed(
        schedule_state,
        "enabled",
        now,
        by,
        generation=next_generation(schedule_state, now),
        since=now,
        pauses=(),
        skips=(),
        held_from=now if schedule_state.stops else None,
        former=_former_at_enable(schedule_state, schedule),
        resumed={},
    )
    keep_timer = fire_timer.first_timer(schedule, after, now) is not None
    closed = _close(schedule_state, schedule, now, keep_timer)
    plan: list[Write] = [PutState(after, schedule_state), *closed, *_counted(schedule), *_open(after, schedule, now)]
    return after, [*plan, *_reset_failures(schedule_state, schedule)]


def pause(
    schedule_state: ScheduleState, schedule: Schedule, mode: PauseMode, stop: bool, now: Instant, by: str,
    reason: str = "", timer: Timer | None = None,
) -> tuple[ScheduleState, list[Write]]:  # fmt: skip
    """Pauses a schedule. In hold and backlog it gathers but launches nothing; in drain it gathers nothing but
    launches the jobs that it has (L4). What ``timer``, the timer that was read, has not prepared then goes on record.

    ``stop``: timeouts of jobs stop during the pause.
    """
    pauses = _ended_pauses(schedule_state, now)
    if stop:
        pauses = (*pauses, (now, None))[-MAX_PAUSES:]
    # ``wake_at`` has all waiting jobs checked: they release permits, are detached or launched; timeouts may change.
    held = schedule_state.mode in HOLDING_MODES or bool(schedule_state.stops)
    held_from = None if mode == "drain" else schedule_state.held_from if held else now
    after = _changed(schedule_state, mode, now, by, pauses=pauses, reason=reason, wake_at=now, held_from=held_from)
    rows = subscriptions(after, schedule, schedule_state.since)
    if mode == "drain":
        # The remaining jobs may wait for an event that meets a constraint, so the rows that wake them stay.
        index: list[Write] = [Delete(row) for row in rows if row.leaf != WAKE]
        ended = _end_timer(after, schedule) or _delete_timer(schedule_state, schedule)
        plan: list[Write] = [PutState(after, schedule_state), *index, *ended]
        return after, _with_rest(plan, schedule_state, schedule, timer, now, "the schedule was paused to drain")
    # The index rows change only between hold and backlog, and at the end of a drain.
    opened: list[Write] = []
    if schedule_state.mode == "drain":
        after = _begun_anew(after, now)
        opened = _open(after, schedule, now)
    elif "backlog" in (mode, schedule_state.mode):
        opened = [Put(row) for row in rows]
    return after, [PutState(after, schedule_state), *opened]


def resume(
    schedule_state: ScheduleState, schedule: Schedule, now: Instant, by: str
) -> tuple[ScheduleState, list[Write]]:
    """Enables a paused schedule in the same generation, so waiting jobs continue (L4). The schedule state is an outbox
    until all jobs are woken."""
    pauses, held_from = _ended_pauses(schedule_state, now), schedule_state.held_from
    after = _changed(schedule_state, "enabled", now, by, pauses=pauses, reason="", wake_at=now, held_from=held_from)
    plan: list[Write] = []
    if schedule_state.mode == "drain":
        after = _begun_anew(after, now)
        plan = _open(after, schedule, now)
    elif schedule_state.mode == "backlog" and schedule.coalesce:
        plan = [Put(row) for row in subscriptions(after, schedule, schedule_state.since)]
    return after, [PutState(after, schedule_state), *plan, *_reset_failures(schedule_state, schedule)]


def disable(
    schedule_state: ScheduleState, schedule: Schedule, now: Instant, by: str, timer: Timer | None = None,
    mode: Mode = "disabled",
) -> tuple[ScheduleState, list[Write]]:  # fmt: skip
    """Disables a schedule, or with ``mode`` deleted closes it for `delete`. A waiting run-now stays unless deleted.
    What ``timer``, the timer that was read, has not prepared goes on record."""
    # If a pause stopped the timeout of a run-now, the timeout continues now, so the jobs have to be checked.
    was_stopped = mode == "disabled" and any(ended is None for _, ended in schedule_state.pauses)
    pauses, wake_at = _ended_pauses(schedule_state, now), now if was_stopped else None
    after = _changed(schedule_state, mode, now, by, pauses=pauses, skips=(), reason="", wake_at=wake_at)
    end_timer = _end_timer(after, schedule) if mode != "deleted" else []
    closed = [*_close(schedule_state, schedule, now, keep_timer=bool(end_timer)), *end_timer]
    if mode != "deleted":  # the generation stays, and so do the index rows that wake a run-now
        closed = [write for write in closed if not (isinstance(write, Delete) and _wakes(write.row))]
    plan: list[Write] = [PutState(after, schedule_state), *closed]
    return after, _with_rest(plan, schedule_state, schedule, timer, now, f"the schedule was {mode}")


def delete(
    schedule_state: ScheduleState, schedule: Schedule, now: Instant, by: str, timer: Timer | None = None
) -> tuple[ScheduleState, list[Write]]:
    """Deletes a schedule. Its state row stays as a small tombstone, so that a later schedule of the same name gets a
    higher generation."""
    after, plan = disable(schedule_state, schedule, now, by, timer, mode="deleted")
    if ids.is_of_message(schedule_state.schedule):
        expiring = replace(after, expires_at=now + HISTORY)
        plan = [PutState(expiring, schedule_state) if isinstance(write, PutState) else write for write in plan]
    # The own target of a message is deleted with it (L16).
    own = ids.is_of_message(schedule_state.schedule) and schedule.workflow == schedule_state.schedule
    target: list[Write] = [Delete(Definition("workflow", schedule_state.schedule, {}, 0, now))] if own else []
    return after, [*plan, Delete(Listing(schedule_state.schedule)), *target]


def complete(
    schedule_state: ScheduleState, now: Instant, schedule: Schedule | None = None
) -> tuple[ScheduleState, list[Write]]:
    """Completes a schedule after its last fire or its ttl (L10): prepared fires are still launched, no events gather.
    ``schedule`` is given if it has index rows, which are deleted."""
    after = replace(schedule_state, mode="completed", rev=schedule_state.rev + 1, updated_at=now, mode_at=now)
    rows = subscriptions(schedule_state, schedule, schedule_state.since) if schedule else []
    return after, [PutState(after, schedule_state), *(Delete(row) for row in rows if row.leaf != WAKE)]


def skip(
    schedule_state: ScheduleState, schedule: Schedule, at: Instant, wanted: bool, now: Instant, by: str,
    offset: Millis | None = None, timer: Timer | None = None,
) -> tuple[ScheduleState, list[Write]]:  # fmt: skip
    """Skips the occurrence at ``at``, or with ``wanted`` False no longer skips it (L19). Skips of occurrences that were
    over a day ago are removed. ``offset`` is that of the zone of the occurrence, if a wall time decides it. ``timer``
    has the former windows of fires in progress."""
    former = (span for *_, span in timer.shapes) if timer is not None else ()
    over = now - DAY - fire.longest_delay(schedule) - max(former, default=0)
    kept = {instant for instant in schedule_state.skips if instant > over and instant != at}
    skips = tuple(sorted(kept | {at} if wanted else kept))
    known = {**schedule_state.skip_offsets, **({} if offset is None else {str(at): offset})}
    offsets = {str(instant): known[str(instant)] for instant in skips if str(instant) in known}
    after = replace(schedule_state, skips=skips, skip_offsets=offsets, rev=schedule_state.rev + 1)
    return after, [PutState(after, schedule_state)]


def subscriptions(schedule_state: ScheduleState, schedule: Schedule, since: Instant) -> list[Subscription]:
    """The rows of the reverse index: one for each leaf and event key, and one for each event key that may meet a
    constraint."""
    detached = schedule.own_jobs(schedule_state.mode)
    start = (schedule_state.schedule, schedule_state.generation, schedule_state.version)
    rows = [
        Subscription(key, *start, leaf.id, since, detached)
        for leaf in tree.leaves(schedule.trigger)
        for key in leaf.trigger.event_keys()
    ]
    return rows + [Subscription(key, *start, WAKE, since) for key in schedule.wake_keys]


def next_generation(schedule_state: ScheduleState | None, now: Instant) -> int:
    """The generation after that of a state. It comes from the clock, so that no later schedule of the same name reuses
    one, and it only grows."""
    return max(now, schedule_state.generation + 1) if schedule_state else now


def _begun_anew(schedule_state: ScheduleState, now: Instant) -> ScheduleState:
    """The state after a drain, from the end of which on the generation gathers with a new timer."""
    resumed = {**schedule_state.resumed, str(schedule_state.generation): now}
    return replace(schedule_state, since=now, resumed=resumed)


def _state_row(
    schedule_state: ScheduleState | None,
    name: str,
    generation: int,
    change: Effect,
    now: Instant,
    by: str,
    same_periods: bool,
) -> ScheduleState:
    mode = change.mode
    if schedule_state is None:
        enabled_by = (by,) if mode == "enabled" else ()
        return ScheduleState(name, generation, 1, mode, now, by, since=now, mode_at=now, enabled_by=enabled_by)
    same = generation == schedule_state.generation
    # A pause that stops timeouts also stops those of the jobs of a new generation.
    stopped = tuple((now, None) for _, ended in schedule_state.pauses if ended is None and mode == schedule_state.mode)
    since, pauses = (schedule_state.since, schedule_state.pauses) if same else (now, stopped)
    skips = schedule_state.skips if mode != "disabled" else ()
    after = replace(
        schedule_state, generation=generation, version=schedule_state.version + 1, mode=mode, updated_at=now, by=by
    )
    former = schedule_state.former if same else _former(schedule_state, change.keeps_trigger or same_periods)
    held_from = schedule_state.held_from if same or mode in HOLDING_MODES or schedule_state.stops else None
    # Another trigger may have another zone. Its skips are instants alone.
    offsets = schedule_state.skip_offsets if same or change.keeps_trigger else {}
    stops = schedule_state.stops if schedule_state.exists else ()  # a put that creates a schedule adds its own
    after = replace(after, expires_at=None, former=former, held_from=held_from, skip_offsets=offsets, stops=stops)
    known = {*map(str, former), str(generation)}
    resumed = {one: at for one, at in schedule_state.resumed.items() if one in known}
    wake_at = schedule_state.wake_at if same else None
    after = replace(
        after, resumed=resumed, rev=schedule_state.rev + 1, since=since, pauses=pauses, skips=skips, wake_at=wake_at
    )
    if mode == "enabled" and schedule_state.mode != "enabled":
        after = replace(after, enabled_by=_enabled_by(schedule_state, by, begins=not same))
    return after if mode == schedule_state.mode else replace(after, mode_at=now, reason="")


def _former(schedule_state: ScheduleState, keeps_trigger: bool) -> tuple[int, ...]:
    """The earlier generations that a new one remembers. They are needed to find the runs of a DAG's nodes (W4)."""
    if not keeps_trigger and not ids.is_dag_node(schedule_state.schedule):
        return ()
    return (*schedule_state.former, schedule_state.generation)[-MAX_FORMER:]


def _former_at_enable(schedule_state: ScheduleState, schedule: Schedule) -> tuple[int, ...]:
    """The earlier generations that a schedule remembers when it is enabled. With them a period that has run is late
    (T28)."""
    if schedule.per is not None:
        return _former(schedule_state, keeps_trigger=True)
    return schedule_state.former if ids.is_dag_node(schedule_state.schedule) else ()


def _changed(schedule_state: ScheduleState, mode: Mode, now: Instant, by: str, **fields: Any) -> ScheduleState:
    changes: dict[str, Any] = {"mode": mode, "updated_at": now, "by": by, "rev": schedule_state.rev + 1}
    changes |= {"wake_at": None, "expires_at": None, "held_from": None}
    changes["mode_at"] = schedule_state.mode_at if mode == schedule_state.mode else now
    if mode == "enabled":
        changes["enabled_by"] = _enabled_by(schedule_state, by, "generation" in fields)
    return replace(schedule_state, **(changes | fields))


def _enabled_by(schedule_state: ScheduleState, by: str, begins: bool) -> tuple[str, ...]:
    """Who has enabled the generation, and who resumed it last."""
    first = () if begins else schedule_state.enabled_by[:1]
    return tuple(dict.fromkeys((*first, by)))


def _ended_pauses(schedule_state: ScheduleState, now: Instant) -> tuple[tuple[Instant, Instant | None], ...]:
    return tuple((began, now if ended is None else ended) for began, ended in schedule_state.pauses)


def _open(schedule_state: ScheduleState, schedule: Schedule, now: Instant) -> list[Write]:
    plan: list[Write] = [Put(row) for row in subscriptions(schedule_state, schedule, now)]
    timer = fire_timer.first_timer(schedule, schedule_state, now)
    return [*plan, Put(timer)] if timer else plan


def _reopen(
    schedule_state: ScheduleState,
    old: Schedule,
    new: Schedule,
    timer: Timer | None,
    now: Instant,
) -> list[Write]:
    """The writes for an update that keeps the trigger: the index rows keep ``since``, the timer keeps its instants."""
    gathers = schedule_state.mode in GATHERING_MODES
    rows = [row for row in subscriptions(schedule_state, new, schedule_state.since) if gathers or row.leaf == WAKE]
    kept = {(row.event_key, row.leaf) for row in rows}
    gone = [
        row for row in subscriptions(schedule_state, old, schedule_state.since) if (row.event_key, row.leaf) not in kept
    ]
    plan: list[Write] = [*(Put(row) for row in rows), *(Delete(row) for row in gone)]
    if timer is None or schedule_state.mode not in _TIMED:
        rests = _end_timer(schedule_state, new)
        return [*plan, *(rests if rests or timer is None else _delete_timer(schedule_state, old))]
    later = fire_timer.carried(timer, old, new, schedule_state.version, now)
    return [*plan, Replace(later if gathers else lifetime.completed(later, new, now))]


def _timer_after(
    after: ScheduleState,
    old: Schedule | None,
    new: Schedule,
    timer: Timer | None,
    prepared: Sequence[Job],
    now: Instant,
) -> list[Write]:
    """The write of the timer of a new generation. ``timer`` is that of the former one, if the trigger goes on. Empty if
    nothing wakes the schedule."""
    if timer is not None and old is not None:
        later = continued.continued(timer, old, new, after, prepared, now)
        if after.mode == "completed":
            later = lifetime.completed(later, new, now)
        elif after.mode == "enabled" and lifetime.is_used_up(later, new):
            later = replace(later, wake_at=now)  # the next emit completes the schedule
        return [Replace(later, over=timer)]
    if after.mode not in GATHERING_MODES:
        return _end_timer(after, new)
    first = fire_timer.first_timer(new, after, now)
    return [Put(first)] if first else []


def _close(schedule_state: ScheduleState, schedule: Schedule, now: Instant, keep_timer: bool) -> list[Write]:
    """The writes that close a generation: delete its index rows and timer, put a tombstone over the gathering job.

    ``keep_timer``: another write of the plan replaces the timer."""
    # Events do not gather for a message, and each of its jobs wakes by itself, so it needs no tombstone.
    closed = CloseGeneration(schedule_state.schedule, schedule_state.generation, now)
    plan: list[Write] = [] if ids.is_of_message(schedule_state.schedule) else [closed]
    gathers = schedule_state.mode in GATHERING_MODES
    plan += [Delete(row) for row in subscriptions(schedule_state, schedule, now) if gathers or row.leaf == WAKE]
    has_timer = gathers or schedule_state.mode == "completed" or schedule.ttl is not None
    return [*plan, *_delete_timer(schedule_state, schedule)] if has_timer and not keep_timer else plan


def tombstone(job: Job, why: Why, now: Instant) -> Job:
    """The row that refuses late events in the place of a dropped job. It names no permits to release, so it may
    expire."""
    bare = replace(job, closed=True, job_id="", queued_in=None, rank=None, held=(), reason=why)
    return replace(bare, wake_at=None, expires_at=now + TOMBSTONE_LIFE)


def _with_rest(
    plan: list[Write], alive: ScheduleState | None, schedule: Schedule | None, timer: Timer | None, now: Instant,
    why: str,
) -> list[Write]:  # fmt: skip
    """The plan that ends a generation, with a record of the fires that have come and that its timer has not prepared.
    They have no jobs, so no other step puts them on record. The plan then expects the timer as it was read."""
    if alive is None or schedule is None or timer is None or timer.generation != alive.generation:
        return plan
    rest = fire.unprepared(timer, schedule, now) if alive.mode in GATHERING_MODES else None
    if rest is None:
        return plan
    return [*(_ended(write, timer) for write in plan), Put(_unprepared(timer, rest, now, why))]


def _removed(
    alive: ScheduleState, old: Schedule, new: Schedule, timer: Timer | None, prepared: Sequence[Job], now: Instant,
    keeps_jobs: bool,
) -> list[Write]:  # fmt: skip
    """The record of what an update takes from fires that were begun. The plan expects the timer as it was read."""
    if timer is None or timer.generation != alive.generation or alive.mode not in GATHERING_MODES:
        return []
    gone = fire.removed(fire.beside(timer, prepared), old, new, now, keeps_jobs)
    return [Put(_unprepared(timer, gone, now, REPLACED))] if gone is not None else []


def _unprepared(timer: Timer, rest: Unprepared, now: Instant, why: str) -> Record:
    """The record of events that had not been prepared when something was so."""
    record_id = ids.job_id(timer.schedule, timer.generation, f"unprepared:{now}")
    text = Why.of("fires_unprepared", f"{rest.text} had not been prepared when {why}")
    return new_record(record_id, "DROPPED", timer.schedule, timer.generation, text, now, count=rest.events)


def _ended(write: Write, timer: Timer) -> Write:
    """The write itself; one that deletes or replaces the timer with the condition that the timer is as it was read."""
    if not (isinstance(write, Put | Delete) and isinstance(write.row, Timer)):
        return write
    return EndTimer(timer, write.row if isinstance(write, Put) else None)


def _wakes(row: Row) -> bool:
    return isinstance(row, Subscription) and row.leaf == WAKE


def _delete_timer(schedule_state: ScheduleState, schedule: Schedule) -> list[Write]:
    if not tree.timed_leaves(schedule.trigger) and schedule.ttl is None:
        return []
    return [Delete(Timer(schedule_state.schedule, schedule_state.generation, schedule_state.version, 0, {}))]


def _end_timer(schedule_state: ScheduleState, schedule: Schedule) -> list[Write]:
    """The timer of a schedule that does not gather: it wakes only at the end of the ttl. Empty without a ttl."""
    timer = lifetime.resting(schedule_state, schedule)
    return [Put(timer)] if timer else []


def _counted(schedule: Schedule) -> list[Write]:
    """The writes after which each start of the workflow counts, if a rate or an elapsed leaf needs it; also starts by
    other schedules."""
    rates = permits.rates_of(schedule)
    plan: list[Write] = [TrackRates(names.workflow_limit(schedule.workflow), rates)] if rates else []
    # The starts of a graph are always counted.
    counts = permits.asks_for_starts(schedule) and not ids.is_dag_graph(schedule.workflow)
    return [*plan, TrackStarts(schedule.workflow)] if counts else plan


def _reset_failures(schedule_state: ScheduleState, schedule: Schedule) -> list[Write]:
    """The write that resets the count of consecutive failures when a schedule is enabled or resumed (L19)."""
    return [Put(Failures(schedule_state.schedule, 0))] if schedule.pause_after_failures else []


def _document(schedule: Schedule) -> Mapping[str, Any]:
    document: Mapping[str, Any] = schedule.model_dump(mode="json")
    return document
