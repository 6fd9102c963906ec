"""Pull workers as a target, which Sluice never calls. The transaction that would record a start call offers the run in
its pool (`flow/runs/launch`). The answer to the next heartbeat tells the worker of a cancellation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from chalicelib.aws.targets.clients import Clients
from chalicelib.aws.targets.no_lifecycle import Untracked
from chalicelib.core.instants import Instant
from chalicelib.core.rows.run import Run
from chalicelib.core.runs import workers
from chalicelib.core.targets.answers import Answer, Never, RunUpdate
from chalicelib.settings import Settings


class WorkerTarget(Untracked):
    def __init__(self, now: Callable[[], Instant]) -> None:
        self._now = now

    def start(self, run: Run, context: Mapping[str, Any]) -> Answer:
        del run, context
        return Never("a run of a pull worker is offered in its pool; Sluice makes no start call for it")

    def status(self, run: Run) -> RunUpdate | None:
        """The update of a run whose lease has expired: its worker is lost. The write of the update checks that no
        heartbeat arrived after the run was read."""
        now = self._now()
        if run.target_id is None or not workers.is_expired(run, now):
            return None
        return RunUpdate("FAILED", now, workers.lost(run), lease=run.lease, outcome="lost")

    def find(self, run: Run) -> str | None:
        return run.target_id


def build(clients: Clients, settings: Settings) -> WorkerTarget:
    del settings
    return WorkerTarget(clients.now)
