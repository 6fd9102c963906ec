"""Runs after a restore: those that EMR has and no table, their next attempts, and the statuses of those that ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from chalicelib.core import states
from chalicelib.core.dags import rounds
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.events.build import ended
from chalicelib.core.jobs import claim
from chalicelib.core.limits import names, returns
from chalicelib.core.rows.dag import DagRun
from chalicelib.core.rows.parts import Parts
from chalicelib.core.rows.run import Pointer, Run
from chalicelib.core.rows.schedule import HISTORY
from chalicelib.core.runs import complete
from chalicelib.core.why import Why
from chalicelib.core.writes import Put, Replace
from chalicelib.flow import facts as facts_of
from chalicelib.flow.ingest import roll_up
from chalicelib.flow.runs.complete import is_awaited
from sluice.operations.ports import Begun
from sluice.operations.repair import backfills
from sluice.operations.repair.repair import Repair
from sluice.operations.rules import adopted
from sluice.operations.rules.owner import namespace_in


def at_emr(repair: Repair) -> None:
    """Adopt or cancel the job runs of EMR that no table has, and tell a run its id at EMR."""
    for begun in repair.begun:
        named = adopted.attempt_of(begun.name)
        if named is None:
            continue
        run = repair.stock.runs.get(named)
        if run is None and (run := repair.ports.rows.get(Run, *named)) is None:
            _adopt(repair, begun, *named)
        elif run.target_id is None and not states.is_terminal(run.state):
            repair.found("id at EMR", begun.name, "stored, so that the run is not called again")
            known = replace(run, target_id=begun.target_id, lease_until=None, queued_in=None, rank=None)
            _known(repair, replace(known, wake_at=repair.now, rev=run.rev + 1), begun)


def _adopt(repair: Repair, begun: Begun, run_id: str, attempt: int) -> None:
    made = _made(repair, begun, run_id, attempt)
    if made is None:
        repair.found("unknown run", begun.name, f"left alone: its schedule is gone ({begun.target_id})")
        return
    if repair.unknown == "leave":
        repair.found("unknown run", begun.name, f"left alone, as requested ({begun.target_id})")
        return
    done = "adopted" if repair.unknown == "adopt" else "to be cancelled"
    repair.found("unknown run", begun.name, f"{done} ({begun.target_id})")
    if repair.unknown == "cancel":
        made = replace(made, cancel=True, reason=Why.of("repaired", "cancelled by a repair: no table had this run"))
    repair.stock.ended.add(run_id)
    _known(repair, made, begun, new=True)


def _made(repair: Repair, begun: Begun, run_id: str, attempt: int) -> Run | None:
    """The run of a job run, as its claim would have built it at that time. None without a schedule."""
    context = repair.context(run_id) or {}
    alone = adopted.job_of(run_id, attempt, begun.at, context)
    entry = backfills.entry_of(repair, run_id, begun.at)
    job = entry if entry is not None else replace(alone, correlation=_correlation(repair, context))
    job = replace(job, attempt=attempt, element=adopted.element_of(context, job))
    facts = facts_of.read(repair.ports, job)
    if facts.schedule_state is None or facts.schedule is None or facts.workflow is None:
        return None
    asks = facts.asks(namespace_in(job.schedule))
    taken = tuple(ask.limit_name for ask in asks if not names.is_admission(ask.limit_name))
    uri = repair.ports.payloads.context_uri(run_id)
    run = claim.build_run(job, facts, taken, uri, begun.at, (), returns.units_of(asks, 0))
    return replace(
        run,
        named=adopted.named(context, run),
        period_parts=_parts(repair, run, facts.schedule, context),
        generation=alone.generation,
        target_id=begun.target_id,
        calls=1,
        wake_at=repair.now,
        start_requested_at=begun.at,
        request=replace(run.request, properties=context.get("properties", run.request.properties)),
    )


def _parts(repair: Repair, run: Run, schedule: Schedule, context: adopted.Context) -> dict[str, Parts] | None:
    """The parts that the run of a period had, by its context; None for any other run. Only a context says for which
    period a run was."""
    events = context.get("events") or []
    if context.get("manifest") is not None:
        events = repair.ports.payloads.manifest(run.run_id) or []
    if run.event is not None or run.attempt > 1 or any(each["kind"] != "partition" for each in events):
        return None
    return roll_up.parts_of_run(repair.ports, schedule, run.correlation or {}, events)


def _correlation(repair: Repair, context: adopted.Context) -> Mapping[str, str] | None:
    """The correlation of a run. The row of its DAG run says whether its round is that of a node alone."""
    found = adopted.correlation_of(context)
    value = rounds.which(found)
    own = rounds.parse(value) if value is not None else None
    if found is None or own is None or not own.alone:
        return found
    row = repair.ports.rows.get(DagRun, own.dag_run)
    reruns = row.reruns if row is not None else ()
    if len(reruns) <= own.number - 2 or reruns[own.number - 2]["what"] == "only":
        return found
    return {**found, rounds.KEY: str(own._replace(alone=False))}


def _known(repair: Repair, run: Run, begun: Begun, new: bool = False) -> None:
    repair.stock.runs[run.run_id, run.attempt] = run
    pointer = Pointer(begun.target_id, run.run_id, run.attempt, repair.now + HISTORY)
    repair.write(Put(run) if new else Replace(run), Put(pointer))


def next_attempts(repair: Repair) -> None:
    """A run that waits for its next attempt has the job of it, and no other run has one."""
    for job in [job for job in repair.stock.jobs.values() if job.traits.retries]:
        before = repair.stock.runs.get((job.job_id, job.attempt - 1))
        if before is None or before.state != "RETRYING":
            repair.found("next attempt", f"{job.job_id}-{job.attempt}", "deleted: its run has not failed yet")
            repair.drop(job)
    waiting = {(job.job_id, job.attempt) for job in repair.stock.jobs.values() if job.traits.retries}
    for run in list(repair.stock.runs.values()):
        after = (run.run_id, run.attempt + 1)
        known = after in waiting or after in repair.stock.runs or repair.ports.rows.get(Run, *after) is not None
        if run.state == "RETRYING" and not known and not repair.is_elsewhere(run):
            repair.found("next attempt", f"{run.run_id}-{after[1]}", "created again: its job was lost")
            repair.create(complete.retry_of(run, run.reason, repair.now))


def statuses(repair: Repair) -> None:
    """Announce the statuses of the runs since the instant again."""
    for run in list(repair.stock.runs.values()):
        due = []
        if run.running_seen_at is not None and run.running_seen_at >= repair.since:
            due.append("STARTED")
        status = states.PROGRAM_STATUS.get(run.state)
        if states.is_terminal(run.state) and status and (run.state_at or 0) >= repair.since:
            due.append(status)
        if (run.state_at or 0) >= repair.since:
            due += ended(run)
        due = [each for each in due if each not in run.announce]
        wanted = [each for each in due if is_awaited(repair.ports, run, each)]
        if wanted:
            repair.found("status", f"{run.run_id}-{run.attempt}", f"announced again: {', '.join(wanted)}")
            later = replace(complete.add_statuses(run, wanted, repair.now), cursor=None)
            repair.store(later)
