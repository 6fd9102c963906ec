"""Follow work of many runs, such as a backfill, to its end: a bar on a terminal, a row for each change elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from sluice import render
from sluice.client import Client, Document

FIRST_PAUSE, MAX_PAUSE = 0.5, 5.0  # seconds between two requests; the pause grows while nothing changes
ENDS = ("succeeded", "failed", "cancelled")
COUNTS = ("waiting", "running", *ENDS)


def until_over(
    client: Client, path: str, about: str, quiet: bool = False, pause: Callable[[float], None] = time.sleep
) -> Document:
    """The view at ``path`` once its state is not ``RUNNING``. The view has ``state``, ``total`` and the counts."""
    console = render.stderr()
    live = not quiet and console.is_terminal
    shown, span = "", FIRST_PAUSE
    with _Bar(console, about) if live else nullcontext() as bar:
        while True:
            view = client.get(path)
            text = counts(view)
            if bar is not None:
                bar(view, text)
            elif not quiet and text != shown:
                console.print(f"{done(view)} of {view['total']}  {text}", soft_wrap=True)
            if view["state"] != "RUNNING":
                return view
            span = min(MAX_PAUSE, span * 1.3) if text == shown else FIRST_PAUSE
            shown = text
            pause(span)


def done(view: Document) -> int:
    """How many runs have ended."""
    return sum(int(view.get(what) or 0) for what in ENDS)


def counts(view: Document) -> str:
    """``20 waiting, 2 running, 8 succeeded, 1 failed``, without zeros."""
    return ", ".join(f"{view[what]} {what}" for what in COUNTS if view.get(what))


class _Bar:
    """A context whose value draws a view."""

    def __init__(self, console: Any, about: str) -> None:
        # Imported here, because few commands draw a bar.
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, TextColumn("{task.fields[counts]}", style="dim"), console=console)
        self._task = self._progress.add_task(about, total=None, counts="")

    def __enter__(self) -> Callable[[Document, str], None]:
        self._progress.start()
        return self._draw

    def __exit__(self, *raised: object) -> None:
        self._progress.stop()

    def _draw(self, view: Document, text: str) -> None:
        self._progress.update(self._task, total=view["total"], completed=done(view), counts=text, refresh=True)
