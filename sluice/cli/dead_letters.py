"""``sluice dead-letters``: list events that could not be delivered, redrive them, or drop them."""

from __future__ import annotations

from typing import Annotated

import typer

from sluice import names, render, wording
from sluice.cli import filters, frame, search, tables
from sluice.client import Document, segment
from sluice.errors import WrongUsage
from sluice.names import SCHEDULE

app = typer.Typer(no_args_is_help=True, help="List events that could not be delivered; redrive or drop them.")

Id = Annotated[str | None, typer.Argument(metavar="ID", help="The id of the event that was not delivered.")]


@app.command("list")
def list_dead_letters(
    namespace: frame.Namespace = None,
    app_name: filters.OfApp = None,
    schedule: frame.OfSchedule = None,
    workflow: filters.OfWorkflow = None,
    target: filters.OfTarget = None,
    tag: filters.OfTag = None,
    text: filters.Text = None,
    since: filters.Since = None,
    until: filters.Until = None,
    limit: Annotated[int, frame.Limit] = 50,
    as_json: frame.Json = False,
) -> None:
    """List events that could not be delivered, newest first."""
    of, maximum = filters.place_of(namespace, app_name, schedule), limit or None
    given: filters.Given = {"workflow": workflow, "target": target, "tag": tag, "text": text}
    asked = filters.rows_of(of, frame.now(), **given, since=since, until=until)
    if schedule is not None:
        asked["schedule"] = names.full_name(SCHEDULE, schedule, namespace, app_name)
    found = search.search(frame.connect(), _path(of.namespace or ""), asked, maximum)
    answer = {**found.answer, "items": found.answer["items"][:maximum]}
    if as_json:
        render.machine(answer)
        return
    items = answer["items"]
    if not items:
        render.note("no dead letters match" if asked else "no dead letters")
        return
    now = frame.now()
    rows: list[tuple[render.Cell, ...]] = [
        (
            item["run_id"],
            item.get("target"),
            str(item.get("tries")),
            wording.ago(item.get("failed_at"), now),
            item.get("reason"),
        )
        for item in items
    ]
    render.table(render.stdout(), ("EVENT", "TARGET", "TRIES", "GIVEN UP", "REASON…"), rows)
    tables.rest(answer, len(items), "sluice dead-letters list ...")


@app.command()
def redrive(
    run_id: Id = None,
    namespace: frame.Namespace = None,
    app_name: frame.App = None,
    schedule: Annotated[
        str | None,
        typer.Option("--schedule", "-s", metavar="NAME", help="All of this schedule, up to 100 per call."),
    ] = None,
    as_json: frame.Json = False,
) -> None:
    """Deliver an event again with the same id, or all events of a schedule."""
    if (run_id is None) == (schedule is None):
        raise WrongUsage("expected either the ID of an event or a schedule", "ID", "add -s NAME for all of a schedule")
    if run_id is not None and app_name is not None:
        raise WrongUsage("expected --app with --schedule, got the ID of an event", "--app", "leave it out")
    client = frame.connect()
    if run_id is not None:
        # An id begins with its namespace. The request is idempotent.
        answer = client.post(f"{_path(_namespace_of(run_id))}/{segment(run_id)}/redrive", repeatable=True)
        text = f"{run_id} is delivered again: attempt {answer['attempt']}"
    else:
        full = names.full_name(SCHEDULE, str(schedule), namespace, app_name)
        path = f"{_path(full.partition('.')[0])}/redrive"
        answer = client.post(path, {"schedule": full})  # a repeat would deliver the next hundred
        text = _spell(answer)
    if as_json:
        render.machine(answer)
    else:
        render.stdout().print(text, soft_wrap=True)
    if answer.get("refused"):
        raise typer.Exit(1)


@app.command()
def drop(
    run_id: Annotated[str, typer.Argument(metavar="ID", help="The id of the event that was not delivered.")],
    as_json: frame.Json = False,
) -> None:
    """Drop a dead letter for good, and record this."""
    frame.connect().delete(f"{_path(_namespace_of(run_id))}/{segment(run_id)}")
    if as_json:
        render.machine({"run_id": run_id, "dropped": True})
    else:
        render.stdout().print(f"{run_id} is dropped", soft_wrap=True)


def _spell(answer: Document) -> str:
    lines = [f"{len(answer['redriven'])} delivered again"]
    lines += [f"{refusal['run_id']}: {refusal['why']}" for refusal in answer["refused"]]
    if answer["more"]:
        lines.append("some remain: run the same command again")
    return "\n".join(lines)


def _path(namespace: str) -> str:
    return f"/v1/namespaces/{segment(namespace)}/dead-letters"


def _namespace_of(run_id: str) -> str:
    namespace, dot, _ = run_id.partition(".")
    if not dot:
        raise WrongUsage("expected an id such as demo.flights.notify.mf3k0p2q.0a1b2c3d", "ID", "list them to see ids")
    return namespace
