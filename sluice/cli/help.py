"""The help of a command on a terminal: usage, text, and a panel for each group of arguments, options and commands.

It replaces typer's own, which imports a Markdown parser and a syntax highlighter: half of the time of ``--help``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

Row = list[Text]


def show(command: Any, context: Any) -> None:
    """Print the help of a click command, or of a group."""
    console = Console(highlight=False, emoji=False)
    label, _, usage = command.get_usage(context).partition(" ")
    console.print(Padding(Text.assemble((label, "yellow"), " ", (usage, "bold")), 1))
    if command.help:
        first, *others = (" ".join(part.split()) for part in command.help.split("\n\n"))
        console.print(Padding(_prose(first), (0, 1, 1, 1)))
        for text in others:
            console.print(Padding(_prose(text, style="" if "[" in text else "dim"), (0, 1, 1, 1)))
    shown = [param for param in command.get_params(context) if not getattr(param, "hidden", False)]
    arguments = [param for param in shown if param.param_type_name == "argument"]
    options = [param for param in shown if param.param_type_name == "option"]
    _panel(console, "Arguments", [[_name(param), _about(param)] for param in arguments])
    _panel(console, "Options", _without_empty_columns([_option(param) for param in options]))
    for title, rows in _commands(command, context).items():
        _panel(console, title, rows)
    if command.epilog:
        console.print(Padding(Text.from_markup(command.epilog), 1))


def _prose(text: str, style: str = "") -> Text:
    """A docstring as people read it: commands without their backticks. Only a text that closes a tag of markup has
    any: ``load[failed]`` is no tag."""
    plain = text.replace("``", "")
    return Text.from_markup(plain, style=style) if "[/" in plain else Text(plain, style)


def _panel(console: Console, title: str, rows: list[Row]) -> None:
    if not rows:
        return
    table = Table.grid(padding=(0, 2), expand=True)
    for _ in rows[0][:-1]:
        table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    for row in rows:
        table.add_row(*row)
    console.print(Panel(table, title=title, title_align="left", border_style="dim"))


def _commands(group: Any, context: Any) -> dict[str, list[Row]]:
    """The commands of a group by their panel; the first columns of all panels are equally wide."""
    names = group.list_commands(context) if hasattr(group, "list_commands") else []
    found = [(name, group.get_command(context, name)) for name in names]
    width = max((len(name) for name in names), default=0)
    panels: dict[str, list[Row]] = {}
    for name, command in found:
        if command.hidden:
            continue
        text = " ".join((command.short_help or command.help or "").split("\n\n")[0].split())
        row = [Text(name.ljust(width), "bold cyan"), _prose(text)]
        panels.setdefault(getattr(command, "rich_help_panel", None) or "Commands", []).append(row)
    return panels


def _name(param: Any) -> Text:
    name = param.metavar or str(param.name).upper()
    more = "..." if param.nargs == -1 and not name.endswith("...") else ""
    return Text(name + more if param.required or name.startswith("[") else f"[{name}]{more}", "cyan")


def _option(param: Any) -> Row:
    """Short names, long names, the value, and the help."""
    every = [*param.opts, *param.secondary_opts]
    short = [name for name in every if not name.startswith("--")]
    long = [name for name in every if name.startswith("--")]
    metavar = param.metavar if param.metavar is not None else "" if param.is_flag else str(param.name).upper()
    return [
        Text(", ".join(short), "bold green"),
        Text(", ".join(long), "bold cyan"),
        Text(metavar, "bold yellow"),
        _about(param),
    ]


def _without_empty_columns(rows: list[Row]) -> list[Row]:
    filled = [at for at in range(4) if at == 3 or any(row[at].plain for row in rows)]
    return [[row[at] for at in filled] for row in rows]


def _about(param: Any) -> Text:
    text = Text(param.help or "")
    for note, style in _notes(param):
        text.append(" " if text.plain else "").append(f"[{note}]", style)
    return text


def _notes(param: Any) -> Iterable[tuple[str, str]]:
    if param.envvar:
        names = [param.envvar] if isinstance(param.envvar, str) else param.envvar
        yield f"env: {', '.join(names)}", "dim yellow"
    lowest, highest = getattr(param, "min", None), getattr(param, "max", None)
    if lowest is not None or highest is not None:
        bounds = [f"{lowest:,} or more" if highest is None else f"{lowest or 0:,} to {highest:,}"]
        yield bounds[0], "dim"
    default = param.default
    if param.show_default and isinstance(default, str | int | float) and not isinstance(default, bool) and default:
        yield f"default: {default}", "dim"
    if param.required:
        yield "required", "dim red"
