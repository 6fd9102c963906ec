"""The progress of countable work: a bar on a terminal, elsewhere one line for each step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

STEPS = 10  # the maximum of lines without a terminal


class Counter:
    """The progress of one kind of work, counted up to ``total``."""

    def __init__(self, console: Console, what: str, total: int, bar: Progress | None, task: TaskID | None) -> None:
        self._console, self._what, self._total = console, what, total
        self._bar, self._task = bar, task
        self._printed = -1

    def at(self, done: int, note: str = "") -> None:
        """Show that ``done`` items are done; ``note`` describes the present work."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, note=note)
            return
        # A log is read afterwards, so a few steps suffice.
        if done > self._printed and (done == self._total or done >= self._printed + max(1, self._total // STEPS)):
            self._printed = done
            self._console.print(f"  {self._what} {done} of {self._total}  {note}".rstrip(), highlight=False)


@contextmanager
def counting(console: Console, what: str, total: int) -> Iterator[Counter]:
    """A context that shows the progress until it ends."""
    if not console.is_terminal:
        yield Counter(console, what, total, None, None)
        return
    columns = (TextColumn("[bold]{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("[dim]{task.fields[note]}"), console=console) as bar:
        yield Counter(console, what, total, bar, bar.add_task(what, total=total, note=""))
