"""Plays every example of triggers, constraints, modes and backfills. Its page must show the result.

A page has two blocks for each example: YAML (the content of `schedules:` of an app) and the events. The second one
holds the reasons, records and starts, word by word and with their instants. `STORIES` has the actions of the examples.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from jsonschema import Draft202012Validator

from chalicelib.core.definitions.schedule import NewSchedule
from tests.docs import backfill_stories, constraint_stories, lifecycle_stories, trigger_stories
from tests.docs.story import Story
from tests.support.examples import DOCS, Example, examples
from tests.support.kinds import CONSTRAINT_TYPES
from tests.support.world import World

STORIES: dict[str, dict[str, Callable[[Story], None]]] = {
    "triggers": trigger_stories.STORIES,
    "constraints": constraint_stories.STORIES,
    "lifecycle": lifecycle_stories.STORIES,
    "backfill": backfill_stories.STORIES,
}
CONTEXT = Draft202012Validator(json.loads((DOCS / "run-context.schema.json").read_text()))

EXAMPLES = [example for page in STORIES for example in examples(page)]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example.page}-{example.name}")
def test_an_example_of_a_page_behaves_as_the_page_says(world: World, example: Example) -> None:
    story = Story(world, example.schedules)
    STORIES[example.page][example.name](story)

    assert story.reported == example.reported, "\n".join(["the page should say:", *story.reported])
    assert [fault.message for context in story.contexts for fault in CONTEXT.iter_errors(context)] == []


@pytest.mark.parametrize("page", STORIES)
def test_every_example_has_a_test_story_and_vice_versa(page: str) -> None:
    assert [example.name for example in examples(page)] == list(STORIES[page])


@pytest.mark.parametrize("page", STORIES)
def test_every_schedule_shown_on_a_page_is_tested(page: str) -> None:
    text = (DOCS / f"{page}.md").read_text()
    blocks = len(re.findall(r"^```yaml$", text, flags=re.M))
    named = re.findall(r"^<!-- (?:example|story): (\w+) -->$", text, flags=re.M)
    assert named == [name for example in examples(page) for name in (example.name, example.name)]
    assert blocks == len(examples(page)), "a block of YAML without a story"


@pytest.mark.parametrize("kind", CONSTRAINT_TYPES)
def test_each_kind_of_constraint_has_a_section_and_an_example(kind: str) -> None:
    page = (DOCS / "constraints.md").read_text()
    assert f"\n## {kind}\n" in page
    assert f"\n| [`{kind}`](#{kind}) |" in page, "a line in the table of constraints"
    assert kind in STORIES["constraints"]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example.page}-{example.name}")
def test_an_example_reads_the_same_as_json_of_the_api(example: Example) -> None:
    for document in example.schedules.values():
        assert NewSchedule.model_validate(json.loads(json.dumps(document))) == NewSchedule.model_validate(document)
