"""``sluice event``: post custom events, one from the command line or many from a file (T11)."""

from __future__ import annotations

from typing import Annotated

import typer

from sluice import names, render
from sluice.cli import frame
from sluice.client import Document
from sluice.errors import WrongUsage
from sluice.names import NAMESPACE

CLOUDEVENTS = "application/cloudevents-batch+json"


def event(
    namespace: Annotated[str, typer.Argument(metavar="NAMESPACE", help="The namespace of the events, such as demo.")],
    kind: Annotated[
        str | None, typer.Argument(metavar="TYPE", help="The type of the event, such as orders.closed.")
    ] = None,
    payload: Annotated[
        str | None, typer.Option("--payload", "-p", metavar="JSON", help="The payload, a JSON object.")
    ] = None,
    event_id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="The id; an event with the same id counts once.")
    ] = None,
    file: Annotated[
        str | None,
        typer.Option("--file", "-f", metavar="FILE", help="Many events or CloudEvents, YAML or JSON; - for stdin."),
    ] = None,
    as_json: frame.Json = False,
) -> None:
    """Post custom events, which can trigger schedules."""
    if "." in namespace and kind is None and file is None:
        hint = f"the namespace comes first: sluice event NAMESPACE {namespace}"
        raise WrongUsage(f"expected a namespace and a type, got {namespace!r}", "NAMESPACE", hint)
    full = names.full_name(NAMESPACE, namespace, field="NAMESPACE")
    posted = _raised(kind, payload, event_id, file)
    # Each event has an id, so that a repeated request counts once.
    path, client = f"{names.path_of(NAMESPACE, full)}/events", frame.connect()
    if any("specversion" in event for event in posted):
        answer = client.post(path, posted, repeatable=True, media_type=CLOUDEVENTS)
    else:
        answer = client.post(path, {"events": posted}, repeatable=True)
    if as_json:
        render.machine(answer)
    else:
        _show(answer)


def _raised(kind: str | None, payload: str | None, event_id: str | None, file: str | None) -> list[Document]:
    from sluice import events  # imported here: it loads the YAML parser

    if file is None:
        if kind is None:
            hint = "sluice event NAMESPACE TYPE, or -f with a file of events"
            raise WrongUsage("expected the type of the event, got none", "TYPE", hint)
        return [events.one_to_raise(kind, payload, event_id)]
    for field, given in (("TYPE", kind), ("--payload", payload), ("--id", event_id)):
        if given is not None:
            hint = "an event in a file has its own type, payload and id"
            raise WrongUsage(f"expected no further argument with --file, got {given!r}", field, hint)
    return events.to_raise(file)


def _show(answer: Document) -> None:
    rows = [(str(event["type"]), str(event["id"])) for event in answer.get("accepted", ())]
    render.table(render.stdout(), ("TYPE", "ID"), rows)
