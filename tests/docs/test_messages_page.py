"""Plays every example of docs/messages.md. The page must show the result, line by line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sluice import yaml12
from tests.docs.message_stories import STORIES, MessageStory
from tests.support.world import World

PAGE = Path(__file__).parents[2] / "docs" / "messages.md"
EXAMPLE = re.compile(
    r"^<!-- message: (?P<name>\w+) -->\n```yaml\n(?P<yaml>.*?)^```\n"
    r"<!-- result: (?P=name) -->\n```\n(?P<lines>.*?)^```$",
    flags=re.S | re.M,
)


class Example(NamedTuple):
    name: str
    messages: dict[str, Any]
    reported: list[str]


EXAMPLES = [
    Example(found["name"], yaml12.load(found["yaml"]), found["lines"].splitlines())
    for found in EXAMPLE.finditer(PAGE.read_text())
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_a_message_behaves_as_the_page_says(world: World, example: Example) -> None:
    story = MessageStory(world, example.messages)
    STORIES[example.name](story)
    assert story.reported == example.reported, "\n".join(["the page should say:", *story.reported])


def test_every_message_of_the_page_is_tested() -> None:
    assert [example.name for example in EXAMPLES] == list(STORIES)
    assert PAGE.read_text().count("```yaml") == len(EXAMPLES)
