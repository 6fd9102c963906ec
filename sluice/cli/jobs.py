"""``sluice jobs``: list waiting jobs; cancel them; approve or refuse those that wait for an approval."""

from __future__ import annotations

from typing import Annotated

import typer

from sluice import names, render
from sluice.cli import frame, search, tables
from sluice.client import segment
from sluice.errors import ApiRefused
from sluice.names import SCHEDULE

app = typer.Typer(help="List waiting jobs; cancel, approve or refuse one.")

Id = Annotated[str, typer.Argument(metavar="JOB", help="The id of a job that waits for an approval.")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="The reason, which is stored with the job.")]


@app.callback(invoke_without_command=True)
def jobs(
    context: typer.Context,
    namespace: frame.Namespace = None,
    app: frame.App = None,
    schedule: frame.OfSchedule = None,
    everything: frame.Everything = False,
    limit: Annotated[int, frame.Limit] = 100,
    as_json: frame.Json = False,
) -> None:
    """List waiting jobs and what they wait for; cancel, approve or refuse one."""
    if context.invoked_subcommand is not None:
        return
    if schedule is not None:
        path = f"{names.path_of(SCHEDULE, names.full_name(SCHEDULE, schedule, namespace, app))}/jobs"
    else:
        path = f"/v1/namespaces/{segment(frame.needed_namespace(namespace))}/jobs"
    maximum = limit or None
    wanted = search.Wanted(hide=schedule is None and not everything)
    found = search.search(frame.connect(), path, {}, maximum, wanted)
    if items := tables.searched(found, maximum, as_json, "no jobs wait"):
        tables.jobs(render.stdout(), items, frame.now())
        tables.rest(found.answer, len(items), "sluice jobs ...")


@app.command()
def cancel(
    given: Annotated[list[str], typer.Argument(metavar="JOB", help="The id of a waiting job; several are allowed.")],
    as_json: frame.Json = False,
) -> None:
    """Cancel waiting jobs; each is recorded as dropped, and never becomes a run."""
    client = frame.connect()
    refused = False
    for job in given:
        try:
            record = client.post(f"/v1/jobs/{segment(job)}/cancel", repeatable=True)
        except ApiRefused as refusal:
            frame.print_error(refusal)
            refused = True
            continue
        if as_json:
            render.machine(record)
        else:
            render.note(f"{job} is cancelled: {record['reason']}")
    if refused:
        raise typer.Exit(1)


@app.command()
def approve(job: Id, reason: Reason = "", as_json: frame.Json = False) -> None:
    """Approve a job that waits for an approval, as the identity of your AWS credentials."""
    answer = frame.connect().post(f"/v1/jobs/{segment(job)}/approve", {"reason": reason})
    if as_json:
        render.machine(answer)
        return
    render.note(f"approved: {job}")


@app.command()
def refuse(job: Id, reason: Reason = "", as_json: frame.Json = False) -> None:
    """Refuse a job that waits for an approval; the job is aborted."""
    answer = frame.connect().post(f"/v1/jobs/{segment(job)}/refuse", {"reason": reason})
    if as_json:
        render.machine(answer)
        return
    render.note(f"aborted: {answer['reason']}")
