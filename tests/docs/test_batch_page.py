"""Plays the example of docs/engines/batch.md. The page must show the result, line by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluice import yaml12
from tests.docs.batch_stories import STORIES, BatchStory
from tests.docs.test_targets_page import EXAMPLE
from tests.support.world import World

PAGE = Path(__file__).parents[2] / "docs" / "engines" / "batch.md"
EXAMPLES = {found["name"]: found for found in EXAMPLE.finditer(PAGE.read_text())}


@pytest.mark.parametrize("name", STORIES)
def test_w22_batch_does_what_its_page_says(world: World, name: str) -> None:
    story = BatchStory(world, yaml12.load(EXAMPLES[name]["yaml"]))
    STORIES[name](story)
    expected = EXAMPLES[name]["lines"].splitlines()
    assert story.reported == expected, "\n".join(["the page should say:", *story.reported])


def test_w22_every_example_of_the_batch_page_is_played() -> None:
    assert list(EXAMPLES) == list(STORIES)
    assert PAGE.read_text().count("```yaml") == len(EXAMPLES)
