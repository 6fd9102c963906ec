"""``sluice why``: what a job, run or schedule waits for, in the text of the scheduler's decision."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from sluice import names, render, wording
from sluice.cli import frame, tables
from sluice.client import Client, Document, segment
from sluice.errors import ApiRefused
from sluice.names import DAG, SCHEDULE

ENDED = "Last that never ran, or was cancelled"
FAILED = "Failed, and nothing ran since"
IN_FULL = 3  # jobs of a schedule that are shown in full; the others get one line each


class ByName(TyperGroup):
    """``sluice why NAME`` is short for ``why schedule NAME``, and ``sluice why ID`` for ``why run ID``."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        name = args[0] if args else ""
        if "." not in name or name.startswith("-"):
            return super().parse_args(ctx, args)
        return super().parse_args(ctx, ["schedule" if name.count(".") < 3 else "run", *args])


app = typer.Typer(
    cls=ByName,
    no_args_is_help=True,
    help="Explain why a job, run, schedule or DAG did or did not start: why NAME, or why ID.",
)


@app.command()
def job(
    job_id: Annotated[str, typer.Argument(metavar="ID", help="The id of a job, as jobs and run print it.")],
    as_json: frame.Json = False,
) -> None:
    """Show what arrived, what is missing, and what will wake a job; or what became of it."""
    _show_work(job_id, as_json, ("jobs", "runs"))


@app.command()
def run(
    run_id: Annotated[str, typer.Argument(metavar="ID", help="The id of a run, the same as that of its job.")],
    as_json: frame.Json = False,
) -> None:
    """Show what triggered a run, and why it is in its state; or why its job has not become a run."""
    _show_work(run_id, as_json, ("runs", "jobs"))


def _show_work(work_id: str, as_json: bool, kinds: tuple[str, str]) -> None:
    """Show the work of an id: a waiting job, a run, or what became of a job that never ran. ``kinds`` is the order in
    which to ask for them. If there is none, the error is that of the first."""
    client = frame.connect()
    try:
        answer = client.get(f"/v1/{kinds[0]}/{segment(work_id)}/why")
    except ApiRefused as refused:
        other = _found(client, f"/v1/{kinds[1]}/{segment(work_id)}/why") if refused.code == "not_found" else None
        if other is None:
            raise
        answer = other
    if as_json:
        render.machine(answer)
        return
    console = render.stdout()
    state = render.state(answer.get("state"))
    if "run_id" not in answer:
        render.title(console, "job", answer["job_id"], state)
        show_job(console, answer)
        return
    render.title(console, "job" if answer.get("kind") == "record" else "run", answer["run_id"], state)
    waited = answer.get("waited_ms")
    render.fields(
        console,
        [
            ("why", answer.get("why")),
            ("ended", wording.both(answer.get("at"), frame.now())),
            ("fired by", answer.get("fired_by")),
            ("waited", None if waited is None else wording.duration(waited / 1000)),
        ],
    )


def _found(client: Client, path: str) -> Document | None:
    try:
        return client.get(path)
    except ApiRefused as refused:
        if refused.code != "not_found":
            raise
        return None


@app.command()
def schedule(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A schedule or a DAG, such as demo.flights.clean.")],
    namespace: frame.Namespace = None,
    app_name: frame.App = None,
    as_json: frame.Json = False,
) -> None:
    """Show what went wrong last with a schedule or a DAG, what it waits for, its next fire, and its waiting jobs."""
    full, client = names.full_name(SCHEDULE, name, namespace, app_name), frame.connect()
    try:
        answer = client.get(f"{names.path_of(SCHEDULE, full)}/why")
    except ApiRefused as refused:
        may_be_dag = refused.code == "not_found" and "/" not in full
        of_dag = _found(client, f"{names.path_of(DAG, full)}/why") if may_be_dag else None
        if of_dag is None:
            raise
        answer = of_dag
    show_answer(answer, as_json)


def show_answer(answer: Document, as_json: bool) -> None:
    """Print why a schedule or a DAG has not run."""
    if as_json:
        render.machine(answer)
        return
    console = render.stdout()
    kind = "dag" if "dag" in answer else "schedule"
    render.title(console, kind, answer[kind], render.state(answer.get("state")))
    next_fire = wording.both(answer.get("next_fire"), frame.now())
    render.fields(console, [("why", answer.get("why")), ("next fire", next_fire)])
    if answer.get("failures"):
        render.heading(console, FAILED)
        tables.last_failures(console, answer["failures"], frame.now(), indent=2)
    jobs = answer.get("jobs") or []
    for waiting in jobs[:IN_FULL]:
        console.print()
        render.title(console, "job", waiting["job_id"], render.state(waiting.get("state")))
        show_job(console, waiting)
    if len(jobs) > IN_FULL:
        render.heading(console, f"and {wording.count(len(jobs) - IN_FULL, 'more job')}")
        tables.jobs(console, jobs[IN_FULL:], frame.now(), indent=2)
    if answer.get("ended"):
        render.heading(console, ENDED)
        tables.records(console, answer["ended"], frame.now(), indent=2)


def show_job(console: Console, answer: Document) -> None:
    render.fields(
        console,
        [
            ("decision", answer.get("decision")),
            ("why", answer.get("why")),
            ("fired by", answer.get("fired_by")),
            ("arrived", _lines(answer.get("arrived"))),
            ("missing", _lines(answer.get("missing"), "yellow")),
            ("wakes by", answer.get("wakes")),
            ("events", f"{answer['count']:,}" if answer.get("count", 1) > 1 else None),
            ("partition", wording.pairs(answer.get("correlation"))),
            ("since", wording.both(answer.get("since"), frame.now())),
        ],
    )
    if answer.get("constraints"):
        render.heading(console, "Constraints")
        tables.constraints(console, answer["constraints"], frame.now(), indent=2)


def _lines(sentences: list[str] | None, style: str = "") -> Text | None:
    return Text("\n".join(sentences), style=style) if sentences else None
