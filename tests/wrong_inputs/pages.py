"""The pages as values: a section is one wrong input with its answer."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "pages"
_SECTION = re.compile(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", flags=re.S | re.M)
_FENCE = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", flags=re.S | re.M)
_SETTING = re.compile(r"[A-Z_]+=.*")


@dataclass(frozen=True, slots=True)
class Example:
    """A wrong input. ``console`` is the answer as the page shows it, up to and with ``exit code N``."""

    page: str
    title: str
    files: Mapping[str, str]
    command: str
    console: str

    @property
    def id(self) -> str:
        return f"{self.page}: {self.title}"

    @property
    def settings(self) -> dict[str, str]:
        """The variables that stand before the command."""
        words = shlex.split(self.command)
        return dict(word.split("=", 1) for word in words[: words.index("sluice")])

    @property
    def arguments(self) -> list[str]:
        words = shlex.split(self.command)
        return words[words.index("sluice") + 1 :]


def all_examples() -> list[Example]:
    return [example for path in sorted(FOLDER.glob("*.md")) for example in of_page(path.stem, path.read_text())]


def of_page(page: str, text: str) -> list[Example]:
    """The examples of a page. Raises ``ValueError`` for a section without exactly one console."""
    return [_example(page, title.strip(), body) for title, body in _SECTION.findall(text)]


def _example(page: str, title: str, body: str) -> Example:
    fences = _FENCE.findall(body)
    consoles = [content for kind, _, content in fences if kind == "console"]
    if len(consoles) != 1 or not consoles[0].startswith("$ "):
        raise ValueError(f"expected one console that begins with '$ sluice', in {page}: {title}")
    command, _, console = consoles[0][2:].partition("\n")
    files = {name: content for kind, name, content in fences if kind != "console"}
    if "" in files:
        raise ValueError(f"expected the name of each file after the opening fence, in {page}: {title}")
    return Example(page, title, files, command, console)
