"""The common base of all targets without a lifecycle: there is nothing to poll, find or cancel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import Answer, RunUpdate

MAX_BATCH = 16


class Untracked:
    """An accepted delivery is complete; Sluice does not follow it further. An adapter implements `start_many` if its
    service accepts batches, otherwise `start`."""

    def start(self, run: Run, context: Mapping[str, Any]) -> Answer:
        return self.start_many([(run, context)])[0]

    def start_many(self, calls: Sequence[tuple[Run, Mapping[str, Any]]]) -> list[Answer]:
        """Start all in parallel: a slow consumer must not delay the others, nor use up the time of the Lambda."""
        if len(calls) < 2:
            return [self.start(run, context) for run, context in calls]
        with ThreadPoolExecutor(min(MAX_BATCH, len(calls))) as pool:
            return list(pool.map(lambda call: self.start(*call), calls))

    def status(self, run: Run) -> RunUpdate | None:
        del run
        return None

    def status_many(self, runs: Sequence[Run]) -> list[RunUpdate | None]:
        return [self.status(run) for run in runs]

    def find(self, run: Run) -> str | None:
        del run
        return None

    def cancel(self, run: Run) -> None:
        del run

    def run_name(self, target_id: str) -> str | None:
        del target_id
        return None
