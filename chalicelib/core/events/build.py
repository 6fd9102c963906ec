"""The events of ready partitions, objects, custom events and runs, with ids that follow from their content.

`core/jobs/gather.py` applies events to jobs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from chalicelib.core import ids, states
from chalicelib.core.dags import rounds
from chalicelib.core.dags.rounds import Round
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.events.partitions import identity, locate
from chalicelib.core.events.values import folders
from chalicelib.core.events.versions import ObjectVersion
from chalicelib.core.instants import Instant
from chalicelib.core.partition_values import decoded
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.run import Run
from chalicelib.core.states import PROGRAM_STATUS
from chalicelib.core.triggers.event import CLOUDEVENT, custom_key
from chalicelib.core.triggers.nodes import JOINED
from chalicelib.core.triggers.partition import partition_key
from chalicelib.core.triggers.program_status import status_key
from chalicelib.core.triggers.size import size_key

# What the run of a node announces to its DAG beside its status: after it, nodes may start by their join rules (W17).
ENDED = "ENDED"
# What a success announces while an incident may be open that it ends (W9).
RECOVERED = "RECOVERED"
OF_NO_EVENT = (ENDED, RECOVERED)  # announcements for which no schedule waits


def partition_event(name: str, dataset: Dataset, texts: Sequence[str], instant: Instant, now: Instant) -> Event:
    """The event that a partition became ready. Its id depends on the partition alone, so it counts once (T7). ``texts``
    are the values as they stand in the folder."""
    base, values = f"s3://{dataset.bucket}/{dataset.prefix}", identity(dataset, texts)
    return event_of(name, dataset.keys, base, texts, instant, now, values)


def event_of(
    name: str,
    keys: Sequence[str],
    base: str,
    texts: Sequence[str],
    instant: Instant,
    now: Instant,
    values: Sequence[str] | None = None,
) -> Event:
    """The event of a partition of a dataset that lies below ``base``. ``values`` identify the partition; by default
    they are the texts without escapes."""
    values = tuple(map(decoded, texts)) if values is None else values
    return Event(
        id=ids.event_id("partition", name, *values),
        kind="partition",
        key=partition_key(name),
        instant=instant,
        accepted_at=now,
        partition=dict(zip(keys, values, strict=True)),
        dataset=name,
        path=f"{base}{folders(keys, texts)}",
    )


def rewritten_event(known: Event, version: ObjectVersion, now: Instant) -> Event:
    """The event that a known partition was written again (T22): the event of the partition, with another id.

    The id depends on the version of the flag or manifest: its sequencer, or the second of a report without one."""
    revision = ids.event_id("partition", known.id, "rewritten", version.sequencer.lower() or version.second)
    return replace(known, id=revision, instant=version.at, accepted_at=now)


def made_again_event(known: Event, run: Run, instant: Instant, now: Instant) -> Event:
    """The event that a run has made a known partition again (L22), as `rewritten_event`. Its id depends on the run, so
    each run that succeeds counts once."""
    revision = ids.event_id("partition", known.id, "rewritten", run.run_id)
    by = run.requested_by
    return replace(known, id=revision, instant=instant, accepted_at=now, run_id=run.run_id, by=by)


def size_event(name: str, dataset: Dataset, key: str, etag: str, size: int, instant: Instant, now: Instant) -> Event:
    """The event that an object arrived (T9). Its id depends on the key; also on the ETag if overwrites count."""
    located = locate(dataset, key)
    values = identity(dataset, located.texts) if located else ()
    content = etag if dataset.count_overwrites else ""
    return Event(
        id=ids.event_id("size", name, key, content),
        kind="size",
        key=size_key(name),
        instant=instant,
        accepted_at=now,
        partition=dict(zip(dataset.keys, values, strict=True)) if located else None,
        dataset=name,
        path=f"s3://{dataset.bucket}/{key}",
        size=size,
    )


def custom_event(
    namespace: str,
    kind: str,
    source: object,
    payload: Mapping[str, Any],
    instant: Instant,
    now: Instant,
    producer: str | None = None,
) -> Event:
    """A custom event of a namespace (T11). Its id depends on ``source``, the sender's id: a repeat counts once. The id
    of a CloudEvent depends on its ``producer`` and ``source``, and not on its type (E11)."""
    return Event(
        id=ids.event_id("event", namespace, kind, source)
        if producer is None
        else ids.event_id(CLOUDEVENT, namespace, producer, source),
        kind="event",
        key=custom_key(namespace, kind),
        instant=instant,
        accepted_at=now,
        payload=payload,
    )


def status_event(run: Run, status: str) -> Event:
    """The event that a run reached a program status (T10), built from the run's row, which is its outbox."""
    begins = status == "STARTED" or (status == "COMPLETED" and ids.is_dag_graph(run.workflow))
    at = (run.started_at if begins else run.ended_at) or run.claimed_at
    return Event(
        id=ids.event_id("program_status", run.run_id, status),
        kind="program_status",
        key=status_key(run.workflow, status),
        instant=at,
        # By Sluice's clock, as for every event: the target's may have whole seconds or be ahead of an enable.
        accepted_at=(run.running_seen_at if begins else run.state_at) or at,
        partition=rounds.announced(run),
        workflow=run.workflow,
        run_id=run.run_id,
        status=status,
        schedule=run.schedule,
        payload={"workflow_version": run.workflow_version} if run.workflow_version else None,
        by=run.requested_by,
    )


def of_round(event: Event, round_: Round, by: str | None, at: Instant) -> Event:
    """The status event of a run for a later round of its DAG run, accepted at ``at``. ``by`` is who requested the
    round."""
    partition = {**(rounds.without(event.partition) or {}), rounds.KEY: str(round_)}
    own = ids.event_id("program_status", event.run_id, event.status, str(round_))
    return replace(event, id=own, partition=partition, accepted_at=at, by=by)


def joined(event: Event, round_: Round) -> Event:
    """The event that the join rule of a node is met in a round. A node counts one in a round, so its id depends on the
    round alone. It tells of the run of ``event``."""
    partition = {**(rounds.without(event.partition) or {}), rounds.KEY: str(round_)}
    payload = {**(event.payload or {}), JOINED: str(round_)}
    return replace(event, id=ids.event_id("program_status", JOINED, str(round_)), partition=partition, payload=payload)


def reached(run: Run) -> tuple[str, ...]:
    """The statuses that a run has reached, whether they are announced already or not."""
    last = status_of(run)
    began = run.running_seen_at is not None or run.started_at is not None
    started = ("COMPLETED" if _lasts(run) else "STARTED",) if began else ()
    return (*started, *((last,) if last is not None and last not in started else ()))


def announced(run: Run) -> tuple[str, ...]:
    """The statuses that a run has to announce: first those that are not announced yet, then that of its state, last
    that a node has ended, and that an incident may end with it (W9). An element of a node announces its end alone,
    which is counted: the statuses are those of the run of the node (W19)."""
    if run.element is not None:
        return ended(run)
    status = status_of(run)
    recovered = (RECOVERED,) if run.recovers and run.state == "SUCCEEDED" else ()
    return (*run.announce, *((status,) if status else ()), *ended(run), *recovered)


def status_of(run: Run) -> str | None:
    """The status that a run announces by its state. The start of a DAG that lasts as long as the DAG run is complete,
    for the first nodes, when the DAG run begins; of its end only a failure is announced."""
    if _lasts(run):
        return {"RUNNING": "COMPLETED", "FAILED": "FAILED"}.get(run.state)
    return PROGRAM_STATUS.get(run.state)


def _lasts(run: Run) -> bool:
    return ids.is_dag_graph(run.workflow) and bool(run.request.target.get("lasts"))


def ended(run: Run) -> tuple[str, ...]:
    """`ENDED` for the last attempt of a node's run in a round of its DAG run, or of an element of it, however it ended;
    else nothing."""
    over = states.is_terminal(run.state) and run.state != "RETRYING" and run.rerun_of is None
    counts = run.element is not None or rounds.decides(run.correlation) is not None
    return (ENDED,) if over and counts else ()
