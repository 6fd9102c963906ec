"""Runs every test of docs/testing-apps.md on the apps of that page."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sluice.testing import App

PAGE = (Path(__file__).parents[2] / "docs" / "testing-apps.md").read_text()
APPS = re.findall(r"^<!-- app(?:: (\S+))? -->\n```yaml\n(.*?)^```$", PAGE, flags=re.S | re.M)
BLOCKS = re.findall(r"^<!-- test -->\n```python\n(.*?)^```$", PAGE, flags=re.S | re.M)
PRINTS = re.findall(r"^def (\w+)\([^`]*?^```\n<!-- prints -->\n```\n(.*?)^```$", PAGE, flags=re.S | re.M)


def examples() -> list[Callable[[type[App]], None]]:
    names: dict[str, Any] = {}
    for block in BLOCKS:
        exec(compile(block, "docs/testing-apps.md", "exec"), names)
    return [value for name, value in names.items() if name.startswith("test_")]


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.__name__)
def test_an_example_of_the_testing_page_passes(
    sluice_app: type[App],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    example: Callable[[type[App]], None],
) -> None:
    for name, app in APPS:
        (tmp_path / (name or "app.yaml")).write_text(app)
    monkeypatch.chdir(tmp_path)
    example(sluice_app)
    assert capsys.readouterr().out == dict(PRINTS).get(example.__name__, "")


def test_the_testing_page_shows_what_an_example_prints() -> None:
    assert [name for name, _ in PRINTS] == ["test_what_a_failed_test_shows"]
    assert PAGE.count("print(") == PAGE.count("<!-- prints -->") == len(PRINTS)


def test_every_python_block_of_the_testing_page_is_a_test() -> None:
    assert PAGE.count("```python") == len(BLOCKS)
    assert all(re.search(r"^def test_", block, flags=re.M) for block in BLOCKS)


def test_the_testing_page_names_every_public_call() -> None:
    """Only the engine and the fixture use the methods that it does not name."""
    inner = {"acting", "quiet", "schedule", "next_request", "install"}
    inner |= {"settle", "tick", "pass_by", "pass_until", "in_flight", "next_step"}
    public = {name for name in dir(App) if not name.startswith("_")} - inner
    unnamed = {name for name in public if not re.search(rf"\b{name}\b", PAGE)}
    assert unnamed == set()
