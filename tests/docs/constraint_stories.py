"""The actions of the examples of docs/constraints.md. Each function plays one example; the page holds its result."""

from __future__ import annotations

from collections.abc import Callable

from tests.docs.story import Story


def order(story: Story) -> None:
    story.passes("11h")
    story.ready(1)
    story.ends()
    story.passes("9h")
    story.ready(2)
    story.waits()
    story.passes("14h")


def concurrency(story: Story) -> None:
    story.ready(1, 2, 3)
    story.wakes()
    story.passes("10m")
    story.ends()


def concurrency_abort(story: Story) -> None:
    story.posts("refresh")
    story.passes("5m")
    story.posts("refresh")


def group(story: Story) -> None:
    story.ready(1)
    story.posts("refresh")
    story.wakes("report")
    story.passes("10m")
    story.ends()


def cancel_other(story: Story) -> None:
    story.posts("refresh")
    story.passes("5m")
    story.posts("refresh")


def delay(story: Story) -> None:
    story.ready(1)
    story.passes("30m")
    story.ready(2)
    story.wakes()
    story.passes("10m")
    story.ready(3)
    story.passes("5m")


def time_window(story: Story) -> None:
    story.ready(1)
    story.wakes()
    story.passes("9h")


def calendar(story: Story) -> None:
    story.passes("5d")
    story.ready(1)
    story.wakes()
    story.passes("60h")


def since_last_run(story: Story) -> None:
    story.ready(1)
    story.passes("2m")
    story.ready(2)
    story.ends()
    story.passes("3m")
    story.ready(3)


def rate(story: Story) -> None:
    story.ready(1)
    story.passes("10m")
    story.ready(2, 3)
    story.wakes()
    story.passes("50m")


def fresh(story: Story) -> None:
    story.posts("refresh")
    story.wakes("report")
    story.passes("20m")
    story.ready(1)
    story.passes("10m")
    story.ends()


def dataset_fresh(story: Story) -> None:
    story.posts("refresh")
    story.wakes()
    story.passes("20m")
    story.ready(1)
    story.ends()
    story.passes("30h")
    story.posts("refresh")
    story.wakes()
    story.passes("2h")
    story.ready(2)


def load(story: Story) -> None:
    story.measures(83.5)
    story.ready(1)
    story.wakes()
    story.measures(41.0)
    story.passes("10m")


def approval(story: Story) -> None:
    story.ready(1)
    story.wakes()
    story.passes("30m")
    story.approves("arn:aws:sts::123456789012:assumed-role/DataOwner/ada", "the figures are in")


def probe(story: Story) -> None:
    story.says({"retry_after": "10m", "why": "last month is not closed"}, {"met": False}, {"met": True})
    story.ready(1)
    story.wakes()
    story.passes("10m")
    story.why()
    story.passes("5m")


def timeout_run(story: Story) -> None:
    story.ready(1)
    story.wakes()
    story.passes("2h")


def coalesce(story: Story) -> None:
    story.passes("2m")
    story.passes("2m")
    story.wakes()
    story.ends()


def coalesce_false(story: Story) -> None:
    story.posts("refresh")
    story.posts("refresh", "second")
    story.posts("refresh", "third")
    story.ends()
    story.ends()


STORIES: dict[str, Callable[[Story], None]] = {
    "order": order,
    "concurrency": concurrency,
    "concurrency_abort": concurrency_abort,
    "group": group,
    "cancel_other": cancel_other,
    "delay": delay,
    "time_window": time_window,
    "calendar": calendar,
    "since_last_run": since_last_run,
    "rate": rate,
    "fresh": fresh,
    "dataset_fresh": dataset_fresh,
    "load": load,
    "approval": approval,
    "probe": probe,
    "timeout_run": timeout_run,
    "coalesce": coalesce,
    "coalesce_false": coalesce_false,
}
