"""How far something countable is: a bar on a terminal, a line per step elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

STEPS = 10  # lines that are printed where there is no terminal, for many things


class Counter:
    """Something that is counted up to ``total``."""

    def __init__(self, console: Console, what: str, total: int, bar: Progress | None, task: TaskID | None) -> None:
        self._console, self._what, self._total = console, what, total
        self._bar, self._task = bar, task
        self._told = -1

    def at(self, done: int, note: str = "") -> None:
        """``done`` of them are done; ``note`` says what is going on."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, note=note)
            return
        # A log is read afterwards: some steps tell as much as all of them.
        if done > self._told and (done == self._total or done >= self._told + max(1, self._total // STEPS)):
            self._told = done
            self._console.print(f"  {self._what} {done} of {self._total}  {note}".rstrip(), highlight=False)


@contextmanager
def counting(console: Console, what: str, total: int) -> Iterator[Counter]:
    """Shows how far it is for as long as the block lasts."""
    if not console.is_terminal:
        yield Counter(console, what, total, None, None)
        return
    columns = (TextColumn("[bold]{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("[dim]{task.fields[note]}"), console=console) as bar:
        yield Counter(console, what, total, bar, bar.add_task(what, total=total, note=""))
