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


class NewestView(View):
    """The partition of a dataset that came last, and when."""

    partition: dict[str, str]
    at: At


def newest_of(ports: Ports, row: Definition) -> NewestView | None:
    """The partition of a dataset that came last; None if none has come."""
    newest = ports.rows.get(NewestPartition, row.name)
    return {"partition": dict(newest.partition), "at": iso(newest.at)} if newest is not None else None


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
    """A page of the datasets of a namespace. What their ages need is read a hundred per call."""
    page = ports.catalog.definitions("dataset", namespace, limit, cursor)
    wanted = [kinds.key(NewestPartition, row.name) for row in page.items]
    wanted += [kinds.key(FreshnessWatch, row.name) for row in page.items if row.document.get("fresh")]
    seen = ports.prefetch.read(ports, wanted, strong=False) if wanted else ports
    ages = ({"newest": newest_of(seen, row), "freshness": of_dataset(seen, row)} for row in page.items)
    items = ({**definition_view(row), **age} for row, age in zip(page.items, ages, strict=True))
    return Page(tuple(items), page.cursor)
