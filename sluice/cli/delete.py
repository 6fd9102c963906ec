"""``sluice delete``: delete definitions, after a question that lists the parts that are deleted with them."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from sluice import names, render, wording
from sluice.cli import frame
from sluice.cli.get import KindArgument
from sluice.client import Client
from sluice.errors import ApiRefused
from sluice.names import APP, DAG, DATASET, MESSAGE, SCHEDULE, WORKFLOW, Kind

# The effect of a deletion, for kinds whose name does not explain it.
EFFECTS = {
    SCHEDULE: "waiting jobs are dropped, active runs continue, the history stays",
    DAG: "waiting jobs of its runs are dropped, active runs continue, the history stays",
    DATASET: "its objects in S3 stay",
    MESSAGE: "nothing more of it is sent",
}


def delete(
    kind: KindArgument,
    given: Annotated[
        list[str], typer.Argument(metavar="NAME", help="Such as demo.flights.clean; several are allowed.")
    ],
    yes: frame.Yes = False,
    namespace: frame.Namespace = None,
    app: frame.App = None,
    as_json: frame.Json = False,
) -> None:
    """Delete definitions; the API refuses while others refer to them."""
    wanted = names.kind_of(kind)
    fulls = [names.full_name(wanted, name, namespace, app) for name in given]
    client = frame.connect()
    if not yes:
        frame.confirm(_question(client, wanted, fulls), yes)
    refused = False
    for full in fulls:
        try:
            client.delete(names.path_of(wanted, full))
        except ApiRefused as refusal:
            frame.print_error(refusal)
            refused = True
            continue
        if as_json:
            render.machine({"kind": wanted.name, "name": full, "did": "deleted"})
        else:
            render.stdout().print(Text.assemble(f"{wanted.name} ", (full, "bold"), " is deleted"), soft_wrap=True)
    if refused:
        raise typer.Exit(1)


def _question(client: Client, kind: Kind, fulls: list[str]) -> str:
    """The question before a deletion. The parts of an app are deleted with the app, so the question counts them."""
    what = kind.name if len(fulls) == 1 else kind.collection
    parts = [_parts(client, full) for full in fulls] if kind is APP else []
    effect = "; ".join([*(part for part in parts if part), *([EFFECTS[kind]] if kind in EFFECTS else [])])
    return f"delete {what} {', '.join(fulls)}{f' ({effect})' if effect else ''}?"


def _parts(client: Client, app: str) -> str:
    """``with 2 workflows and 3 schedules``; empty for an app without any."""
    counts = [
        wording.count(len(found), kind.name)
        for kind in (WORKFLOW, SCHEDULE, DAG, MESSAGE)
        if (found := client.listing(names.collection_path(kind, app.split(".")))["items"])
    ]
    return f"with {', '.join(counts)}" if counts else ""
