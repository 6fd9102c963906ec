"""``sluice reprocess``: run partitions again with all downstream schedules, show the progress, and cancel it (L21)."""

from __future__ import annotations

import uuid
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from sluice import names, render, spell
from sluice.cli import frame, tables
from sluice.client import Document, segment
from sluice.errors import WrongUsage
from sluice.names import DATASET, NAMESPACE, WORKFLOW

BEGIN = "begin"


class WithoutBegin(TyperGroup):
    """``sluice reprocess DATASET PARTITION`` is short for ``sluice reprocess begin DATASET PARTITION``."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        short = bool(args) and args[0] not in self.commands and not args[0].startswith("-")
        return super().resolve_command(ctx, [BEGIN, *args] if short else args)


app = typer.Typer(
    cls=WithoutBegin,
    no_args_is_help=True,
    help="Run partitions again with everything downstream of them: DATASET PARTITION, or begin, list, show, cancel.",
)

Id = Annotated[str, typer.Argument(metavar="ID", help="The id of a re-processing.")]
Place = Annotated[
    str | None,
    typer.Option("--namespace", "-n", metavar="NS", envvar="SLUICE_NAMESPACE", help="The namespace of its dataset."),
]
COUNTS = ("waiting", "running", "succeeded", "failed", "cancelled")


@app.command(BEGIN)
def begin(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="A dataset, such as demo.flights.")],
    partition: Annotated[
        str | None, typer.Argument(metavar="[PARTITION]", help="Such as year=2013/month=1/day=5.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--from", metavar="PARTITION", help="The first partition, such as year=2013/month=1.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--to", metavar="PARTITION", help="The last partition, included.")
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
    namespace: frame.Namespace = None,
    app_name: frame.App = None,
    as_json: frame.Json = False,
) -> None:
    """Run partitions of a dataset again; print the id of the re-processing."""
    if only + downstream + (upto is not None) > 1:
        raise WrongUsage("expected one of --only, --downstream and --upto, got several", "--upto")
    full = names.full_name(DATASET, dataset, namespace, app_name, "DATASET")
    body: Document = {
        "dataset": full,
        **_what(partition, since, until),
        "scope": "only" if only else "downstream",
        "concurrency": concurrency,
        "properties": frame.pairs_of("--property", properties or []),
        "dry_run": dry_run,
    }
    if upto is not None:
        body["upto"] = names.full_name(WORKFLOW, upto, full.partition(".")[0], app_name, "--upto")
    # The key makes a repeat after a lost answer the same re-processing.
    answer = frame.connect().post(_path(full.partition(".")[0]), body, key=uuid.uuid4().hex)
    if as_json:
        render.machine(answer)
    elif dry_run:
        _show_plan(answer)
    else:
        print(answer["reprocess_id"])
        if render.stderr().is_terminal:
            render.note(f"sluice reprocess show {answer['reprocess_id']} -n {answer['namespace']}")


@app.command("list")
def list_reprocesses(
    namespace: Place = None, limit: Annotated[int, frame.Limit] = 20, as_json: frame.Json = False
) -> None:
    """List the re-processings of a namespace, newest first."""
    answer = frame.connect().listing(_path(frame.needed_namespace(namespace)), most=limit or None)
    if as_json:
        render.machine(answer)
        return
    if not answer["items"]:
        render.note("no re-processings yet")
        return
    now = frame.now()
    rows: list[tuple[render.Cell, ...]] = [
        (
            item["reprocess_id"],
            render.state(item["state"]),
            spell.ago(item["created_at"], now),
            _done(item),
            str(item["failed"]) if item["failed"] else None,
            item["dataset"],
            spell.pairs(item["first"]),
            spell.pairs(item["last"]),
        )
        for item in answer["items"]
    ]
    columns = ("REPROCESSING", "STATE", "BEGUN", "DONE", "FAILED", "DATASET", "FIRST", "LAST")
    render.table(render.stdout(), columns, rows)
    tables.rest(answer, len(rows), "sluice reprocess list ...")


@app.command()
def show(reprocess_id: Id, namespace: Place = None, as_json: frame.Json = False) -> None:
    """Show the progress of a re-processing, step by step."""
    path = f"{_path(frame.needed_namespace(namespace))}/{segment(reprocess_id)}"
    _show(frame.connect().get(path), as_json)


@app.command()
def cancel(
    reprocess_id: Id,
    runs: Annotated[bool, typer.Option("--runs", metavar="", help="Also cancel active runs.")] = False,
    namespace: Place = None,
    as_json: frame.Json = False,
) -> None:
    """Cancel a re-processing: it starts no more runs. Active runs continue, unless --runs cancels them."""
    path = f"{_path(frame.needed_namespace(namespace))}/{segment(reprocess_id)}/cancel"
    # Repeatable: the request is idempotent.
    answer = frame.connect().request("POST", path, {}, {"runs": "cancel" if runs else None}, repeatable=True).body
    _show(answer, as_json)


def _path(namespace: str) -> str:
    return f"{names.path_of(NAMESPACE, namespace)}/reprocess"


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


def _show_plan(plan: Document) -> None:
    console = render.stdout()
    render.title(console, "re-processing of", plan["dataset"], spell.count(plan["total"], "run"))
    rows: list[tuple[render.Cell, ...]] = [
        (str(step["step"]), step["schedule"], str(step["total"]), _partitions(step), step["why"])
        for step in plan["steps"]
    ]
    render.table(console, ("STEP", "SCHEDULE", "RUNS", "PARTITIONS", "WHY…"), rows, indent=2)


def _partitions(step: Document) -> str:
    """The first and the last partition of a step."""
    shown = [spell.pairs(each) for each in (*step["first"], *step["last"])]
    return shown[0] if len(shown) == 1 else f"{shown[0]} to {shown[-1]}"


def _show(view: Document, as_json: bool) -> None:
    if as_json:
        render.machine(view)
        return
    console, now = render.stdout(), frame.now()
    render.title(console, "re-processing", view["reprocess_id"], render.state(view["state"]), f"{_done(view)} runs")
    first, last = spell.pairs(view["first"]), spell.pairs(view["last"])
    facts: list[tuple[str, render.Cell]] = [
        ("dataset", view["dataset"]),
        ("reason", view.get("reason")),
        ("partitions", f"{first if first == last else f'{first} to {last}'}, {view['concurrency']} at a time"),
        ("counts", _counts(view)),
        ("properties", spell.pairs(view.get("properties"), "\n")),
        ("begun", f"{spell.both(view['created_at'], now)} by {view['created_by']}"),
        ("ended", spell.both(view.get("ended_at"), now)),
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


def _counts(view: Document) -> str:
    return ", ".join(f"{view[what]} {what}" for what in COUNTS if view[what])
