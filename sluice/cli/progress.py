"""Follow work of several steps to its end: a line for each step that begins or ends, and on a terminal a bar below."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text

from sluice import render, wording
from sluice.cli.follow import FIRST_PAUSE
from sluice.client import Client, Document

MAX_PAUSE = 5.0  # seconds between two requests; the pause grows
WIDTH = 30  # characters of a bar
ACTIVE = "RUNNING"


def until_over(client: Client, path: str, quiet: bool = False, pause: Callable[[float], None] = time.sleep) -> Document:
    """The view at ``path`` once its ``state`` is no longer RUNNING. Prints the progress of its steps unless
    ``quiet``."""
    began, span = time.monotonic(), FIRST_PAUSE
    shown: dict[int, str] = {}
    console = render.stderr()
    with _drawn(console, quiet) as draw:
        while True:
            view = client.get(path)
            for line in _changes(view, shown) if not quiet else ():
                elapsed = wording.duration(time.monotonic() - began)
                console.print(Text.assemble((f"{elapsed:>8}  ", "dim"), line), soft_wrap=True)
            draw(_total(view, began))
            if view["state"] != ACTIVE:
                return view
            pause(span)
            span = min(MAX_PAUSE, span * 1.3)


def bar(view: Document) -> Text:
    """How many of all runs have ended, as a bar: failed and cancelled ones in red."""
    total = max(1, int(view["total"]))
    good = WIDTH * int(view["succeeded"]) // total
    ended = WIDTH * _ended(view) // total
    line = Text.assemble(("━" * good, "green"), ("━" * (ended - good), "red"), ("─" * (WIDTH - ended), "dim"))
    return line.append(f"  {_ended(view)}/{view['total']}")


@contextmanager
def counted(total: int, unit: str, quiet: bool = False) -> Iterator[Callable[[int, str], None]]:
    """A function that draws a bar on a terminal, with the time that has passed. It shows how many of ``total`` units
    are done, and what is at work. It does nothing elsewhere."""
    console = render.stderr()
    if quiet or not console.is_terminal:
        yield lambda done, what: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(WIDTH), MofNCompleteColumn(), TextColumn(unit), TextColumn("{task.description}"))
    # Output that goes to a file must not come to the terminal, and output on a terminal must not cross the bar.
    with Progress(
        *columns, TimeElapsedColumn(), console=console, transient=True, redirect_stdout=sys.stdout.isatty()
    ) as drawn:
        task = drawn.add_task("", total=total)
        yield lambda done, what: drawn.update(task, completed=done, description=what, refresh=True)


@contextmanager
def _drawn(console: Console, quiet: bool) -> Iterator[Callable[[Text], None]]:
    """A function that draws the last line of a terminal again. It does nothing elsewhere."""
    if quiet or not console.is_terminal:
        yield lambda line: None
        return
    from rich.live import Live  # only terminals draw, and the import takes a while

    with Live(console=console, auto_refresh=False) as live:
        yield lambda line: live.update(line, refresh=True)


def _changes(view: Document, shown: dict[int, str]) -> Iterator[Text]:
    """A line for each step that has begun or ended since the last view. A step that did both has two."""
    for step in view["steps"]:
        number, state = int(step["step"]), str(step["state"])
        before = shown.setdefault(number, "waiting")
        if state == before:
            continue
        if before == "waiting" and state in ("succeeded", "failed"):
            yield _line(step, "running", 0, None)
        yield _line(step, state, _ended(step), step.get("reason"))
        shown[number] = state


def _line(step: Document, state: str, ended: int, reason: str | None) -> Text:
    word = render.state(state)
    word.pad_right(max(0, len("succeeded") - len(state)))
    counted = f"  {step['schedule']}  {ended} of {step['total']}"
    return Text.assemble(word, counted, f"  {reason}" if reason else "")


def _total(view: Document, began: float) -> Text:
    running = [step["schedule"] for step in view["steps"] if step["state"] == "running"]
    return bar(view).append(f"  {', '.join(running)}  {int(time.monotonic() - began)} s", "dim")


def _ended(view: Document) -> int:
    return int(view["succeeded"]) + int(view["failed"]) + int(view["cancelled"])
