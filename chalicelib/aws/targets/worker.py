"""Pull workers as a target: nothing is called. A run is offered in its pool by the transaction that would record a
start call (`flow/runs/launch`), and its worker hears at the next heartbeat that it is to end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from chalicelib.aws.targets.clients import Clients
from chalicelib.core.instants import Instant
from chalicelib.core.rows.run import Run
from chalicelib.core.runs import workers
from chalicelib.core.targets.answers import Answer, Never, RunUpdate
from chalicelib.settings import Settings


class WorkerTarget:
    def __init__(self, now: Callable[[], Instant]) -> None:
        self._now = now

    def start(self, run: Run, context: Mapping[str, Any]) -> Answer:
        del run, context
        return Never("a run of a pull worker is offered in its pool, and never started from here")

    def start_many(self, calls: Sequence[tuple[Run, Mapping[str, Any]]]) -> list[Answer]:
        return [self.start(run, context) for run, context in calls]

    def ask(self, run: Run) -> RunUpdate | None:
        """A worker whose lease has expired is dead. Whether it was heard of since the run was read is checked by the
        write that this news leads to."""
        now = self._now()
        if run.target_id is None or not workers.is_expired(run, now):
            return None
        return RunUpdate("FAILED", now, workers.lost(run), lease=run.lease, outcome="lost")

    def ask_many(self, runs: Sequence[Run]) -> list[RunUpdate | None]:
        return [self.ask(run) for run in runs]

    def find(self, run: Run) -> str | None:
        return run.target_id

    def cancel(self, run: Run) -> None:
        del run  # the answer to its next heartbeat says so

    def run_name(self, target_id: str) -> str | None:
        del target_id
        return None


def build(clients: Clients, settings: Settings) -> WorkerTarget:
    del settings
    return WorkerTarget(clients.now)
