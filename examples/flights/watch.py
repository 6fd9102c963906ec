"""Says what goes on, with the seconds so far: as a live table on a terminal, elsewhere as one line for each change."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

Document = dict[str, Any]
COLOURS = {
    "STARTING": "yellow",
    "RUNNING": "cyan",
    "SUCCEEDED": "green",
    "FAILED": "red",
    "RETRYING": "magenta",
    "CANCELLED": "red",
    "ABORTED": "red",
}
ACTIVE = ("STARTING", "RUNNING")


QUIET = 10.0  # seconds without a change after which a line says for what the reader waits


class Steps:
    """What a command has done, a line for each step, with the seconds since its begin."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def say(self, text: str) -> None:
        self.console.print(f"{self.seconds:4.0f} s  {text}", highlight=False, soft_wrap=True)

    @contextmanager
    def doing(self, text: str) -> Iterator[None]:
        """Say what goes on until it has ended; on a terminal the seconds go on."""
        self.say(text)
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(*columns, console=self.console, transient=True, disable=not self.console.is_terminal) as shown:
            shown.add_task(text, total=None)
            yield


class Watch:
    """The display of the runs of a namespace."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._live: Live | None = None
        self._printed: dict[str, str] = {}
        self._said_at = steps.seconds

    @contextmanager
    def open(self) -> Iterator[Watch]:
        if not self._steps.console.is_terminal:
            yield self
            return
        with Live(console=self._steps.console, refresh_per_second=4, transient=True) as live:
            self._live = live
            yield self
        self._live = None

    def show(self, runs: Sequence[Document], waiting: Sequence[Document], goal: str) -> None:
        """Show the present runs and waiting jobs, and the condition that is still unmet."""
        if self._live is not None:
            self._live.update(runs_table(runs, waiting, f"{goal} ({self._steps.seconds:.0f} s so far)"))
            return
        for run in sorted(runs, key=lambda run: str(run["claimed_at"])):
            if self._printed.get(run["run_id"]) != run["state"]:
                self._printed[run["run_id"]] = run["state"]
                self._say(f"{run['state']:<9} {label(run)}")
        if self._steps.seconds - self._said_at >= QUIET:
            self._say(goal)

    def _say(self, text: str) -> None:
        self._steps.say(text)
        self._said_at = self._steps.seconds


def runs_table(runs: Sequence[Document], waiting: Sequence[Document], goal: str) -> Table:
    table = Table(title=goal, title_justify="left", show_edge=False, pad_edge=False)
    for name, style in (("schedule", "bold"), ("day", ""), ("state", ""), ("for", "dim")):
        table.add_column(name, style=style)
    now = datetime.now(UTC)
    for run in sorted(runs, key=lambda run: str(run["claimed_at"])):
        colour = COLOURS.get(run["state"], "")
        table.add_row(short(run["schedule"]), day_of(run), f"[{colour}]{run['state']}[/]", _since(run, now))
    for job in waiting:
        table.add_row(short(job["schedule"]), day_of(job), "[dim]waiting[/]", f"[dim]{job['reason'][:60]}[/]")
    return table


def summary(runs: Sequence[Document], fired: dict[str, str]) -> Table:
    """The final table, with spans in seconds."""
    table = Table(title="Runs (spans in seconds)", title_justify="left", show_edge=False, pad_edge=False)
    for name in ("run", "schedule", "what fired it"):
        table.add_column(name, overflow="fold")
    for name in ("waited", "started", "took"):
        table.add_column(name, justify="right")
    table.add_column("state")
    for run in sorted(runs, key=lambda run: str(run["claimed_at"])):
        met = run["accepted_at"] or run["created_at"]
        table.add_row(
            run["run_id"].rpartition(".")[2][:8],
            short(run["schedule"]),
            fired.get(run["run_id"], run["fired_by"]),
            span(met, run["start_requested_at"]),
            span(run["start_requested_at"], run["started_at"]),
            span(run["started_at"], run["ended_at"]),
            f"[{COLOURS.get(run['state'], '')}]{run['state']}[/]",
        )
    return table


def label(run: Document) -> str:
    return f"{short(run['schedule'])} {day_of(run)}".strip()


def short(name: str) -> str:
    return name.rpartition(".")[2]


def day_of(document: Document) -> str:
    keys = document.get("correlation") or {}
    return "-".join(str(value).zfill(2) for value in keys.values())


def span(begin: str | None, end: str | None) -> str:
    if begin is None or end is None:
        return "-"
    # EMR reports whole seconds, so a quick start may appear to be before its request.
    return f"{max(0.0, (instant(end) - instant(begin)).total_seconds()):.1f}"


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _since(run: Document, now: datetime) -> str:
    begin = run["started_at"] or run["claimed_at"]
    end = instant(run["ended_at"]) if run["ended_at"] else now
    return f"{(end - instant(begin)).total_seconds():.0f} s"
