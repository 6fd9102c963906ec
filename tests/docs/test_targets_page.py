"""Plays every example of docs/targets.md, docs/aws-api.md and of the pages of engines. The pages must show the results,
line by line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sluice import yaml12
from tests.docs.target_stories import STORIES
from tests.support.world import World

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [DOCS / "targets.md", DOCS / "aws-api.md", *sorted((DOCS / "engines").glob("*.md"))]
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
    Example(found["name"], yaml12.load(found["yaml"]), found["lines"].splitlines())
    for page in PAGES
    for found in EXAMPLE.finditer(page.read_text())
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_a_target_does_what_its_page_says(world: World, example: Example) -> None:
    kind, play = STORIES[example.name]
    story = kind(world, example.parts)
    play(story)
    assert story.reported == example.reported, "\n".join(["the page should say:", *story.reported])


def test_every_example_of_the_targets_page_is_tested() -> None:
    assert sorted(example.name for example in EXAMPLES) == sorted(STORIES)
    assert sum(page.read_text().count("```yaml") for page in PAGES) == len(EXAMPLES)
