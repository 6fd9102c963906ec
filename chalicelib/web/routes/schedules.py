"""Routes of schedules: their documents, jobs, runs, versions and upcoming fires. Actions are in `actions.py`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from chalice.app import Request, Response

from chalicelib.core import ids
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import bad_cursor
from chalicelib.core.fires import upcoming
from chalicelib.core.instants import iso
from chalicelib.core.jobs import of_period
from chalicelib.core.rows.schedule import ScheduleState, Timer
from chalicelib.core.triggers import tree
from chalicelib.core.views import At, View
from chalicelib.flow.lookup import existing, missing
from chalicelib.flow.period_jobs import datasets_of
from chalicelib.flow.schedules.costs import EffectOfPutView
from chalicelib.flow.views.views import PeriodView, schedule_view, version_view
from chalicelib.ports import Page
from chalicelib.web.http import Json, document, number
from chalicelib.web.paging import MAX_FIRES, listing
from chalicelib.wiring import ports

MAX_PERIODS = 100  # of a preview
LAST_DAY = 253_402_300_799_999  # ms: 31 December 9999, the last day of the calendar


class NextPeriodView(PeriodView):
    """A period that is not over. Its job waits for ``need`` partitions; None if that is not known yet. All of them can
    be there from ``complete_from`` on."""

    need: int | None
    complete_from: At


class PreviewView(View):
    """The next fires: their nominal instants, and when each is due. Those in ``skipped`` start nothing. ``zone`` is
    that of the schedule. Each fire has ``events_per_fire`` events, and ``fires_per_day`` counts each of them.
    ``periods`` has those of a schedule with ``per``, from the present one on, 100 at most."""

    items: list[At]
    due: list[At]
    skipped: list[At]
    next_cursor: None
    description: str
    zone: str
    fires_per_day: float | None
    events_per_fire: int
    periods: list[NextPeriodView]


def get_schedule(request: Request, name: str) -> Response:
    """Read a schedule."""
    return shown(name)


def schedule_versions(request: Request, name: str) -> Json:
    """List all versions of a schedule's definition, newest first, each with its changes."""
    known(name)

    def read(limit: int, cursor: str | None) -> Page[Any]:
        if cursor is not None and not re.fullmatch("[0-9]{1,9}", cursor):
            raise bad_cursor()
        # One more than a page: the oldest version of the page is compared with the one before it.
        rows = ports().catalog.versions(name, limit + 1, int(cursor) if cursor is not None else None)
        pairs = tuple(zip(rows, (*rows[1:], None), strict=True))[:limit]
        return Page(pairs, str(pairs[-1][0].version) if len(rows) > limit else None)

    return listing(request, read, lambda pair: version_view(*pair))


def preview(request: Request, name: str) -> PreviewView:
    """List the next fires of a schedule, which of them are skipped, and the next periods of one with `per`. For a
    disabled schedule, these are the fires if it were enabled now."""
    count = number(request, "count", 10, MAX_FIRES)
    state, schedule = existing(ports(), name)
    timer = ports().rows.get(Timer, name)
    fires = upcoming.fires(schedule, ports().clock.now(), count, timer, name)
    shown = [fire for fire in fires if fire.due <= LAST_DAY]
    ahead = of_period.upcoming(schedule, datasets_of(ports(), schedule), ports().clock.now(), min(count, MAX_PERIODS))
    return {
        "items": [iso(fire.nominal) for fire in shown],
        "due": [iso(fire.due) for fire in shown],
        "skipped": [iso(fire.nominal) for fire in shown if fire.nominal in state.skips],
        "zone": schedule.zone,
        "fires_per_day": upcoming.per_day(schedule),
        "events_per_fire": schedule.spread.count if schedule.spread else 1,
        "description": ids.plain_in(tree.describe(schedule.trigger)),
        "periods": [
            {
                "start": iso(each.period.start),
                "end": iso(each.period.end),
                "zone": each.period.zone,
                "label": each.period.label,
                "need": each.need,
                "complete_from": iso(each.complete_from),
            }
            for each in ahead
        ],
        "next_cursor": None,
    }


def shown(
    name: str, status: int = 200, notes: Sequence[str] = (), effects: Sequence[EffectOfPutView] = ()
) -> Response:  # fmt: skip
    return document(view_of(*existing(ports(), name), notes, effects), status)


def view_of(
    schedule_state: ScheduleState,
    schedule: Schedule,
    notes: Sequence[str] = (),
    effects: Sequence[EffectOfPutView] = (),
) -> Json:
    """A schedule with the number of fires per day, which shows a cron expression that fires too often (T1); after a put
    with notes on its expressions, if there are any, and with what the put did."""
    told = {**({"notes": list(notes)} if notes else {}), **({"effect": effects[0]} if effects else {})}
    return {**schedule_view(schedule_state, schedule), "fires_per_day": upcoming.per_day(schedule), **told}


def known(name: str) -> str:
    """The full name of a schedule that exists or existed. Raises ``not_found`` otherwise."""
    if ports().rows.get(ScheduleState, name) is None:
        raise missing(ports(), "schedule", name)
    return name
