"""A pull worker: claims runs of a pool, runs a command for each, keeps their leases, and reports how they ended.

It never loses a result: what ended while the API could not be reached is told when it can be. It never keeps what is
another's: a lease that is lost ends its command.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from sluice.client import Client, Document, segment
from sluice.commands import MAX_WHY, Command, Ended
from sluice.errors import ApiRefused, Failure, NotReachable

MAX_PAUSE = 30.0  # seconds between two tries while the API does not answer
LATER = (429, 500, 502, 503, 504)
BEATS_PER_LEASE = 3  # two heartbeats may get lost
WAIT = 20  # seconds that a claim waits for work at an API that does not say how long it may
MAX_CLAIM = 10
DRAIN_LOOK = 0.5  # seconds: how soon a wish to stop is noticed while a claim waits for nothing


class Tell(Protocol):
    def __call__(self, text: str, run: str | None = None) -> None: ...


@dataclass(frozen=True, slots=True)
class Plan:
    """What a worker does: which pool, under which name, how many side by side, and by which command."""

    pool: str
    name: str
    command: Sequence[str]
    concurrency: int = 1
    grace: float = 10.0


@dataclass
class Worker:
    """``once`` ends it when the pool is empty. ``stop`` is set by whoever drains it; set ``kill``, and it ends what it
    runs as well."""

    client: Client
    plan: Plan
    tell: Tell
    once: bool = False
    stop: threading.Event = field(default_factory=threading.Event)
    kill: threading.Event = field(default_factory=threading.Event)
    done: int = 0
    _wait: float = 0  # seconds, as the API said: at first, it has said nothing
    _retry_after: float = 0
    _busy: dict[str, threading.Thread] = field(default_factory=dict)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def run(self) -> int:
        """Work until it is drained. Returns how many runs it has ended."""
        tries = 0
        while not self.stop.is_set():
            room = self._wait_for_room()
            if self.stop.is_set():
                break
            try:
                leases = self._claim(room)
                tries = 0
            except Failure as failure:
                if not _is_passing(failure):
                    self._drain()
                    raise
                tries += 1
                self.tell(f"cannot claim: {failure.message}")
                self.stop.wait(pause_after(tries))
                continue
            for lease in leases:
                self._begin(lease)
            if self.once and not leases:
                break
            if not leases and self._retry_after:
                # Scattered, so that workers which began together do not ask together for ever.
                self.stop.wait(self._retry_after * random.uniform(0.8, 1.2))
        self._drain()
        return self.done

    def _claim(self, room: int) -> list[Document]:
        wait = 0 if self.once else self._wait
        body = {"worker": self.plan.name, "capacity": min(room, MAX_CLAIM), "wait": wait}
        answer = self.client.post(f"/v1/workers/{segment(self.plan.pool)}/claim", body)
        leases: list[Document] = answer["leases"]
        self._wait, self._retry_after = float(answer.get("wait", WAIT)), float(answer.get("retry_after", 0))
        if self.stop.is_set():
            for lease in leases:
                self._give_back(lease)
            return []
        return leases

    def _give_back(self, lease: Document) -> None:
        """What was claimed while the worker was told to stop goes to another."""
        try:
            self._post(lease, "release", {"message": "the worker is shutting down"})
        except Failure as failure:
            self.tell(f"could not give it back: {failure.message}", lease["run_id"])

    def _begin(self, lease: Document) -> None:
        thread = threading.Thread(target=self._work, args=(lease,), name=str(lease["lease"]))
        with self._changed:
            self._busy[str(lease["lease"])] = thread
        thread.start()

    def _wait_for_room(self) -> int:
        with self._changed:
            while len(self._busy) >= self.plan.concurrency and not self.stop.is_set():
                self._changed.wait(DRAIN_LOOK)
            return self.plan.concurrency - len(self._busy)

    def _drain(self) -> None:
        """Wait for what is under way."""
        while self._busy:
            with self._changed:
                self._changed.wait(DRAIN_LOOK)

    def _work(self, lease: Document) -> None:
        try:
            one = _Work(self, lease)
            one.do()
        except Failure as failure:
            self.tell(f"gave up: {failure.message}", str(lease["run_id"]))
        except Exception as error:  # one run's trouble is not that of the others
            self._give_up(lease, error)
        finally:
            with self._changed:
                del self._busy[str(lease["lease"])]
                self.done += 1
                self._changed.notify_all()

    def _give_up(self, lease: Document, error: Exception) -> None:
        """Something is wrong with this machine, such as a disk that is full: the attempt has failed, and says so."""
        self.tell(f"gave up: {error}", str(lease["run_id"]))
        with suppress(Failure):
            self._post(lease, "report", {"state": "failed", "message": f"its worker gave up: {error}"[:MAX_WHY]})

    def _post(self, lease: Document, what: str, body: Document) -> Document:
        path = f"/v1/leases/{segment(str(lease['lease']))}/{what}"
        return self.client.post(path, {"worker": self.plan.name, **body}, repeatable=True)


class _Work:
    """One run in the hands of this worker, from its lease to its report."""

    def __init__(self, worker: Worker, lease: Document) -> None:
        self._worker, self._lease = worker, lease
        self._run_id = str(lease["run_id"])
        self._beat = float(lease["heartbeat_seconds"]) / BEATS_PER_LEASE
        self._lost = False
        self._cancelled = False
        self._command = Command(worker.plan.command, lease, worker.plan.grace)

    def do(self) -> None:
        if not self._has_begun():
            return
        self._worker.tell(f"began attempt {self._lease['attempt']}", self._run_id)
        over = threading.Event()
        pulse = threading.Thread(target=self._keep, args=(over,), name=f"heart of {self._lease['lease']}", daemon=True)
        with self._command:
            ended = self._command.start()
            pulse.start()
            try:
                while ended is None:
                    ended = self._command.wait(DRAIN_LOOK)
                    if self._worker.kill.is_set():
                        self._command.end()
            finally:
                over.set()
            metrics = self._command.metrics()
        pulse.join()
        if self._lost:
            self._worker.tell("its lease was lost: the run is another's by now", self._run_id)
            return
        self._report(ended, metrics)

    def _has_begun(self) -> bool:
        """Tell so before anything is done: what is given back or lost unbegun is done by another, and once."""
        try:
            told = self._until_told("heartbeat", {})
        except ApiRefused as refused:
            self._worker.tell(f"not begun: {refused.message}", self._run_id)
            return False
        if told["cancel"]:
            why = f"not begun: {told.get('reason') or 'cancelled'}"[:MAX_WHY]
            self._until_told("report", {"state": "failed", "message": why})
            return False
        return True

    def _keep(self, over: threading.Event) -> None:
        """Heartbeats, until the command is over. One that is not answered is made up for by the next."""
        while not over.wait(self._beat):
            try:
                told = self._worker._post(self._lease, "heartbeat", _with_metrics({}, self._command.metrics()))
            except ApiRefused as refused:
                if _is_passing(refused):
                    continue
                self._worker.tell(f"heartbeat refused: {refused.message}", self._run_id)
                self._lost = refused.code in ("lease_lost", "not_found")
                if self._lost:
                    self._command.end()
                    return
            except NotReachable as failure:
                self._worker.tell(f"heartbeat not heard: {failure.message}", self._run_id)
            else:
                if told["cancel"] and not self._cancelled:
                    self._cancelled = True
                    self._worker.tell(f"is to end: {told.get('reason')}", self._run_id)
                    self._command.end()

    def _report(self, ended: Ended, metrics: Document) -> None:
        state = "succeeded" if ended.exit_code == 0 else "failed"
        body: Document = {"state": state, "exit_code": ended.exit_code, "output": ended.output}
        if ended.why:
            body["message"] = ended.why
        try:
            told = self._until_told("report", _with_metrics(body, metrics))
        except ApiRefused as refused:
            self._worker.tell(f"its report was refused: {refused.message}", self._run_id)
        else:
            self._worker.tell(f"{state} (exit code {ended.exit_code}): {told['state']}", self._run_id)

    def _until_told(self, what: str, body: Document) -> Document:
        """Say it until it is heard, ever less often, but as often as a heartbeat: the lease may still hold when the API
        is there again. Somebody in a hurry is waited for no more. Raises what the API refuses for good."""
        tries = 0
        while True:
            try:
                return self._worker._post(self._lease, what, body)
            except Failure as failure:
                if not _is_passing(failure) or self._worker.kill.is_set():
                    raise
                tries += 1
                self._worker.tell(f"{what} not heard, it is kept: {failure.message}", self._run_id)
                _sleep(min(pause_after(tries), self._beat), self._worker.kill.is_set)


def pause_after(tries: int) -> float:
    """Seconds until the next try: doubling from one, scattered so that many workers do not come back together."""
    return float(min(2 ** (tries - 1), MAX_PAUSE) * random.uniform(0.5, 1.0))


def _sleep(seconds: float, hurried: Callable[[], bool]) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and not hurried():
        time.sleep(min(left, DRAIN_LOOK))


def _with_metrics(body: Document, metrics: Document) -> Document:
    return {**body, "metrics": metrics} if metrics else body


def _is_passing(failure: Failure) -> bool:
    """Whether the same request may be answered otherwise a little later."""
    return isinstance(failure, NotReachable) or (isinstance(failure, ApiRefused) and failure.status in LATER)
