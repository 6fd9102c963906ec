"""What all targets without a lifecycle have in common: there is nothing to ask, to find or to cancel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chalicelib.core.complete import News
from chalicelib.core.launch import Answer
from chalicelib.core.rows import Run


class Untracked:
    """A delivery that was taken is over; nothing is known of what became of it. A kind of target gives `start_many` if
    its service takes batches, else `start`."""

    def start(self, run: Run, context: Mapping[str, Any]) -> Answer:
        return self.start_many([(run, context)])[0]

    def start_many(self, calls: Sequence[tuple[Run, Mapping[str, Any]]]) -> list[Answer]:
        return [self.start(run, context) for run, context in calls]

    def ask(self, run: Run) -> News | None:
        del run
        return None

    def find(self, run: Run) -> str | None:
        del run
        return None

    def cancel(self, run: Run) -> None:
        del run
