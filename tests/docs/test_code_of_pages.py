"""The Python files of the pages pass the project's own lint, and what a user adds beside the project is not checked."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = (
    re.compile(r"^cat > (?P<name>\S+\.py) <<'END'\n(?P<code>.*?)^END$", re.M | re.S),
    re.compile(r"^<!-- file: (?P<name>\S+\.py) -->\n+```python\n(?P<code>.*?)^```$", re.M | re.S),
)


def files() -> Iterator[tuple[str, str, str]]:
    """The pages, names and texts of all Python files that a reader is told to write."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        for form in FILES:
            for found in form.finditer(page.read_text()):
                yield str(page.relative_to(ROOT)), found["name"], found["code"]


def ruff(*arguments: str, code: str) -> str:
    command = [sys.executable, "-m", "ruff", *arguments, "-"]
    answer = subprocess.run(command, input=code, capture_output=True, text=True, cwd=ROOT, check=False)
    return "" if answer.returncode == 0 else answer.stdout + answer.stderr


def test_the_first_steps_have_python_files() -> None:
    assert {"README.md", "docs/tutorial.md"} <= {page for page, _, _ in files()}


@pytest.mark.parametrize(("page", "name", "code"), files())
def test_a_file_of_a_page_passes_the_lint(page: str, name: str, code: str) -> None:
    assert ruff("check", "--stdin-filename", name, code=code) == ""
    assert ruff("format", "--check", "--diff", "--stdin-filename", name, code=code) == ""


def test_the_lint_names_the_folders_of_the_project() -> None:
    """What a user adds, such as a folder of the tutorial, is not checked."""
    makefile = (ROOT / "Makefile").read_text()
    lint = makefile.partition("\nlint:")[2].partition("\n\n")[0]
    assert "ruff check $(LINTED)" in lint and "ruff format --check $(LINTED)" in lint
    listed = re.findall(r"^(?:LINTED|TYPED) := (.*)$", makefile, re.M)
    named = {name for names in listed for name in names.split() if not name.startswith("$")}
    tracked = subprocess.run(["git", "ls-files", "*.py"], capture_output=True, text=True, cwd=ROOT, check=True)
    assert named == {path.partition("/")[0] for path in tracked.stdout.split()}
