"""The decisions of the step *match*: which partition an object belongs to, whether it makes it ready, and what a job
is once events have been applied to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import quote

from chalicelib.core import ids, triggers
from chalicelib.core.calendar import Instant
from chalicelib.core.model import Dataset, Schedule
from chalicelib.core.rows import GATHERING, Event, Job, Run, Subscription
from chalicelib.core.states import PROGRAM_STATUS
from chalicelib.core.triggers import Progress

LONGEST_PLACE = 500


@dataclass(frozen=True, slots=True)
class Located:
    """An object seen as part of a partition: its key values, its folder, and its name within the folder."""

    values: tuple[str, ...]
    folder: str
    name: str


def locate(dataset: Dataset, key: str) -> Located | None:
    """Where an object key (already URL-decoded) stands in a dataset's layout; None if it is in no partition."""
    if not key.startswith(dataset.prefix):
        return None
    parts = key[len(dataset.prefix) :].split("/")
    folders, rest = parts[: len(dataset.keys)], parts[len(dataset.keys) :]
    values: list[str] = []
    for expected, folder in zip(dataset.keys, folders, strict=False):
        name, equals, value = folder.partition("=")
        if name != expected or not equals or not value:
            return None
        values.append(value)
    if len(values) < len(dataset.keys) or not rest or not rest[-1]:
        return None
    return Located(tuple(values), dataset.prefix + "/".join(folders) + "/", "/".join(rest))


def makes_ready(dataset: Dataset, located: Located) -> bool:
    """Whether this object is the one that makes its partition ready (T8)."""
    if dataset.ready.done_flag is not None:
        return located.name == dataset.ready.done_flag
    # Spark and Hive take names that begin with '_' or '.' for bookkeeping, not for data.
    return not any(part.startswith(("_", ".")) for part in located.name.split("/"))


def partition_event(name: str, dataset: Dataset, values: tuple[str, ...], instant: Instant, now: Instant) -> Event:
    """The event that a partition became ready. Its id depends on the partition alone: each counts once (T7)."""
    folders = "/".join(f"{key}={value}" for key, value in zip(dataset.keys, values, strict=True))
    return Event(
        id=ids.event_id("partition", name, *values),
        kind="partition",
        key=triggers.partition_key(name),
        instant=instant,
        accepted_at=now,
        partition=dict(zip(dataset.keys, values, strict=True)),
        dataset=name,
        path=f"s3://{dataset.bucket}/{dataset.prefix}{folders}/",
    )


def status_event(run: Run, status: str) -> Event:
    """The event that a run reached a program status (T10), seen from the run row that is its outbox."""
    at = {"STARTED": run.started_at}.get(status, run.ended_at) or run.claimed_at
    return Event(
        id=ids.event_id("program_status", run.run_id, status),
        kind="program_status",
        key=triggers.status_key(run.workflow, status),
        instant=at,
        # Our own clock, as for every other event: the target's may tell whole seconds, or be ahead of an enable.
        accepted_at=(run.running_at if status == "STARTED" else run.moved_at) or at,
        partition=run.partition,
        workflow=run.workflow,
        run_id=run.run_id,
        status=status,
    )


def announced(run: Run) -> tuple[str, ...]:
    """The statuses that a run in this state has to tell other schedules, besides those it still owes."""
    status = PROGRAM_STATUS.get(run.state)
    return (*run.announce, status) if status else run.announce


def counts_for(event: Event, subscription: Subscription) -> bool:
    """An event counts for a leaf only if it was accepted after the leaf began to gather (L3, L6)."""
    return event.accepted_at >= subscription.since


def correlate(by: tuple[str, ...], event: Event) -> dict[str, str] | None:
    """The values of the correlation keys that an event carries; None if it lacks one of them (T19)."""
    values = event.partition or {}
    return {key: values[key] for key in by} if all(key in values for key in by) else None


def gathering_place(correlation: Mapping[str, str] | None) -> str:
    """The sort key of the gathering job, one per value of the correlation keys."""
    if not correlation:
        return GATHERING
    place = "/".join(quote(value, safe="").replace("~", "%7E") for value in correlation.values())
    # A sort key holds 1,024 bytes; a digest stands for what is long. No quoted value begins with '~'.
    return (
        f"{GATHERING}#{place}" if len(place) <= LONGEST_PLACE else f"{GATHERING}#~{ids.digest(*correlation.values())}"
    )


@dataclass(frozen=True, slots=True)
class Touch:
    """One event and the leaves of one schedule that it touches."""

    event: Event
    leaves: tuple[str, ...]


def gather(
    job: Job | None,
    touches: Iterable[Touch],
    schedule: Schedule,
    subscription: Subscription,
    correlation: Mapping[str, str] | None,
    now: Instant,
) -> Job:
    """The job after events have been applied to it: a new one if there was none. Says whether its trigger is met."""
    touches = tuple(touches)
    base = job or _new_job(touches[0].event, subscription, correlation, now)
    progress = dict(base.leaves)
    for touch in touches:
        at = touch.event.accepted_at
        for leaf in touch.leaves:
            before = progress.get(leaf)
            progress[leaf] = before.plus(1, at) if before else Progress(1, at, at)
    grown = replace(base, leaves=progress, rev=base.rev + 1 if job else base.rev)
    if grown.met_at is not None:
        return grown
    verdict = triggers.evaluate(schedule.trigger, progress)
    if verdict.met:
        accepted = max(gathered.last_at for gathered in progress.values())
        return replace(
            grown, state="PENDING_CONSTRAINTS", met_at=now, accepted_at=accepted, reason=verdict.why, wake_at=now
        )
    span = schedule.timeout_millis
    return replace(grown, reason=verdict.why, wake_at=grown.created_at + span if span is not None else None)


def _new_job(first: Event, subscription: Subscription, correlation: Mapping[str, str] | None, now: Instant) -> Job:
    return Job(
        schedule=subscription.schedule,
        generation=subscription.generation,
        place=gathering_place(correlation),
        job_id=ids.job_id(subscription.schedule, subscription.generation, first.id),
        kind="gathering",
        state="PENDING_TRIGGER",
        created_at=now,
        correlation=correlation,
    )
