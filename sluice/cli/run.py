"""``sluice run``: run a schedule now or later, and optionally follow the run."""

from __future__ import annotations

import uuid
from typing import Annotated

import typer

from sluice import names, render
from sluice.cli import follow, frame
from sluice.client import Client, Document
from sluice.names import SCHEDULE


def run(
    schedule: Annotated[str, typer.Argument(metavar="NAME", help="A schedule, such as demo.flights.clean.")],
    properties: Annotated[
        list[str] | None,
        typer.Option("--property", "-p", metavar="KEY=VALUE", help="A property of this run only; repeatable."),
    ] = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="WHEN", help="When to run: an instant with a time zone, or 2h30m.")
    ] = None,
    partition: Annotated[
        str | None,
        typer.Option(
            "--partition", metavar="PARTITION", help="The correlation of the run, for a schedule with by: day=5."
        ),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", "-w", metavar="", help="Wait for its end; exit 1 unless it succeeds.")
    ] = False,
    namespace: frame.Namespace = None,
    app: frame.App = None,
    as_json: frame.Json = False,
) -> None:
    """Run a schedule now or later, without its trigger; print the job's id."""
    full = names.full_name(SCHEDULE, schedule, namespace, app)
    body: Document = {"properties": frame.pairs_of("--property", properties or [])}
    if at is not None:
        body["at"] = at
    if partition is not None:
        body["partition"] = frame.pairs_of("--partition", partition.strip("/").split("/"))
    client = frame.connect()
    if partition is None and render.stderr().is_terminal:
        _note_keys(client, full)
    # The key makes a repeat after a lost answer the same job.
    answer = client.post(f"{names.path_of(SCHEDULE, full)}/run", body, key=uuid.uuid4().hex)
    if wait:
        _follow(client, str(answer["job_id"]), as_json)
    elif as_json:
        render.machine(answer)
    else:
        print(answer["job_id"])
        if render.stderr().is_terminal:
            render.note(f"sluice why job {answer['job_id']}")


def _note_keys(client: Client, schedule: str) -> None:
    """Say that the run gets no partition, if the schedule has keys."""
    keys = client.get(names.path_of(SCHEDULE, schedule)).get("by") or []
    if keys:
        render.note(f"the run has no partition; --partition {'/'.join(f'{key}=...' for key in keys)} gives it one")


def _follow(client: Client, job_id: str, as_json: bool) -> None:
    if not as_json:
        print(job_id, flush=True)
    try:
        last = follow.until_over(client, job_id, quiet=as_json)
    except KeyboardInterrupt:
        render.note(f"stopped following; the run continues: sluice runs show {job_id}")
        raise typer.Exit(130) from None
    if as_json:
        render.machine(last)
    else:
        follow.show_end(last)
    if last.get("state") != "SUCCEEDED":
        raise typer.Exit(1)
