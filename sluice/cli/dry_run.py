"""``sluice dry-run``: show step by step what a schedule would do with given events. Nothing is stored (L11)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from sluice import names, render, wording
from sluice.cli import frame
from sluice.client import Document
from sluice.names import SCHEDULE


def dry_run(
    schedule: Annotated[str, typer.Argument(metavar="NAME", help="A schedule, such as demo.flights.clean.")],
    file: Annotated[
        str, typer.Option("--file", "-f", metavar="FILE", help="The events, YAML or JSON, in order; - for stdin.")
    ],
    namespace: frame.Namespace = None,
    app: frame.App = None,
    as_json: frame.Json = False,
) -> None:
    """Apply events to a schedule's trigger, and show what fires."""
    from sluice import events  # imported here: it loads the YAML parser

    full = names.full_name(SCHEDULE, schedule, namespace, app)
    body = {"events": events.to_play(file)}
    answer = frame.connect().post(f"{names.path_of(SCHEDULE, full)}/dry-run", body, repeatable=True)
    if as_json:
        render.machine(answer)
        return
    console = render.stdout()
    fires = int(answer.get("fires") or 0)
    word = Text(f"fires {wording.count(fires, 'time')}", "green") if fires else Text("does not fire", "yellow")
    render.title(console, "schedule", full, word)
    _show_steps(console, answer.get("steps") or [])
    left = [(_waiting(job), job.get("why")) for job in answer.get("left") or ()]
    if answer.get("why") or left:
        console.print()
        render.fields(console, [("why", answer.get("why")), *left])


def _show_steps(console: Console, steps: list[Document]) -> None:
    rows: list[tuple[render.Cell, ...]] = [
        (str(number), wording.exact(step.get("at")), _event(step.get("event")), _result(step), _why(step))
        for number, step in enumerate(steps, 1)
    ]
    if rows:
        console.print()
        render.table(console, ("#", "AT", "EVENT", "RESULT", "WHY…"), rows, indent=2)


def _result(step: Document) -> Text:
    if step.get("fires"):
        return Text("fires", "bold green")
    return Text("counts", "cyan") if step.get("touched") else Text("ignored", "dim")


def _why(step: Document) -> str:
    missing = "; ".join(step.get("missing") or ())
    return str(step.get("why") or (f"waits for {missing}" if missing else ""))


def _event(event: str | Mapping[str, Any] | None) -> str | None:
    """An event in words: the text of the API, or the fields that were sent."""
    if not isinstance(event, Mapping):
        return event
    about = event.get("dataset") or event.get("workflow") or event.get("event")
    more = [wording.pairs(event.get("partition")), event.get("status"), event.get("bytes")]
    return " ".join(str(part) for part in (event.get("type"), about, *more) if part and part != wording.NOTHING)


def _waiting(job: Document) -> str:
    """The label of a job that still waits after the last event: one for each value of the correlation keys."""
    return f"left: {wording.pairs(job['correlation'])}" if job.get("correlation") else "left"
