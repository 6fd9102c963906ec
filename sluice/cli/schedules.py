"""``sluice enable``, ``disable``, ``pause`` and ``resume``: by the names of schedules, or by filters within an app."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from rich.text import Text

from sluice import checks, names, render, states
from sluice.cli import bulk, filters, frame
from sluice.client import Client, Document
from sluice.errors import ApiRefused, WrongUsage
from sluice.names import APP, DAG, SCHEDULE

Names = Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Schedules, such as demo.flights.clean.")]
All = Annotated[bool, typer.Option("--all", metavar="", help="All schedules of the app.")]
AppOf = Annotated[
    str | None, typer.Option("--app", "-a", metavar="[NS.]APP", help="The app for filters and short names.")
]
Mode = Annotated[
    str, typer.Option("--mode", "-m", metavar="MODE", help=f"How: {', '.join(states.MODES)}.", show_default=True)
]
StopTimeouts = Annotated[
    bool,
    typer.Option("--stop-timeouts", metavar="", help="Stop timeouts during the pause; by default they keep counting."),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", metavar="", help="Show what would change, and why not; change nothing.")
]


@dataclass(frozen=True, slots=True)
class Chosen:
    """Selected schedules: by their full names, or by filters within an app; exactly one of both."""

    names: list[str]
    app: str
    filters: filters.Filters


def enable(
    schedules: Names = None,
    namespace: frame.Namespace = None,
    app: AppOf = None,
    tag: filters.Tags = None,
    workflow: filters.Workflows = None,
    state: filters.States = None,
    every: All = False,
    dry_run: DryRun = False,
    as_json: frame.Json = False,
) -> None:
    """Enable schedules: their triggers fire from now on."""
    chosen = _chosen(schedules, namespace, app, filters.read(tag, workflow, state), every)
    _act("enable", chosen, as_json, dry_run)


def disable(
    schedules: Names = None,
    namespace: frame.Namespace = None,
    app: AppOf = None,
    tag: filters.Tags = None,
    workflow: filters.Workflows = None,
    state: filters.States = None,
    every: All = False,
    dry_run: DryRun = False,
    as_json: frame.Json = False,
) -> None:
    """Disable schedules; waiting jobs are dropped, active runs continue."""
    chosen = _chosen(schedules, namespace, app, filters.read(tag, workflow, state), every)
    _act("disable", chosen, as_json, dry_run)


def pause(
    schedules: Names = None,
    mode: Mode = "hold",
    stop_timeouts: StopTimeouts = False,
    namespace: frame.Namespace = None,
    app: AppOf = None,
    tag: filters.Tags = None,
    workflow: filters.Workflows = None,
    state: filters.States = None,
    every: All = False,
    dry_run: DryRun = False,
    as_json: frame.Json = False,
) -> None:
    """Pause schedules; resume continues them."""
    how = checks.one_of(mode, tuple(states.MODES), "--mode")
    chosen = _chosen(schedules, namespace, app, filters.read(tag, workflow, state), every)
    # A filter of an older API takes no mode, so a default is left out.
    asked = {"mode": how, "timeouts": "stop" if stop_timeouts else "count"}
    unusual = {field: value for field, value in asked.items() if value not in ("hold", "count")}
    _act("pause", chosen, as_json, dry_run, asked if chosen.names else unusual)


def resume(
    schedules: Names = None,
    namespace: frame.Namespace = None,
    app: AppOf = None,
    tag: filters.Tags = None,
    workflow: filters.Workflows = None,
    state: filters.States = None,
    every: All = False,
    dry_run: DryRun = False,
    as_json: frame.Json = False,
) -> None:
    """Resume paused schedules."""
    chosen = _chosen(schedules, namespace, app, filters.read(tag, workflow, state), every)
    _act("resume", chosen, as_json, dry_run)


def _chosen(
    schedules: list[str] | None, namespace: str | None, app: str | None, by: filters.Filters, every: bool
) -> Chosen:
    """The selected schedules. Without names, a filter or ``--all`` is required, so that a truncated command cannot stop
    a whole app."""
    if schedules:
        if by or every:
            hint = "remove the names: filters select from all schedules of the app"
            raise WrongUsage("expected names or filters, got both", "NAME", hint)
        return Chosen([names.full_name(SCHEDULE, name, namespace, app) for name in schedules], "", by)
    if not by and not every:
        hint = "name schedules, or add --app NS.APP and --tag, --workflow, --state or --all"
        raise WrongUsage("expected schedules or filters, got neither", "NAME", hint)
    if by and every:
        raise WrongUsage("expected filters or --all, got both", "--all", "remove --all")
    if app is None:
        raise WrongUsage("expected the app of the filters, got none", "--app", "add --app NS.APP")
    return Chosen([], names.full_name(APP, app, namespace, field="--app"), by)


def _act(action: str, chosen: Chosen, as_json: bool, dry_run: bool, how: Document | None = None) -> None:
    if chosen.names and dry_run:
        bulk.plan(action, chosen.names, as_json, how)
    elif chosen.names:
        _switch(action, chosen.names, as_json, how)
    else:
        bulk.act(action, chosen.app, chosen.filters, as_json, {**(how or {}), **({"dry_run": True} if dry_run else {})})


def _switch(action: str, fulls: list[str], as_json: bool, how: Document | None) -> None:
    """Apply an action to each schedule, even after one fails. Each failure is printed, and the exit code reports it."""
    client = frame.connect()
    refused = False
    for full in fulls:
        try:
            view = _switched(client, action, full, how)
        except ApiRefused as refusal:
            frame.print_error(refusal)
            refused = True
            continue
        if as_json:
            render.machine(view)
        else:
            _show(view)
    if refused:
        raise typer.Exit(1)


def _switched(client: Client, action: str, full: str, how: Document | None) -> Document:
    """Apply an action to a schedule, or to the DAG of this name. Raises the refusal of the schedule."""
    try:
        return client.post(f"{names.path_of(SCHEDULE, full)}/{action}", how)
    except ApiRefused as refusal:
        if refusal.code != "not_found":
            raise
        try:
            return client.post(f"{names.path_of(DAG, full)}/{action}", how)
        except ApiRefused as other:
            raise (refusal if other.code == "not_found" else other) from None


def _show(view: Document) -> None:
    state = str(view.get("state"))
    line = Text.assemble((str(view["name"]), "bold"), " is ", render.state(state))
    if state in states.MODES:
        line = Text.assemble((str(view["name"]), "bold"), " is paused, mode ", render.state(state))
        line.append(f": {states.MODES[state]}")
    elif state == "enabled" and view.get("triggered_by"):
        line.append(f", triggered by {view['triggered_by']}")
    render.stdout().print(line, soft_wrap=True)
