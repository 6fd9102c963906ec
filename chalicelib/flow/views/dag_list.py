"""The DAGs of an app in a list, each with the mode of its start."""

from __future__ import annotations

from typing import Any

from chalicelib.core import ids
from chalicelib.core.instants import iso
from chalicelib.core.rows.stops import marks_of
from chalicelib.flow import many
from chalicelib.flow.schedules.stops import view_of
from chalicelib.flow.views.views import definition_view
from chalicelib.ports import Page, Ports


def listed(ports: Ports, app: str, limit: int, cursor: str | None) -> Page[dict[str, Any]]:
    """A page of DAGs. The states of their starts are read a hundred per call."""
    page = ports.catalog.definitions("dag", app, limit, cursor)
    _, found = many.states(ports, [ids.dag_start(row.name) for row in page.items], strong=False)
    starts = {state.schedule: state for state in found if state.exists}
    items: list[dict[str, Any]] = []
    for row in page.items:
        start = starts.get(ids.dag_start(row.name))
        present = {
            "state": start.mode,
            "enabled": start.mode == "enabled",
            "stops": [view_of(stop) for stop in marks_of(start)],
            "skips": [iso(at) for at in start.skips],
        } if start is not None else {}  # fmt: skip
        items.append({**definition_view(row), **present})
    return Page(tuple(items), page.cursor)
