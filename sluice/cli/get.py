"""``sluice get``: stored definitions, as a list or as a document."""

from __future__ import annotations

from typing import Annotated

import typer

from sluice import names, render
from sluice.cli import filters, frame, tables
from sluice.client import Client, Document
from sluice.errors import WrongUsage
from sluice.names import APP, CALENDAR, DATASET, NAMESPACE, POLICY, POOL, SCHEDULE, Kind

KindArgument = Annotated[
    str,
    typer.Argument(
        metavar="KIND",
        help="namespaces, apps, workflows, schedules, dags, datasets, policies, pools, calendars or messages.",
    ),
]


def print_list(kind: Kind, namespace: str | None, limit: int, as_json: bool) -> None:
    """Print the definitions of a kind in a namespace, at most ``limit``; 0 for all."""
    path = names.collection_path(kind, [frame.needed_namespace(namespace)])
    answer = frame.connect().listing(path, most=limit or None)
    if as_json:
        render.machine(answer)
        return
    if answer["items"]:
        tables.definitions(render.stdout(), kind, answer["items"], frame.now())
    else:
        render.note(f"no {kind.collection} here")
    tables.rest(answer, len(answer["items"]), f"sluice {kind.collection} ...")


def get(
    kind: KindArgument,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The name of one, such as demo.flights.clean.")
    ] = None,
    namespace: frame.Namespace = None,
    app: frame.App = None,
    tag: filters.Tags = None,
    workflow: filters.Workflows = None,
    state: filters.States = None,
    everything: frame.Everything = False,
    as_json: frame.Json = False,
) -> None:
    """List definitions, or print one as YAML."""
    wanted = names.kind_of(kind)
    chosen = filters.read(tag, workflow, state)
    if chosen and (wanted is not SCHEDULE or name is not None):
        got = f"{wanted.name} {name}" if name else wanted.collection
        raise WrongUsage(f"expected `get schedules` with --tag, --workflow and --state, got {got!r}", "KIND")
    if name is not None:
        path = names.path_of(wanted, names.full_name(wanted, name, namespace, app))
        show_one(frame.connect().get(path), as_json)
        return
    answer = listing(wanted, *names.place(namespace, app), chosen)
    left_out = 0
    if not everything:
        items = [item for item in answer["items"] if not _is_internal(item)]
        answer, left_out = {**answer, "items": items}, len(answer["items"]) - len(items)
    if as_json:
        render.machine(answer)
        return
    frame.note_left_out(left_out)
    if answer["items"]:
        tables.definitions(render.stdout(), wanted, answer["items"], frame.now())
    else:
        render.note(f"no {wanted.collection} {'like that' if chosen else 'here'}")


def _is_internal(view: Document) -> bool:
    """Whether a definition is one that Sluice made; all schedules of a DAG are, because the DAG is listed itself."""
    return view.get("dag") is not None or names.is_internal(str(view.get("name")))


def listing(kind: Kind, namespace: str | None, app: str | None, chosen: filters.Filters | None = None) -> Document:
    """All definitions of a kind in a namespace or app. Without an app, those of all apps of the namespace."""
    if kind is NAMESPACE:
        return frame.connect().listing(names.collection_path(kind, []))
    space = frame.needed_namespace(namespace)
    if kind in (APP, DATASET, POLICY, POOL, CALENDAR):
        return frame.connect().listing(names.collection_path(kind, [space]))
    client = frame.connect()
    apps = [app] if app else [full.rpartition(".")[2] for full in _names(client, space)]
    answers = [
        client.listing(
            names.collection_path(kind, [space, app_name]), chosen.within(space, app_name) if chosen else None
        )
        for app_name in apps
    ]
    return {"items": [item for answer in answers for item in answer["items"]], "next_cursor": None}


def _names(client: Client, namespace: str) -> list[str]:
    return [str(view["name"]) for view in client.listing(names.collection_path(APP, [namespace]))["items"]]


def show_one(view: Document, as_json: bool) -> None:
    if as_json:
        render.machine(view)
        return
    from sluice import yaml12

    print(yaml12.dump(view), end="")
