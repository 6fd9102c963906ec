"""Errors in the source: each says what to do, and none has the id of a requirement in its text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SERVICE = Path(__file__).parents[2] / "chalicelib"
REQUIREMENT = re.compile(r"\([A-Z]\d{1,2}\)")
# What users write in documents and requests. The parts of a trigger or constraint say what they expect by example.
WITH_HINTS = ("core/definitions", "flow", "web")


def calls(folder: Path) -> Iterator[tuple[str, ast.Call]]:
    """The errors that the modules of a folder make, with their places."""
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if name in ("invalid", "SluiceError"):
                    yield f"{path.relative_to(SERVICE)}:{node.lineno}", node


@pytest.mark.parametrize("folder", WITH_HINTS)
def test_each_refusal_of_user_input_says_what_to_do(folder: str) -> None:
    found = [each for each in calls(SERVICE / folder) if getattr(each[1].func, "id", "invalid") != "SluiceError"]
    without = [
        place for place, call in found if len(call.args) < 4 and "hint" not in {key.arg for key in call.keywords}
    ]
    assert len(found) > 10 and without == []


def test_no_error_has_the_id_of_a_requirement() -> None:
    found = list(calls(SERVICE))
    texts = [(place, part.value) for place, call in found for part in ast.walk(call) if isinstance(part, ast.Constant)]
    assert len(texts) > 400
    assert [place for place, text in texts if isinstance(text, str) and REQUIREMENT.search(text)] == []
