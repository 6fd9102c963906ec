"""``sluice skip`` and ``unskip``: skip one occurrence of a schedule, or cancel the skip (L19)."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from sluice import checks, names, render, wording
from sluice.cli import frame
from sluice.client import Document
from sluice.names import SCHEDULE

Name = Annotated[str, typer.Argument(metavar="NAME", help="A schedule, such as demo.flights.clean.")]
At = Annotated[str, typer.Argument(metavar="AT", help="The instant of the fire: 2026-11-22T05:00:00Z.")]


def skip(
    schedule: Name, at: At, namespace: frame.Namespace = None, app: frame.App = None, as_json: frame.Json = False
) -> None:
    """Skip one occurrence of a schedule."""
    act(f"{_path(schedule, namespace, app)}/skip", at, as_json)


def unskip(
    schedule: Name, at: At, namespace: frame.Namespace = None, app: frame.App = None, as_json: frame.Json = False
) -> None:
    """Cancel the skip of an occurrence."""
    act(f"{_path(schedule, namespace, app)}/unskip", at, as_json)


def _path(name: str, namespace: str | None, app: str | None) -> str:
    return names.path_of(SCHEDULE, names.full_name(SCHEDULE, name, namespace, app))


def act(path: str, at: str, as_json: bool) -> None:
    """Skip an occurrence of a schedule or a DAG, or cancel the skip, by the path of this action."""
    view = frame.connect().post(path, {"at": checks.instant(at, "AT")})
    if as_json:
        render.machine(view)
    else:
        _show(view)


def _show(view: Document) -> None:
    """List all skips, not only this one, so that a forgotten skip is noticed."""
    skips = [wording.both(at, frame.now()) for at in view.get("skips") or ()]
    console = render.stdout()
    if not skips:
        console.print(Text.assemble((str(view["name"]), "bold"), " skips nothing"), soft_wrap=True)
        return
    console.print(Text.assemble((str(view["name"]), "bold"), " skips"), soft_wrap=True)
    for occurrence in skips:
        console.print(f"  {occurrence}", soft_wrap=True)
