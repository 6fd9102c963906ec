"""`apply --format markdown`: the plan of a change as a comment on a pull request (O13)."""

from __future__ import annotations

import pytest

from sluice.cli import markdown
from sluice.errors import ApiRefused, Problem
from tests.cli.conftest import Sluice
from tests.cli.played_api import Played, PlayedApi
from tests.cli.recorded import namespace
from tests.cli.test_plan import APP, DOCUMENT, NS, PLAN

OLD = "schedule demo.flights.old"
EFFECTS = {OLD: {"code": "deleted", "text": "drops 3 jobs that wait", "dropped": 3}}


@pytest.fixture(autouse=True)
def answers(api: PlayedApi) -> None:
    api.play("GET", NS, namespace())
    api.play("PUT", APP, PLAN)


def test_o13_a_plan_is_a_table_of_what_changes(api: PlayedApi, sluice: Sluice) -> None:
    fields = {"workflow demo.flights.clean_flights": ["priority: 5 -> 7", "tags.by: 'a|b' -> '@ann <b>'"]}
    api.play("PUT", APP, {**PLAN, "changes": fields, "effects": EFFECTS})
    done = sluice("apply", "-", "--dry-run", "--format", "markdown", input=DOCUMENT)
    assert done.exit_code == 0
    assert (
        done.stdout
        == """\
### `demo.flights`: 1 created, 1 replaced, 2 deleted, 1 kept

**Work in flight:** drop 3 jobs

| Change | Kind | Name | Details |
|---|---|---|---|
| created | schedule | `demo.flights.clean` |  |
| replaced | workflow | `demo.flights.clean_flights` | `priority: 5 -> 7`<br>`tags.by: 'a\\|b' -> '@ann <b>'` |
| deleted | schedule | `demo.flights.old` | `drops 3 jobs that wait` |
| deleted | workflow | `demo.flights.old` |  |

Nothing was stored.
"""
    )
    assert [request.query for request in api.sent("PUT", APP)] == [{"dry_run": "true"}]


def test_o13_a_plan_without_changes_says_so(api: PlayedApi, sluice: Sluice) -> None:
    api.play("PUT", APP, {"name": "demo.flights", "kept": ["app demo.flights"]})
    done = sluice("apply", "-", "--dry-run", "--format", "markdown", input=DOCUMENT)
    assert done.stdout.splitlines()[0] == "### `demo.flights`: 1 kept"
    assert "|" not in done.stdout


def test_o13_a_new_namespace_is_part_of_the_plan(api: PlayedApi, sluice: Sluice) -> None:
    api.refuse("GET", NS, 404, "not_found", "no namespace demo")
    done = sluice("apply", "-", "--dry-run", "--format", "markdown", input=DOCUMENT)
    assert "| created | namespace | `demo` |  |" in done.stdout.splitlines()


def test_o13_a_refused_document_lists_its_problems(api: PlayedApi, sluice: Sluice) -> None:
    first = {"code": "invalid", "message": "expected a", "field": "schedules.a", "hint": "write a"}
    second = {"code": "invalid", "message": "expected b", "field": None, "hint": None}
    api.play("PUT", APP, Played(400, {"error": {**first, "problems": [first, second]}}))
    done = sluice("apply", "-", "--dry-run", "--format", "markdown", input=DOCUMENT)
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        "### `demo.flights`: refused",
        "",
        "| Where | Problem | What to do |",
        "|---|---|---|",
        "| `schedules.a` | `expected a` | `write a` |",
        "|  | `expected b` |  |",
        "",
        "Nothing was stored.",
    ]


@pytest.mark.parametrize("words", [("--format", "html"), ("--format", "markdown", "--json")])
def test_o13_another_format_is_refused(api: PlayedApi, sluice: Sluice, words: tuple[str, ...]) -> None:
    done = sluice("apply", "-", "--dry-run", *words, input=DOCUMENT)
    assert done.exit_code == 2
    assert "expected markdown, got " in done.stderr
    assert "--format" in done.stderr
    assert api.requests == []


def test_o13_a_long_plan_fits_into_a_comment() -> None:
    report = {"created": [f"schedule demo.flights.s{number:04}" for number in range(2_000)]}
    text = markdown.plan("demo.flights", report, None, (), dry_run=True)
    assert len(text) < 65_536
    assert text.splitlines()[0] == "### `demo.flights`: 2000 created"
    assert "more lines: the plan is longer than a comment may be." in text
    assert text.endswith("Nothing was stored.")


def test_o13_backquotes_of_a_text_stay_in_its_cell() -> None:
    refused = ApiRefused(400, "invalid", "x")
    refused.problems = (Problem("a ``b`` | [c](d)\n# e"),)
    said = markdown.refused("demo.flights", refused, dry_run=True)
    assert "|  | ```a ``b`` \\| [c](d) # e``` |  |" in said.splitlines()
