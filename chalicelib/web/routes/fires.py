"""Routes of large fires: how many of their events were sent, and what became of each (E2)."""

from __future__ import annotations

from functools import partial
from typing import get_args

from chalice.app import Request

from chalicelib.core.runs.fires import EventState
from chalicelib.flow.views import fires
from chalicelib.flow.views.fires import StateOfFireView
from chalicelib.web.http import Json, choice
from chalicelib.web.paging import listing
from chalicelib.wiring import ports


def get_fire(request: Request, fire_id: str) -> StateOfFireView:
    """Read what has become of the events of a large fire. It says how many were sent, wait, are tried again, have
    failed or were dropped, and how late they were sent."""
    return fires.of_fire(ports(), fire_id)


def list_events_of_fire(request: Request, fire_id: str) -> Json:
    """List the events of a large fire by their numbers. With a state, only those in it. A request reads a bounded
    number of rows, so a page may hold fewer than ``limit``, even none, and still have a next page."""
    state = choice(request, "state", get_args(EventState))
    fires.existing(ports(), fire_id)
    return listing(request, partial(fires.events_of, ports(), fire_id, state))
