"""What an administrator does with a whole installation: freeze and unfreeze it, export, import, repair."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from sluice import render, wording
from sluice.cli import frame
from sluice.errors import WrongUsage

Stack = Annotated[
    str, typer.Option("--stack", metavar="STACK", envvar="SLUICE_STACK", help="The stack, such as sluice-prod.")
]
Files = Annotated[str, typer.Option("--to", metavar="PLACE", help="A folder, or s3://BUCKET/PREFIX/.")]
_TABLES = ("catalog", "jobs", "runs")
UNKNOWN = ("adopt", "cancel", "leave")


def freeze(stack: Stack) -> None:
    """Freeze an installation: no Lambda of it begins until unfreeze."""
    frozen = _loaded("commands").freeze(stack)
    render.note(f"{wording.count(frozen, 'Lambda')} of {stack} frozen; sluice unfreeze --stack {stack} ends it")


def unfreeze(stack: Stack) -> None:
    """Unfreeze an installation: its Lambdas run again."""
    count = _loaded("commands").unfreeze(stack)
    render.note(f"{wording.count(count, 'Lambda')} of {stack} may run again")


def export(
    to: Files,
    stack: Stack,
    namespaces: Annotated[
        list[str] | None, typer.Argument(metavar="[NAMESPACE]...", help="The namespaces; all if none is named.")
    ] = None,
    move: Annotated[
        bool, typer.Option("--move", metavar="", help="Then delete them here, so that nothing of them starts here.")
    ] = False,
    tables: Annotated[
        list[str] | None,
        typer.Option("--table", metavar="TABLE=NAME", help="Read another table, such as a restored one: jobs=NAME."),
    ] = None,
    yes: frame.Yes = False,
    as_json: frame.Json = False,
) -> None:
    """Export namespaces, with what is pending, into files that import reads."""
    names = frame.pairs_of("--table", tables or [])
    if unknown := sorted(set(names) - set(_TABLES)):
        raise WrongUsage(f"expected catalog, jobs or runs, got {unknown[0]}", "--table", "such as --table jobs=NAME")
    if move:
        what = ", ".join(namespaces or []) or "every namespace"
        frame.confirm(f"{what} will be deleted in {stack} once the files are written. Go on?", yes)
    other = {f"{table}_table": name for table, name in names.items()}
    made = _loaded("commands").export(stack, to, namespaces or [], move, other, _progress(as_json))
    _show(made, as_json, f"exported to {to}{' and deleted here' if move else ''}")


def import_(
    place: Annotated[str, typer.Argument(metavar="PLACE", help="A folder with an export, or s3://BUCKET/PREFIX/.")],
    stack: Stack,
    buckets: Annotated[
        list[str] | None,
        typer.Option("--bucket", metavar="OLD=NEW", help="Replace a bucket; lake and control are replaced anyway."),
    ] = None,
    copy: Annotated[
        bool, typer.Option("--copy", metavar="", help="Also if the source still has it: both would start its runs.")
    ] = False,
    as_json: frame.Json = False,
) -> None:
    """Import an export into an installation that has none of its namespaces."""
    made = _loaded("commands").import_(
        stack, place, frame.pairs_of("--bucket", buckets or []), copy, _progress(as_json)
    )
    _show(made, as_json, f"imported into {stack}")


def repair(
    stack: Stack,
    restored_to: Annotated[
        datetime,
        typer.Option(
            "--restored-to",
            metavar="INSTANT",
            formats=["%Y-%m-%dT%H:%M:%SZ"],
            help="The earliest instant to which a table was restored, such as 2026-03-02T12:00:00Z.",
        ),
    ],
    unknown: Annotated[
        str,
        typer.Option(
            "--unknown",
            metavar="HOW",
            help="What becomes of job runs of EMR that no table has: adopt, cancel or leave.",
        ),
    ] = "adopt",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", metavar="", help="Say what would be done, and do nothing.")
    ] = False,
    as_json: frame.Json = False,
) -> None:
    """Repair tables that were restored to different instants, and say what differs."""
    if unknown not in UNKNOWN:
        raise WrongUsage(f"expected adopt, cancel or leave, got {unknown}", "--unknown", "leave it out to adopt")
    at = round(restored_to.replace(tzinfo=UTC).timestamp() * 1000)
    found = _loaded("commands").repair(stack, at, unknown, dry_run)
    if as_json:
        items = [{"kind": each.kind, "name": each.name, "done": each.done} for each in found]
        render.machine({"items": items, "next_cursor": None})
        return
    rows: list[tuple[render.Cell, ...]] = [(each.kind, each.name, each.done) for each in found]
    render.table(render.stdout(), ("WHAT", "NAME", "WOULD BE" if dry_run else "DONE"), rows)
    render.note(f"{wording.count(len(found), 'finding')}{'; nothing was changed' if dry_run else ''}")


def _show(made: Any, as_json: bool, done: str) -> None:
    if as_json:
        render.machine(made.model_dump(mode="json"))
        return
    what = ", ".join(made.namespaces) or "the installation"
    render.note(f"{what}: {wording.count(sum(made.rows.values()), 'row')} {done}")


def _progress(quiet: bool) -> Callable[[str, int], None]:
    def show(table: str, rows: int) -> None:
        if not quiet:
            render.note(f"{table}: {wording.count(rows, 'row')}")

    return show


def _loaded(name: str) -> Any:
    """A module of `sluice.operations`. What it needs is an extra."""
    try:
        from importlib import import_module

        return import_module(f"sluice.operations.{name}")
    except ImportError as missing:
        hint = "pip install 'sluice[testing]'"
        raise WrongUsage(f"expected the service's code for this command, got: {missing}", None, hint) from None
