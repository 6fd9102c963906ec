"""backfill: run the past (L12). A backfill hands out as many jobs as may be under way, and another whenever one ends.

Nothing polls: whatever ends an entry (its last attempt, or a job that is taken off) asks in the same transaction that
the backfill be looked at. What is under way, how far the plan has been handed out, and the new jobs are one write, so a
death at any point leaves nothing out and hands nothing out twice.
"""

from __future__ import annotations

from dataclasses import replace

from chalicelib.core import errors, ids, states
from chalicelib.core.backfills import backfill
from chalicelib.core.backfills.backfill import EntryState, Step
from chalicelib.core.backfills.request import Backfill as NewRequest
from chalicelib.core.instants import Instant
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.ref import ref_of
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.schedules import lifecycle
from chalicelib.core.states import CLAIMABLE
from chalicelib.core.writes import Create, ExpectMode, Put, Replace, WakeBackfill, Write
from chalicelib.flow import lookup
from chalicelib.flow.backfills import plan as backfill_plan
from chalicelib.flow.backfills.plan import Entries, Plan
from chalicelib.flow.jobs.drop import drop_job
from chalicelib.flow.runs import cancel
from chalicelib.ports import MAX_RACES, Ports


def preview(ports: Ports, name: str, request_data: NewRequest) -> Plan:
    """What a backfill would run. Nothing is stored."""
    schedule_state, schedule = lookup.existing(ports, name)
    return backfill_plan.make(ports, schedule_state, schedule, request_data, ports.clock.now())


def begin(ports: Ports, name: str, request_data: NewRequest, by: str, request_id: str) -> Backfill:
    """Store a backfill and hand out its first jobs. One request id, one backfill."""
    backfill_id = ids.digest(name, request_id, length=16)
    for _ in range(MAX_RACES):
        schedule_state, schedule = lookup.existing(ports, name)
        if ports.jobs.backfill(name, backfill_id) is not None:
            break
        now = ports.clock.now()
        plan = backfill_plan.make(ports, schedule_state, schedule, request_data, now)
        digest, parts = backfill.plan_parts(backfill_id, plan.entries)
        ports.ledger.put_all([Put(part) for part in parts])
        create = Create(_row(schedule_state, backfill_id, digest, plan, request_data, now, by))
        refused = ports.ledger.commit([create, ExpectMode(schedule_state, CLAIMABLE["backfill"])])
        if refused is None or create in refused.writes:
            break
    else:
        raise errors.changed_meanwhile(f"schedule {name}")
    advance(ports, name, backfill_id)
    return existing(ports, name, backfill_id)


def existing(ports: Ports, name: str, backfill_id: str) -> Backfill:
    """A backfill that is remembered; refused with 404 if there is none."""
    row = ports.jobs.backfill(name, backfill_id)
    if row is None:
        raise errors.not_found("backfill", backfill_id, f"sluice backfill list {name}")
    return row


def stop(ports: Ports, name: str, backfill_id: str, runs: bool, by: str) -> Backfill:
    """Cancel a backfill: once this returns nothing of it starts any more. Its runs go on, unless ``runs`` ends them,
    too. One that is over stays as it is."""
    for _ in range(MAX_RACES):
        row = existing(ports, name, backfill_id)
        more = runs and not row.cancel_runs and bool(row.live)
        if row.state != "RUNNING" and not more:
            return row
        now = ports.clock.now()
        after = replace(row, cancel_runs=row.cancel_runs or runs, rev=row.rev + 1, leases=0, wake_at=now)
        if row.state == "RUNNING":
            after = replace(after, state="CANCELLED", reason=f"backfill {row.id} was cancelled by {by}")
        if ports.ledger.commit([Replace(after)]) is None:
            advance(ports, name, backfill_id)
            return existing(ports, name, backfill_id)
    raise errors.changed_meanwhile(f"backfill {backfill_id}")


def notice(ports: Ports, name: str) -> None:
    """A schedule was deleted, or has begun another generation: its backfills end, or go on in that."""
    for row in ports.jobs.backfills(name):
        if row.state == "RUNNING":
            ports.ledger.commit([WakeBackfill(name, row.id, ports.clock.now())])
            advance(ports, name, row.id)


def advance(ports: Ports, name: str, backfill_id: str) -> None:
    """Look what has become of what a backfill has under way, and hand out what there is room for."""
    for _ in range(MAX_RACES):
        row = ports.jobs.backfill(name, backfill_id)
        if row is None or row.wake_at is None:
            return
        if row.state != "RUNNING" and _close(ports, row):
            row = existing(ports, name, backfill_id)  # what was taken off has moved it on
        if _step(ports, row, ports.clock.now()):
            return
    raise RuntimeError(f"backfill {backfill_id} lost {MAX_RACES} races; the sweep will find it again")


def entry_states(ports: Ports, row: Backfill, generation: int) -> dict[str, EntryState]:
    """What has become of each entry under way. The job is read first: what has left that place is a run or a record."""
    seen: dict[str, EntryState] = {}
    for entry, lives_in in row.live.items():
        job_id = backfill.job_id(row, int(entry), lives_in)
        waits = ports.jobs.job(row.schedule, lives_in, sort_keys.backfill(row.id, int(entry))) is not None
        # A redrive is an attempt, too, but no part of the backfill.
        found = () if waits else ports.runs.attempts(job_id)
        attempts = [run for run in found if run.backfill == row.id]
        recorded = not waits and not attempts and ports.runs.record(job_id) is not None
        seen[entry] = backfill.entry_state(attempts, waits, recorded, lives_in == generation)
    return seen


def _step(ports: Ports, row: Backfill, now: Instant) -> bool:
    """Carry one step out. Returns whether nothing is left to do; False after a lost race, too."""
    schedule_state = ports.catalog.schedule_state(row.schedule)
    ended = _ended_because(ports, row, schedule_state)
    if schedule_state is not None and ended is None and row.state == "RUNNING":
        row = replace(row, version=schedule_state.version)
    generation = schedule_state.generation if schedule_state is not None and ended is None else row.generation
    step = backfill.advance(row, entry_states(ports, row, generation), generation, ended, now)
    jobs = _jobs(ports, step, schedule_state, now)
    plan: list[Write] = [Replace(step.row), *map(Create, jobs)]
    if jobs and schedule_state is not None:
        plan.append(ExpectMode(schedule_state, CLAIMABLE["backfill"]))
    if ports.ledger.commit(plan) is not None:
        return False
    if jobs:
        ports.hints.send([ref_of(job) for job in jobs], now, now)
    if step.row.expires_at is not None:
        _end_plan(ports, step.row, step.row.expires_at)
    return step.row.wake_at is None


def _end_plan(ports: Ports, row: Backfill, at: Instant) -> None:
    """Nothing is handed out any more: the plan passes away with its backfill. A death before this leaves it there."""
    parts = [ports.jobs.plan_part(row.plan, number) for number in backfill.parts_of(row)]
    ports.ledger.put_all([Put(replace(part, expires_at=at)) for part in parts if part is not None])


def _jobs(ports: Ports, step: Step, schedule_state: ScheduleState | None, now: Instant) -> list[Job]:
    if not step.hand_out:
        return []
    schedule = lookup.definition_of(ports, schedule_state)
    entries, by = Entries(ports, step.row), schedule.by if schedule else ()
    # A millisecond apart, so that those that come to queue do so in the order of the plan.
    since = now - len(step.hand_out)
    return [
        backfill.job_of(step.row, index, entries.event(index), by, since + key, now)
        for key, index in enumerate(step.hand_out)
    ]


def _ended_because(ports: Ports, row: Backfill, schedule_state: ScheduleState | None) -> str | None:
    """Why a backfill must not go on; None if it may. Enabling a schedule begins a generation and changes nothing of
    what it does, so the backfill goes on there; another schedule under the same name is not its own (C13)."""
    if schedule_state is None or not schedule_state.exists:
        return "the schedule was deleted"
    if schedule_state.generation == row.generation:
        return None
    before = lookup.definition_of(ports, replace(schedule_state, version=row.version))
    after = lookup.definition_of(ports, schedule_state)
    same = before is not None and after is not None and lifecycle.acts_alike(before, after)
    return None if same else "the schedule was replaced: a backfill of it as it is now is another one"


def _close(ports: Ports, row: Backfill) -> bool:
    """Take off, on record, what a backfill that is over has not started; ask for the end of its runs if that is wanted.
    Returns whether there was anything to take off."""
    taken = False
    for entry, lives_in in row.live.items():
        run_id = backfill.job_id(row, int(entry), lives_in)
        attempts = ports.runs.attempts(run_id)
        last = attempts[-1] if attempts else None
        key = sort_keys.retry(run_id, last.attempt + 1) if last else sort_keys.backfill(row.id, int(entry))
        taken = _take_off(ports, (row.schedule, lives_in, key), row.reason) or taken
        if row.cancel_runs and last is not None and not states.is_terminal(last.state):
            cancel.request_cancel(ports, run_id, last.attempt, row.reason)
    return taken


def _take_off(ports: Ports, key: tuple[str, int, str], why: str) -> bool:
    for _ in range(MAX_RACES):
        job = ports.jobs.job(*key)
        if job is None:
            return False
        if drop_job(ports, job, "DROPPED", why, ports.clock.now()) is not None:
            return True
    raise RuntimeError(f"taking off {key} lost {MAX_RACES} races; the sweep will find it again")


def _row(
    schedule_state: ScheduleState,
    backfill_id: str,
    digest: str,
    plan: Plan,
    request_data: NewRequest,
    now: Instant,
    by: str,
) -> Backfill:
    return Backfill(
        schedule=schedule_state.schedule,
        id=backfill_id,
        generation=schedule_state.generation,
        version=schedule_state.version,
        state="RUNNING",
        plan=digest,
        total=len(plan.entries),
        first=plan.entries[0],
        last=plan.entries[-1],
        order=request_data.order,
        concurrency=request_data.concurrency,
        created_at=now,
        by=by,
        properties=request_data.properties,
        since=plan.since,
        until=plan.until,
        dataset=plan.dataset,
        keys=plan.keys,
        base=plan.base,
        wake_at=now,
    )
