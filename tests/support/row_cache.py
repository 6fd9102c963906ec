"""Caches the parsed rows: most calls of a long test read items that were read before, and items never change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from chalicelib.aws.tables import items
from chalicelib.core import zones
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.rows.schedule import Version
from chalicelib.log import logger

MAX_ROWS = 20_000  # rows that are cached
_known: dict[tuple[Any, int], tuple[Mapping[str, Any], Any]] = {}
# By the identity of the definition in a cached version: the schedule that it is, if it was parsed, and by which rules
# of time zones.
_schedules: dict[int, tuple[Any, Schedule] | None] = {}
_plain = items.from_item
_validate = Schedule.model_validate.__func__


def _from_item(kind: Any, item: Mapping[str, Any]) -> Any:
    # The cache keeps the item beside its row. As long as it does, no other item has the same identity.
    found = _known.get((kind, id(item)))
    if found is None:
        if len(_known) >= MAX_ROWS:
            _known.clear()
            _schedules.clear()
        found = _known[kind, id(item)] = (item, _plain(kind, item))
        if kind is Version:
            _schedules[id(found[1].definition)] = None
    return found[1]


def _parsed(cls: type[Schedule], definition: Any, **options: Any) -> Any:
    """A schedule that names no calendar never changes once it is parsed."""
    if cls is not Schedule or options or id(definition) not in _schedules:
        return _validate(cls, definition, **options)
    rules, found = zones.version(), _schedules[id(definition)]
    if found is None or found[0] != rules:
        schedule = _validate(cls, definition)
        if schedule.calendars:
            return schedule
        found = _schedules[id(definition)] = (rules, schedule)
    return found[1]


@contextmanager
def rows_are_cached() -> Iterator[None]:
    """Build each row and each stored schedule once, and write no log. These take more than half of the time of a
    crossing. Tests that begin in the same world share the rows.
    """
    before, level, validate = items.from_item, logger.level, vars(Schedule)["model_validate"]
    items.from_item = _from_item
    Schedule.model_validate = classmethod(_parsed)
    logger.setLevel("CRITICAL")
    try:
        yield
    finally:
        items.from_item = before
        Schedule.model_validate = validate
        logger.setLevel(level)
