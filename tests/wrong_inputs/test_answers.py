"""Each wrong input gets the answer that its page shows, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.workers.served import Served
from tests.wrong_inputs.pages import Example, all_examples, of_page
from tests.wrong_inputs.scorecard import BEGIN, END, PAGE, Score, score, table
from tests.wrong_inputs.served import answer, standing

EXAMPLES = all_examples()


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with standing() as served:
        yield served


@pytest.fixture(scope="module")
def stored(served: Served) -> list[Any]:
    """What is stored before the first wrong input."""
    return served.api.everything()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.id)
def test_a_wrong_input_gets_the_answer_of_its_page(
    served: Served, stored: list[Any], tmp_path: Path, example: Example
) -> None:
    assert answer(served, example, tmp_path) == example.console
    assert served.api.everything() == stored


@pytest.mark.parametrize(
    "example",
    [each for each in EXAMPLES if each.arguments[0] == "apply" and not any("dry" in word for word in each.arguments)],
    ids=lambda example: example.id,
)
def test_a_dry_run_gives_the_answer_of_the_deployment(served: Served, tmp_path: Path, example: Example) -> None:
    dry = replace(example, command=f"{example.command} --dry-run")
    assert answer(served, dry, tmp_path) == example.console


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.id)
def test_an_answer_says_expected_got_and_what_to_do(example: Example) -> None:
    assert score(example.console) == Score(expected=True, got=True, to_do=True)


def test_there_are_sixty_wrong_inputs_with_distinct_names() -> None:
    assert len({example.id for example in EXAMPLES}) == len(EXAMPLES) >= 60
    assert len({(example.command, tuple(example.files.items())) for example in EXAMPLES}) == len(EXAMPLES)


def test_docs_errors_has_the_present_scorecard() -> None:
    assert PAGE.read_text().partition(BEGIN)[2].partition(END)[0] == table(EXAMPLES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("error: expected a number, got 'x'\n  hint: write a number\nexit code 2\n", Score(True, True, True)),
        ("error: unknown field 'x'\n  hint: did you mean 'y'?\nexit code 1\n", Score(True, True, True)),
        ("error: unknown field 'x'\n  hint: remove it\nexit code 1\n", Score(False, True, True)),
        ("error: no schedule named 'x'\nexit code 1\n", Score(True, True, False)),
        ("error: the request failed\nexit code 1\n", Score(False, False, False)),
        ("error: expected a, got b\n  hint: c\nerror: expected a\nexit code 1\n", Score(True, False, False)),
        ('{"error": {"message": "expected a, got b", "hint": "c"}}\nexit code 1\n', Score(True, True, True)),
        ("Traceback (most recent call last):\nerror: expected a, got b\n  hint: c\n", Score(False, False, False)),
        ("deployed\nexit code 0\n", Score(False, False, False)),
    ],
)
def test_the_points_of_an_answer_follow_the_rules(text: str, expected: Score) -> None:
    assert score(text) == expected


def test_a_section_without_a_console_is_refused() -> None:
    with pytest.raises(ValueError, match="expected one console"):
        of_page("x", "## A title\n\n```yaml app.yaml\na: 1\n```\n")
    with pytest.raises(ValueError, match="expected the name of each file"):
        of_page("x", "## A title\n\n```yaml\na: 1\n```\n\n```console\n$ sluice apply x\nexit code 1\n```\n")
