"""``sluice enable``, ``disable`` and ``run``: what people do to schedules."""

from __future__ import annotations

import uuid
from typing import Annotated

import typer
from rich.text import Text

from sluice import names, render
from sluice.cli import follow, frame
from sluice.client import Client, Document
from sluice.errors import ApiRefused
from sluice.names import SCHEDULE

Names = Annotated[list[str], typer.Argument(metavar="NAME", help="Schedules, such as demo.flights.clean.")]


def enable(
    schedules: Names, namespace: frame.Namespace = None, app: frame.App = None, as_json: frame.Json = False
) -> None:
    """Let schedules fire from now on."""
    _switch("enable", schedules, namespace, app, as_json)


def disable(
    schedules: Names, namespace: frame.Namespace = None, app: frame.App = None, as_json: frame.Json = False
) -> None:
    """Stop schedules; what waits is dropped, what runs goes on."""
    _switch("disable", schedules, namespace, app, as_json)


def run(
    schedule: Annotated[str, typer.Argument(metavar="NAME", help="A schedule, such as demo.flights.clean.")],
    properties: Annotated[
        list[str] | None,
        typer.Option("--property", "-p", metavar="KEY=VALUE", help="A property of this run only; repeatable."),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", "-w", metavar="", help="Follow it to its end; exit 1 unless it succeeds.")
    ] = False,
    namespace: frame.Namespace = None,
    app: frame.App = None,
    as_json: frame.Json = False,
) -> None:
    """Run a schedule now, past its trigger; prints the job's id."""
    full = names.full_name(SCHEDULE, schedule, namespace, app)
    body = {"properties": frame.pairs_of("--property", properties or [])}
    client = frame.connect()
    # One wish, one key: if the answer is lost and the request is sent again, it is still one run.
    answer = client.post(f"{names.path_of(SCHEDULE, full)}/run", body, key=uuid.uuid4().hex)
    if wait:
        _follow(client, str(answer["job_id"]), as_json)
    elif as_json:
        render.machine(answer)
    else:
        print(answer["job_id"])
        if render.stderr().is_terminal:
            render.note(f"sluice why job {answer['job_id']}")


def _switch(action: str, schedules: list[str], namespace: str | None, app: str | None, as_json: bool) -> None:
    """Each of them, also after one was refused: what is left undone is said, and the exit code tells."""
    fulls = [names.full_name(SCHEDULE, name, namespace, app) for name in schedules]
    client = frame.connect()
    refused = False
    for full in fulls:
        try:
            view = client.post(f"{names.path_of(SCHEDULE, full)}/{action}")
        except ApiRefused as refusal:
            frame.tell(refusal)
            refused = True
            continue
        if as_json:
            render.machine(view)
        else:
            _show(view)
    if refused:
        raise typer.Exit(1)


def _show(view: Document) -> None:
    state = str(view.get("state"))
    line = Text.assemble((str(view["name"]), "bold"), " is ", render.state(state))
    if state == "enabled" and view.get("triggered_by"):
        line.append(f", triggered by {view['triggered_by']}")
    render.stdout().print(line, soft_wrap=True)


def _follow(client: Client, job_id: str, as_json: bool) -> None:
    if not as_json:
        print(job_id, flush=True)
    try:
        last = follow.until_over(client, job_id, quiet=as_json)
    except KeyboardInterrupt:
        render.note(f"no longer followed, but it goes on: sluice runs show {job_id}")
        raise typer.Exit(130) from None
    if as_json:
        render.machine(last)
    else:
        follow.show_end(last)
    if last.get("state") != "SUCCEEDED":
        raise typer.Exit(1)
