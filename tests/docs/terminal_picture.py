"""docs/pictures/terminal.svg and hours.svg: what a terminal shows of a schedule that waits, and of an incomplete day.

python -m tests.docs.terminal_picture      draws them
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from tests.docs.session import ROOT, session

COLUMNS = 100


@dataclass(frozen=True)
class Picture:
    """What a command prints in the middle of the story of a page: after the last step before ``until``."""

    name: str
    page: str
    until: str
    command: str

    @property
    def file(self) -> Path:
        return ROOT / "docs" / "pictures" / f"{self.name}.svg"


PICTURES = (
    Picture("terminal", "one-at-a-time", "When the first day has ended", "sluice describe schedule shop.orders.load"),
    Picture("hours", "complete-days", "Two hours later it comes", "sluice why schedule shop.web.summarize"),
)


def drawn(picture: Picture, folder: Path) -> str:
    """The picture on a terminal with colours."""
    text = (ROOT / "docs" / "howto" / f"{picture.page}.md").read_text()
    until_it_waits = text.partition(picture.until)[0].rpartition("<!-- then:")[0]
    with session(folder) as reader, pytest.MonkeyPatch.context() as patch:
        reader.played(until_it_waits)
        patch.setenv("FORCE_COLOR", "1")
        patch.setenv("COLUMNS", str(COLUMNS))
        printed = reader.types(picture.command)
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(f"$ {picture.command}\n{printed.rstrip()}"))
    svg = console.export_svg(title="sluice", unique_id=picture.name)
    # Without the fonts, which the reader's machine would load from another server.
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.S)


def main() -> None:
    for picture in PICTURES:
        with tempfile.TemporaryDirectory() as folder:
            picture.file.write_text(drawn(picture, Path(folder)))


if __name__ == "__main__":
    main()
