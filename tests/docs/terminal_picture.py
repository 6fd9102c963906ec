"""docs/pictures/terminal.svg: what a terminal shows of a schedule that waits.

python -m tests.docs.terminal_picture      draws it
"""

from __future__ import annotations

import re
import tempfile
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from tests.docs.session import ROOT, session

PICTURE = ROOT / "docs" / "pictures" / "terminal.svg"
PAGE = ROOT / "docs" / "howto" / "one-at-a-time.md"
COMMAND = "sluice describe schedule shop.orders.load"
COLUMNS = 100


def drawn(folder: Path) -> str:
    """The picture of a command on a terminal with colours, in the middle of the page's story."""
    until_it_waits = PAGE.read_text().partition("When the first day has ended")[0].rpartition("<!-- then:")[0]
    with session(folder) as reader, pytest.MonkeyPatch.context() as patch:
        reader.played(until_it_waits)
        patch.setenv("FORCE_COLOR", "1")
        patch.setenv("COLUMNS", str(COLUMNS))
        printed = reader.types(COMMAND)
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(f"$ {COMMAND}\n{printed.rstrip()}"))
    picture = console.export_svg(title="sluice", unique_id="terminal")
    # Without the fonts, which the reader's machine would load from another server.
    return re.sub(r"\s*@font-face \{.*?\}", "", picture, flags=re.S)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        PICTURE.write_text(drawn(Path(folder)))


if __name__ == "__main__":
    main()
