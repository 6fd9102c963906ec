"""The table of docs/decisions/README.md, made from the decisions: number, title and status.

python -m docs.pictures.decisions     writes it; a page without a status gets `Status: accepted`

A page begins with its title, then its status: accepted, or replaced, whole or in part, by later pages.
`tests/test_docs.py` fails when the table and the pages say different things, or a later page does not exist.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parents[1] / "decisions"
PAGE = FOLDER / "README.md"
HEAD = re.compile(r"# (?:\d+\. )?(?P<title>.+)\n\n(?:Status: (?P<status>.+)\n)?")
LATER = r"\[(?P<number>\d{4})\]\((?P<file>\d{4}-[\w-]+\.md)\)"
STATUS = re.compile(rf"accepted|(?:superseded|replaced in part) by {LATER}(?:, \[\d{{4}}\]\(\d{{4}}-[\w-]+\.md\))*")


class Decision(NamedTuple):
    """A page, with the title and the status that it begins with. ``by`` names the later pages."""

    page: Path
    title: str
    status: str | None

    @property
    def by(self) -> list[tuple[str, str]]:
        """The number and the file of each later page that replaces this one, whole or in part."""
        return re.findall(r"\[(\d{4})\]\(([\w-]+\.md)\)", self.status or "")


def decisions() -> list[Decision]:
    """The decisions by their numbers."""
    return [_read(page) for page in sorted(FOLDER.glob("[0-9]*.md"))]


def with_table(text: str) -> str:
    """The page with the table of the decisions."""
    rows = [f"| [{one.page.name[:4]}]({one.page.name}) | {one.title} | {one.status} |" for one in decisions()]
    block = "\n".join(["<!-- decisions -->", "| | decision | status |", "|---|---|---|", *rows, "<!-- end -->"])
    text, found = re.subn(r"<!-- decisions -->.*?<!-- end -->", lambda _: block, text, flags=re.S)
    if found != 1:
        raise ValueError(f"expected one place for the decisions in {PAGE.name}, found {found}")
    return text


def _read(page: Path) -> Decision:
    head = HEAD.match(page.read_text())
    if head is None:
        raise ValueError(f"expected {page.name} to begin with a title and an empty line")
    return Decision(page, head["title"], head["status"])


def main() -> None:
    """Give each page a status, and write the table."""
    for one in decisions():
        if one.status is None:
            title, rest = one.page.read_text().split("\n\n", 1)
            one.page.write_text(f"{title}\n\nStatus: accepted\n\n{rest}")
    PAGE.write_text(with_table(PAGE.read_text()))


if __name__ == "__main__":
    main()
