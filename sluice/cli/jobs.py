"""``sluice jobs``: list waiting jobs; cancel them; approve or refuse those that wait for an approval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from sluice import names, render
from sluice.cli import frame, search, tables
from sluice.client import Document, segment
from sluice.errors import ApiRefused, WrongUsage
from sluice.names import SCHEDULE

app = typer.Typer(help="List waiting jobs; cancel, approve or refuse one.")

Ids = Annotated[list[str] | None, typer.Argument(metavar="JOB", help="The ids of jobs that wait for an approval.")]
OfSchedule = Annotated[
    str | None, typer.Option("--schedule", metavar="NAME", help="All jobs of this schedule that wait for an approval.")
]
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
    _each(given, "cancel", None, as_json, lambda job, record: f"{job} is cancelled: {record['reason']}")


@app.command()
def approve(
    given: Ids = None,
    schedule: OfSchedule = None,
    namespace: frame.Namespace = None,
    app: frame.App = None,
    reason: Reason = "",
    as_json: frame.Json = False,
) -> None:
    """Approve jobs that wait for an approval, as the identity of your AWS credentials."""
    ids = _asked(given, schedule, namespace, app)
    _each(ids, "approve", {"reason": reason}, as_json, lambda job, _: f"approved: {job}")


@app.command()
def refuse(
    given: Ids = None,
    schedule: OfSchedule = None,
    namespace: frame.Namespace = None,
    app: frame.App = None,
    reason: Reason = "",
    as_json: frame.Json = False,
) -> None:
    """Refuse jobs that wait for an approval; each is aborted."""
    ids = _asked(given, schedule, namespace, app)
    _each(ids, "refuse", {"reason": reason}, as_json, lambda _, answer: f"aborted: {answer['reason']}")


def _each(
    ids: Sequence[str], verb: str, body: Document | None, as_json: bool, said: Callable[[str, Document], str]
) -> None:  # fmt: skip
    """Send a request for each job. Exits with 1 if one is refused; the others are done."""
    client, refused = frame.connect(), False
    for job in ids:
        try:
            answer = client.post(f"/v1/jobs/{segment(job)}/{verb}", body, repeatable=verb != "refuse")
        except ApiRefused as refusal:
            frame.print_error(refusal)
            refused = True
            continue
        if as_json:
            render.machine(answer)
        else:
            render.note(said(job, answer))
    if refused:
        raise typer.Exit(1)


def _asked(given: Sequence[str] | None, schedule: str | None, namespace: str | None, app: str | None) -> Sequence[str]:
    """The ids of the jobs that a command names, or of those of a schedule that wait for an approval."""
    if bool(given) == (schedule is not None):
        raise WrongUsage("expected either the ids of jobs, or --schedule", "JOB", "sluice jobs lists the waiting jobs")
    if schedule is None:
        return given or ()
    name = names.full_name(SCHEDULE, schedule, namespace, app)
    waiting = frame.connect().listing(f"{names.path_of(SCHEDULE, name)}/jobs")["items"]
    found = [job["job_id"] for job in waiting if any(hold["kind"] == "approval" for hold in job["waits_for"])]
    if not found:
        raise WrongUsage(
            f"expected a job of {name} that waits for an approval, got none", "--schedule", f"sluice why {name}"
        )
    return found
