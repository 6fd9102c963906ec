"""Commands that are imported when they are used. A list of commands needs only their names and first sentences."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command as built_command
from typer.main import get_group as built_group

from sluice.cli import values


class Quick:
    """Added to a class of typer: the help of `sluice.cli.help`, values read by `sluice.cli.values`, and completion."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _show_help(self, ctx)

    def get_params(self, ctx: Any) -> list[Any]:
        return _prepared(super().get_params(ctx))  # type: ignore[misc]  # the class beside it has the method


class Command(Quick, TyperCommand):
    pass


class Group(Quick, TyperGroup):
    pass


LIST = "list"


class ListFirst(Group):
    """A group whose ``list`` needs no word: ``sluice jobs -n demo`` is short for ``sluice jobs list -n demo``, and
    ``sluice datasets NAME`` for ``sluice datasets list NAME``."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        takes_a_name = any(param.param_type_name == "argument" for param in self.commands[LIST].params)
        named = bool(args) and (args[0] in self.commands or args[0] in ctx.help_option_names)
        meant = not named and (takes_a_name or not args or args[0].startswith("-"))
        return super().parse_args(ctx, [LIST, *args] if meant else args)


def _prepared(params: list[Any]) -> list[Any]:
    """The parameters with light readers, and with completion."""
    for param in params:
        param._custom_shell_complete = param._custom_shell_complete or _complete
    return values.lightened(params)


def _complete(context: Any, param: Any, incomplete: str) -> list[str]:
    from sluice.cli import completion  # imported here, because only a shell asks for it

    return completion.offered(context, param, incomplete)


def _show_help(command: Any, context: Any) -> None:
    from sluice.cli import help

    help.show(command, context)


@dataclass(frozen=True, slots=True)
class Entry:
    """A command of the top level. ``source`` is ``module:name`` below `sluice.cli`: a function, or the ``typer.Typer``
    of a group. ``help`` is the first sentence of its help, which a test compares."""

    name: str
    source: str
    panel: str
    help: str

    def load(self) -> Any:
        """The command itself, made for click."""
        module, _, name = self.source.partition(":")
        found = getattr(import_module(f"sluice.cli.{module}"), name)
        if isinstance(found, typer.Typer):
            return _group(found)
        single = typer.Typer(add_completion=False)
        single.command(self.name, cls=Command)(found)
        return built_command(single)


def _group(of: typer.Typer) -> Any:
    of.info.cls = _quick(of.info.cls, Group)
    for command in of.registered_commands:
        command.cls = _quick(command.cls, Command)
    return built_group(of)


def _quick(given: Any, otherwise: type[Any]) -> type[Any]:
    """The class of a group or command: ``otherwise``, or one of its own with what `Quick` adds."""
    if not isinstance(given, type) or given in (TyperGroup, TyperCommand):
        return otherwise
    return given if issubclass(given, Quick) else type(given.__name__, (Quick, given), {})


class LazyGroup(Group):
    """A group that knows its commands by their entries, and imports only the one that is used."""

    entries: ClassVar[Iterable[Entry]] = ()

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._entries = {entry.name: entry for entry in self.entries}
        for entry in self.entries:
            self.commands[entry.name] = Command(entry.name, help=entry.help, rich_help_panel=entry.panel)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, self._entries[name].load() if name in self._entries else command, rest
