"""Pages that readers follow command by command: each command is run, and prints what its page says."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

from sluice.cli import app as command_line
from sluice.testing import App
from tests.docs import terminal_picture
from tests.docs.blocks import commands as commands_of
from tests.docs.session import ROOT, session
from tests.jobs.test_python_of_emr import needs

DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = [README, DOCS / "tutorial.md", *sorted((DOCS / "howto").glob("[a-z]*.md"))]
FOLLOWED = [*PAGES, DOCS / "periods.md", DOCS / "producers.md"]
HOW_TO_TEST = DOCS / "howto" / "test-an-app.md"
FENCE = re.compile(r"((?:^<!-- \w+(?:: .+?)? -->\n)*)^```(\w*)\n(.*?)^```$", flags=re.S | re.M)


NEW_USERS = [*FOLLOWED, *(DOCS / f"{page}.md" for page in ("concepts", "faq", "reference", "console"))]


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", FOLLOWED, ids=name)
def test_a_followed_page_shows_what_its_commands_print(page: Path, tmp_path: Path) -> None:
    text = page.read_text()
    with session(tmp_path) as reader:
        assert reader.played(text) == text, f"run `python -m tests.docs.session {page.relative_to(ROOT)}`"


@pytest.mark.parametrize("page", FOLLOWED, ids=name)
def test_a_followed_page_has_no_command_that_no_test_runs(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    for directives, language, block in FENCE.findall(page.read_text()):
        is_run = language in ("sh", "python") or "<!-- test -->" in directives or "<!-- file: .g" in directives
        assert is_run or language == "text" or "sluice " not in block
        assert language != "yaml" or re.search(r"<!-- (file|add): ", directives), f"no test reads {block}"
        for target in re.findall(r"^make ([a-z-]+)", block, flags=re.M):
            assert target in targets, f"expected a target of the Makefile, got make {target}"


@pytest.mark.parametrize("page", FOLLOWED, ids=name)
def test_each_output_of_a_followed_page_is_compared(page: Path) -> None:
    blocks = re.findall(r"^```sh\n((?:(?!```).*\n)*)```\n+```(\w*)\n", page.read_text(), flags=re.M)
    assert [block for block, language in blocks if commands_of(block) and language == ""] == []


def test_the_jobs_of_the_tutorial_run_on_the_python_of_emr(tmp_path: Path) -> None:
    with session(tmp_path) as reader:
        reader.played((DOCS / "tutorial.md").read_text())
    jobs = sorted((tmp_path / "shop").glob("*.py"))
    assert [job.name for job in jobs] == ["nightly.py", "report.py", "revenue.py"]
    done = needs(*jobs)
    assert done.returncode == 0, done.stdout


def how_to_tests() -> list[Callable[[type[App]], None]]:
    names: dict[str, Any] = {}
    blocks = re.findall(r"^<!-- test -->\n```python\n(.*?)^```$", HOW_TO_TEST.read_text(), flags=re.S | re.M)
    for block in blocks:
        exec(compile(block, HOW_TO_TEST.name, "exec"), names)
    return [value for name, value in names.items() if name.startswith("test_")]


@pytest.mark.parametrize("test", how_to_tests(), ids=lambda test: test.__name__)
def test_a_test_of_the_how_to_passes(
    sluice_app: type[App], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, test: Callable[[type[App]], None]
) -> None:
    text = HOW_TO_TEST.read_text()
    (app,) = re.findall(r"^<!-- file: app.yaml -->\n```yaml\n(.*?)^```$", text, flags=re.S | re.M)
    (tmp_path / "app.yaml").write_text(app)
    monkeypatch.chdir(tmp_path)
    test(sluice_app)


def test_the_page_of_how_tos_lists_each_of_them() -> None:
    listed = re.findall(r"\]\(([\w-]+\.md)\)", (DOCS / "howto" / "README.md").read_text())
    assert sorted(listed) == [page.name for page in PAGES[2:]]


def commands(page: Path) -> list[str]:
    """The commands in a page's sentences, and in its files for pipelines; those in its other blocks are run."""
    text = page.read_text()
    pipelines = "".join(re.findall(r"<!-- file: \.g.*?^```$", text, flags=re.S | re.M))
    in_sentences = re.findall(r"`sluice (\w[^`]*)`", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M))
    return in_sentences + re.findall(r"sluice (\w[^>|\n]*)", pipelines)


@pytest.mark.parametrize(("page", "text"), [(page, text) for page in NEW_USERS for text in commands(page)])
def test_a_command_in_a_sentence_exists_with_its_options(page: Path, text: str) -> None:
    command, words = typer.main.get_command(command_line), shlex.split(text)
    while words and isinstance(command, TyperGroup):
        assert words[0] in command.commands, f"{page.name}: expected a command, got sluice {text}"
        _, command, words = command.resolve_command(typer.Context(command), words)
    known = {option for each in command.params for option in each.opts}
    assert [word for word in words if word.startswith("-") and word not in known] == []


@pytest.mark.parametrize("picture", terminal_picture.PICTURES, ids=lambda picture: picture.name)
def test_the_picture_of_a_terminal_is_that_of_its_command(picture: terminal_picture.Picture, tmp_path: Path) -> None:
    drawn = terminal_picture.drawn(picture, tmp_path)
    assert drawn == picture.file.read_text(), "run `python -m tests.docs.terminal_picture`"
    assert "font-face" not in drawn
