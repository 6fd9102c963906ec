"""Put a holiday calendar or a dataset, and move the timers of the schedules that depend on it (T30, T29)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from chalicelib.core import errors
from chalicelib.core.definitions.calendar import calendar_key
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import timer as fire_timer
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.schedule import WAKE, Timer
from chalicelib.core.triggers.partition import partition_key
from chalicelib.core.writes import Replace
from chalicelib.flow import lookup, wake
from chalicelib.flow.definitions import store
from chalicelib.flow.definitions.store import Change
from chalicelib.flow.each import run_each
from chalicelib.flow.fires import emit
from chalicelib.ports import MAX_CONFLICTS, Ports


def put(ports: Ports, name: str, document: Mapping[str, Any], by: str, if_match: int | None = None) -> Change:
    """Create or replace a calendar, as `store.put`. Once this returns, the timers of all schedules that name it follow
    it. A repeat of the request moves those that a death left out."""
    change = store.put(ports, "calendar", name, document, by, if_match)
    named = {row.schedule for row in lookup.every(partial(ports.catalog.subscriptions, calendar_key(name)))}
    run_each(sorted(named), partial(follow, ports))
    return change


def put_dataset(
    ports: Ports, name: str, document: Mapping[str, Any], by: str, if_match: int | None = None
) -> Change:  # fmt: skip
    """Create or replace a dataset, as `store.put`. Once this returns, the timers of all schedules that wait for its
    periods follow them (T29), and the jobs are woken that may wait for its span ``fresh`` (C18). A repeat of the
    request reaches those that a death left out."""
    before = ports.rows.get(Definition, "dataset", name)
    change = store.put(ports, "dataset", name, document, by, if_match)
    both = (document, before.document if before is not None else {})
    if any(each.get("period") or each.get("fresh") for each in both):
        rows = list(lookup.every(partial(ports.catalog.subscriptions, partition_key(name))))
        run_each(sorted({row.schedule for row in rows}), partial(follow, ports))
        if any(each.get("fresh") for each in both):
            waiting = sorted({(row.schedule, row.generation) for row in rows if row.leaf == WAKE})
            run_each(waiting, lambda row: wake.constrained(ports, *row))
    return change


def after_change(ports: Ports, name: str, schedule: Schedule) -> None:
    """Move the timer of a schedule that was put, enabled or resumed, if its calendars, or the periods of its datasets,
    were changed meanwhile. A change that comes later finds the schedule in the reverse index."""
    if schedule.calendars or schedule.periodic:
        follow(ports, name)


def follow(ports: Ports, name: str) -> None:
    """Move the timer of a schedule to the fires that its calendars and datasets have now. Fires up to the horizon stay,
    because they may be prepared."""
    for _ in range(MAX_CONFLICTS):
        timer, horizon = ports.rows.get(Timer, name), emit.horizon_of(ports)
        schedule = lookup.definition_of(ports, timer)
        if timer is None or schedule is None:
            return
        moved = fire_timer.recounted(timer, schedule, horizon)
        if moved.next == timer.next or ports.ledger.commit([Replace(moved)]) is None:
            return
    raise errors.changed_meanwhile(f"the timer of {name}")
