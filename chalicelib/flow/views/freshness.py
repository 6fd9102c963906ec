"""Datasets as answers, with what their age says: when the newest partition came, and whether they are late (T29)."""

from __future__ import annotations

from typing import Any

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.instants import duration, iso
from chalicelib.core.notices.freshness import fresh_until
from chalicelib.core.rows import kinds
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.event import NewestPartition
from chalicelib.core.rows.notice import FreshnessWatch
from chalicelib.core.views import At, View
from chalicelib.flow.views.views import definition_view
from chalicelib.ports import Page, Ports


class FreshnessView(View):
    """How old a dataset with ``fresh`` is. ``newest`` is the partition that came last, at ``newest_at``; null if none
    has come. It is ``late`` after ``fresh_until``."""

    late: bool
    fresh_until: At
    newest: dict[str, str] | None
    newest_at: At | None


def of_dataset(ports: Ports, row: Definition) -> FreshnessView | None:
    """How old a dataset is at present; None without ``fresh``."""
    fresh = Dataset.model_validate(row.document).fresh
    watch = ports.rows.get(FreshnessWatch, row.name) if fresh is not None else None
    if fresh is None or watch is None:
        return None
    newest = ports.rows.get(NewestPartition, row.name)
    until = fresh_until(duration(fresh), newest, watch.since)
    return {
        "late": ports.clock.now() > until,
        "fresh_until": iso(until),
        "newest": dict(newest.partition) if newest is not None else None,
        "newest_at": iso(newest.at) if newest is not None else None,
    }


def listed(ports: Ports, namespace: str, limit: int, cursor: str | None) -> Page[dict[str, Any]]:
    """A page of the datasets of a namespace. What the ages of those with ``fresh`` need is read a hundred per call."""
    page = ports.catalog.definitions("dataset", namespace, limit, cursor)
    aged = [row.name for row in page.items if row.document.get("fresh")]
    wanted = [kinds.key(kind, name) for name in aged for kind in (FreshnessWatch, NewestPartition)]
    seen = ports.prefetch.read(ports, wanted, strong=False) if wanted else ports
    return Page(tuple({**definition_view(row), "freshness": of_dataset(seen, row)} for row in page.items), page.cursor)
