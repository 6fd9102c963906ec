"""A run that no table has any more, as far as its name at EMR and its context tell (O4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from chalicelib.core import ids
from chalicelib.core.dags import elements, rounds
from chalicelib.core.instants import Instant
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Run
from chalicelib.core.triggers.event import custom_key
from chalicelib.core.why import Why

Context = Mapping[str, Any]
WHY = Why.of("repaired", "found at EMR by a repair")


def attempt_of(name: str) -> tuple[str, int] | None:
    """The run and attempt in the name of a run at its target; None for a name that Sluice did not give."""
    run_id, _, attempt = name.rpartition("-")
    return (run_id, int(attempt)) if attempt.isdecimal() and ids.parse_job_id(run_id) is not None else None


def job_of(run_id: str, attempt: int, at: Instant, context: Context) -> Job:
    """The job that became a run, as it was claimed: the fire of a time, or one that gathered events."""
    parsed = ids.parse_job_id(run_id)
    assert parsed is not None, f"expected the id of a run, got {run_id}"
    key = (parsed.schedule, parsed.generation, sort_keys.GATHERING)
    job = Job(*key, run_id, "gathering", "PENDING_LAUNCH", at, attempt=attempt, reason=WHY)
    fired = next((each for each in context.get("events", ()) if each["kind"] == "time"), None)
    if fired is not None:
        event = Event(fired["id"], "time", f"time:{parsed.schedule}", fired["instant"], fired["instant"])
        job = replace(job, kind="fire", due_at=event.instant, accepted_at=event.instant, event=event)
    return replace(job, kind="retry") if attempt > 1 else job


def correlation_of(context: Context) -> Mapping[str, str] | None:
    """The correlation of a run. A context does not say whether a re-run is `ALONE`: each is read as one that is, so
    that no node that follows runs twice."""
    correlation: Mapping[str, str] | None = context.get("correlation")
    dag = context.get("dag")
    if dag is None or dag["node"] is None:
        return correlation
    own = rounds.Round(dag["run_id"], int(dag["round"]), alone=int(dag["round"]) > 1)
    return {**(correlation or {}), rounds.KEY: str(own)}


def element_of(context: Context, job: Job) -> dict[str, Any] | None:
    """The element of a list for which the job of a run was made, by its context: one of the run of its node in the same
    round. None for a run that is none."""
    each, round_ = context.get("each"), rounds.which(job.correlation)
    return {**each, "of": elements.in_round(job.job_id, round_)} if each is not None and round_ is not None else None


def named(context: Context, run: Run) -> tuple[Event, ...] | None:
    """The events in the context of a run besides its own. None if the run has gathered its events or has no context."""
    own = run.event
    if own is None or "events" not in context:
        return None
    return tuple(event_of(described, run) for described in context["events"] if described["id"] != own.id)


def event_of(described: Context, run: Run) -> Event:
    """An event as far as the context of its run describes it."""
    names = ("partition", "dataset", "path", "workflow", "run_id", "status", "payload")
    known = {name: described[name] for name in names if name in described}
    known |= {own: described[name] for name, own in (("bytes", "size"), ("snapshot", "payload")) if name in described}
    accepted = run.accepted_at if run.accepted_at is not None else run.claimed_at
    key = custom_key(run.schedule.partition(".")[0], described["type"]) if described["kind"] == "event" else ""
    return Event(described["id"], described["kind"], key, described.get("instant", accepted), accepted, **known)
