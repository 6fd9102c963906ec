"""What all targets without a lifecycle have in common: there is nothing to ask, to find or to cancel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import Answer, RunUpdate

MAX_BATCH = 16


class Untracked:
    """A delivery that was taken is over; nothing is known of what became of it. A kind of target gives `start_many` if
    its service takes batches, else `start`."""

    def start(self, run: Run, context: Mapping[str, Any]) -> Answer:
        return self.start_many([(run, context)])[0]

    def start_many(self, calls: Sequence[tuple[Run, Mapping[str, Any]]]) -> list[Answer]:
        """Side by side: a slow consumer must not hold up the others, nor use up the time of a Lambda."""
        if len(calls) < 2:
            return [self.start(run, context) for run, context in calls]
        with ThreadPoolExecutor(min(MAX_BATCH, len(calls))) as pool:
            return list(pool.map(lambda call: self.start(*call), calls))

    def ask(self, run: Run) -> RunUpdate | None:
        del run
        return None

    def ask_many(self, runs: Sequence[Run]) -> list[RunUpdate | None]:
        return [None for _ in runs]

    def find(self, run: Run) -> str | None:
        del run
        return None

    def cancel(self, run: Run) -> None:
        del run

    def run_name(self, target_id: str) -> str | None:
        del target_id
        return None
