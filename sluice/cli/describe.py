"""``sluice describe``: one definition as a page, with its recent runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.console import Console

from sluice import names, render, states, wording
from sluice.cli import frame, stops, tables, why
from sluice.cli.get import KindArgument
from sluice.client import Client, Document
from sluice.names import APP, CALENDAR, DAG, DATASET, MESSAGE, NAMESPACE, POLICY, POOL, SCHEDULE, WORKFLOW

LAST = 5
Parts = dict[str, Document]
Pairs = list[tuple[str, render.Cell]]


def describe(
    kind: KindArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Such as demo.flights.clean.")],
    namespace: frame.Namespace = None,
    app: frame.App = None,
    as_json: frame.Json = False,
) -> None:
    """Show one definition as a page, with its recent runs."""
    wanted = names.kind_of(kind)
    full = names.full_name(wanted, name, namespace, app)
    client = frame.connect()
    path = names.path_of(wanted, full)
    parts: Parts = {wanted.name: client.get(path)}
    parts |= {part: _part(client, f"{path}/{part}") for part in _PARTS[wanted]}
    if as_json:
        render.machine(parts)
        return
    view = parts[wanted.name]
    console = render.stdout()
    state = render.state(view["state"]) if "state" in view else None
    render.title(console, wanted.name, full, state, f"version {view['version']}" if "version" in view else None)
    render.fields(console, [*_PAGES[wanted](view, parts), *_ownership(view)])
    for part in _PARTS[wanted]:
        (_DAG_RUNS if wanted is DAG else _BELOW[part])(console, parts[part])
    if wanted in (POLICY, POOL):
        _show_queues(console, view)
    if wanted is MESSAGE:  # a message has no list of records
        _ENDED(console, {"items": parts["why"].get("ended", ())})


# What is requested besides the definition, and shown below it.
_PARTS = {
    NAMESPACE: ("apps", "datasets"),
    APP: ("workflows", "schedules"),
    WORKFLOW: (),
    SCHEDULE: ("why", "runs", "records", "versions"),
    DATASET: ("partitions",),
    POLICY: (),
    POOL: (),
    CALENDAR: (),
    MESSAGE: ("why", "runs"),
    DAG: ("runs",),
}


def _part(client: Client, path: str) -> Document:
    return client.get(path) if path.endswith("/why") else client.listing(path, most=LAST if _is_history(path) else None)


def _is_history(path: str) -> bool:
    return path.endswith(("/runs", "/records", "/partitions", "/versions"))


def _schedule(view: Document, parts: Parts) -> Pairs:
    reasons = parts["why"]
    timeout = view.get("timeout")
    after = f"{timeout.get('after')}, then {timeout.get('then')}" if isinstance(timeout, dict) else timeout
    by = f", one job per {'/'.join(view['by'])}" if view.get("by") else ""
    return [
        ("triggered by", f"{view.get('triggered_by')}{by}"),
        ("runs", view.get("workflow")),
        ("state", states.meaning(view.get("state"))),
        ("now", reasons.get("why")),
        ("next fire", wording.both(reasons.get("next_fire"), frame.now())),
        ("fires a day", f"{view['fires_per_day']:,}" if view.get("fires_per_day") else None),
        ("stopped", "\n".join(stops.said(stop) for stop in view.get("stops") or ())),
        ("skips", "\n".join(wording.both(at, frame.now()) for at in view.get("skips") or ())),
        ("constraints", "\n".join(wording.constraint(rule) for rule in view.get("constraints", ()))),
        ("policy", view.get("policy")),
        ("pool", view.get("pool")),
        ("timeout", after),
        ("priority", None if view.get("priority") is None else str(view["priority"])),
        ("properties", wording.pairs(view.get("properties"), "\n")),
    ]


def _workflow(view: Document, _: Parts) -> Pairs:
    target, retries = view.get("target") or {}, view.get("retries") or {}
    attempts = retries.get("attempts", 1)
    tries = f"{attempts}, {retries.get('delay')} after a failure" if attempts > 1 else str(attempts)
    rest = {key: value for key, value in target.items() if value and key not in ("type", "entry_point", "queue_url")}
    return [
        ("target", str(target.get("type"))),
        ("runs", target.get("entry_point") or target.get("queue_url")),
        *((key.replace("_", " "), _listed(value)) for key, value in rest.items()),
        ("priority", f"{view.get('priority')} (9 is most urgent)"),
        ("attempts", tries),
        ("pool", view.get("pool")),
        ("properties", wording.pairs(view.get("properties"), "\n")),
    ]


def _confirmed_by(table: Document) -> str:
    """What confirms that a commit of an Iceberg table succeeded (T21)."""
    if table.get("glue_table"):
        return f"the table {table['glue_table']} of the Glue catalog"
    return "its metadata file, for the table has one writer" if table.get("single_writer") else "the next commit"


def _dataset(view: Document, _: Parts) -> Pairs:
    if view.get("format") == "iceberg":
        return [
            ("Iceberg table", tables.location(view)),
            ("counts", f"commits by {' or '.join(view.get('operations', ()))}"),
            ("confirmed by", _confirmed_by(view)),
            *_fresh(view),
        ]
    keys = "/".join(f"{key}=…" for key in view.get("keys", ()))
    ignored = "\n".join(tables.ignored(view))
    return [
        ("location", tables.location(view) + keys),
        ("ready at", tables.ready(view)),
        ("period", tables.period(view)),
        *_fresh(view),
        ("in no partition", ignored),
    ]


def _fresh(view: Document) -> Pairs:
    """The age of a dataset with ``fresh``."""
    found = view.get("freshness")
    if not found:
        return []
    state = f"{'late since' if found['late'] else 'until'} {wording.both(found['fresh_until'], frame.now())}"
    newest = f"{wording.pairs(found['newest'])}, {wording.both(found['newest_at'], frame.now())}"
    return [("fresh", f"for {view['fresh']}; {state}"), ("newest", newest if found["newest"] else "none has come")]


def _aging(view: Document) -> str | None:
    """What waiting does to the priority of a job in the queue of a pool or policy."""
    return f"a step of priority for each {view['aging']} of waiting" if view.get("aging") else None


def _policy(view: Document, _: Parts) -> Pairs:
    parts = [f"{part['waiting']} waiting: {part['of']}" for part in view.get("parts", ())]
    return [
        ("allows", f"{view.get('max_events')} starts in any {view.get('interval')}"),
        ("margin", view.get("margin")),
        ("aging", _aging(view)),
        ("waiting", str(view.get("waiting", 0))),
        ("waits for", "\n".join(parts) if len(parts) > 1 else None),
        ("next start", wording.both(view.get("next_start_at"), frame.now())),
    ]


def _calendar(view: Document, _: Parts) -> Pairs:
    entries = [day if isinstance(day, str) else f"{day['from']} to {day['to']}" for day in view.get("days", ())]
    return [("holidays", "\n".join(entries))]


def _pool(view: Document, _: Parts) -> Pairs:
    parts = [
        f"{part['in_use']} of {part['units']} in use, {part['waiting']} waiting: {part['of']}"
        for part in view.get("parts", ())
    ]
    return [
        ("size", f"{view.get('size')} {view.get('unit')}"),
        ("aging", _aging(view)),
        ("in use", str(view.get("in_use", 0))),
        ("waiting", str(view.get("waiting", 0))),
        ("shares", "\n".join(parts) if len(parts) > 1 else None),
    ]


def _show_queues(console: Console, view: Document) -> None:
    """The first waiters of each queue of a policy or pool, in the order in which they are served."""
    for part in view.get("parts", ()):
        if part.get("queue"):
            render.heading(console, f"{part['waiting']} waiting: {part['of']}")
            tables.waiters(console, part["queue"])
            tables.rest({"next_cursor": part["waiting"] > len(part["queue"])}, len(part["queue"]), "sluice jobs ...")


def _message(view: Document, parts: Parts) -> Pairs:
    target = view.get("target") or {}
    goes = view.get("workflow") or (wording.pairs(target, "\n") if target else "the default target of its app")
    return [
        ("sent", tables.times(view)),
        ("due", wording.both(view.get("due_time"), frame.now())),
        ("next", wording.both(view.get("next_fire"), frame.now())),
        ("lives until", wording.both(view.get("ttl"), frame.now())),
        ("goes to", goes),
        ("now", parts["why"].get("why")),
        ("content type", view.get("content_type")),
        ("data in", view.get("data_uri")),
    ]


def _dag(view: Document, _: Parts) -> Pairs:
    edges = "\n".join(_edge(edge) for edge in view["edges"])
    nodes = "\n".join(f"{name}: {node['workflow']}" for name, node in view["nodes"].items())
    by = f", one run per {'/'.join(view['by'])}" if view.get("by") else ""
    return [("started by", f"{view['triggered_by']}{by}"), ("nodes", nodes), ("edges", edges)]


def _edge(edge: Document) -> str:
    """``a -> b``, with its options that differ from the default."""
    on = f" on {' or '.join(edge['on'])}" if edge["on"] != ["COMPLETED"] else ""
    within = f" within {edge['within']}" if edge.get("within") else ""
    pattern = f" if {json.dumps(edge['if'], ensure_ascii=False)}" if edge.get("if") is not None else ""
    return f"{edge['from']} -> {edge['to']}{on}{within}{pattern}"


def _group(view: Document, _: Parts) -> Pairs:
    """The facts of an app or namespace. An app shows its last deployment; single changes since then may differ."""
    deployed = view.get("deployed") or {}
    by = f" by {deployed['by']}" if deployed.get("by") else ""
    at = f"{wording.both(deployed.get('at'), frame.now())}{by}" if deployed else None
    return [("deployed", at), ("document", deployed.get("uri"))]


_PAGES: dict[names.Kind, Callable[[Document, Parts], Pairs]] = {
    NAMESPACE: _group,
    APP: _group,
    WORKFLOW: _workflow,
    SCHEDULE: _schedule,
    DATASET: _dataset,
    MESSAGE: _message,
    POLICY: _policy,
    DAG: _dag,
    POOL: _pool,
    CALENDAR: _calendar,
}


def _ownership(view: Document) -> Pairs:
    by = f" by {view['updated_by']}" if view.get("updated_by") else ""
    return [
        ("about", view.get("description")),
        ("owner", view.get("owner")),
        ("tags", wording.pairs(view.get("tags"), " ")),
        ("changed", f"{wording.both(view.get('updated_at'), frame.now())}{by}"),
    ]


def _below(heading: str, draw: Callable[..., None], *front: Any) -> Callable[[Console, Document], None]:
    """A table with a heading; nothing if the table is empty."""

    def show(console: Console, answer: Document) -> None:
        items = answer.get("items", answer.get("jobs", ()))
        if items:
            render.heading(console, heading)
            draw(console, *front, items, frame.now())

    return show


_BELOW = {
    "why": _below("Waiting jobs", tables.jobs),
    "runs": _below("Last runs", tables.runs),
    "records": _below("Last that never ran", tables.records),
    "versions": _below("Last versions", tables.versions),
    "partitions": _below("Partitions", tables.partitions),
    "apps": _below("Apps", tables.definitions, APP),
    "datasets": _below("Datasets", tables.definitions, DATASET),
    "workflows": _below("Workflows", tables.definitions, WORKFLOW),
    "schedules": _below("Schedules", tables.definitions, SCHEDULE),
}


_ENDED = _below(why.ENDED, tables.records)
_DAG_RUNS = _below("Last runs", tables.dag_runs)


def _listed(value: Any) -> str:
    if isinstance(value, dict):
        return wording.pairs(value, "\n")
    return "\n".join(str(item) for item in value) if isinstance(value, list) else str(value)
