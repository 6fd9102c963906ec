"""Dead letters: events that could not be delivered, kept with the reason until a user redrives or drops them (E6)."""

from __future__ import annotations

import json

from chalicelib.core.instants import Instant
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import DeadLetter, Run
from chalicelib.core.rows.schedule import HISTORY
from chalicelib.core.targets import registry
from chalicelib.core.why import NONE, Why


def of(run: Run, now: Instant, reason: Why = NONE) -> DeadLetter | None:
    """The dead letter of a failed delivery, to be written in the transaction of the failure; None for any other run.
    A run with a lifecycle gets none: it has retries, and its failure is announced."""
    if run.state != "FAILED" or registry.of_run(run).has_lifecycle:
        return None
    return DeadLetter(
        run_id=run.run_id,
        attempt=run.attempt,
        schedule=run.schedule,
        workflow=run.workflow,
        target=run.target_kind,
        reason=reason or run.reason,
        tries=run.calls,
        failed_at=now,
        first_try_at=run.start_requested_at,
        nominal_at=run.nominal_at,
        size=len(json.dumps(run.request.data or run.request.properties).encode()),
        expires_at=now + HISTORY,
    )


def redrive(run: Run, generation: int, now: Instant) -> Job:
    """The job that delivers the event of a run again, under the same id and as the next attempt. Its sort key consists
    of both, so that two requests for the same redrive create one job."""
    return Job(
        schedule=run.schedule,
        generation=generation,
        sort_key=sort_keys.redrive(run.run_id, run.attempt + 1),
        job_id=run.run_id,
        kind="redrive",
        state="PENDING_CONSTRAINTS",
        created_at=now,
        due_at=run.due_at,
        accepted_at=run.accepted_at,
        correlation=run.correlation,
        properties=run.request.properties,
        attempt=run.attempt + 1,
        event=run.event,
        reason=Why.of("redriven", "delivered again on request"),
        wake_at=now,
    )
