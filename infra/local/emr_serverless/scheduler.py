"""Decides which run starts when, and how it ends: queue, capacity, cancellation, timeouts, retries, restarts.

One dispatcher thread admits waiting runs in the order of arrival; each admitted run has its own thread for its driver.
Two limits keep a run in PENDING: its application's vCPUs, and `max_running`, the capacity of this machine. A run that
exceeds the vCPUs makes later runs of its application wait too, so that a large run does not starve."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from . import resources, spark_parameters, states
from .driver import CANCELLED, SHUTDOWN, TIMED_OUT, Driver, Outcome, Stop
from .ledger import Ledger
from .records import JobRun

log = logging.getLogger(__name__)

# The maximum length of `stateDetails` in the API model.
_DETAILS_LENGTH = 256
_FAILED = "Job execution failed, please check complete logs in configured logging destination. "


@dataclass(frozen=True)
class _Waiting:
    run_id: str
    application_id: str
    need: resources.Need


@dataclass
class _Active:
    run_id: str
    application_id: str
    need: resources.Need
    reserved_vcpus: int
    stop: Stop = field(default_factory=Stop)
    deadline: float | None = None
    thread: threading.Thread | None = None


class Scheduler:
    """`minute_s` is the length of a minute of a run's timeout; `max_vcpus` applies to applications without a
    maximum."""

    def __init__(
        self,
        ledger: Ledger,
        driver: Driver,
        max_running: int,
        max_vcpus: int,
        minute_s: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger = ledger
        self._driver = driver
        self._max_running = max_running
        self._max_vcpus = max_vcpus
        self._minute_s = minute_s
        self._clock = clock
        self._changed = threading.Condition(ledger.lock)
        self._new: list[_Waiting] = []
        self._waiting: dict[str, _Waiting] = {}
        self._active: dict[str, _Active] = {}
        self._closing = False
        self._dispatcher = threading.Thread(target=self._dispatch, name="dispatcher", daemon=True)

    def start(self) -> None:
        """Restart the runs that an earlier process left unfinished, and start to dispatch."""
        with self._changed:
            for run in self._ledger.store.unfinished():
                if run.state == states.CANCELLING:
                    self._ledger.move(run.id, states.CANCELLED, run.state_details)
                else:
                    log.info("run %s, which was %s, starts again", run.id, run.state)
                    self.submit(run)
        self._dispatcher.start()

    def submit(self, run: JobRun) -> None:
        """Put the run at the end of the queue."""
        with self._changed:
            need = resources.need(spark_parameters.of_run(run).properties)
            self._new.append(_Waiting(run.id, run.application_id, need))
            self._changed.notify()

    def cancel(self, run_id: str, grace_s: float | None) -> None:
        """Cancel a run that is not terminal; no effect on a run that is being cancelled."""
        with self._changed:
            if self._ledger.run(run_id).state == states.CANCELLING:
                return
            self._ledger.move(run_id, states.CANCELLING)
            active = self._active.get(run_id)
            if active is not None:
                active.stop.ask(CANCELLED, grace_s)
                return
            self._waiting.pop(run_id, None)
            self._new = [waiting for waiting in self._new if waiting.run_id != run_id]
            self._ledger.move(run_id, states.CANCELLED)
            # Runs behind the cancelled one may fit now.
            self._changed.notify()

    def counts(self) -> dict[str, int]:
        """The number of runs with a driver, and of waiting runs."""
        with self._changed:
            return {"running": len(self._active), "waiting": len(self._waiting) + len(self._new)}

    def close(self, wait_s: float = 15.0) -> None:
        """Stop every driver; its run stays unfinished in the store, and the next process restarts it."""
        with self._changed:
            self._closing = True
            workers = [active.thread for active in self._active.values() if active.thread]
            for active in self._active.values():
                active.stop.ask(SHUTDOWN)
            self._changed.notify()
        until = time.monotonic() + wait_s
        for thread in workers:
            thread.join(max(0.0, until - time.monotonic()))
        if self._dispatcher.is_alive():
            self._dispatcher.join(max(0.0, until - time.monotonic()))
        self._driver.close()

    def _dispatch(self) -> None:
        with self._changed:
            while not self._closing:
                self._expire()
                self._queue_new()
                self._admit()
                self._changed.wait(self._until_next_deadline())

    def _queue_new(self) -> None:
        for waiting in self._new:
            if not states.reached(self._ledger.run(waiting.run_id).state, states.PENDING):
                self._ledger.move(waiting.run_id, states.PENDING)
            self._waiting[waiting.run_id] = waiting
        self._new = []

    def _admit(self) -> None:
        full: set[str] = set()
        for waiting in list(self._waiting.values()):
            if len(self._active) >= self._max_running:
                return
            if waiting.application_id in full:
                continue
            capacity = self._capacity(waiting.application_id)
            if waiting.need.driver_vcpus > capacity:
                del self._waiting[waiting.run_id]
                details = f"The driver needs {waiting.need.driver_vcpus} vCPU, the application has at most {capacity}."
                self._ledger.move(waiting.run_id, states.FAILED, details)
                continue
            # A run that requests more executors than the capacity gets as many as the capacity allows.
            reserved = min(waiting.need.vcpus, capacity)
            if reserved > capacity - self._reserved(waiting.application_id):
                full.add(waiting.application_id)
                continue
            del self._waiting[waiting.run_id]
            self._begin(_Active(waiting.run_id, waiting.application_id, waiting.need, reserved))

    def _capacity(self, application_id: str) -> int:
        application = self._ledger.store.application(application_id)
        maximum = application.request.get("maximumCapacity") if application else None
        return resources.vcpus_of(maximum, self._max_vcpus)

    def _reserved(self, application_id: str) -> int:
        return sum(one.reserved_vcpus for one in self._active.values() if one.application_id == application_id)

    def _begin(self, active: _Active) -> None:
        run = self._ledger.run(active.run_id)
        if not states.reached(run.state, states.SCHEDULED):
            run = self._ledger.move(run.id, states.SCHEDULED)
        active.thread = threading.Thread(target=self._work, args=(active, run), name=f"run-{run.id}", daemon=True)
        self._active[run.id] = active
        active.thread.start()

    def _work(self, active: _Active, run: JobRun) -> None:
        try:
            outcome = self._driver.execute(run, lambda: self._started(active, run), active.stop)
        except Exception as error:  # any error fails this job only
            log.exception("run %s failed in the emulator", run.id)
            outcome = Outcome(1, f"{type(error).__name__}: {error}")
        with self._changed:
            del self._active[run.id]
            self._ended(active, outcome)
            self._changed.notify()

    def _started(self, active: _Active, run: JobRun) -> None:
        with self._changed:
            if not states.reached(self._ledger.run(run.id).state, states.RUNNING):
                self._ledger.move(run.id, states.RUNNING)
            if run.timeout_minutes > 0:
                active.deadline = self._clock() + run.timeout_minutes * self._minute_s
                self._changed.notify()

    def _ended(self, active: _Active, outcome: Outcome) -> None:
        run = self._ledger.run(active.run_id)
        if outcome.interrupted and active.stop.reason == SHUTDOWN:
            return
        if run.state != states.CANCELLING and outcome.exit_code != 0 and run.attempt < run.max_attempts:
            self.submit(self._ledger.next_attempt(run.id, _details(outcome)))
            return
        seconds = time.time() - run.started_at if run.started_at is not None else 0.0
        usage: dict[str, Any] = (
            {"used": active.need.over(seconds), "billed": active.need.billed(seconds)} if run.started_at else {}
        )
        if run.state == states.CANCELLING:
            self._ledger.move(run.id, states.CANCELLED, run.state_details, **usage)
        elif outcome.exit_code == 0:
            self._ledger.move(run.id, states.SUCCESS, **usage)
        else:
            self._ledger.move(run.id, states.FAILED, _details(outcome), **usage)

    def _expire(self) -> None:
        now = self._clock()
        for active in self._active.values():
            if active.deadline is not None and active.deadline <= now:
                active.deadline = None
                run = self._ledger.run(active.run_id)
                if run.state != states.CANCELLING:
                    details = f"Job run timed out after {run.timeout_minutes} minutes."
                    self._ledger.move(run.id, states.CANCELLING, details)
                    active.stop.ask(TIMED_OUT)

    def _until_next_deadline(self) -> float | None:
        deadlines = [active.deadline for active in self._active.values() if active.deadline is not None]
        return max(0.0, min(deadlines) - self._clock()) if deadlines else None


def _details(outcome: Outcome) -> str:
    text = f"{_FAILED}ExitCode: {outcome.exit_code}. Last few exceptions: {outcome.details or 'none found in the log'}"
    return text if len(text) <= _DETAILS_LENGTH else text[: _DETAILS_LENGTH - 3] + "..."
