"""Run backfills (L12). A backfill creates as many jobs as its concurrency allows, and another whenever one ends.

Nothing polls: the transaction that ends an entry (its last attempt, or its dropped job) also wakes the backfill. One
transaction writes the active entries, the position in the plan and the new jobs. So a crash at any point loses no entry
and creates none twice.
"""

from __future__ import annotations

from dataclasses import replace

from chalicelib.core import errors, ids, states
from chalicelib.core.backfills import backfill, reprocess
from chalicelib.core.backfills.backfill import EntryState, Step
from chalicelib.core.backfills.periods import counted
from chalicelib.core.backfills.request import Backfill as NewRequest
from chalicelib.core.dags import status as dag_status
from chalicelib.core.dags.status import DagState
from chalicelib.core.instants import Instant
from chalicelib.core.jobs import gather
from chalicelib.core.rows import kinds, sort_keys
from chalicelib.core.rows.backfill import Backfill, BackfillOnly, PlanPart
from chalicelib.core.rows.dag import DagRun
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.ref import Ref, ref_of
from chalicelib.core.rows.reprocess import Reprocess
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.schedules import effect
from chalicelib.core.states import CLAIMABLE
from chalicelib.core.why import Why
from chalicelib.core.writes import Create, ExpectMode, Put, Replace, WakeBackfill, Write
from chalicelib.flow import dag_states, lookup
from chalicelib.flow.backfills import periods
from chalicelib.flow.backfills import plan as backfill_plan
from chalicelib.flow.backfills.plan import Entries, Plan
from chalicelib.flow.jobs import dag_cancel
from chalicelib.flow.jobs.drop import drop_at
from chalicelib.flow.runs import follow
from chalicelib.ports import MAX_CONFLICTS, Ports, too_many_conflicts

MAX_NAMED = 20  # entries in flight that the row of a backfill names; it counts all of them

# The state of an entry whose run has started a DAG, by the state of the DAG run.
OF_DAG: dict[DagState, EntryState] = {"RUNNING": "running", "SUCCEEDED": "succeeded", "FAILED": "failed"}


def preview(ports: Ports, name: str, request_data: NewRequest) -> Plan:
    """The plan that a backfill would have, which may be empty. Stores nothing."""
    schedule_state, schedule = lookup.existing(ports, name)
    plan = backfill_plan.make(ports, schedule_state, schedule, request_data, ports.clock.now())
    return periods.selected(ports, schedule_state, schedule, plan, request_data.only)


def id_of(name: str, request_id: str) -> str:
    """The id of the backfill of a schedule that a request begins."""
    return ids.digest(name, request_id, length=16)


def begin(ports: Ports, name: str, request_data: NewRequest, by: str, request_id: str) -> Backfill:
    """Store a backfill and create its first jobs. A repeat with the same request id returns the same backfill. Raises
    ``invalid`` if nothing is left to run."""
    backfill_id = id_of(name, request_id)
    for _ in range(MAX_CONFLICTS):
        schedule_state, schedule = lookup.existing(ports, name)
        if ports.rows.get(Backfill, name, backfill_id) is not None:
            break
        now = ports.clock.now()
        plan = backfill_plan.make(ports, schedule_state, schedule, request_data, now)
        plan = periods.selected(ports, schedule_state, schedule, plan, request_data.only)
        if not plan.entries:
            raise _nothing_left(plan, request_data.only)
        digest, parts = backfill.plan_parts(backfill_id, plan.entries)
        ports.ledger.put_all([Put(part) for part in parts])
        row = Backfill(
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
            only=request_data.only,
            left_alone=len(plan.in_flight),
            in_flight=plan.in_flight[:MAX_NAMED],
            periods=plan.is_of_periods,
            left_out=len(plan.incomplete),
            incomplete=plan.incomplete[:MAX_NAMED],
            wake_at=now,
        )
        create = Create(row)
        refused = ports.ledger.commit([create, ExpectMode(schedule_state, CLAIMABLE["backfill"])])
        if refused is None or create in refused.writes:
            break
    else:
        raise errors.changed_meanwhile(f"schedule {name}")
    advance(ports, name, backfill_id)
    return existing(ports, name, backfill_id)


def _nothing_left(plan: Plan, only: BackfillOnly) -> errors.SluiceError:
    counts = ", ".join(f"{count} {state}" for state, count in counted(plan.now.values()).items() if count)
    wanted = "not in flight" if only == "all" else only
    hint = "a dry run shows each entry; what waits or runs is left alone"
    if plan.incomplete:
        counts += f", {len(plan.incomplete)} of them incomplete"
        hint = "a dry run shows what each period lacks; name a period to run it with what is there"
    return errors.invalid("only" if only != "all" else "from", f"a range with an entry that is {wanted}", counts, hint)


def existing(ports: Ports, name: str, backfill_id: str) -> Backfill:
    """A stored backfill. Raises ``not_found`` (404) if there is none."""
    row = ports.rows.get(Backfill, name, backfill_id)
    if row is None:
        raise errors.not_found("backfill", backfill_id, f"sluice backfill list {name}")
    return row


def stop(ports: Ports, name: str, backfill_id: str, runs: bool, by: str) -> Backfill:
    """Cancel a backfill: once this returns, none of its jobs starts any more. Returns the backfill.

    Its runs continue, unless ``runs`` cancels them too. A finished backfill does not change.
    """
    for _ in range(MAX_CONFLICTS):
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
    """Advance the backfills of a schedule that was deleted or has a new generation: they end, or continue in it."""
    for row in ports.jobs.backfills(name):
        if row.state == "RUNNING":
            ports.ledger.commit([WakeBackfill(name, row.id, ports.clock.now())])
            advance(ports, name, row.id)


def carried(ports: Ports, schedule_state: ScheduleState) -> None:
    """Advance the backfills that go on through an update, so that they know the version by which they do. Otherwise
    the next generation, such as that of an enabling, would seem to be the update that ends them."""
    for row in ports.jobs.backfills(schedule_state.schedule):
        if row.state == "RUNNING" and row.version < schedule_state.version:
            ports.ledger.commit([WakeBackfill(row.schedule, row.id, ports.clock.now())])
            advance(ports, row.schedule, row.id)


def advance(ports: Ports, name: str, backfill_id: str) -> None:
    """Update the active entries of a backfill, and create the next jobs that its concurrency allows. Idempotent.

    Raises RuntimeError after ``MAX_CONFLICTS`` conflicts in a row.
    """
    for _ in range(MAX_CONFLICTS):
        row = ports.rows.get(Backfill, name, backfill_id)
        if row is None or row.wake_at is None:
            return
        if row.state != "RUNNING" and _close(ports, row):
            row = existing(ports, name, backfill_id)  # each dropped job has raised its revision
        if _step(ports, row, ports.clock.now()):
            return
    raise too_many_conflicts(f"backfill {backfill_id}", "the sweep will hint it again")


def entry_states(ports: Ports, row: Backfill, generation: int) -> dict[str, EntryState]:
    """The state of each active entry. The job is read first: if it no longer exists, a run or a record does."""
    seen: dict[str, EntryState] = {}
    for entry, lives_in in row.live.items():
        job_id = backfill.job_id(row, int(entry), lives_in)
        waits = ports.rows.get(Job, row.schedule, lives_in, sort_keys.backfill(row.id, int(entry))) is not None
        # A redrive is an attempt too, but not part of the backfill.
        found = () if waits else ports.runs.attempts(job_id)
        attempts = [run for run in found if run.backfill == row.id]
        recorded = not waits and not attempts and ports.rows.get(Record, job_id) is not None
        state = backfill.entry_state(attempts, waits, recorded, lives_in == generation)
        if state == "succeeded" and backfill.ends_with_dag(row):
            state = _of_dag(ports, row, attempts[-1])
        seen[entry] = state
    return seen


def _of_dag(ports: Ports, row: Backfill, run: Run) -> EntryState:
    """The state of an entry whose run has started a DAG. If its nodes were cancelled and none failed, so was it."""
    dag = dag_states.graph_of(ports, run)
    nodes = dag_states.node_states(ports, run, dag, ports.rows.get(DagRun, run.run_id))
    state = OF_DAG[dag_status.state_of(dag, nodes)]
    if state == "failed" and row.cancel_runs and not any(node.state == "FAILED" for node in nodes.values()):
        return "cancelled"
    return state


def _step(ports: Ports, row: Backfill, now: Instant) -> bool:
    """Carry out one step. Returns whether nothing is left to do; also False after a conflict."""
    schedule_state = ports.rows.get(ScheduleState, row.schedule)
    step = _advanced(ports, row, schedule_state, now)
    jobs = _jobs(ports, step, schedule_state, now)
    plan: list[Write] = [Replace(step.row), *map(Create, jobs)]
    if jobs and schedule_state is not None:
        plan.append(ExpectMode(schedule_state, CLAIMABLE["backfill"]))
    parent = _reprocess(ports, row) if step.row.ended_at is not None and row.ended_at is None else None
    if parent is not None:
        plan.append(Replace(reprocess.woken(parent, now)))
    if ports.ledger.commit(plan) is not None:
        return False
    if parent is not None:
        ports.hints.send([kinds.ref(Reprocess, parent.namespace, parent.id)], now, now)
    woken = [*map(ref_of, jobs), *_held_up(ports, row, step.row)]
    if woken:
        ports.hints.send(woken, now, now)
    if step.row.expires_at is not None:
        _end_plan(ports, step.row, step.row.expires_at)
    return step.row.wake_at is None or step.row.wake_at > now


def _held_up(ports: Ports, before: Backfill, after: Backfill) -> list[Ref]:
    """The schedule's own jobs of periods whose entries have ended: they may have waited for that."""
    entries = Entries(ports, before)
    over = [entries[int(entry)] for entry in before.live if entry not in after.live] if before.periods else []
    keys = [gather.gathering_key(backfill.values_by_key(before, entry)) for entry in over]
    return [kinds.ref(Job, before.schedule, after.generation, key) for key in keys]


def _advanced(ports: Ports, row: Backfill, schedule_state: ScheduleState | None, now: Instant) -> Step:
    """The backfill after a check of its active entries, and the entries that get a job now."""
    generation, ended = row.generation, _ended_because(ports, row, schedule_state)
    if schedule_state is not None and ended is None:
        generation = schedule_state.generation
        row = replace(row, version=schedule_state.version) if row.state == "RUNNING" else row
    step = backfill.advance(row, entry_states(ports, row, generation), generation, ended, now)
    if backfill.ends_with_dag(row) and step.row.live and step.row.wake_at is None:
        return replace(step, row=replace(step.row, wake_at=now + backfill.DAG_CHECK))
    return step


def _reprocess(ports: Ports, row: Backfill) -> Reprocess | None:
    """The re-processing of which a backfill is a step; None if it is no step."""
    reprocess_id = ids.reprocess_of(row.id)
    if row.namespace is None or reprocess_id is None:
        return None
    return ports.rows.get(Reprocess, row.namespace, reprocess_id)


def _end_plan(ports: Ports, row: Backfill, at: Instant) -> None:
    """Let the plan of a finished backfill expire with its row. A crash before this leaves the plan stored."""
    parts = [ports.rows.get(PlanPart, row.plan, number) for number in backfill.parts_of(row.total)]
    ports.ledger.put_all([Put(replace(part, expires_at=at)) for part in parts if part is not None])


def _jobs(ports: Ports, step: Step, schedule_state: ScheduleState | None, now: Instant) -> list[Job]:
    if not step.hand_out:
        return []
    if step.row.run is not None:
        return [backfill.job_of_run(step.row, run, now) for run in lookup.attempts(ports, step.row.run)[-1:]]
    schedule = lookup.definition_of(ports, schedule_state)
    entries, by = Entries(ports, step.row), schedule.by if schedule else ()
    # The instants differ by a millisecond each, so that jobs which queue do so in the order of the plan.
    since = now - len(step.hand_out)
    return [entries.job(index, by, since + number, now) for number, index in enumerate(step.hand_out)]


def _ended_because(ports: Ports, row: Backfill, schedule_state: ScheduleState | None) -> str | None:
    """Why a backfill must end; None if it may continue.

    Enabling begins a generation with the same definition, so the backfill continues there. It must not continue with
    another definition under the same name (C13).
    """
    if schedule_state is None or not schedule_state.exists:
        return "the schedule was deleted"
    if row.run is not None and not row.live and not lookup.attempts(ports, row.run):
        return f"run {row.run} is no longer stored"
    if schedule_state.generation == row.generation:
        return None
    before = lookup.definition_of(ports, replace(schedule_state, version=row.version))
    after = lookup.definition_of(ports, schedule_state)
    same = before is not None and after is not None and effect.acts_alike(before, after)
    return None if same else "the schedule was replaced; start a new backfill to run its present definition"


def _close(ports: Ports, row: Backfill) -> bool:
    """Drop, on record, the jobs of a finished backfill that have not started, and cancel its runs if requested. Returns
    whether any job was dropped."""
    dropped, why = False, Why.of("backfill_over", row.reason)
    for entry, lives_in in row.live.items():
        run_id = backfill.job_id(row, int(entry), lives_in)
        attempts = ports.runs.attempts(run_id)
        last = attempts[-1] if attempts else None
        key = sort_keys.retry(run_id, last.attempt + 1) if last else sort_keys.backfill(row.id, int(entry))
        dropped = drop_at(ports, (row.schedule, lives_in, key), why) or dropped
        if row.cancel_runs and last is not None and not states.is_terminal(last.state):
            follow.request_cancel(ports, run_id, last.attempt, why)
        elif row.cancel_runs and last is not None and last.state == "SUCCEEDED" and backfill.ends_with_dag(row):
            dag_cancel.cancel(ports, last, why)
    return dropped
