"""``sluice dags``: list DAGs, see their runs node by node, run them, and run parts of a run again (W4)."""

from __future__ import annotations

import uuid
from typing import Annotated, Any

import typer

from sluice import names, render, spell
from sluice.cli import frame, tables
from sluice.cli.get import listing
from sluice.client import Document, segment
from sluice.errors import WrongUsage
from sluice.names import DAG

app = typer.Typer(no_args_is_help=True, help="DAGs: list them, see their runs, run them, run parts again.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="A DAG, such as demo.flights.daily.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="The id of a run of it.")]


@app.command("list")
def list_dags(namespace: frame.Namespace = None, app_name: frame.App = None, as_json: frame.Json = False) -> None:
    """List the DAGs of an app, or of all apps of a namespace."""
    answer = listing(DAG, *names.place(namespace, app_name))
    if as_json:
        render.machine(answer)
    elif answer["items"]:
        tables.definitions(render.stdout(), DAG, answer["items"], frame.now())
    else:
        render.note("no dags here")


@app.command()
def runs(
    name: Name,
    namespace: frame.Namespace = None,
    app_name: frame.App = None,
    limit: Annotated[int, frame.Limit] = 20,
    as_json: frame.Json = False,
) -> None:
    """List the runs of a DAG, the newest first."""
    answer = frame.connect().listing(f"{_path(name, namespace, app_name)}/runs", most=limit or None)
    if as_json:
        render.machine(answer)
        return
    if not answer["items"]:
        render.note("no runs yet")
        return
    tables.dag_runs(render.stdout(), answer["items"], frame.now())
    tables.rest(answer, len(answer["items"]), "sluice dags runs ...")


@app.command()
def show(
    name: Name,
    run_id: Id,
    namespace: frame.Namespace = None,
    app_name: frame.App = None,
    as_json: frame.Json = False,
) -> None:
    """How a run of a DAG stands, node by node, and why."""
    _show(frame.connect().get(f"{_path(name, namespace, app_name)}/runs/{segment(run_id)}"), as_json)


@app.command()
def run(
    name: Name,
    at: Annotated[str | None, typer.Option("--at", metavar="WHEN", help="An instant, or 2h30m from now.")] = None,
    namespace: frame.Namespace = None,
    app_name: frame.App = None,
    as_json: frame.Json = False,
) -> None:
    """Begin a run of a DAG now, past its trigger; prints the run's id."""
    body: Document = {"at": at} if at is not None else {}
    answer = frame.connect().post(f"{_path(name, namespace, app_name)}/run", body, key=uuid.uuid4().hex)
    if as_json:
        render.machine(answer)
    else:
        print(answer["run_id"])


@app.command()
def rerun(
    name: Name,
    run_id: Id,
    since: Annotated[
        str | None, typer.Option("--from", metavar="NODE", help="This node, and all that follows it.")
    ] = None,
    only: Annotated[str | None, typer.Option("--only", metavar="NODE", help="This node alone.")] = None,
    every: Annotated[bool, typer.Option("--all", metavar="", help="All nodes.")] = False,
    namespace: frame.Namespace = None,
    app_name: frame.App = None,
    as_json: frame.Json = False,
) -> None:
    """Run a part of a DAG's run again, when nothing of it is under way."""
    wishes: dict[str, Any] = {"from": since, "only": only, "all": every}
    body = {what: wish for what, wish in wishes.items() if wish}
    if len(body) != 1:
        got = "several" if body else "none"
        raise WrongUsage(f"expected one of --from NODE, --only NODE and --all, got {got}", "--from")
    path = f"{_path(name, namespace, app_name)}/runs/{segment(run_id)}/rerun"
    # One wish, one key: if the answer is lost and the request is sent again, it is still one re-run.
    _show(frame.connect().post(path, body, key=uuid.uuid4().hex), as_json)


@app.command()
def enable(
    name: Name, namespace: frame.Namespace = None, app_name: frame.App = None, as_json: frame.Json = False
) -> None:
    """Let a DAG begin runs from now on."""
    _switch("enable", name, namespace, app_name, as_json)


@app.command()
def disable(
    name: Name, namespace: frame.Namespace = None, app_name: frame.App = None, as_json: frame.Json = False
) -> None:
    """Let a DAG begin no runs; those that have begun go on."""
    _switch("disable", name, namespace, app_name, as_json)


def _switch(action: str, name: str, namespace: str | None, app_name: str | None, as_json: bool) -> None:
    path = f"{_path(name, namespace, app_name)}/{action}"
    answer = frame.connect().post(path, repeatable=True)
    if as_json:
        render.machine(answer)
    else:
        render.note(f"{answer['name']} is {answer['state']}")


def _path(name: str, namespace: str | None, app_name: str | None) -> str:
    return names.path_of(DAG, names.full_name(DAG, name, namespace, app_name))


def _show(view: Document, as_json: bool) -> None:
    if as_json:
        render.machine(view)
        return
    console, now = render.stdout(), frame.now()
    render.title(console, "run of", view["dag"], render.state(view["state"]))
    told: list[tuple[str, render.Cell]] = [
        ("run", view["run_id"]),
        ("fired by", view["fired_by"]),
        ("partition", spell.pairs(view.get("partition"))),
        ("nominal", spell.both(view.get("nominal_at"), now)),
        ("started", spell.both(view["started_at"], now)),
        ("ended", spell.both(view.get("ended_at"), now)),
        ("run again", "\n".join(_again(wish) for wish in view["reruns"])),
    ]
    render.fields(console, told)
    render.heading(console, "Nodes")
    rows: list[tuple[render.Cell, ...]] = [
        (
            node,
            render.state(each["state"]),
            str(each["round"]),
            spell.ago(each.get("started_at"), now),
            each.get("run_id"),
            each["why"],
        )
        for node, each in view["nodes"].items()
    ]
    render.table(console, ("NODE", "STATE", "ROUND", "STARTED", "RUN", "WHY…"), rows, indent=2)


def _again(wish: Document) -> str:
    what = f"{wish['what']} {wish['node']}" if wish.get("node") else wish["what"]
    return f"{what}, by {wish['by']} at {spell.exact(wish['at'])}"
