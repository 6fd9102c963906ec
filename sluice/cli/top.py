"""``sluice top``: what runs, what waits and why, and how many runs a minute start and end, drawn again every 2 s."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from sluice import names, render, wording
from sluice.cli import filters, frame, tables
from sluice.cli.follow import OVER
from sluice.client import PAGE, Client, Document
from sluice.errors import Failure

EVERY = 2.0  # seconds between two frames
LATELY = 300.0  # seconds that the throughput counts
AROUND = 10  # rows of a frame besides those of its two tables
MIN_ROWS = 3  # of each table, however low the terminal is


@dataclass(frozen=True, slots=True)
class Throughput:
    """How many of the newest runs started and ended in the last ``seconds``."""

    seconds: float
    started: int
    ended: int
    failed: int

    def a_minute(self, number: int) -> float:
        return number * 60 / self.seconds


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One page of runs, newest first, and one of waiting jobs. ``more_jobs`` and ``more_runs`` say that there are
    more."""

    namespace: str
    at: datetime
    runs: Sequence[Document]
    jobs: Sequence[Document]
    more_jobs: bool
    more_runs: bool = False

    @property
    def running(self) -> list[Document]:
        return [run for run in self.runs if run.get("state") not in OVER]

    @property
    def throughput(self) -> Throughput:
        """A page may reach back less far than the span; then only what it covers counts."""
        ages = [age for run in self.runs if (age := _age(run.get("claimed_at"), self.at)) is not None]
        span = min(LATELY, max(ages)) if self.more_runs and ages else LATELY
        span = max(span, 1.0)
        over = [run for run in self.runs if run.get("state") in OVER]
        ended = [run for run in over if _is_within(run.get("ended_at"), self.at, span)]
        started = [run for run in self.runs if _is_within(run.get("claimed_at"), self.at, span)]
        failed = [run for run in ended if run.get("state") == "FAILED"]
        return Throughput(span, tables.events(started), tables.events(ended), tables.events(failed))


def top(
    namespace: frame.Namespace = None,
    app: filters.OfApp = None,
    workflow: filters.OfWorkflow = None,
    target: filters.OfTarget = None,
    tag: filters.OfTag = None,
    text: filters.Text = None,
    late: filters.Late = False,
    everything: frame.Everything = False,
    once: Annotated[bool, typer.Option("--once", metavar="", help="Print one frame, and end.")] = False,
    as_json: frame.Json = False,
) -> None:
    """Show live what runs, what waits and why, and the throughput; q or ctrl-c ends it.

    Without a terminal it prints one frame. A frame takes two requests.
    """
    place = filters.place_of(namespace, app, None)
    given: filters.Given = {"workflow": workflow, "target": target, "tag": tag, "text": text, "late": late}
    asked = filters.rows_of(place, frame.now(), **given)
    client = frame.connect()
    first = look(client, place, everything, asked)
    if as_json:
        render.machine(_as_json(first))
        return
    console = render.stdout()
    if once or not console.is_terminal:
        draw(console, first)
        return
    _live(console, first, lambda: look(client, place, everything, asked))


def look(client: Client, place: filters.Place, everything: bool, asked: Mapping[str, str | None]) -> Snapshot:
    """The present state, in two requests."""
    runs = client.get(f"{place.path}/runs", {**asked, "limit": PAGE})
    jobs = client.get(f"{place.path}/jobs", {**asked, "limit": PAGE})
    shown_runs, shown_jobs = (
        [item for item in page["items"] if everything or not names.is_internal(str(item["schedule"]))]
        for page in (runs, jobs)
    )
    more = (page.get("next_cursor") is not None for page in (jobs, runs))
    return Snapshot(place.namespace or "", frame.now(), shown_runs, shown_jobs, *more)


def draw(console: Console, seen: Snapshot, rows: int | None = None) -> None:
    """Print a frame, with at most ``rows`` rows in each table."""
    running, waiting = seen.running, _waiting(seen.jobs)
    number = f"{tables.events(seen.jobs)}{'+' if seen.more_jobs else ''}"
    render.title(console, "namespace", seen.namespace, Text(f"{seen.at:%H:%M:%S} UTC", "dim"))
    flow = seen.throughput
    failed = Text(f", {flow.failed} failed", "bold red") if flow.failed else Text()
    ended = Text.assemble(f"{flow.a_minute(flow.ended):.1f} a minute", failed)
    render.fields(
        console,
        [
            ("running", Text(str(len(running)), "cyan")),
            ("waiting", Text(number, "yellow" if seen.jobs else "")),
            ("started", f"{flow.a_minute(flow.started):.1f} a minute"),
            ("ended", ended),
            ("in the last", wording.duration(flow.seconds)),
        ],
    )
    if running:
        render.heading(console, "Running")
        tables.runs(console, running[:rows], seen.at, indent=2)
        _rest(console, len(running), rows)
    if waiting:
        render.heading(console, "Waiting")
        lines = [
            (schedule, render.state(state), _number(jobs), wording.ago(_since(jobs[0]), seen.at), _why(jobs[0]))
            for (schedule, state), jobs in waiting[:rows]
        ]
        render.table(console, ("SCHEDULE", "STATE", "JOBS", "OLDEST", "WHY THE OLDEST WAITS…"), lines, indent=2)
        _rest(console, len(waiting), rows)


def _waiting(jobs: Sequence[Document]) -> list[tuple[tuple[str, str], list[Document]]]:
    """Jobs by schedule and state, most jobs first; in each group the oldest is the first."""
    groups: dict[tuple[str, str], list[Document]] = {}
    for job in sorted(jobs, key=_since):
        groups.setdefault((str(job["schedule"]), str(job.get("state"))), []).append(job)
    return sorted(groups.items(), key=lambda group: -tables.events(group[1]))


def _number(jobs: Sequence[Document]) -> str:
    return str(tables.events(jobs))


def _since(job: Document) -> str:
    return str(job.get("created_at") or job.get("since") or "")


def _why(job: Document) -> str | None:
    return job.get("why") or job.get("reason")


def _rest(console: Console, number: int, rows: int | None) -> None:
    if rows is not None and number > rows:
        console.print(Text(f"  and {number - rows} more", "dim"))


def _age(instant: str | None, now: datetime) -> float | None:
    moment = wording.instant(instant)
    return None if moment is None else (now - moment).total_seconds()


def _is_within(instant: str | None, now: datetime, span: float) -> bool:
    age = _age(instant, now)
    return age is not None and age <= span


def _as_json(seen: Snapshot) -> Document:
    flow = seen.throughput
    return {
        "running": seen.running,
        "waiting": list(seen.jobs),
        "more_waiting": seen.more_jobs,
        "throughput": {
            "seconds": flow.seconds,
            "started": flow.started,
            "ended": flow.ended,
            "failed": flow.failed,
        },
    }


def _live(console: Console, first: Snapshot, again: Callable[[], Snapshot]) -> None:
    """Draw frames on the whole terminal until the user ends it. A request that fails leaves the last frame."""
    from rich.live import Live

    seen, trouble = first, ""
    with _keys() as pressed, Live(console=console, screen=True, auto_refresh=False) as live:
        try:
            while True:
                live.update(_frame(console, seen, trouble), refresh=True)
                if pressed(EVERY):
                    return
                try:
                    seen, trouble = again(), ""
                except Failure as failure:
                    trouble = f"the last request failed: {failure.message}"
        except KeyboardInterrupt:
            return


def _frame(console: Console, seen: Snapshot, trouble: str) -> Text:
    # Drawn on a console of its own: what is printed on that of the live view goes above the view.
    sheet = render.stdout()
    sheet.width, sheet.height = console.size
    with sheet.capture() as captured:
        draw(sheet, seen, max(MIN_ROWS, (sheet.height - AROUND) // 4))
        sheet.print()
        sheet.print(Text(trouble, "red") if trouble else Text("q ends", "dim"))
    return Text.from_ansi(captured.get())


@contextmanager
def _keys() -> Iterator[Callable[[float], bool]]:
    """A function that waits some seconds, or until the user presses q, and says whether they did."""
    try:
        import select
        import termios
        import tty

        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
    except (ImportError, OSError, termios.error):  # no terminal to read from, or another system
        yield _slept
        return

    def pressed(seconds: float) -> bool:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([descriptor], [], [], left)[0] and os.read(descriptor, 1) in (b"q", b"Q", b""):
                return True
        return False

    try:
        tty.setcbreak(descriptor, termios.TCSANOW)
        yield pressed
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _slept(seconds: float) -> bool:
    time.sleep(seconds)
    return False
