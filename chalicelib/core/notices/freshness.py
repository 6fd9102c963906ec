"""Whether a dataset with ``fresh`` is late (T29): its newest partition came longer ago than that.

The age counts from the arrival of the newest partition, as for the constraint `dataset_fresh` (decision 127). While no
partition has come, it counts from the put of the field.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from chalicelib.core.instants import MINUTE, Instant, Millis, format_duration, iso
from chalicelib.core.rows.event import NewestPartition
from chalicelib.core.rows.notice import FreshnessWatch

Told = Literal["data_late", "data_fresh"]
LATE: Told = "data_late"
FRESH: Told = "data_fresh"

# A watch is first checked when each invocation is over that has read the dataset without the field: these wake no watch
# (`flow/ingest/objects.py`). None lasts longer than two minutes.
FIRST_CHECK: Millis = 3 * MINUTE


def begun(dataset: str, now: Instant) -> FreshnessWatch:
    return FreshnessWatch(dataset, now, wake_at=now + FIRST_CHECK)


def again(watch: FreshnessWatch, now: Instant) -> FreshnessWatch:
    """The watch, which is checked at once: a partition has come, or the span has changed."""
    return replace(watch, rev=watch.rev + 1, leases=0, wake_at=now)


def fresh_until(span: Millis, newest: NewestPartition | None, since: Instant) -> Instant:
    """The last instant at which a dataset is fresh."""
    return (newest.at if newest is not None else since) + span


def judged(watch: FreshnessWatch, span: Millis, newest: NewestPartition | None, now: Instant) -> FreshnessWatch:
    """The watch after a check. If the dataset has become late or fresh, the next step writes the notices of its
    subscribers. While it is late, only a partition wakes the watch."""
    until = fresh_until(span, newest, watch.since)
    after = replace(watch, rev=watch.rev + 1, leases=0, wake_at=None)
    if now <= until:
        if watch.late_since is None:
            return replace(after, wake_at=until + 1)
        return replace(after, late_since=None, telling=FRESH, cursor=None, told=None, wake_at=now)
    if watch.late_since is not None:
        return after
    return replace(after, late_since=until, lapse=until, telling=LATE, cursor=None, told=None, wake_at=now)


def told(watch: FreshnessWatch, schedule: str | None, cursor: str | None, now: Instant) -> FreshnessWatch:
    """The watch after a page of subscriptions, up to ``schedule``, was told. Without a ``cursor``, all know."""
    after = replace(watch, rev=watch.rev + 1, leases=0, cursor=cursor, told=schedule, wake_at=now)
    return after if cursor is not None else replace(after, telling=None)


def notice_id(watch: FreshnessWatch, schedule: str) -> str:
    """The id of the notice of one lapse to one schedule. A repeat has the same."""
    return f"{watch.dataset}@{iso(watch.lapse or 0)}@{schedule}"


def reason(watch: FreshnessWatch, span: Millis, newest: NewestPartition | None) -> str:
    """Why the dataset is late, or no longer is, in plain words."""
    name = "/".join(f"{key}={value}" for key, value in (newest.partition if newest is not None else {}).items())
    came = f"its newest partition, {name}, came at {iso(newest.at)}" if newest is not None else "no partition has come"
    if watch.telling == FRESH:
        return f"{watch.dataset} is fresh again: {came}; it was late since {iso(watch.lapse or 0)}"
    return f"{watch.dataset} is late since {iso(watch.lapse or 0)}: {came}, and fresh is {format_duration(span)}"
