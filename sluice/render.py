"""The output on a terminal: tables, pages of fields, coloured states, and JSON for programs.

Texts of the API are never parsed as markup, and their control characters become visible (`visible.py`). rich uses no
colours without a terminal or with ``NO_COLOR``. Names and ids are never cut, however narrow the terminal, because users
copy them; the reasons wrap.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from sluice.visible import as_json, visible
from sluice.wording import NOTHING, as_written

# Output to a pipe does not wrap, so that each row is one line for grep.
PIPE_WIDTH = 4_000
GAP = 2  # columns between two cells
MIN_REASON = 32  # columns; a narrower column of text is unreadable

STATE_STYLES = {
    "enabled": "green",
    "hold": "magenta",
    "drain": "magenta",
    "backlog": "magenta",
    "completed": "dim",
    "disabled": "yellow",
    "SUCCEEDED": "green",
    "RUNNING": "cyan",
    "STARTING": "blue",
    "FAILED": "bold red",
    "RETRYING": "magenta",
    "CANCELLED": "yellow",
    "ABORTED": "yellow",
    "DROPPED": "yellow",
    "EXPIRED": "yellow",
    "LATE": "yellow",
    "SKIPPED": "dim",
    "COALESCED": "dim",
    "SENT": "green",
    "SENDING": "cyan",
    "DONE": "green",
    "ENDED": "yellow",
    "SUPERSEDED": "yellow",
    "created": "green",
    "replaced": "cyan",
    "deleted": "bold red",
    "untouched": "yellow",
    "kept": "dim",
    "changed": "green",
    "unchanged": "dim",
    "failed": "bold red",
    "missing": "bold",
    "waiting": "yellow",
    "running": "cyan",
    "succeeded": "green",
}

Cell = str | Text | None


class Terminal(Console):
    """A console on which only rich itself writes control sequences: those in texts become visible."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        shown = _harmless(renderable) if isinstance(renderable, Text) else renderable
        for segment in super().render(shown, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


def stdout() -> Console:
    return _console(stderr=False)


def stderr() -> Console:
    return _console(stderr=True)


def _console(stderr: bool) -> Console:
    console = Terminal(stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_WIDTH
    return console


def machine(answer: Any) -> None:
    """Print the API's JSON: indented on a terminal, one document per line in a pipe."""
    indent = 2 if sys.stdout.isatty() else None
    print(as_json(answer, indent))


def state(word: str | None) -> Text:
    word = word or NOTHING
    return Text(word, style=STATE_STYLES.get(word, "yellow" if word.startswith("PENDING") else ""))


def dim(text: str) -> Text:
    return Text(text, style="dim")


def lines(console: Console, sentences: Iterable[str]) -> str:
    """Sentences one per line on a terminal; in one line in a pipe, where each row is one line."""
    return ("; " if console.width == PIPE_WIDTH else "\n").join(sentences)


def changes(console: Console, sentences: Iterable[str], more: Sequence[Text] = ()) -> Text | None:
    """Changes of fields such as ``priority: 5 -> 7``: the old value red, the new one green; then ``more`` lines. None
    without any."""
    lines: list[Text] = []
    for sentence in sentences:
        path, colon, change = sentence.partition(": ")
        before, arrow, after = change.partition(" -> ")
        if arrow:
            lines.append(Text.assemble(path, colon, (before, "red"), arrow, (after, "green")))
        else:
            lines.append(Text.assemble(path, colon, (change, "red" if change.startswith("removed") else "green")))
    lines += more
    return Text("; " if console.width == PIPE_WIDTH else "\n").join(lines) if lines else None


def table(console: Console, columns: Sequence[str], rows: Iterable[Sequence[Cell]], indent: int = 0) -> None:
    """Print a table without borders. Columns are as wide as their cells; columns without any value are left out.

    If the name of the last column ends in ``…``, its text wraps in the remaining width. It is printed below its row if
    that width is too small.
    """
    filled = [[_cell(cell, name) for cell, name in zip(row, columns, strict=True)] for row in rows]
    shown = [at for at in range(len(columns)) if at == 0 or any(row[at].plain != NOTHING for row in filled)]
    fixed = [at for at in shown if not columns[at].endswith("…")]
    long = next((at for at in shown if at not in fixed), None)
    widths = {at: max([cell_len(columns[at]), *(row[at].cell_len for row in filled)]) for at in fixed}
    start = indent + sum(widths.values()) + GAP * len(fixed)
    texts = [row[long] for row in filled] if long is not None else []
    longest = max((text.cell_len for text in texts), default=0)
    beside = console.width - start >= max([min(longest, MIN_REASON), *(_longest_word(text) for text in texts)])
    head = [*fixed, *([long] if long is not None and beside else [])]
    _print_row(console, [(Text(columns[at].rstrip("…"), "bold"), widths.get(at, 0)) for at in head], indent)
    for row in filled:
        cells = [(row[at], widths[at]) for at in fixed]
        if long is None or (not beside and row[long].plain == NOTHING):
            _print_row(console, cells, indent)
        elif beside:
            _print_row(console, cells, indent, _wrapped(console, row[long], console.width - start), start)
        else:
            _print_row(console, cells, indent)
            _print_row(console, [], 0, _wrapped(console, row[long], console.width - indent - 4), indent + 4)


def fields(console: Console, pairs: Iterable[tuple[str, Cell]], indent: int = 2) -> None:
    """Print labels and values, one per line. A label without a value is left out."""
    known = [(label, value) for label, cell in pairs if (value := _text(cell)).plain != NOTHING]
    width = max((cell_len(label) for label, _ in known), default=0)
    start = indent + width + GAP
    for label, value in known:
        lines = _wrapped(console, value, console.width - start)
        _print_row(console, [(dim(label), width)], indent, lines, start)


def title(console: Console, kind: str, name: str, *notes: Cell) -> None:
    """Print the head of a page: the kind, the name, and notes such as the state."""
    line = Text.assemble((kind, "dim"), " ", (name, "bold"))
    for note in notes:
        if note:
            line.append("  ").append_text(_text(note))
    console.print(line, soft_wrap=True)


def heading(console: Console, text: str) -> None:
    console.print()
    console.print(Text(text, style="bold"))


def plain(text: str) -> None:
    """Print a line of others, such as one of a log, as it is but for control characters."""
    print(visible(text))


def note(text: str) -> None:
    """Print a note to stderr, so that piped output contains only data."""
    stderr().print(dim(text), soft_wrap=True)


def _text(cell: Cell) -> Text:
    if isinstance(cell, Text):
        return _harmless(cell)
    return Text(as_written(visible(cell))) if cell else dim(NOTHING)


def _cell(cell: Cell, column: str) -> Text:
    """The text of a cell, in one line if its column does not wrap: a second line would look like a row."""
    text = _text(cell)
    if column.endswith("…") or "\n" not in text.plain:
        return text
    line = text.copy()
    line.plain = text.plain.replace("\n", "␊")
    return line


def _harmless(text: Text) -> Text:
    """The text with visible control characters, and with names as people know them, before its width is measured."""
    written = as_written(visible(text.plain))
    if written == text.plain:
        return text
    shown = text.copy()
    shown.plain = written
    return shown


def _wrapped(console: Console, text: Text, width: int) -> list[Text]:
    """The text in lines of this width; a longer address or path is not broken."""
    return list(text.wrap(console, max(MIN_REASON, width, _longest_word(text))))


def _longest_word(text: Text) -> int:
    return max((cell_len(word) for word in text.plain.split()), default=0)


def _print_row(
    console: Console, cells: list[tuple[Text, int]], indent: int, below: Sequence[Text] = (), start: int = 0
) -> None:
    """Print cells side by side, then ``below``: lines that begin at column ``start``, the first in the row of the
    cells.

    A row may be wider than the terminal, which then breaks the line, so that a copied id stays whole."""
    line = Text(" " * indent)
    for text, width in cells:
        line.append_text(text).append(" " * (width - text.cell_len + GAP))
    lines = [line, *(Text(" " * start) for _ in below[1:])]
    if below:
        lines[0] = Text.assemble(line, " " * (start - line.cell_len))
        lines = [Text.assemble(front, text) for front, text in zip(lines, below, strict=True)]
    for row in lines:
        row.rstrip()
        console.print(row, soft_wrap=True)
