"""Pull workers as a target, which Sluice never calls. The transaction that would record a start call offers the run in
its pool (`flow/runs/launch`). The worker learns of a cancellation with its next heartbeat."""

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
        return Never("a run of a pull worker is offered in its pool; Sluice makes no start call for it")

    def start_many(self, calls: Sequence[tuple[Run, Mapping[str, Any]]]) -> list[Answer]:
        return [self.start(run, context) for run, context in calls]

    def status(self, run: Run) -> RunUpdate | None:
        """The update of a run whose lease has expired: its worker is lost. The write of the update checks that no
        heartbeat arrived after the run was read."""
        now = self._now()
        if run.target_id is None or not workers.is_expired(run, now):
            return None
        return RunUpdate("FAILED", now, workers.lost(run), lease=run.lease, outcome="lost")

    def status_many(self, runs: Sequence[Run]) -> list[RunUpdate | None]:
        return [self.status(run) for run in runs]

    def find(self, run: Run) -> str | None:
        return run.target_id

    def cancel(self, run: Run) -> None:
        del run  # the answer to the next heartbeat reports the cancellation

    def run_name(self, target_id: str) -> str | None:
        del target_id
        return None


def build(clients: Clients, settings: Settings) -> WorkerTarget:
    del settings
    return WorkerTarget(clients.now)
