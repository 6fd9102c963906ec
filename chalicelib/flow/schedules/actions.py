"""What users do to schedules: put, enable, disable, delete, run now. An acknowledged change is final (C13)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from chalicelib.core import errors, ids
from chalicelib.core.backfills.backfill import datasets_of
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import NewSchedule, Schedule
from chalicelib.core.instants import Instant, iso
from chalicelib.core.jobs import of_period
from chalicelib.core.partition_values import decoded
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.job import Job, request_of
from chalicelib.core.rows.schedule import ScheduleState, Timer
from chalicelib.core.schedules import effect, lifecycle, past
from chalicelib.core.states import CLAIMABLE, GATHERING_MODES, PAUSED_MODES
from chalicelib.core.why import Why
from chalicelib.core.writes import ExpectMode, Put, Write
from chalicelib.flow import lookup, priority, registered, requests, wake
from chalicelib.flow.backfills import backfill
from chalicelib.flow.definitions import data, references
from chalicelib.flow.definitions.store import check_size
from chalicelib.flow.fires import calendars as of_fires
from chalicelib.flow.fires import emit
from chalicelib.flow.jobs.drop import drain
from chalicelib.flow.limits import counting
from chalicelib.flow.lookup import existing
from chalicelib.flow.schedules import carried, over, pauses
from chalicelib.flow.schedules.over import Found
from chalicelib.ports import MAX_CONFLICTS, Ports

MayChange = Callable[[str, ScheduleState | None], bool]  # whether a schedule may be changed in this state


def always(name: str, state: ScheduleState | None) -> bool:
    return True


def put(
    ports: Ports,
    name: str,
    document: NewSchedule,
    by: str,
    if_match: int | None = None,
    checked: bool = False,
    data_bucket: str | None = None,
    say: Callable[[Change], None] = lambda change: None,
) -> tuple[ScheduleState, bool]:
    """Create or replace a schedule. Returns its state and whether it is new. An identical document changes nothing.
    ``say`` gets the change before it is made.

    ``checked`` means that the caller has checked the references, together with other documents of the same deploy.
    ``data_bucket`` is then the bucket of the app after that deploy. Raises SluiceError for a bad document or reference,
    and if ``if_match`` is not the present version.
    """
    sent, bucket = _sent(ports, name, document, checked, data_bucket)
    for _ in range(MAX_CONFLICTS):
        change = planned(ports, name, document, sent, by, if_match, checked)
        say(change)
        data.keep(ports, name, document, bucket)
        if not change.plan:
            return counted(ports, change), False
        if ports.ledger.commit(change.plan) is None:
            return complete_puts(ports, {name: change})[name], change.before is None
    raise errors.changed_meanwhile(f"schedule {name}")


def would_put(ports: Ports, name: str, document: NewSchedule, by: str, if_match: int | None = None) -> Change:
    """The change that `put` would make now. Raises what `put` raises, and writes nothing."""
    sent, _ = _sent(ports, name, document, checked=False, data_bucket=None)
    return planned(ports, name, document, sent, by, if_match)


def _sent(
    ports: Ports, name: str, document: NewSchedule, checked: bool, data_bucket: str | None
) -> tuple[Schedule, str | None]:
    """The document with large data by reference, and the bucket of that. Its references are checked unless ``checked``
    says that they are already."""
    namespace, app, _ = name.split(".")
    bucket = data_bucket if checked else data.bucket_of(ports, f"{namespace}.{app}", document)
    sent = data.stored(ports, name, document.definition(), bucket)
    if not checked:
        named = sent.resolved(namespace, app)
        check_size(named.model_dump(mode="json"))
        references.check(ports, name, named, with_disabled=True)
    return sent, bucket


@dataclass(frozen=True, slots=True)
class Change:
    """What a put does to a schedule that it ``found``. ``before`` is None for a new one; ``plan`` is empty if nothing
    changes."""

    before: ScheduleState | None
    after: ScheduleState
    schedule: Schedule
    found: Found
    plan: tuple[Write, ...] = ()


def planned(
    ports: Ports,
    name: str,
    document: NewSchedule,
    sent: Schedule,
    by: str,
    if_match: int | None = None,
    checked: bool = False,
) -> Change:
    """The change that a put makes to the schedule as it is now. ``sent`` is the document with large data by reference;
    the other arguments and the errors are those of `put`. Writes nothing."""
    found, enabled = over.read(ports, name, sent, document.enabled), document.enabled
    alive, new = found.alive, found.new.definition
    _expect(if_match, alive, name)
    if alive is not None and found.is_same:
        return Change(alive, alive, new, found)
    old = found.old.definition if found.old is not None else None
    if not checked:
        past.check(new, found.now, None if effect.begins(alive, enabled) else old)
    after, plan = found.plan(name, enabled, by, document.on_update == "carry")
    return Change(alive, after, new, found, tuple(plan))


def counted(ports: Ports, change: Change) -> ScheduleState:
    """Count active runs in the groups and pools that the put names, before the put is answered (C9, W3)."""
    if not change.after.uncounted:
        return change.after
    counting.of_schedule(ports, change.after.schedule)
    return ports.rows.get(ScheduleState, change.after.schedule) or change.after


def enable(ports: Ports, name: str, by: str) -> ScheduleState:
    """Enable a schedule: only events accepted from now on count. An enabled schedule does not change; a paused one is
    resumed."""
    for _ in range(MAX_CONFLICTS):
        schedule_state, schedule = existing(ports, name)
        if schedule_state.mode == "enabled":
            return schedule_state
        if schedule_state.mode in PAUSED_MODES:
            return pauses.resume(ports, name, by)
        references.check(ports, name, schedule)
        hint = past.COMPLETED if schedule_state.mode == "completed" else ""
        past.check(schedule, now := ports.clock.now(), hint=hint)
        after, plan = lifecycle.enable(schedule_state, schedule, now, by)
        if ports.ledger.commit(plan) is None:
            of_fires.after_change(ports, name, schedule)
            wake_changed(ports, schedule_state, after)
            return after
    raise errors.changed_meanwhile(f"schedule {name}")


def disable(ports: Ports, name: str, by: str) -> ScheduleState:
    """Disable a schedule: once this returns, no waiting job starts any more; active runs continue (L3)."""
    for _ in range(MAX_CONFLICTS):
        schedule_state, schedule = existing(ports, name)
        if schedule_state.mode == "disabled":
            return schedule_state
        timer = lookup.timer_of(ports, schedule_state, schedule)
        after, plan = lifecycle.disable(schedule_state, schedule, ports.clock.now(), by, timer)
        if ports.ledger.commit(plan) is None:
            drain(ports, name, schedule_state.generation)
            wake.all_of(ports, name)
            return after
    raise errors.changed_meanwhile(f"schedule {name}")


def delete(
    ports: Ports, name: str, by: str, if_match: int | None = None, may_delete: MayChange = always
) -> bool:  # fmt: skip
    """Delete a schedule: once this returns, no waiting job starts any more; active runs continue. Returns False if
    ``may_delete`` does not allow it in its present state: then it stays."""
    for _ in range(MAX_CONFLICTS):
        schedule_state, schedule = existing(ports, name)
        _expect(if_match, schedule_state, name)
        if not may_delete(name, schedule_state):
            return False
        timer = lookup.timer_of(ports, schedule_state, schedule)
        _, plan = lifecycle.delete(schedule_state, schedule, ports.clock.now(), by, timer)
        if ports.ledger.commit(plan) is None:
            drain(ports, name, schedule_state.generation)
            backfill.notice(ports, name)
            return True
    raise errors.changed_meanwhile(f"schedule {name}")


def run_now(
    ports: Ports,
    name: str,
    properties: Mapping[str, Any],
    request_id: str,
    at: Instant | None = None,
    partition: Mapping[str, str] | None = None,
) -> str:
    """Create a job that skips the trigger but not the constraints (L11), due now or at the instant ``at`` (W8).

    ``partition`` are the values of the correlation keys (T19) of the run: downstream schedules get them with its
    status. Raises ``invalid`` unless it has exactly these keys.

    Returns the id of the job. A repeat with the same request id creates no other job, even if the first one was dropped
    with its generation.
    """

    def make() -> requests.NewRequest:
        schedule_state, schedule = existing(ports, name)
        correlation = _correlation(ports, name, schedule, partition)
        now = ports.clock.now()
        if at is not None:
            past.check_run(at, now)
        due = max(now, at if at is not None else now)
        event_id = ids.event_id("run_now", name, request_id)
        event = Event(event_id, "run_now", f"run_now:{name}", due, due, correlation)
        job = Job(
            schedule=name,
            generation=schedule_state.generation,
            sort_key=sort_keys.run_now(request_id),
            job_id=ids.job_id(name, schedule_state.generation, event.id),
            kind="run_now",
            state="PENDING_CONSTRAINTS",
            # Its timeout counts from the instant at which it is due, as for a fire.
            created_at=due,
            due_at=due if due > now else None,
            accepted_at=due,
            correlation=correlation,
            event=event,
            properties=dict(properties),
            requested_by=ports.requester,
            reason=Why.of("due_later", f"due at {iso(due)}") if due > now else Why.of("requested", "run now"),
            wake_at=due,
        )
        return requests.NewRequest(job, [ExpectMode(schedule_state, CLAIMABLE["run_now"])])

    return requests.once(ports, request_of("run", name, request_id), make, f"schedule {name}")


def _correlation(
    ports: Ports, name: str, schedule: Schedule, partition: Mapping[str, str] | None
) -> dict[str, str] | None:
    """The correlation of a run-now: the values of the schedule's keys, in their order."""
    if partition is None:
        return None
    if not schedule.keys:
        hint = "leave partition out, or give the schedule the keys: by"
        raise errors.invalid(
            "partition", "no partition, because the schedule has no correlation keys", dict(partition), hint
        )
    if set(partition) != set(schedule.keys):
        hint = f"write each key once: {'/'.join(f'{key}=...' for key in schedule.keys)}"
        expected = f"an object with exactly the keys {', '.join(schedule.keys)}"
        raise errors.invalid("partition", expected, dict(partition), hint)
    if schedule.per is not None:
        return of_period.correlation_of(schedule, partition, "partition")
    of_period.check_listed(schedule, partition, "partition")
    known = _registered(ports, name, schedule, partition)
    return {key: decoded(known[key]) for key in schedule.by}


def _registered(ports: Ports, name: str, schedule: Schedule, partition: Mapping[str, str]) -> Mapping[str, str]:
    """The partition as registered ones spell it, by the first dataset of the trigger that has it under other texts. A
    dataset of another namespace is not asked."""
    count = len(schedule.by)
    for dataset in datasets_of(schedule):
        own = dataset.partition(".")[0] == name.partition(".")[0]
        stored = ports.rows.get(Definition, "dataset", dataset) if own else None
        if stored is None:
            continue
        document = Dataset.model_validate(stored.document)
        keys = document.keys[:count]
        if set(keys) == set(schedule.by):
            given = tuple(partition[key] for key in keys)
            found = registered.chosen(ports, dataset, document, given, "partition")
            if found != given:
                return dict(zip(keys, found, strict=True))
    return partition


def _expect(if_match: int | None, schedule_state: ScheduleState | None, name: str) -> None:
    if if_match is not None and if_match != (schedule_state.version if schedule_state else None):
        raise errors.changed_meanwhile(f"schedule {name}")


def complete_puts(ports: Ports, done: Mapping[str, Change]) -> dict[str, ScheduleState]:
    """Do what follows from acknowledged puts, by the names of their schedules. Returns the states after that.

    The plan of a new schedule shows whether it has fires to prepare, so nothing is read for one that has none."""
    states = {name: counted(ports, change) for name, change in done.items()}
    for name, change in done.items():
        of_fires.after_change(ports, name, change.schedule)
    gather: dict[str, Change] = {}
    for name, change in done.items():
        if change.before is not None:
            wake_changed(ports, change.before, states[name])
        elif states[name].mode in GATHERING_MODES:
            gather[name] = change
    horizon = emit.horizon_of(ports)
    emit.emit_these(ports, [name for name, change in gather.items() if _has_fires(change, horizon)])
    priority.reprioritize_for(ports, [change.schedule for change in gather.values()])
    return states


def _has_fires(change: Change, horizon: Instant) -> bool:
    timers = [write.row for write in change.plan if isinstance(write, Put) and isinstance(write.row, Timer)]
    return any(emit.is_due(timer, change.schedule, horizon) for timer in timers)


def wake_changed(ports: Ports, before: ScheduleState | None, after: ScheduleState) -> None:
    """After an acknowledged change: put the old generation's jobs on record, and prepare the new one's fires."""
    if before is not None and before.generation != after.generation:
        drain(ports, before.schedule, before.generation)
        backfill.notice(ports, before.schedule)
    if after.wake_at is not None:
        carried.refresh_all(ports, after.schedule, soon=True)
    if after.mode in GATHERING_MODES:
        emit.emit_soon(ports, after.schedule)
        priority.reprioritize(ports, after.schedule)
