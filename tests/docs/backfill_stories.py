"""The actions of the examples of docs/backfill.md. Each function plays one example; the page holds its result."""

from __future__ import annotations

from collections.abc import Callable

from tests.docs.story import Story


def interval(story: Story) -> None:
    backfill = story.backfills(from_="2026-02-24T00:00:00Z", to="2026-02-28T00:00:00Z", concurrency=2, order="newest")
    story.counts(backfill)
    story.passes("5m")
    story.ends()
    story.passes("5m")
    story.ends()
    story.counts(backfill)


def range_(story: Story) -> None:
    story.ready(1, 2, 3)
    story.ends()
    story.passes("1h")
    start = {"year": 2013, "month": 1, "day": 2}
    backfill = story.backfills(partitions={"from": start}, properties={"mode": "thorough"})
    story.counts(backfill)
    story.passes("5m")
    story.cancels(backfill)
    story.ends()
    story.counts(backfill)


def holes(story: Story) -> None:
    story.ready(1)
    story.ends()
    story.ready(2)
    story.ends("FAILED")
    story.ready(3, 4)
    story.passes("1h")
    backfill = story.backfills(partitions={}, only="failed")
    story.counts(backfill)
    story.passes("5m")
    story.ends()
    story.ends()
    story.ends()
    story.counts(backfill)


STORIES: dict[str, Callable[[Story], None]] = {"interval": interval, "range": range_, "holes": holes}
