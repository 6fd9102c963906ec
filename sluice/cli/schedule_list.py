"""``sluice schedules list``: the schedules of a namespace in short, a thousand with each request."""

from __future__ import annotations

from typing import Annotated

import typer

from sluice import names, render
from sluice.cli import filters, frame
from sluice.client import Document
from sluice.errors import WrongUsage
from sluice.names import APP

app = typer.Typer(no_args_is_help=True, help="Find schedules of a namespace, also among thousands.")


@app.callback()
def main() -> None:
    pass


@app.command("list")
def list_schedules(
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="Only schedules whose name contains it.")] = None,
    namespace: frame.Namespace = None,
    app_name: filters.OfApp = None,
    tag: filters.Tags = None,
    workflow: filters.Workflows = None,
    state: filters.States = None,
    part: filters.TextOfName = None,
    everything: frame.Everything = False,
    limit: Annotated[int, frame.Limit] = 100,
    as_json: frame.Json = False,
) -> None:
    """List schedules by name: state, what triggers them, and the workflow that they run."""
    space, short = names.place(namespace, app_name)
    if app_name is not None:
        space, _, short = names.full_name(APP, app_name, namespace, field="--app").partition(".")
    if text is not None and part is not None:
        raise WrongUsage("expected TEXT or --text, got both", "--text", "leave one of them out")
    chosen = filters.read(tag, workflow, state)
    if chosen.workflow is not None and short is None and "." not in chosen.workflow:
        raise WrongUsage(
            "expected a workflow as app.name, got a short name", "--workflow", "add --app, or name its app"
        )
    wanted = {"app": short, "tag": chosen.tag, "workflow": chosen.workflow, "state": chosen.state, "q": text or part}
    found = frame.connect().schedules(frame.needed_namespace(space), limit or None, **wanted)
    items = [item for item in found if everything or item["dag"] is None]
    if as_json:
        render.machine({"items": items})
        return
    frame.note_left_out(len(found) - len(items))
    if not items:
        render.note("no schedules like that")
        return
    lines = [(str(item["name"]), render.state(item["state"]), item["workflow"], _why(item)) for item in items]
    render.table(render.stdout(), ("NAME", "STATE", "WORKFLOW", "TRIGGERED BY…"), lines)
    if limit and len(found) == limit:
        render.note(f"the first {limit}; -l 0 lists all")


def _why(item: Document) -> str:
    """What triggers a schedule; of a stopped or paused one also why it is so."""
    reason = "".join(f"; stopped: {stop['reason']}" for stop in item.get("stops", ()))  # an older API has none
    reason += f"; paused: {item['pause_reason']}" if item["pause_reason"] else ""
    return f"{item['triggered_by']}{reason}"
