"""The decisions of the step *match*: which partition an object belongs to, whether it makes it ready, and which events
there are. What a job is once events have been applied to it is in `core/gather.py`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from chalicelib.core import dag_keys, ids, leaves
from chalicelib.core.calendar import Instant
from chalicelib.core.model import Dataset
from chalicelib.core.rows import GATHERING, Event, Run, Subscription
from chalicelib.core.states import PROGRAM_STATUS

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
    """Whether this object may be the one that makes its partition ready (T8); a manifest has then to be read."""
    if dataset.ready.done_flag is not None:
        return located.name == dataset.ready.done_flag
    if dataset.ready.manifest is not None:
        return True
    return is_data(located.name)


def is_data(name: str) -> bool:
    """Spark and Hive take names that begin with ``_`` or ``.`` for bookkeeping, not for data."""
    return not any(part.startswith(("_", ".")) for part in name.split("/"))


def listed(manifest: str) -> tuple[str, ...] | None:
    """The names that a manifest lists: JSON (a list, or an object with ``files`` or ``entries``), or one to a line.

    Names are relative to the partition's folder, or full ``s3://`` addresses. None for what is no manifest."""
    try:
        content = json.loads(manifest)
    except ValueError:
        return tuple(dict.fromkeys(line.strip() for line in manifest.splitlines() if line.strip()))
    if isinstance(content, dict):
        content = content.get("files", content.get("entries"))
    if not isinstance(content, list):
        return None
    names = [entry.get("url") if isinstance(entry, dict) else entry for entry in content]
    texts = [name for name in names if isinstance(name, str)]
    return tuple(dict.fromkeys(texts)) if len(texts) == len(names) else None


def partition_event(name: str, dataset: Dataset, values: tuple[str, ...], instant: Instant, now: Instant) -> Event:
    """The event that a partition became ready. Its id depends on the partition alone: each counts once (T7)."""
    partition = dict(zip(dataset.keys, values, strict=True))
    folders = "/".join(f"{key}={value}" for key, value in partition.items())
    return Event(
        id=ids.event_id("partition", name, *values),
        kind="partition",
        key=leaves.partition_key(name),
        instant=instant,
        accepted_at=now,
        partition=partition,
        dataset=name,
        path=f"s3://{dataset.bucket}/{dataset.prefix}{folders}/",
    )


def size_event(name: str, dataset: Dataset, key: str, etag: str, size: int, instant: Instant, now: Instant) -> Event:
    """The event that an object came (T9). Its id depends on the key alone, or on the content where overwrites count."""
    located = locate(dataset, key)
    content = etag if dataset.count_overwrites else ""
    return Event(
        id=ids.event_id("size", name, key, content),
        kind="size",
        key=leaves.size_key(name),
        instant=instant,
        accepted_at=now,
        partition=dict(zip(dataset.keys, located.values, strict=True)) if located else None,
        dataset=name,
        path=f"s3://{dataset.bucket}/{key}",
        size=size,
    )


def custom_event(
    namespace: str, kind: str, source: object, payload: Mapping[str, Any], instant: Instant, now: Instant
) -> Event:
    """A custom event of a namespace (T11). ``source`` is the poster's own id of it: posted twice, it is one event."""
    return Event(
        id=ids.event_id("event", namespace, kind, source),
        kind="event",
        key=leaves.custom_key(namespace, kind),
        instant=instant,
        accepted_at=now,
        payload=payload,
    )


def status_event(run: Run, status: str) -> Event:
    """The event that a run reached a program status (T10), seen from the run row that is its outbox."""
    at = {"STARTED": run.started_at}.get(status, run.ended_at) or run.claimed_at
    return Event(
        id=ids.event_id("program_status", run.run_id, status),
        kind="program_status",
        key=leaves.status_key(run.workflow, status),
        instant=at,
        # Our own clock, as for every other event: the target's may tell whole seconds, or be ahead of an enable.
        accepted_at=(run.running_at if status == "STARTED" else run.moved_at) or at,
        partition=dag_keys.announced(run),
        workflow=run.workflow,
        run_id=run.run_id,
        status=status,
        schedule=run.schedule,
        payload={"workflow_version": run.workflow_version} if run.workflow_version else None,
    )


def announced(run: Run) -> tuple[str, ...]:
    """The statuses that a run in this state has to tell other schedules, besides those it still owes."""
    status = PROGRAM_STATUS.get(run.state)
    return (*run.announce, status) if status else run.announce


def counts_for(event: Event, subscription: Subscription) -> bool:
    """An event counts for a leaf only if it was accepted after the leaf began to gather (L3, L6)."""
    return event.accepted_at >= subscription.since


def correlate(by: tuple[str, ...], event: Event) -> dict[str, str] | None:
    """The values of the correlation keys that an event carries; None if it lacks one of them (T19). A custom event
    carries them in its payload."""
    values = event.partition or {key: str(value) for key, value in (event.payload or {}).items() if _names(value)}
    return {key: values[key] for key in by} if all(key in values for key in by) else None


def _names(value: object) -> bool:
    """Whether a value of a payload can be that of a partition key: text or a whole number, and not empty."""
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""


def gathering_place(correlation: Mapping[str, str] | None) -> str:
    """The sort key of the gathering job, one per value of the correlation keys."""
    if not correlation:
        return GATHERING
    place = "/".join(quote(value, safe="").replace("~", "%7E") for value in correlation.values())
    # A sort key holds 1,024 bytes; a digest stands for what is long. No quoted value begins with '~'.
    return (
        f"{GATHERING}#{place}" if len(place) <= LONGEST_PLACE else f"{GATHERING}#~{ids.digest(*correlation.values())}"
    )
