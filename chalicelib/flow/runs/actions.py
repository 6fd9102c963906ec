"""What users do to runs: cancel or poll an unfinished one (W6), rerun a finished one with its own arguments (W15)."""

from __future__ import annotations

from chalicelib.core import ids, states
from chalicelib.core.dags import rounds
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import SluiceError
from chalicelib.core.fires import bundles
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.job import Job, request_of
from chalicelib.core.rows.ref import run_ref
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.states import CLAIMABLE
from chalicelib.core.why import Why, mention
from chalicelib.core.writes import ExpectMode
from chalicelib.flow import lookup, requests
from chalicelib.flow.lookup import find_run
from chalicelib.flow.runs import follow
from chalicelib.ports import Ports


def cancel(ports: Ports, run_id: str, by: str) -> Run:
    """Request that an unfinished run is cancelled. Sluice repeats the call to the target until the run has ended.
    Idempotent: a run that a cancel has ended is returned as it is.

    Raises ``conflict`` (409) if the run has ended otherwise, or if its next attempt waits: then cancel the job of the
    same id.
    """
    run = find_run(ports, run_id)[-1]
    if not states.is_terminal(run.state):
        follow.request_cancel(ports, run_id, run.attempt, Why.of("cancelled", f"cancelled by {by}"))
        return find_run(ports, run_id)[-1]
    if run.cancel and run.state == "CANCELLED":
        return run
    hint = "cancel the job of the same id, which waits for its next attempt" if run.state == "RETRYING" else None
    raise SluiceError("conflict", f"expected a run that has not ended, got one that is {run.state}", None, hint)


def ping(ports: Ports, run_id: str) -> Run:
    """Poll an unfinished run now instead of at its next poll (W6).

    Returns the run as it is before the answer, which follows in a second or two. A worker reports by itself, so for its
    runs Sluice only checks the lease. Raises ``conflict`` (409) if the run has ended. A ping is not stored: a user
    repeats a ping that is lost.
    """
    run = find_run(ports, run_id)[-1]
    if states.is_terminal(run.state):
        raise SluiceError("conflict", f"expected a run that has not ended, got one that is {run.state}", None, None)
    now = ports.clock.now()
    ports.hints.send([run_ref(run_id, run.attempt)], now, now)
    return run


def rerun(ports: Ports, run_id: str, request_id: str) -> str:
    """Create a job with the properties, data and context of a finished run. Returns the id of the job.

    A repeat with the same request id creates no other job. The job obeys constraints and limits as a run-now does. It
    runs the present definition of the workflow, so fixes since then apply. Raises ``conflict`` if the run has not
    ended, or if the schedule runs another workflow now.
    """
    run = find_run(ports, run_id)[-1]
    check_ended(run)

    def make() -> requests.NewRequest:
        schedule_state, _ = schedule_of(ports, run)
        job = _job(run, schedule_state.generation, request_id, ports.clock.now(), ports.requester)
        return requests.NewRequest(job, [ExpectMode(schedule_state, CLAIMABLE["run_now"])])

    return requests.once(ports, request_of("rerun", run_id, request_id), make, f"schedule {run.schedule}")


def check_ended(run: Run) -> None:
    """Raise ``conflict`` (409) if a run has not ended, or if it is one of many events: each of them can run again."""
    if run.sends is not None:
        hint = f"name one of them: sluice fires {bundles.fire_of(run.run_id)} lists their ids"
        raise SluiceError("conflict", f"expected the run of one event, got one of {run.events}", None, hint)
    if not states.is_terminal(run.state) or run.state == "RETRYING":
        work = "jobs" if run.state == "RETRYING" else "runs"
        hint = f"wait for its end, or end it: sluice {work} cancel {run.run_id}"
        raise SluiceError("conflict", f"expected a run that has ended, got one that is {run.state}", None, hint)


def schedule_of(ports: Ports, run: Run) -> tuple[ScheduleState, Schedule]:
    """The state and definition of the schedule of a run that has ended. Raises ``conflict`` (409) if the run has not,
    or if the schedule runs another workflow now, and ``not_found`` (404) if the schedule was deleted."""
    check_ended(run)
    schedule_state, schedule = lookup.existing(ports, run.schedule)
    if schedule.workflow != run.workflow:
        why = f"schedule {run.schedule} runs {schedule.workflow} now"
        raise SluiceError("conflict", f"expected a schedule that still runs {run.workflow}, but {why}", None, None)
    return schedule_state, schedule


def _job(run: Run, generation: int, request_id: str, now: int, by: str | None) -> Job:
    origin = run.rerun_of or run.run_id  # a rerun of a rerun is one of the same first run
    return Job(
        schedule=run.schedule,
        generation=generation,
        sort_key=sort_keys.run_now("rerun", run.run_id, request_id),
        job_id=ids.job_id(run.schedule, generation, f"rerun:{run.run_id}:{request_id}"),
        kind="run_now",
        state="PENDING_CONSTRAINTS",
        created_at=now,
        accepted_at=now,  # its waiting time and its lateness count from the request
        correlation=rounds.alone(run.correlation),
        event=run.event,
        properties=dict(run.request.properties),
        rerun_of=origin,
        element=run.element,
        requested_by=by,
        reason=Why.of("run_again", "runs ", mention("run", run.run_id), " again"),
        wake_at=now,
    )
