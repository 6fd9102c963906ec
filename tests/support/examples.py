"""The examples of the pages: their schedules and the lines of their results, as `tests/docs/test_examples.py` plays
them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

from sluice import yaml12

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLE = re.compile(
    r"^<!-- example: (?P<name>\w+) -->\n```yaml\n(?P<yaml>.*?)^```\n"
    r"(?P<between>.*?)^<!-- story: (?P<story>\w+) -->\n```\n(?P<lines>.*?)^```$",
    flags=re.S | re.M,
)


class Example(NamedTuple):
    """One example of a page: its schedules, and the lines of its result."""

    page: str
    name: str
    schedules: dict[str, Any]
    reported: list[str]


def examples(page: str) -> list[Example]:
    found = EXAMPLE.finditer((DOCS / f"{page}.md").read_text())
    return [Example(page, each["name"], yaml12.load(each["yaml"]), each["lines"].splitlines()) for each in found]


# The kinds of constraints that random worlds and crash scenarios have in documents of their own, or leave out: `load`,
# `approval` and `probe` wait for people and for answers of others.
DRAWN_BY_HAND = (
    "concurrency", "delay", "time_window", "since_last_run", "rate", "fresh", "load", "approval", "probe", "calendar",
)  # fmt: skip


def constraints_drawn() -> list[dict[str, Any]]:
    """The constraints that random worlds and crash scenarios take from the page: those of each further kind."""
    return [each for each in constraints_shown() if each["type"] not in DRAWN_BY_HAND]


def constraints_shown() -> list[dict[str, Any]]:
    """Each constraint in the examples of its page: at least one of each kind, which a test demands."""
    shown = (schedule for example in examples("constraints") for schedule in example.schedules.values())
    return [constraint for schedule in shown for constraint in schedule.get("constraints", ())]
