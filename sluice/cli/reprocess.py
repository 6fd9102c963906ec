"""``sluice reprocess``: run partitions again with all downstream schedules, show the progress, and cancel it (L21)."""

from __future__ import annotations

import uuid
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from sluice import checks, names, render, wording
from sluice.cli import filters, frame, progress, search, tables
from sluice.client import Client, Document, segment
from sluice.errors import WrongUsage
from sluice.names import DATASET, NAMESPACE, SCHEDULE, WORKFLOW

BEGIN = "begin"


class WithoutBegin(TyperGroup):
    """``sluice reprocess DATASET PARTITION`` is short for ``sluice reprocess begin DATASET PARTITION``."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        short = bool(args) and args[0] not in self.commands and args[0] not in ctx.help_option_names
        return super().parse_args(ctx, [BEGIN, *args] if short else args)


app = typer.Typer(
    cls=WithoutBegin,
    no_args_is_help=True,
    help="Run partitions, a run or fires again with everything downstream: reprocess DATASET PARTITION. List, show and "
    "cancel what was begun.",
)

Id = Annotated[str, typer.Argument(metavar="ID", help="The id of a re-processing.")]
Place = Annotated[
    str | None,
    typer.Option("--namespace", "-n", metavar="NS", envvar="SLUICE_NAMESPACE", help="The namespace of its dataset."),
]
Wait = Annotated[
    bool, typer.Option("--wait", "-w", metavar="", help="Show the progress until the end; exit 1 unless all succeed.")
]
COUNTS = ("waiting", "running", "succeeded", "failed", "cancelled")


@app.command(BEGIN)
def begin(
    dataset: Annotated[str | None, typer.Argument(metavar="DATASET", help="A dataset, such as demo.flights.")] = None,
    partition: Annotated[
        str | None, typer.Argument(metavar="PARTITION", help="Such as year=2013/month=1/day=5.")
    ] = None,
    run: Annotated[
        str | None, typer.Option("--run", metavar="ID", help="Begin with this run, also a run of a DAG.")
    ] = None,
    schedule: Annotated[
        str | None,
        typer.Option(
            "--schedule", "-s", metavar="NAME", help="Begin with the fires of a schedule, from --from to --to."
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="PARTITION|WHEN", help="The first partition (year=2013/month=1), or an instant."
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--to", metavar="PARTITION|WHEN", help="The last partition, included, or an instant, excluded."),
    ] = None,
    only: Annotated[bool, typer.Option("--only", metavar="", help="Run nothing downstream.")] = False,
    downstream: Annotated[
        bool, typer.Option("--downstream", metavar="", help="Run everything downstream; this is the default.")
    ] = False,
    upto: Annotated[
        str | None,
        typer.Option("--upto", metavar="WORKFLOW", help="Run what leads to this workflow, and the workflow."),
    ] = None,
    concurrency: Annotated[
        int, typer.Option("--concurrency", "-c", min=1, metavar="N", help="How many runs at a time.", show_default=True)
    ] = 1,
    properties: Annotated[
        list[str] | None,
        typer.Option("--property", "-p", metavar="KEY=VALUE", help="A property of these runs only; repeatable."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", metavar="", help="Show what would run, and why; start nothing.")
    ] = False,
    wait: Wait = False,
    namespace: frame.Namespace = None,
    app_name: frame.App = None,
    as_json: frame.Json = False,
) -> None:
    """Run partitions of a dataset, a run, or fires again; print the id of the re-processing."""
    if wait and dry_run:
        raise WrongUsage("expected one of --wait and --dry-run, got both", "--wait")
    if only + downstream + (upto is not None) > 1:
        raise WrongUsage("expected one of --only, --downstream and --upto, got several", "--upto")
    if sum(start is not None for start in (dataset, run, schedule)) != 1:
        got = "none" if dataset is run is schedule else "several"
        raise WrongUsage(f"expected one of DATASET, --run and --schedule, got {got}", "DATASET")
    if app_name is not None and schedule is None and upto is None:
        raise WrongUsage("expected --app with --schedule or --upto, got neither", "--app", "leave it out")
    if run is not None:
        if since is not None or until is not None:
            raise WrongUsage("expected --from and --to without --run, got both", "--run")
        start: Document = {"run": run}
        place = run.partition(".")[0]
    elif schedule is not None:
        full = names.full_name(SCHEDULE, schedule, namespace, app_name, "--schedule")
        start, place = {"fires": {"schedule": full, **_interval(since, until)}}, full.partition(".")[0]
    else:
        full = names.full_name(DATASET, dataset or "", namespace, field="DATASET")
        start, place = {"dataset": full, **_what(partition, since, until)}, full.partition(".")[0]
    body: Document = {
        **start,
        "scope": "only" if only else "downstream",
        "concurrency": concurrency,
        "properties": frame.pairs_of("--property", properties or []),
        "dry_run": dry_run,
    }
    if upto is not None:
        body["upto"] = names.full_name(WORKFLOW, upto, place, app_name, "--upto")
    client = frame.connect()
    # The key makes a repeat after a lost answer the same re-processing.
    answer = client.post(path_of(place), body, key=uuid.uuid4().hex)
    if wait:
        if not as_json:
            print(answer["reprocess_id"], flush=True)
        _follow(client, answer, as_json)
    elif as_json:
        render.machine(answer)
    elif dry_run:
        show_plan(answer)
    else:
        print(answer["reprocess_id"])
        for step in answer["steps"]:
            if step.get("registered") is False:
                render.note(f"{step['schedule']} {step['why']}; sluice reprocess cancel, if that is a typing error")
        if render.stderr().is_terminal:
            render.note(f"sluice reprocess show {answer['reprocess_id']} -n {answer['namespace']}")


@app.command("list")
def list_reprocesses(
    namespace: Place = None,
    state: filters.OfState = None,
    since: filters.Since = None,
    until: filters.Until = None,
    limit: Annotated[int, frame.Limit] = 20,
    as_json: frame.Json = False,
) -> None:
    """List the re-processings of a namespace, newest first."""
    now, maximum = frame.now(), limit or None
    matches = filters.begun(state, filters.span(since, until, now))
    found = search.search(frame.connect(), path_of(frame.needed_namespace(namespace)), {}, maximum, matches=matches)
    items = tables.searched(found, maximum, as_json, "no re-processings match" if matches else "no re-processings yet")
    if not items:
        return
    rows: list[tuple[render.Cell, ...]] = [
        (
            item["reprocess_id"],
            render.state(item["state"]),
            wording.ago(item["created_at"], now),
            _done(item),
            str(item["failed"]) if item["failed"] else None,
            _start(item),
            wording.entry(item["first"]),
            wording.entry(item["last"]),
        )
        for item in items
    ]
    columns = ("REPROCESSING", "STATE", "BEGUN", "DONE", "FAILED", "OF", "FIRST", "LAST")
    render.table(render.stdout(), columns, rows)
    tables.rest(found.answer, len(rows), "sluice reprocess list ...")


@app.command()
def show(reprocess_id: Id, wait: Wait = False, namespace: Place = None, as_json: frame.Json = False) -> None:
    """Show the progress of a re-processing, step by step."""
    client = frame.connect()
    view = client.get(f"{path_of(frame.needed_namespace(namespace))}/{segment(reprocess_id)}")
    if wait:
        _follow(client, view, as_json)
    else:
        _show(view, as_json)


@app.command()
def cancel(
    reprocess_id: Id,
    runs: Annotated[bool, typer.Option("--runs", metavar="", help="Also cancel active runs.")] = False,
    namespace: Place = None,
    as_json: frame.Json = False,
) -> None:
    """Cancel a re-processing: it starts no more runs. Active runs continue, unless --runs cancels them."""
    path = f"{path_of(frame.needed_namespace(namespace))}/{segment(reprocess_id)}/cancel"
    # Repeatable: the request is idempotent.
    answer = frame.connect().request("POST", path, {}, {"runs": "cancel" if runs else None}, repeatable=True).body
    _show(answer, as_json)


def path_of(namespace: str) -> str:
    """The path of the re-processings of a namespace."""
    return f"{names.path_of(NAMESPACE, namespace)}/reprocess"


def _follow(client: Client, view: Document, as_json: bool) -> None:
    """Show the progress until the end. Exits with 1 unless every step has succeeded."""
    path = f"{path_of(view['namespace'])}/{segment(view['reprocess_id'])}"
    try:
        last = progress.until_over(client, path, quiet=as_json)
    except KeyboardInterrupt:
        render.note(f"stopped following; it continues: sluice reprocess cancel {view['reprocess_id']} ends it")
        raise typer.Exit(130) from None
    _show(last, as_json)
    if last["state"] != "DONE":
        raise typer.Exit(1)


def _interval(since: str | None, until: str | None) -> Document:
    if since is None or until is None:
        hint = "--from 2026-01-01 --to 2026-02-01"
        raise WrongUsage("expected both ends of an interval", "--from" if since is None else "--to", hint)
    return {"from": checks.day_or_instant(since, "--from"), "to": checks.day_or_instant(until, "--to")}


def _start(view: Document) -> str:
    """What a re-processing begins with."""
    fires = view.get("fires")
    return str(view.get("dataset") or view.get("run") or (fires["schedule"] if fires else ""))


def _what(partition: str | None, since: str | None, until: str | None) -> Document:
    bounds = {"from": since, "to": until}
    given = {name: _values(text, f"--{name}") for name, text in bounds.items() if text is not None}
    if (partition is None) == (not given):
        got = "both" if given else "neither"
        hint = "sluice reprocess demo.flights year=2013/month=1/day=5, or --from year=2013/month=1"
        raise WrongUsage(f"expected a partition, or --from and --to, got {got}", "PARTITION", hint)
    return given if partition is None else {"partition": _values(partition, "PARTITION")}


def _values(text: str, option: str) -> dict[str, str]:
    return frame.pairs_of(option, text.strip("/").split("/"))


def _done(view: Document) -> str:
    return f"{view['succeeded'] + view['failed'] + view['cancelled']}/{view['total']}"


def show_plan(plan: Document, console: Console | None = None) -> None:
    """Print the steps of a dry run, and why each runs."""
    console = console or render.stdout()
    render.title(console, "re-processing of", _start(plan), wording.count(plan["total"], "run"))
    rows: list[tuple[render.Cell, ...]] = [
        (str(step["step"]), step["schedule"], str(step["total"]), _partitions(step), step["why"])
        for step in plan["steps"]
    ]
    render.table(console, ("STEP", "SCHEDULE", "RUNS", "PARTITIONS", "WHY…"), rows, indent=2)
    left: list[tuple[render.Cell, ...]] = [(each["schedule"], each["why"]) for each in plan["not_followed"]]
    if left:
        render.table(console, ("NOT FOLLOWED", "WHY…"), left, indent=2)


def _partitions(step: Document) -> str:
    """The first and the last partition of a step."""
    shown = [wording.entry(each) for each in (*step["first"], *step["last"])]
    return shown[0] if len(shown) == 1 else f"{shown[0]} to {shown[-1]}"


def _show(view: Document, as_json: bool) -> None:
    if as_json:
        render.machine(view)
        return
    console, now = render.stdout(), frame.now()
    render.title(console, "re-processing", view["reprocess_id"], render.state(view["state"]), f"{_done(view)} runs")
    first, last = wording.entry(view["first"]), wording.entry(view["last"])
    fires = view.get("fires")
    facts: list[tuple[str, render.Cell]] = [
        ("dataset", view["dataset"]),
        ("run", view.get("run")),
        ("fires of", fires["schedule"] if fires else None),
        ("reason", view.get("reason")),
        ("of", first if first == last else f"{first} to {last}"),
        ("at a time", str(view["concurrency"])),
        ("progress", progress.bar(view)),
        ("counts", _counts(view)),
        ("properties", wording.pairs(view.get("properties"), "\n")),
        ("begun", f"{wording.both(view['created_at'], now)} by {view['created_by']}"),
        ("ended", wording.both(view.get("ended_at"), now)),
    ]
    render.fields(console, facts)
    _show_steps(console, view["steps"])


def _show_steps(console: Console, steps: list[Document]) -> None:
    render.heading(console, "Steps")
    rows: list[tuple[render.Cell, ...]] = [
        (
            str(step["step"]),
            step["schedule"],
            render.state(step["state"]),
            _counts(step),
            step.get("reason") or step["why"],
        )
        for step in steps
    ]
    render.table(console, ("STEP", "SCHEDULE", "STATE", "RUNS", "WHY…"), rows, indent=2)
    tables.failures(console, [failure for step in steps for failure in step.get("failures") or ()])


def _counts(view: Document) -> str:
    return ", ".join(f"{view[what]} {what}" for what in COUNTS if view[what])
