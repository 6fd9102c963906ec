"""One action on many schedules of an app, selected by filters; the report lists changes and failures (L18)."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from sluice import names, render, wording
from sluice.cli import frame
from sluice.cli.filters import Filters
from sluice.client import Document
from sluice.names import APP

CHANGES = ("changed", "unchanged", "failed")
MAX_NAMES = 100  # names in one request


def act(action: str, app: str, filters: Filters, as_json: bool, how: Document | None = None) -> None:
    """Apply an action to the schedules of an app (full name) that match the filters, or to all. ``how`` are further
    fields of the request. Exit code 1 on failures, and if nothing matches."""
    selection = filters.within(*app.split(".")) if filters else {"all": True}
    _send(app, {"action": action, **selection, **(how or {})}, as_json)


def plan(action: str, schedules: Sequence[str], as_json: bool, how: Document | None = None) -> None:
    """Show what an action would do with these schedules (full names), app by app. Exit code 1 on failures."""
    failed = False
    for app in dict.fromkeys(name.rpartition(".")[0] for name in schedules):
        own = [name for name in schedules if name.rpartition(".")[0] == app]
        for start in range(0, len(own), MAX_NAMES):
            body = {"action": action, "names": own[start : start + MAX_NAMES], **(how or {}), "dry_run": True}
            try:
                _send(app, body, as_json)
            except typer.Exit:
                failed = True
    if failed:
        raise typer.Exit(1)


def _send(app: str, body: Document, as_json: bool) -> None:
    report = frame.connect().post(f"{names.path_of(APP, app)}/bulk", body)
    if as_json:
        render.machine(report)
    else:
        show(app, report)
    if report.get("failed") or not any(report.get(change) for change in CHANGES):
        raise typer.Exit(1)


def show(scope: str, report: Document) -> None:
    """Print what an action did with each schedule of an app, or of another scope."""
    rows: list[tuple[render.Cell, ...]] = [
        (render.state(change), _name(item), _reason(item)) for change in CHANGES for item in report.get(change, ())
    ]
    if not rows:
        render.note(f"no schedule of {scope} matches")
        return
    console = render.stdout()
    render.table(console, ("CHANGE", "NAME", "WHY…"), rows)
    counts = [f"{len(report[change])} {change}" for change in CHANGES if report.get(change)]
    console.print()
    only = "; nothing was changed: this was a dry run" if report.get("dry_run") else ""
    console.print(f"{scope}: {', '.join(counts) or wording.NOTHING}{only}", soft_wrap=True)


def _name(item: str | Document) -> str:
    return str(item["name"]) if isinstance(item, dict) else item


def _reason(item: str | Document) -> str | None:
    """Why an action failed, and what to do; None for a success."""
    error = item.get("error") or {} if isinstance(item, dict) else {}
    return ": ".join(str(part) for part in (error.get("message"), error.get("hint")) if part) or None
