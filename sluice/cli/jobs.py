"""``sluice jobs``: list waiting jobs; cancel them; approve or refuse those that wait for an approval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from sluice import checks, names, render, states
from sluice.cli import filters, frame, search, tables
from sluice.cli.lazy import LIST, ListFirst
from sluice.client import Document, segment
from sluice.errors import ApiRefused, WrongUsage
from sluice.names import SCHEDULE

app = typer.Typer(cls=ListFirst, help="List waiting jobs; cancel, approve or refuse one.")

Ids = Annotated[list[str] | None, typer.Argument(metavar="JOB", help="The ids of jobs that wait for an approval.")]
OfSchedule = Annotated[
    str | None, typer.Option("--schedule", metavar="NAME", help="All jobs of this schedule that wait for an approval.")
]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="The reason, which is stored with the job.")]


@app.command(LIST)
def jobs(
    namespace: frame.Namespace = None,
    app: filters.OfApp = None,
    schedule: frame.OfSchedule = None,
    workflow: filters.OfWorkflow = None,
    target: filters.OfTarget = None,
    tag: filters.OfTag = None,
    state: Annotated[
        str | None, typer.Option("--state", metavar="STATE", help="Only jobs in this state, such as PENDING_LAUNCH.")
    ] = None,
    waits_for: Annotated[
        str | None,
        typer.Option("--waits-for", metavar="KIND", help=f"Only what one of these holds: {', '.join(states.HOLDS)}."),
    ] = None,
    text: filters.Text = None,
    late: filters.Late = False,
    since: filters.Since = None,
    until: filters.Until = None,
    everything: frame.Everything = False,
    limit: Annotated[int, frame.Limit] = 100,
    as_json: frame.Json = False,
) -> None:
    """List waiting jobs and what they wait for."""
    place, maximum = filters.place_of(namespace, app, schedule), limit or None
    for option, given_here in (("--workflow", workflow), ("--target", target)):
        if schedule is not None and given_here is not None:
            hint = "the jobs of a schedule have one workflow: leave one of them out"
            raise WrongUsage(f"expected one of --schedule and {option}, got both", option, hint)
    given: filters.Given = {"workflow": workflow, "target": target, "tag": tag, "text": text, "late": late}
    asked = filters.rows_of(place, frame.now(), **given, since=since, until=until)
    if state is not None:
        asked["state"] = state.upper()
    kind = None if waits_for is None else checks.one_of(waits_for, states.HOLDS, "--waits-for")
    held = (lambda job: any(hold["kind"] == kind for hold in job["waits_for"])) if kind else None
    found = search.search(frame.connect(), f"{place.path}/jobs", asked, maximum, not (schedule or everything), held)
    if items := tables.searched(found, maximum, as_json, "no jobs match" if asked or held else "no jobs wait"):
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
        if app is not None:
            raise WrongUsage("expected --app with --schedule, got ids of jobs", "--app", "leave it out")
        return given or ()
    name = names.full_name(SCHEDULE, schedule, namespace, app)
    waiting = frame.connect().listing(f"{names.path_of(SCHEDULE, name)}/jobs")["items"]
    found = [job["job_id"] for job in waiting if any(hold["kind"] == "approval" for hold in job["waits_for"])]
    if not found:
        raise WrongUsage(
            f"expected a job of {name} that waits for an approval, got none", "--schedule", f"sluice why {name}"
        )
    return found
