"""``sluice message``: an instant or a time expression with data for a target, active at once (L16)."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from sluice import names, render, wording
from sluice.cli import filters, frame, tables
from sluice.client import Document
from sluice.names import MESSAGE

app = typer.Typer(no_args_is_help=True, help="Create, show, list and delete messages.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="A message, such as demo.flights.backup.")]


@app.command("put")
def put(
    name: Name,
    schedule: Annotated[
        str | None, typer.Option("--schedule", metavar="EXPRESSION", help="When to send: '@every 10s', '0 5 * * *'.")
    ] = None,
    due: Annotated[
        str | None,
        typer.Option("--due", metavar="WHEN", help="When to send first, or once: 10m, PT10M, an instant."),
    ] = None,
    repeats: Annotated[
        int | None, typer.Option("--repeats", metavar="N", help="How many times to send in total.")
    ] = None,
    ttl: Annotated[
        str | None, typer.Option("--ttl", metavar="WHEN", help="When the message expires: 2h, an instant.")
    ] = None,
    zone: Annotated[str | None, typer.Option("--zone", metavar="ZONE", help="The time zone of the expression.")] = None,
    data: Annotated[
        str | None, typer.Option("--data", "-d", metavar="TEXT", help="The data: text, JSON, or @FILE.")
    ] = None,
    content_type: Annotated[
        str | None, typer.Option("--content-type", metavar="TYPE", help="The type of the data, such as text/csv.")
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", "-t", metavar="JSON", help="The target; by default that of the app.")
    ] = None,
    workflow: Annotated[
        str | None, typer.Option("--workflow", "-w", metavar="NAME", help="A workflow to start instead of a target.")
    ] = None,
    file: Annotated[
        str | None,
        typer.Option("--file", "-f", metavar="FILE", help="The document, YAML or JSON; options override it."),
    ] = None,
    namespace: frame.Namespace = None,
    app_name: frame.App = None,
    as_json: frame.Json = False,
) -> None:
    """Create or replace a message. A replaced message starts again."""
    from sluice import messages  # imported here: it loads the YAML parser

    full = names.full_name(MESSAGE, name, namespace, app_name)
    options = {
        "schedule": schedule,
        "due_time": due,
        "repeats": repeats,
        "ttl": ttl,
        "zone": zone,
        "workflow": workflow,
    }
    body = messages.document(file, options, messages.target(target), messages.carried(data, content_type))
    view = frame.connect().put(names.path_of(MESSAGE, full), body)
    if as_json:
        render.machine(view)
    else:
        _show(view)


@app.command("get")
def get(name: Name, namespace: frame.Namespace = None, app_name: frame.App = None, as_json: frame.Json = False) -> None:
    """Print a message as YAML."""
    from sluice.cli.get import show_one

    full = names.full_name(MESSAGE, name, namespace, app_name)
    show_one(frame.connect().get(names.path_of(MESSAGE, full)), as_json)


@app.command("list")
def list_messages(
    namespace: frame.Namespace = None,
    app_name: filters.OfApp = None,
    workflow: filters.Workflows = None,
    target: filters.OfTarget = None,
    tag: filters.Tags = None,
    text: filters.TextOfName = None,
    everything: frame.Everything = False,
    limit: Annotated[int, frame.Limit] = 50,
    as_json: frame.Json = False,
) -> None:
    """List the messages of an app, or of all apps of a namespace."""
    from sluice.cli.get import list_kind

    chosen, of = filters.read(tag, workflow, None), (filters.target_of(target), text)
    list_kind(MESSAGE, namespace, app_name, chosen, of, everything, limit, as_json, "sluice message list ...")


@app.command("delete")
def delete(
    name: Name, namespace: frame.Namespace = None, app_name: frame.App = None, as_json: frame.Json = False
) -> None:
    """Delete a message; nothing more of it is sent."""
    full = names.full_name(MESSAGE, name, namespace, app_name)
    frame.connect().delete(names.path_of(MESSAGE, full))
    if as_json:
        render.machine({"name": full, "did": "deleted"})
    else:
        render.stdout().print(Text.assemble((full, "bold"), " is deleted"), soft_wrap=True)


def _show(view: Document) -> None:
    line = Text.assemble((str(view["name"]), "bold"), f" is sent at {wording.both(view.get('next_fire'), frame.now())}")
    if view.get("schedule"):
        line.append(f", then {tables.times(view)}")
    render.stdout().print(line, soft_wrap=True)
