"""The tables of docs/cli.md that follow from the command line: the filters of lists, and the options of each command.

python -m docs.pictures.options
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sluice.cli import ENTRIES

PAGE = Path(__file__).resolve().parents[1] / "cli.md"
# The columns of the table of filters.
FILTERS = (
    *("--app", "--schedule", "--workflow", "--target", "--tag", "--state", "--text", "--late", "--since", "--until"),
    "--limit",
)
SHOWN = {"get": "get KIND", "jobs list": "jobs", "datasets list": "datasets"}
EVERYWHERE = ("--namespace", "--app", "--json")


def commands() -> Iterator[tuple[str, Any]]:
    """Every command by its words, such as ``runs list``, in the order of the help."""

    def below(command: Any, words: str) -> Iterator[tuple[str, Any]]:
        for name, each in getattr(command, "commands", {}).items():
            yield from below(each, f"{words} {name}")
        if not getattr(command, "commands", None):
            yield words, command

    for entry in ENTRIES:
        yield from below(entry.load(), entry.name)


def options_of(command: Any) -> dict[str, list[str]]:
    """The names of each option of a command, by the long one."""
    found = {}
    for param in command.params:
        if param.param_type_name == "option" and param.name != "help":
            names = [*param.opts, *param.secondary_opts]
            found[next(name for name in names if name.startswith("--"))] = names
    return found


def filters() -> str:
    """Which list has which filter."""
    rows = [f"| | {' | '.join(f'`{name}`' for name in FILTERS)} |", "|---" * (len(FILTERS) + 1) + "|"]
    for name, command in commands():
        every = {each for names in options_of(command).values() for each in names}
        if "--limit" not in every and name != "top":
            continue
        rows.append(f"| `{SHOWN.get(name, name)}` | {' | '.join('x' if each in every else ' ' for each in FILTERS)} |")
    return "\n".join(rows) + "\n"


def options() -> str:
    """Each command with its options but those of all commands."""
    rows = ["| command | options |", "|---|---|"]
    for name, command in commands():
        own = [each for option, each in options_of(command).items() if option not in EVERYWHERE]
        rows.append(f"| `{name}` | {', '.join(f'`{each[0]}`' for each in own)} |")
    return "\n".join(rows) + "\n"


def with_tables(page: str) -> str:
    """The page with the tables as the command line has them."""
    for name, table in (("filters", filters()), ("options", options())):
        begin, end = f"<!-- {name} -->\n", "<!-- end -->"
        before, mark, rest = page.partition(begin)
        assert mark, f"expected a place for the table of {name}, got none"
        page = f"{before}{begin}{table}{rest[rest.index(end) :]}"
    return page


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
