"""``sluice dags``: list DAGs, show their runs node by node, run and pause DAGs, cancel runs, run parts again (W4)."""

from __future__ import annotations

import json
import re
import uuid
from typing import Annotated, Any

import typer

from sluice import checks, names, render, states, wording
from sluice.cli import filters, frame, occurrences, schedules, search, tables, why
from sluice.cli.get import list_kind
from sluice.client import Client, Document, segment
from sluice.errors import WrongUsage
from sluice.names import DAG

app = typer.Typer(
    no_args_is_help=True, help="List DAGs, show their runs by node, run, pause and cancel them, run parts again."
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="A DAG, such as demo.flights.daily.")]
OneId = Annotated[str, typer.Argument(metavar="ID", help="The id of a DAG run.")]
Id = Annotated[
    str | None, typer.Argument(metavar="ID", help="The id of a DAG run; by default the newest run.", show_default=False)
]
Partition = Annotated[
    str | None,
    typer.Option("--partition", metavar="KEY=VALUE/...", help="The newest run of this partition, such as day=1."),
]
SEARCHED = 500  # the newest runs among which a partition is looked for


@app.command("list")
def list_dags(
    namespace: frame.Namespace = None,
    app_name: filters.OfApp = None,
    tag: filters.Tags = None,
    state: filters.States = None,
    text: filters.TextOfName = None,
    limit: Annotated[int, frame.Limit] = 0,
    as_json: frame.Json = False,
) -> None:
    """List the DAGs of an app, or of all apps of a namespace."""
    chosen = filters.read(tag, None, state)
    list_kind(DAG, namespace, app_name, chosen, (None, text), True, limit, as_json, "sluice dags list ...")


@app.command()
def runs(
    name: Name,
    namespace: frame.Namespace = None,
    app_name: frame.App = None,
    state: Annotated[
        str | None, typer.Option("--state", metavar="STATE", help="Only runs in this state, such as FAILED.")
    ] = None,
    since: filters.Since = None,
    until: filters.Until = None,
    limit: Annotated[int, frame.Limit] = 20,
    as_json: frame.Json = False,
) -> None:
    """List the runs of a DAG, newest first."""
    span = filters.span(since, until, frame.now())
    wanted, is_filtered = state.upper() if state else None, bool(state or since or until)

    def fits(run: Document) -> bool:
        return wanted in (None, run["state"]) and filters.is_within(run["started_at"], span)

    matches, path = fits if is_filtered else None, f"{_path(name, namespace, app_name)}/runs"
    found = search.search(frame.connect(), path, {}, limit or None, matches=matches)
    nothing = "no runs match" if is_filtered else "no runs yet"
    if items := tables.searched(found, limit or None, as_json, nothing):
        tables.dag_runs(render.stdout(), items, frame.now())
        tables.rest(found.answer, len(items), "sluice dags runs ...")


@app.command()
def show(
    name: Name,
    run_id: Id = None,
    partition: Partition = None,
    namespace: frame.Namespace = None,
    app_name: frame.App = None,
    as_json: frame.Json = False,
) -> None:
    """Show a DAG run: the state of each node, and why."""
    client, path = frame.connect(), _path(name, namespace, app_name)
    _show(client.get(f"{path}/runs/{segment(_wanted(client, name, path, run_id, partition))}"), as_json)


@app.command()
def run(
    name: Name,
    at: Annotated[str | None, typer.Option("--at", metavar="WHEN", help="An instant, or 2h30m from now.")] = None,
    namespace: frame.Namespace = None,
    app_name: frame.App = None,
    as_json: frame.Json = False,
) -> None:
    """Run a DAG now, without its trigger; print the run's id."""
    body: Document = {"at": at} if at is not None else {}
    answer = frame.connect().post(f"{_path(name, namespace, app_name)}/run", body, key=uuid.uuid4().hex)
    if as_json:
        render.machine(answer)
    else:
        print(answer["run_id"])


@app.command()
def rerun(
    name: Name,
    run_id: Id = None,
    partition: Partition = None,
    since: Annotated[
        str | None, typer.Option("--from", metavar="NODE", help="This node and all that follow it.")
    ] = None,
    only: Annotated[str | None, typer.Option("--only", metavar="NODE", help="Only this node.")] = None,
    every: Annotated[bool, typer.Option("--all", metavar="", help="All nodes.")] = False,
    namespace: frame.Namespace = None,
    app_name: frame.App = None,
    as_json: frame.Json = False,
) -> None:
    """Run a part of a DAG run again, once no node of it is active.

    A node that runs once for each element of a list is named whole, or with elements: --from 'load[3,17]' runs two
    again, --from 'load[failed]' all that failed, and then what follows the node.
    """
    options: dict[str, Any] = {"from": since, "only": only, "all": every}
    body = {option: value for option, value in options.items() if value}
    if len(body) != 1:
        got = "several" if body else "none"
        raise WrongUsage(f"expected one of --from NODE, --only NODE and --all, got {got}", "--from")
    for option in {"from", "only"} & body.keys():
        body |= _chosen(str(body[option]), option)
    client, path = frame.connect(), _path(name, namespace, app_name)
    wanted = _wanted(client, name, path, run_id, partition)
    # The key makes a repeat after a lost answer the same re-run.
    _show(client.post(f"{path}/runs/{segment(wanted)}/rerun", body, key=uuid.uuid4().hex), as_json)


@app.command()
def elements(
    name: Name,
    named: Annotated[
        str, typer.Argument(metavar="[ID] NODE", help="A node; before it the id of a DAG run, if not the newest.")
    ],
    last: Annotated[str | None, typer.Argument(metavar="", show_default=False, hidden=True)] = None,
    partition: Partition = None,
    namespace: frame.Namespace = None,
    app_name: frame.App = None,
    limit: Annotated[int, frame.Limit] = 100,
    as_json: frame.Json = False,
) -> None:
    """List the elements of a node that runs once for each, those that failed first.

    Without an ID, those of the newest run of the DAG.
    """
    run_id, node = (None, named) if last is None else (named, last)
    client, path = frame.connect(), _path(name, namespace, app_name)
    wanted = _wanted(client, name, path, run_id, partition)
    answer = client.listing(f"{path}/runs/{segment(wanted)}/nodes/{segment(node)}/elements", most=limit or None)
    if as_json:
        render.machine(answer)
        return
    if not answer["items"]:
        render.note(_why_none(client.get(f"{path}/runs/{segment(wanted)}"), node))
        return
    now = frame.now()
    rows: list[tuple[render.Cell, ...]] = [
        (
            f"{node}[{each['index']}]",
            render.state(each["state"]),
            wording.ago(each.get("started_at"), now),
            json.dumps(each["value"], ensure_ascii=False),
            each.get("run_id"),
            each["why"],
        )
        for each in answer["items"]
    ]
    render.table(render.stdout(), ("ELEMENT", "STATE", "STARTED", "VALUE", "RUN", "WHY…"), rows)
    tables.rest(answer, len(answer["items"]), "sluice dags elements ...")


@app.command()
def enable(
    name: Name, namespace: frame.Namespace = None, app_name: frame.App = None, as_json: frame.Json = False
) -> None:
    """Enable a DAG: its trigger starts runs from now on."""
    _switch("enable", name, namespace, app_name, as_json)


@app.command()
def disable(
    name: Name, namespace: frame.Namespace = None, app_name: frame.App = None, as_json: frame.Json = False
) -> None:
    """Disable a DAG: it starts no runs; active runs continue."""
    _switch("disable", name, namespace, app_name, as_json)


@app.command()
def pause(
    name: Name,
    mode: schedules.Mode = "hold",
    stop_timeouts: schedules.StopTimeouts = False,
    namespace: frame.Namespace = None,
    app_name: frame.App = None,
    as_json: frame.Json = False,
) -> None:
    """Pause a DAG until it is resumed: its start and its nodes; active runs of nodes go on."""
    body = {
        "mode": checks.one_of(mode, tuple(states.MODES), "--mode"),
        "timeouts": "stop" if stop_timeouts else "count",
    }
    _switch("pause", name, namespace, app_name, as_json, body)


@app.command()
def resume(
    name: Name, namespace: frame.Namespace = None, app_name: frame.App = None, as_json: frame.Json = False
) -> None:
    """Resume a paused DAG; what waited goes on."""
    _switch("resume", name, namespace, app_name, as_json)


@app.command()
def cancel(
    name: Name,
    run_id: OneId,
    namespace: frame.Namespace = None,
    app_name: frame.App = None,
    as_json: frame.Json = False,
) -> None:
    """Cancel a DAG run: its active nodes end, and no other node starts.

    Not even one with the join rule all_done starts. A run that waits to begin never begins.
    """
    client = frame.connect()
    view = client.get(f"{_path(name, namespace, app_name)}/runs/{segment(run_id)}")
    of, ends = ("jobs", ["the start"]) if view["state"] == "WAITING" else ("runs", _active(view))
    client.post(f"/v1/{of}/{segment(run_id)}/cancel", repeatable=True)
    if as_json:
        render.machine({"dag": view["dag"], "run_id": run_id, "cancelled": ends})
    else:
        render.note(f"cancelled: {', '.join(ends)}" if ends else "it was cancelled before")


@app.command("why")
def why_dag(
    name: Name, namespace: frame.Namespace = None, app_name: frame.App = None, as_json: frame.Json = False
) -> None:
    """Show which nodes failed last, what an active run waits for, and the next start of a DAG."""
    why.show_answer(frame.connect().get(f"{_path(name, namespace, app_name)}/why"), as_json)


@app.command()
def skip(
    name: Name,
    at: occurrences.At,
    namespace: frame.Namespace = None,
    app_name: frame.App = None,
    as_json: frame.Json = False,
) -> None:
    """Skip one occurrence of the times that start a DAG."""
    occurrences.act(f"{_path(name, namespace, app_name)}/skip", at, as_json)


@app.command()
def unskip(
    name: Name,
    at: occurrences.At,
    namespace: frame.Namespace = None,
    app_name: frame.App = None,
    as_json: frame.Json = False,
) -> None:
    """Cancel the skip of an occurrence."""
    occurrences.act(f"{_path(name, namespace, app_name)}/unskip", at, as_json)


def _switch(
    action: str, name: str, namespace: str | None, app_name: str | None, as_json: bool, body: Document | None = None
) -> None:
    path = f"{_path(name, namespace, app_name)}/{action}"
    answer = frame.connect().post(path, body, repeatable=True)
    if as_json:
        render.machine(answer)
    else:
        render.note(f"{answer['name']} is {answer['state']}")


def _active(view: Document) -> list[str]:
    """The nodes of a DAG run that have a job or a run that has not ended."""
    return [
        node
        for node, status in view["nodes"].items()
        if status["state"] in ("WAITING", "STARTING", "RUNNING", "RETRYING")
    ]


def _path(name: str, namespace: str | None, app_name: str | None) -> str:
    return names.path_of(DAG, names.full_name(DAG, name, namespace, app_name))


def _wanted(client: Client, name: str, path: str, run_id: str | None, partition: str | None) -> str:
    """The id of the DAG run that a command means: the one that it names, or the newest one, of a partition if it names
    that. stderr says which. Raises `WrongUsage` if there is none."""
    if run_id is not None:
        if partition is not None:
            raise WrongUsage("expected either the ID of a run or --partition, got both", "--partition")
        return run_id
    values = frame.pairs_of("--partition", partition.strip("/").split("/")) if partition else {}
    items = client.listing(f"{path}/runs", most=SEARCHED if values else 1)["items"]
    found = next((run for run in items if values.items() <= (run.get("partition") or {}).items()), None)
    if found is None:
        expected = f"a run of {partition} among the newest {SEARCHED}" if values else "a DAG with a run"
        raise WrongUsage(f"expected {expected}, got none", "ID", f"sluice dags runs {name} lists the runs")
    render.note(f"the newest run{f' of {partition}' if partition else ''}: {found['run_id']}")
    return str(found["run_id"])


def _show(view: Document, as_json: bool) -> None:
    if as_json:
        render.machine(view)
        return
    console, now = render.stdout(), frame.now()
    late = render.state("LATE") if view.get("late") else None
    render.title(console, "run of", view["dag"], render.state(view["state"]), late)
    facts: list[tuple[str, render.Cell]] = [
        ("run", view["run_id"]),
        ("waits", view.get("why")),
        ("fired by", view["fired_by"]),
        ("partition", wording.pairs(view.get("partition"))),
        ("nominal", wording.both(view.get("nominal_at"), now)),
        ("started", wording.both(view.get("started_at"), now)),
        ("ended", wording.both(view.get("ended_at"), now)),
        ("deadline", wording.both(view.get("end_by"), now)),
        ("run again", "\n".join(_again(rerun) for rerun in view["reruns"])),
    ]
    render.fields(console, facts)
    render.heading(console, "Nodes")
    rows: list[tuple[render.Cell, ...]] = [
        (
            node,
            render.state(status["state"]),
            str(status["round"]),
            wording.ago(status.get("started_at"), now),
            status.get("run_id"),
            _why(status),
        )
        for node, status in view["nodes"].items()
    ]
    render.table(console, ("NODE", "STATE", "ROUND", "STARTED", "RUN", "WHY…"), rows, indent=2)


def _why(status: Document) -> str:
    """Why a node is in its state; of one with elements under way, how many run and wait."""
    counts, why = status.get("elements") or {}, str(status["why"])
    return f"{why}, {counts['running']:,} running, {counts['waiting']:,} waiting" if "running" in counts else why


def _why_none(view: Document, node: str) -> str:
    """Why a node of a DAG run has no elements: its list is empty, or it has not read it."""
    status = view["nodes"].get(node)
    if status is None or status["state"] == "SUCCEEDED":
        return f"{node} has no elements: its list is empty"
    return f"{node} has no elements: it is {status['state']}: {status['why']}"


def _chosen(given: str, option: str) -> Document:
    """The node of an option, and its elements if it names some, as ``load[3,17]``."""
    found = re.fullmatch(r"([^\[\]]+)\[(failed|\d+(?:,\d+)*)\]", given)
    if found is None:
        if "[" in given:
            raise WrongUsage(
                f"expected a node, or elements of it such as load[3,17] or load[failed], got {given}", f"--{option}"
            )
        return {option: given}
    node, which = found.groups()
    return {option: node, "elements": which if which == "failed" else [int(index) for index in which.split(",")]}


def _again(rerun: Document) -> str:
    part = f"{rerun['what']} {rerun['node']}" if rerun.get("node") else rerun["what"]
    if rerun.get("elements"):
        part += f"[{','.join(map(str, rerun['elements']))}]"
    return f"{part}, by {rerun['by']} at {wording.exact(rerun['at'])}"
