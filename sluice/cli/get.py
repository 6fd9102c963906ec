"""``sluice get``: stored definitions, as a list or as a document."""

from __future__ import annotations

from typing import Annotated

import typer

from sluice import names, render, wording
from sluice.cli import filters, frame, search, tables
from sluice.client import Client, Document
from sluice.errors import WrongUsage
from sluice.names import APP, CALENDAR, DAG, DATASET, MESSAGE, NAMESPACE, POLICY, POOL, SCHEDULE, WORKFLOW, Kind

KindArgument = Annotated[
    str,
    typer.Argument(
        metavar="KIND",
        help="namespaces, apps, workflows, schedules, dags, datasets, policies, pools, calendars or messages.",
    ),
]


# The filters of each kind; all have --tag and --text.
OF_KIND: dict[Kind, tuple[str, ...]] = {
    SCHEDULE: ("--app", "--workflow", "--state", "--all"),
    WORKFLOW: ("--app", "--target"),
    MESSAGE: ("--app", "--workflow", "--target", "--all"),
    DAG: ("--app", "--state"),
}


def print_list(kind: Kind, namespace: str | None, tag: str | None, text: str | None, limit: int, as_json: bool) -> None:
    """Print the definitions of a kind in a namespace, at most ``limit``; 0 for all."""
    path = names.collection_path(kind, [frame.needed_namespace(namespace)])
    wanted = filters.tag_of(tag)
    matches = (lambda view: filters.has_tag(view, wanted) and filters.has_text(view, text)) if tag or text else None
    found = search.search(frame.connect(), path, {}, limit or None, matches=matches).answer
    _show(kind, found, limit, as_json, bool(tag or text), f"sluice {kind.collection} ...")


def get(
    context: typer.Context,
    kind: KindArgument,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The name of one, such as demo.flights.clean.")
    ] = None,
    namespace: frame.Namespace = None,
    app: filters.OfApp = None,
    workflow: filters.Workflows = None,
    target: filters.OfTarget = None,
    tag: filters.Tags = None,
    state: filters.States = None,
    text: filters.TextOfName = None,
    everything: frame.Everything = False,
    limit: Annotated[int, frame.Limit] = 0,
    as_json: frame.Json = False,
) -> None:
    """List definitions, or print one as YAML."""
    wanted = names.kind_of(kind)
    _check(context, wanted, name)
    chosen = filters.read(tag, workflow, state)
    if name is not None:
        path = names.path_of(wanted, names.full_name(wanted, name, namespace, app))
        show_one(frame.connect().get(path), as_json)
        return
    list_kind(wanted, namespace, app, chosen, (filters.target_of(target), text), everything, limit, as_json)


def list_kind(
    kind: Kind,
    namespace: str | None,
    app: str | None,
    chosen: filters.Filters,
    of: tuple[str | None, str | None] = (None, None),
    everything: bool = False,
    limit: int = 0,
    as_json: bool = False,
    command: str = "",
) -> None:
    """Print the definitions of a kind that the filters fit; ``of`` are a type of target, and a part of the name."""
    target, text = of
    space, short = names.place(namespace, app)
    if app is not None:
        short = names.full_name(APP, app, namespace, field="--app").rpartition(".")[2]
    answer = listing(kind, space, short, chosen if kind is SCHEDULE else None)
    fitting = [
        view for view in answer["items"] if _fits(kind, view, chosen, space, target) and filters.has_text(view, text)
    ]
    items = [view for view in fitting if everything or not _is_internal(view)]
    frame.note_left_out(0 if as_json else len(fitting) - len(items))
    cut = "more" if limit and len(items) > limit else None
    shown = {**answer, "items": items[: limit or None], "next_cursor": answer["next_cursor"] or cut}
    is_filtered = bool(chosen or target or text)
    _show(kind, shown, limit, as_json, is_filtered, command or f"sluice get {kind.collection} ...")


def _show(kind: Kind, answer: Document, limit: int, as_json: bool, is_filtered: bool, command: str) -> None:
    items = answer["items"][: limit or None]
    if as_json:
        render.machine({**answer, "items": items})
        return
    if items:
        tables.definitions(render.stdout(), kind, items, frame.now())
        tables.rest(answer, len(items), command)
    else:
        render.note(f"no {kind.collection} {'like that' if is_filtered else 'here'}")


def _check(context: typer.Context, kind: Kind, name: str | None) -> None:
    """Raise ``WrongUsage`` for an option that a kind does not have, or that does not go with a name."""
    params = {param.name: param.opts[0] for param in context.command.params if param.opts[0].startswith("--")}
    given = [option for field, option in params.items()
             if field and str(context.get_parameter_source(field)).endswith("COMMANDLINE")]  # fmt: skip
    if name is not None:
        known = {"--namespace", "--json", *(("--app",) if "app" in kind.parts[:-1] else ())}
        what = f"get {kind.name} {name}"
    else:
        known = {"--namespace", "--tag", "--text", "--limit", "--json", *OF_KIND.get(kind, ())}
        known -= {"--namespace"} if kind is NAMESPACE else set()
        what = f"get {kind.collection}"
    for option in given:
        if option not in known:
            takes = ", ".join(sorted(known - {"--json"})) or "no filter"
            raise WrongUsage(f"expected no {option} with `{what}`", option, f"leave it out; this takes {takes}")


def _fits(kind: Kind, view: Document, chosen: filters.Filters, space: str | None, target: str | None) -> bool:
    """Whether a definition fits what the API did not filter."""
    if kind is SCHEDULE:
        return True
    if chosen.workflow is not None:
        app = str(view["name"]).split(".")[1]
        if view.get("workflow") != filters.workflow_name(chosen.workflow, space, app):
            return False
    return (
        filters.has_tag(view, chosen.tag)
        and chosen.state in (None, view.get("state"))
        and target in (None, (view.get("target") or {}).get("type"))
    )


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

    print(wording.as_written(yaml12.dump(view)), end="")
