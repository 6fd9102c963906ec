"""Plays every example of docs/targets.md and docs/aws-api.md. The pages must show the results, line by line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sluice import yaml12
from tests.docs.target_stories import STORIES, ExecutionStory
from tests.support.world import World

DOCS = Path(__file__).parents[2] / "docs"
PAGES = "\n".join((DOCS / name).read_text() for name in ("targets.md", "aws-api.md"))
EXAMPLE = re.compile(
    r"^<!-- target: (?P<name>\w+) -->\n```yaml\n(?P<yaml>.*?)^```\n.*?"
    r"^<!-- result: (?P=name) -->\n```\n(?P<lines>.*?)^```$",
    flags=re.S | re.M,
)


class Example(NamedTuple):
    name: str
    parts: dict[str, Any]
    reported: list[str]


EXAMPLES = [
    Example(found["name"], yaml12.load(found["yaml"]), found["lines"].splitlines()) for found in EXAMPLE.finditer(PAGES)
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_a_target_does_what_its_page_says(world: World, example: Example) -> None:
    story = ExecutionStory(world, example.parts)
    STORIES[example.name](story)
    assert story.reported == example.reported, "\n".join(["the page should say:", *story.reported])


def test_every_example_of_the_pages_of_targets_is_tested() -> None:
    assert [example.name for example in EXAMPLES] == list(STORIES)
    assert PAGES.count("```yaml") == len(EXAMPLES)
