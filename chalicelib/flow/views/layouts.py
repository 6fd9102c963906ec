"""What came to the datasets of a schedule and belongs to no partition, or does not join, because of its folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from chalicelib.core.backfills.backfill import datasets_of
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.events.values import rank
from chalicelib.core.instants import DAY, Instant
from chalicelib.core.rows.ignored import IgnoredObjects
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.partition import partition_key
from chalicelib.core.views import At, View
from chalicelib.ports import Ports

SHOWN_FOR = 7 * DAY


class IgnoredObjectView(View):
    """An object in the prefix of a dataset that belongs to no partition, and why. ``of`` is the folder with an invalid
    value."""

    key: str
    at: At
    why: str
    code: Literal["no_folders", "invalid_value"]
    of: str


def ignored_view(row: IgnoredObjects | None) -> list[IgnoredObjectView]:
    """The last objects of a dataset that belong to no partition, the newest first."""
    found: list[Any] = [dict(each) for each in (row.objects if row is not None else ())]
    return found


def ignored(ports: Ports, name: str, schedule: Schedule, now: Instant) -> list[str]:
    """Which object came last to each dataset whose partitions a schedule counts, and belongs to none, if it came within
    `SHOWN_FOR`. A dataset of another namespace than the schedule's is left out."""
    counted = {key for leaf in tree.leaves(schedule.trigger) for key in leaf.trigger.event_keys()}
    datasets = (each for each in datasets_of(schedule) if partition_key(each) in counted)
    own = [each for each in datasets if each.partition(".")[0] == name.partition(".")[0]]
    rows = [row for row in (ports.rows.get(IgnoredObjects, name) for name in own) if row is not None]
    newest = [(row.dataset, row.objects[0]) for row in rows if now - row.noted_at <= SHOWN_FOR]
    return [
        f"{each['key']} came to {name} at {each['at']} and belongs to no partition: {each['why']}"
        for name, each in newest
    ]


def unjoined(correlations: Sequence[Mapping[str, str] | None]) -> list[str]:
    """Which of these correlations have the same numbers with other leading zeros, so that their jobs wait apart. Only
    the first two are named."""
    first: dict[Any, Mapping[str, str]] = {}
    for values in filter(None, correlations):
        other = first.setdefault(tuple(map(rank, values.values())), values)
        if other != values:
            one, two = ("/".join(f"{key}={value}" for key, value in each.items()) for each in (other, values))
            return [f"{one} and {two} do not join, because by compares texts: give both datasets the same folders"]
    return []
