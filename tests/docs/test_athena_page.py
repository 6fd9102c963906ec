"""Plays the example of docs/engines/athena.md. The page must show the result, line by line."""

from __future__ import annotations

from pathlib import Path

from sluice import yaml12
from tests.docs.target_stories import ExecutionStory
from tests.docs.test_targets_page import EXAMPLE
from tests.support.queries import MB, Query
from tests.support.world import World

PAGE = Path(__file__).parents[2] / "docs" / "engines" / "athena.md"


class QueryStory(ExecutionStory):
    """A workflow of Athena in the app of the pages."""

    def begins(self) -> None:
        """The query of the last run leaves the queue of Athena."""
        made = self._last_query()
        self._tell(f"Athena runs the query with {', '.join(made.asked['ExecutionParameters'])}")
        self.world.query_says(made, "RUNNING")
        self._settle()

    def query(self, state: str, reason: str = "", **changed: object) -> None:
        """The query ends, and its event comes."""
        self._tell(f"the query is {state}{f': {reason}' if reason else ''}")
        self.world.query_says(self._last_query(), state, reason, **changed)
        self._settle()

    def stopped(self) -> None:
        self._tell(f"the query is {self._last_query().state}")

    def _last_query(self) -> Query:
        return list(self.world.targets.queries.queries.values())[-1]


def test_w22_the_page_of_athena_shows_what_happens(world: World) -> None:
    found = EXAMPLE.search(PAGE.read_text())
    assert found is not None
    story = QueryStory(world, yaml12.load(found["yaml"]))
    story.ready(1)
    story.begins()
    story.passes("2m")
    error = {"ErrorCategory": 1, "ErrorType": 1001, "Retryable": True}
    story.query("FAILED", "Query exhausted resources at this scale factor", error=error)
    story.passes("2m")
    story.begins()
    story.passes("3m")
    story.query("SUCCEEDED", scanned=70 * MB)
    story.ready(2)
    story.begins()
    story.cancels_run("ada")
    story.stopped()
    assert story.reported == found["lines"].splitlines(), "\n".join(["the page should say:", *story.reported])
