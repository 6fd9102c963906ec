"""What all commands share: common options, the client, and the mapping of errors to messages and exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text
from typer.core import TyperOption

from sluice import render
from sluice.cli.lazy import LazyGroup
from sluice.errors import Failure, Unexpected, WrongUsage
from sluice.visible import as_json

if TYPE_CHECKING:
    from sluice.client import Client

Json = Annotated[bool, typer.Option("--json", metavar="", help="Print the API's JSON and nothing else.")]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", metavar="NS", envvar="SLUICE_NAMESPACE", help="The namespace for short names."),
]
App = Annotated[str | None, typer.Option("--app", "-a", metavar="[NS.]APP", help="The app for short names.")]
OfSchedule = Annotated[
    str | None,
    typer.Option("--schedule", "-s", metavar="NAME", help="Only this schedule; a short name needs -n and -a."),
]

Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Fill the placeholder ${KEY} in the files.")
]
ValueFiles = Annotated[
    list[str] | None,
    typer.Option("--values", metavar="FILE", help="Fill placeholders from a YAML or JSON file; --set overrides it."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", metavar="", help="Do it without asking.")]
Day = Annotated[str | None, typer.Option("--day", metavar="DAY", help="Only this day (UTC): 2026-11-20.")]
Everything = Annotated[bool, typer.Option("--all", metavar="", help="Also nodes of DAGs, and notices.")]

_QUOTED = "put it in quotes"
_NAMESPACES = "add -n NAME, or set SLUICE_NAMESPACE; sluice get namespaces lists the names"

Limit = typer.Option("--limit", "-l", min=0, metavar="N", help="How many at most; 0 for all.", show_default=True)


def connect() -> Client:
    from sluice.client import Client  # imported here, because help and wrong usage need no client

    return Client.from_environment()


def now() -> datetime:
    """The one clock of the command line; relative times ("3 m ago") refer to it."""
    return datetime.now(UTC)


def needed_namespace(namespace: str | None) -> str:
    if not namespace:
        raise WrongUsage("expected a namespace, got none", "--namespace", _NAMESPACES)
    return namespace


def note_left_out(count: int) -> None:
    """Say that a list left out what Sluice made, so that nothing vanishes silently."""
    if count:
        render.note(f"{count} of DAG nodes and notices left out; --all shows them")


def pairs_of(option: str, given: list[str]) -> dict[str, str]:
    """``key=value`` texts as a mapping; a value may contain further equal signs."""
    pairs: dict[str, str] = {}
    for text in given:
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise WrongUsage(f"expected key=value, got {text!r}", option, _as_pair(key or "key", option))
        pairs[key] = value
    return pairs


def values_of(files: list[str] | None, settings: list[str] | None) -> dict[str, str]:
    """The values of placeholders. ``--set`` overrides the files of ``--values``, and a later file an earlier one.
    Raises `WrongUsage` for a file that cannot be read, and for a value that is not text or a whole number: 1.50 would
    become another text."""
    from sluice import documents  # imported here: it loads the YAML parser

    found: dict[str, str] = {}
    places: dict[str, str] = {}
    for file in files or []:
        source = documents.plain_source(file, "bucket: lake")
        for name, value in source.document.items():
            if isinstance(value, bool) or not isinstance(value, str | int):
                raise WrongUsage(f"expected text or a whole number, got {value!r}", source.place(name), _QUOTED)
            found[name] = str(value)
            line = source.line_of(name)
            places[name] = file if line is None else f"{file}, line {line}"
    given = pairs_of("--set", settings or [])
    return documents.Values(found | given, {name: at for name, at in places.items() if name not in given})


def _as_pair(text: str, option: str) -> str:
    """How to write a text as a pair: it is the value of a partition, or the key of anything else."""
    values = option in ("PARTITION", "--partition", "--from", "--to")
    return f"write the key of the dataset before it, such as day={text}" if values else f"write {text}=..."


def confirm(question: str, yes: bool) -> None:
    """Ask on the terminal, unless ``yes``. Ends the command with exit code 1 if the answer is not yes. Raises
    `WrongUsage` where there is no terminal, such as in a script."""
    if yes:
        return
    render.stderr().print(Text.assemble(question, (" [y/N] ", "bold")), end="", soft_wrap=True)
    answer = sys.stdin.readline()
    if not answer:
        render.stderr().print()
        raise WrongUsage("expected an answer or --yes, got neither", "--yes", "add --yes to go ahead without asking")
    if answer.strip().lower() not in ("y", "yes"):
        render.note("nothing was changed")
        raise typer.Exit(1)


def print_error(failure: Failure) -> None:
    """Print an error on stderr: each of its problems with the message, the field, and what to do. With ``--json``,
    print it in the API's own form."""
    if _json_errors.get():
        print(as_json({"error": _as_api(failure)}), file=sys.stderr)
        return
    console = render.stderr()
    for problem in failure.problems:
        console.print(Text.assemble(("error: ", "bold red"), problem.message), soft_wrap=True)
        for label, text in (("field", problem.field), ("hint", problem.hint)):
            if text:
                console.print(Text.assemble((f"  {label}: ", "dim"), text), soft_wrap=True)
    if len(failure.problems) > 1:
        console.print(Text(f"{len(failure.problems)} problems", "bold red"), soft_wrap=True)


def _as_api(failure: Failure) -> dict[str, Any]:
    """The error as the API answers it: ``problems`` only if there are several."""
    error = {"code": failure.code, "message": failure.message, "field": failure.field, "hint": failure.hint}
    if len(failure.problems) == 1:
        return error
    return error | {"problems": [asdict(problem) for problem in failure.problems]}


class Commands(LazyGroup):
    """The top-level command. Every exception ends in an exit code: that of the error, or 0."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters without those for shell completion: they are in the manual, not in every help text."""
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

        if not standalone_mode:
            return inner()
        token = _json_errors.set(_wants_json(sys.argv[1:] if args is None else args))
        try:
            code = _code_of(inner)
        finally:
            _json_errors.reset(token)
        return sys.exit(code)


# Whether errors are printed as JSON. Set from the arguments, because some are wrong before they are parsed.
_json_errors: ContextVar[bool] = ContextVar("json_errors", default=False)


def _wants_json(args: Sequence[str]) -> bool:
    """Whether ``--json`` is given; what follows ``--`` belongs to another program."""
    own = args[: args.index("--")] if "--" in args else args
    return "--json" in own


def _code_of(command: Callable[[], Any]) -> int:
    try:
        return command() or 0
    except Failure as failure:
        print_error(failure)
        return failure.exit_code
    except typer.Abort:
        return 130
    except Exception as error:
        return _unforeseen(error)


def _unforeseen(error: Exception) -> int:
    # Click's own errors (an unknown option, a missing argument). Their class moves between versions of typer, so they
    # are recognized by their method.
    if hasattr(error, "format_message"):
        from sluice.cli import usage  # imported here: only errors need it

        wrong = usage.in_words(error)
        if wrong is not None:
            print_error(wrong)
        return 2
    if os.environ.get("SLUICE_TRACEBACK"):
        raise error
    hint = "this is a bug of the command line; set SLUICE_TRACEBACK=1 for the traceback, and report it"
    print_error(Unexpected(f"unexpected {type(error).__name__}: {error}", None, hint))
    return 1
