"""``sluice logs``: the last lines of the log of a run, or of a schedule's latest run, and the new ones as they come."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Annotated

import typer

from sluice import names, render, wording
from sluice.cli import frame
from sluice.cli.follow import OVER
from sluice.client import Client, Document, segment
from sluice.errors import WrongUsage
from sluice.names import SCHEDULE

EVERY = 2.0  # seconds between two reads of the log
PATIENCE = 60.0  # seconds for the log of a run that has just ended: EMR uploads it after the end
MAX_LINES = 10_000  # the most that the API returns


def logs(
    named: Annotated[
        str,
        typer.Argument(
            metavar="ID|SCHEDULE", help="The id of a run, or a schedule, such as demo.flights.clean: its latest run."
        ),
    ],
    attempt: Annotated[
        int | None, typer.Option("--attempt", min=1, metavar="N", help="The attempt; by default the last.")
    ] = None,
    lines: Annotated[
        int, typer.Option("--lines", "-l", min=1, max=MAX_LINES, metavar="N", help="How many lines.")
    ] = 100,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", metavar="", help="Print new lines until the run has ended.")
    ] = False,
    namespace: frame.Namespace = None,
    app_name: frame.App = None,
    as_json: frame.Json = False,
) -> None:
    """Print the last log lines of a run, or of the latest run of a schedule."""
    client = frame.connect()
    run_id = named if _is_run(named) else _latest(client, names.full_name(SCHEDULE, named, namespace, app_name))
    if follow:
        show = _show_json if as_json else _show
        try:
            for page in followed(client, run_id, attempt, lines):
                show(page)
        except KeyboardInterrupt:
            render.note(f"stopped following; the run continues: sluice runs show {run_id}")
            raise typer.Exit(130) from None
        return
    answer = _read(client, run_id, attempt, lines)
    if as_json:
        render.machine(answer)
    else:
        _show(answer)


def _is_run(text: str) -> bool:
    """Whether a text is the id of a run, which has more parts than the name of a schedule."""
    return text.count(".") >= len(SCHEDULE.parts)


def _latest(client: Client, schedule: str) -> str:
    """The id of the latest run of a schedule, which stderr names. Raises `WrongUsage` if it has none."""
    found = client.get(f"{names.path_of(SCHEDULE, schedule)}/runs", {"limit": 1})["items"]
    if not found:
        hint = f"sluice why schedule {schedule} says why it has not run"
        raise WrongUsage(f"expected a schedule with a run, got {schedule!r}, which has none", "ID|SCHEDULE", hint)
    run = found[0]
    when = wording.ago(run["claimed_at"], frame.now())
    render.note(f"the latest run of {schedule}, begun {when}: {run['run_id']}, {run['state']}")
    return str(run["run_id"])


def followed(
    client: Client, run_id: str, attempt: int | None, lines: int, pause: Callable[[float], None] = time.sleep
) -> Iterator[Document]:
    """The log in pages of new lines, until the run has ended and its log is there. Each page has the API's form. A page
    has no lines if only ``why`` is new, or if a new attempt begins."""
    seen: dict[str, list[str]] = {}
    number, why, waited, followed_live = 0, None, 0.0, False
    while True:
        answer = _read(client, run_id, attempt, MAX_LINES)
        if answer["attempt"] != number:
            seen, again = {}, number != 0
            number = answer["attempt"]
            if again:
                yield {**answer, "streams": {}, "why": f"attempt {number}"}
        fresh = {name: _new_lines(seen.get(name, []), got) for name, got in answer["streams"].items()}
        seen = {**seen, **answer["streams"]}
        if any(fresh.values()) or answer.get("why") != why:
            last = {name: got if followed_live else got[-lines:] for name, got in fresh.items() if got}
            yield {**answer, "streams": last}
        why = answer.get("why")
        if answer["state"] in OVER or (attempt is not None and answer["state"] == "RETRYING"):
            # The log of a run that had ended at the first read does not change any more.
            if not followed_live or (any(seen.values()) and not any(fresh.values())) or waited >= PATIENCE:
                return
            waited += EVERY
        followed_live = True
        pause(EVERY)


def _read(client: Client, run_id: str, attempt: int | None, lines: int) -> Document:
    return client.get(f"/v1/runs/{segment(run_id)}/logs", {"attempt": attempt, "lines": lines})


def _new_lines(before: list[str], after: list[str]) -> list[str]:
    """The lines of ``after`` that follow those of ``before``. Both are the ends of one log, of which the second may
    have lost its first lines. So ``after`` begins with ``before``, less as few of its first lines as possible."""
    for lost in range(len(before)):
        kept = len(before) - lost
        if after[:1] == before[lost : lost + 1] and after[:kept] == before[lost:]:
            return after[kept:]
    return after


def _show(page: Document) -> None:
    if page.get("why"):
        render.note(str(page["why"]))
    for name, log_lines in page["streams"].items():
        if len(page["streams"]) > 1:
            render.note(f"{name}:")
        for line in log_lines:
            render.plain(line)


def _show_json(page: Document) -> None:
    for name, log_lines in page["streams"].items():
        for line in log_lines:
            render.machine({"attempt": page["attempt"], "stream": name, "line": line})
