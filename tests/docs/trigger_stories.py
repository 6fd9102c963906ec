"""The actions of the examples of docs/triggers.md. Each function plays one example; the page holds its result, line by
line.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.docs.story import Story


def time(story: Story) -> None:
    story.why()
    story.passes("16h")


def repeats(story: Story) -> None:
    story.passes("1m")
    story.why()


def due_time(story: Story) -> None:
    story.passes("2m")


def catch_up(story: Story) -> None:
    story.passes("5h")


def spread(story: Story) -> None:
    story.passes("2m")


def partition(story: Story) -> None:
    story.ready(1, 2)
    story.ready(2)
    story.why()
    story.passes("30m")
    story.ready(3)
    story.ready(4)
    story.why()


def snapshot(story: Story) -> None:
    story.commits("append", 400)
    story.commits("replace", 0)
    story.commits("append", 250)
    story.why()
    story.passes("30m")
    story.commits("overwrite", 90)


def size(story: Story) -> None:
    story.comes("a.parquet", "60GB")
    story.comes("a.parquet", "60GB")
    story.why()
    story.passes("5m")
    story.comes("b.parquet", "45GB")


def program_status(story: Story) -> None:
    story.why("follow")
    story.ready(1)
    story.passes("5m")
    story.ends()
    story.passes("5m")
    story.ends()
    story.ready(2)
    story.passes("5m")
    story.ends("FAILED")


def event(story: Story) -> None:
    story.posts("books.closed", "a-1", region="eu-west", total=12)
    story.posts("books.closed", "a-1", region="eu-west", total=12)
    story.posts("books.closed", "a-2", region="us-east", total=3)
    story.why()
    story.posts("books.closed", "a-3", region="eu-north", total=7)


def quiet(story: Story) -> None:
    story.why()
    story.ready(1)
    story.passes("4m")
    story.ready(2)
    story.why()
    story.passes("6m")
    story.ready(3)
    story.passes("10m")


def cloudwatch_alarm(story: Story) -> None:
    story.why("grow")
    story.alarms("queue too long", "ALARM")
    story.passes("20m")
    story.alarms("queue too long", "OK")
    story.why("calm")
    story.passes("30m")
    story.alarms("queue too long", "INSUFFICIENT_DATA")
    story.alarms("queue too long", "ALARM")


def elapsed(story: Story) -> None:
    story.why()
    story.passes("3h")
    story.comes("a.parquet", "120GB")
    story.ends()
    story.passes("4h")


def absent_within(story: Story) -> None:
    story.why()
    story.passes("90m")
    story.ready(1)
    story.passes("30m")
    story.passes("90m")
    story.passes("2h")


def absent_deadline(story: Story) -> None:
    story.why()
    story.passes("10h")
    story.ready(1, dataset="weather")
    story.passes("7h")
    story.passes("1d")


def absent_period(story: Story) -> None:
    story.why()
    story.comes_for("2026-02-20")
    story.passes("17h")
    story.comes_for("2026-03-03")
    story.why()
    story.passes("1d")


def any_of(story: Story) -> None:
    story.ready(1, 2)
    story.why()
    story.passes("1h")


def at_least(story: Story) -> None:
    story.ready(1, 2)
    story.why()
    story.posts("go")


def within(story: Story) -> None:
    story.ready(1)
    story.why()
    story.passes("6h")
    story.ready(1, dataset="weather")
    story.why()


def by_value(story: Story) -> None:
    story.ready(1)
    story.passes("20m")
    story.ready(2, dataset="weather")
    story.why()
    story.passes("20m")
    story.ready(1, dataset="weather")


STORIES: dict[str, Callable[[Story], None]] = {
    "time": time,
    "repeats": repeats,
    "due_time": due_time,
    "catch_up": catch_up,
    "spread": spread,
    "partition": partition,
    "snapshot": snapshot,
    "size": size,
    "program_status": program_status,
    "event": event,
    "cloudwatch_alarm": cloudwatch_alarm,
    "quiet": quiet,
    "elapsed": elapsed,
    "absent_within": absent_within,
    "absent_deadline": absent_deadline,
    "absent_period": absent_period,
    "any": any_of,
    "at_least": at_least,
    "within": within,
    "by": by_value,
}
