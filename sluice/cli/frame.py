"""What all commands share: their options, the client, and how what goes wrong becomes a message and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.text import Text
from typer.core import TyperGroup, TyperOption

from sluice import render
from sluice.client import Client
from sluice.errors import Failure, WrongUsage

Json = Annotated[bool, typer.Option("--json", metavar="", help="Print the API's JSON and nothing else.")]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", metavar="NS", envvar="SLUICE_NAMESPACE", help="The namespace of short names."),
]
App = Annotated[str | None, typer.Option("--app", "-a", metavar="[NS.]APP", help="The app of short names.")]
OfSchedule = Annotated[
    str | None, typer.Option("--schedule", "-s", metavar="NAME", help="Only this schedule; short with -n and -a.")
]


Limit = typer.Option("--limit", "-l", min=0, metavar="N", help="How many at most; 0 for all.", show_default=True)

ORDER = (
    *("apply", "get", "describe", "message"),
    *("enable", "disable", "pause", "resume", "run", "skip", "unskip", "event", "backfill", "worker"),
    *("why", "dry-run", "jobs", "runs", "report", "dead-letters", "versions", "datasets", "policies", "pools"),
)


def connect() -> Client:
    return Client.from_environment()


def now() -> datetime:
    """The one clock of the command line: everything relative ("3 m ago") is relative to it."""
    return datetime.now(UTC)


def needed_namespace(namespace: str | None) -> str:
    if not namespace:
        raise WrongUsage("expected a namespace, got none", "--namespace", "add -n NAME, or set SLUICE_NAMESPACE")
    return namespace


def pairs_of(option: str, given: list[str]) -> dict[str, str]:
    """``key=value`` texts as a mapping; the value may hold further equal signs."""
    pairs: dict[str, str] = {}
    for text in given:
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise WrongUsage(f"expected key=value, got {text!r}", option)
        pairs[key] = value
    return pairs


def tell(failure: Failure) -> None:
    """A failure on stderr: what, where, and what to do about it."""
    _complain(failure.message, failure.field, failure.hint)


def _complain(message: str, field: str | None = None, hint: str | None = None) -> None:
    console = render.stderr()
    console.print(Text.assemble(("error: ", "bold red"), message), soft_wrap=True)
    for label, text in (("field", field), ("hint", hint)):
        if text:
            console.print(Text.assemble((f"  {label}: ", "dim"), text), soft_wrap=True)


class Commands(TyperGroup):
    """The outermost command. Nothing leaves it but an exit code: 0, or that of the failure."""

    def list_commands(self, ctx: Any) -> list[str]:
        """In the order of a working day, which is that of the help; typer would put groups behind commands."""
        known = [name for name in ORDER if name in self.commands]
        return [*known, *(name for name in self.commands if name not in known)]

    def get_params(self, ctx: Any) -> list[Any]:
        """Setting up the shell is done once in a life, so it is in the manual and not in every help."""
        params = super().get_params(ctx)
        for param in params:
            if isinstance(param, TyperOption) and param.name in ("install_completion", "show_completion"):
                param.hidden = True
        return params

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        def inner() -> Any:
            return super(Commands, self).main(args, prog_name, complete_var, False, windows_expand_args, **extra)

        return sys.exit(_code_of(inner)) if standalone_mode else inner()


def _code_of(command: Callable[[], Any]) -> int:
    try:
        return command() or 0
    except Failure as failure:
        tell(failure)
        return failure.exit_code
    except typer.Abort:
        return 130
    except Exception as error:
        return _unforeseen(error)


def _unforeseen(error: Exception) -> int:
    # Click's own complaints (an unknown option, a missing argument). Where their class lives changes between
    # versions of typer, so they are known by what they can do.
    spell = getattr(error, "format_message", None)
    if spell is not None:
        message = str(spell())
        context = getattr(error, "ctx", None)
        if message:  # empty when a command without arguments has just shown its help
            # the first letter only: what follows may be a name
            message = message[:1].lower() + message[1:].rstrip(".")
            _complain(message, None, f"{context.command_path} --help" if context else None)
        return 2
    if os.environ.get("SLUICE_TRACEBACK"):
        raise error
    hint = "this is a fault of the command line: SLUICE_TRACEBACK=1 shows where, please report it"
    _complain(f"did not expect {type(error).__name__}: {error}", None, hint)
    return 1
