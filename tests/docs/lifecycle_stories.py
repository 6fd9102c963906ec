"""The actions of the examples of docs/lifecycle.md. Each function plays one example; the page holds its result."""

from __future__ import annotations

from collections.abc import Callable

from tests.docs.story import Story


def hold(story: Story) -> None:
    story.ready(1)
    story.pauses("hold")
    story.ready(2)
    story.why()
    story.passes("3h")
    story.ready(3)
    story.asks("resume")


def backlog(story: Story) -> None:
    story.pauses("backlog")
    story.ready(1)
    story.passes("10m")
    story.ready(2)
    story.why()
    story.asks("resume")


def drain(story: Story) -> None:
    story.ready(1, 2)
    story.pauses("drain")
    story.why()
    story.ready(3)
    story.passes("10m")
    story.ends()


def hold_stops_timeouts(story: Story) -> None:
    story.ready(1)
    story.passes("20m")
    story.pauses("hold", stop_timeouts=True)
    story.passes("5h")
    story.asks("resume")
    story.wakes()


def drop(story: Story) -> None:
    story.ready(1)
    story.passes("1m")
    story.puts("other properties, on_update: drop", properties={"mode": "thorough"}, on_update="drop")
    story.ready(2)
    story.why()


def carry(story: Story) -> None:
    story.ready(1)
    story.passes("1m")
    story.puts("other properties", properties={"mode": "thorough"})
    story.ready(2)


def skip(story: Story) -> None:
    story.skips("1h")
    story.passes("1h")
    story.passes("1h")


def pause_after_failures(story: Story) -> None:
    story.ready(1)
    story.ends("FAILED")
    story.passes("5m")
    story.ready(2)
    story.ends("FAILED")
    story.ready(3)
    story.why()
    story.asks("resume")


def ttl(story: Story) -> None:
    story.ready(1)
    story.passes("9m")
    story.ready(2)
    story.passes("3m")
    story.ready(3)
    story.ends()


STORIES: dict[str, Callable[[Story], None]] = {
    "hold": hold,
    "backlog": backlog,
    "drain": drain,
    "hold_stops_timeouts": hold_stops_timeouts,
    "carry": carry,
    "drop": drop,
    "skip": skip,
    "pause_after_failures": pause_after_failures,
    "ttl": ttl,
}
