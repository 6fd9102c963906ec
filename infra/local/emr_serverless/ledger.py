"""All state changes of runs: each is checked against the state table, stored, logged and announced."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from . import states
from .events import StateChanges
from .records import Attempt, JobRun
from .store import Store

log = logging.getLogger(__name__)


class Ledger:
    """`lock` makes a read and the change that depends on it one step; it is reentrant."""

    def __init__(self, store: Store, events: StateChanges, clock: Callable[[], float] = time.time) -> None:
        self.store = store
        self.lock = threading.RLock()
        self._events = events
        self._clock = clock

    def run(self, run_id: str) -> JobRun:
        run = self.store.run(run_id)
        if run is None:
            raise LookupError(f"expected run {run_id} in the store, found none")
        return run

    def move(self, run_id: str, state: str, details: str = "", **changes: Any) -> JobRun:
        """Move the run to `state`, with `changes` to its other fields. Raises states.IllegalMove."""
        with self.lock:
            run = self.run(run_id)
            states.check_move(run.state, state)
            now = self._clock()
            if state == states.RUNNING:
                changes.setdefault("started_at", now)
            if state in states.TERMINAL:
                changes.setdefault("ended_at", now)
            moved = replace(run, state=state, state_details=details, updated_at=now, **changes)
            self.store.save_run(moved)
            self._tell(moved, run.state)
            return moved

    def next_attempt(self, run_id: str, details: str) -> JobRun:
        """Keep the failed attempt in the run's record, and queue the run as its next attempt."""
        with self.lock:
            run = self.run(run_id)
            now = self._clock()
            failed = Attempt(run.attempt, states.FAILED, details, run.attempt_created_at, now)
            return self.move(
                run_id,
                states.PENDING,
                f"Attempt {run.attempt} of {run.max_attempts} failed. {details}",
                attempt=run.attempt + 1,
                attempt_created_at=now,
                past_attempts=(*run.past_attempts, failed),
            )

    def _tell(self, run: JobRun, previous: str) -> None:
        about = f": {run.state_details}" if run.state_details else ""
        name = f" ({run.name})" if run.name else ""
        log.info("run %s%s %s -> %s%s", run.id, name, previous, run.state, about)
        self._events.announce(run, previous)
