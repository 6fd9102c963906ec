"""What people do to runs: cancel one that lives (W6), run a finished one again with its own arguments (W15)."""

from __future__ import annotations

from chalicelib.core import ids, states
from chalicelib.core.dags import rounds
from chalicelib.core.errors import SluiceError
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.ref import run_ref
from chalicelib.core.rows.request import request_of
from chalicelib.core.rows.run import Run
from chalicelib.core.states import CLAIMABLE
from chalicelib.core.targets import registry
from chalicelib.core.writes import ExpectMode
from chalicelib.flow import requests
from chalicelib.flow.lookup import existing, find_run
from chalicelib.flow.runs import cancel as cancelling
from chalicelib.ports import Ports


def cancel(ports: Ports, run_id: str, by: str) -> Run:
    """Wish the end of a run that lives. Its target is asked for that until it has ended; asked twice, it is asked once.

    Refused with 409 for one that has ended, and for one whose next attempt waits, which is a job's to cancel.
    """
    run = find_run(ports, run_id)[-1]
    if not states.is_terminal(run.state):
        cancelling.request_cancel(ports, run_id, run.attempt, f"cancelled by {by}")
        return find_run(ports, run_id)[-1]
    hint = "cancel the job of the same id, which waits for its next attempt" if run.state == "RETRYING" else None
    raise SluiceError("conflict", f"expected a run that lives, got one that is {run.state}", None, hint)


def ping(ports: Ports, run_id: str) -> Run:
    """Have the target asked now what became of a run that lives, instead of at its next look (W6). Returns the run as
    it stands before the answer, which follows in a second or two. A worker is not asked: it tells by itself, and what
    is looked at is whether its lease still holds.

    Refused with 409 for a run that has ended. Nothing is stored: a ping that is lost is repeated by who wants it.
    """
    run = find_run(ports, run_id)[-1]
    if states.is_terminal(run.state):
        raise SluiceError("conflict", f"expected a run that lives, got one that is {run.state}", None, None)
    now = ports.clock.now()
    ports.hints.send([run_ref(run_id, run.attempt)], now, now)
    return run


def rerun(ports: Ports, run_id: str, request_id: str) -> str:
    """A job of its own that carries the properties, the data and the context of a finished run. It passes constraints
    and lines as a run-now does. Returns its id; once per request id.

    The workflow is run as it is defined now: what was mended since holds for it.
    """
    run = find_run(ports, run_id)[-1]
    if not states.is_terminal(run.state) or run.state == "RETRYING":
        raise SluiceError("conflict", f"expected a run that has ended, got one that is {run.state}", None, "cancel it")

    def make() -> requests.NewRequest:
        schedule_state, schedule = existing(ports, run.schedule)
        if schedule.workflow != run.workflow:
            why = f"schedule {run.schedule} runs {schedule.workflow} now"
            raise SluiceError("conflict", f"expected a schedule that still runs {run.workflow}, but {why}", None, None)
        job = _job(run, schedule_state.generation, request_id, ports.clock.now())
        return requests.NewRequest(job, [ExpectMode(schedule_state, CLAIMABLE["run_now"])])

    return requests.once(ports, request_of("rerun", run_id, request_id), make, f"schedule {run.schedule}")


def is_followed(run: Run) -> bool:
    """Whether its target has more to tell of it than that it was delivered."""
    return registry.of_run(run).has_lifecycle


def _job(run: Run, generation: int, request_id: str, now: int) -> Job:
    origin = run.rerun_of or run.run_id  # a rerun of a rerun is one of the same first run
    return Job(
        schedule=run.schedule,
        generation=generation,
        sort_key=sort_keys.run_now("rerun", run.run_id, request_id),
        job_id=ids.job_id(run.schedule, generation, f"rerun:{run.run_id}:{request_id}"),
        kind="run_now",
        state="PENDING_CONSTRAINTS",
        created_at=now,
        accepted_at=now,  # it waits, and is in time or not, from when it was asked for
        correlation=rounds.alone(run.correlation),
        event=run.event,
        properties=dict(run.request.properties),
        rerun_of=origin,
        reason=f"runs {run.run_id} again",
        wake_at=now,
    )
