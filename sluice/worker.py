"""A pull worker: claims runs of a pool, executes a command for each, extends their leases, and reports their ends.

The worker never loses a result: it repeats a report until the API is reachable. It never keeps a lost run: when a lease
is lost, the worker ends the command.
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
from sluice.errors import ApiRefused, Failure, NotReachable
from sluice.worker_command import MAX_WHY, Command, Ended

MAX_PAUSE = 30.0  # seconds between two tries while the API does not answer
LATER = (429, 500, 502, 503, 504)
BEATS_PER_LEASE = 3  # two heartbeats may get lost
WAIT = 20  # seconds that a claim waits for work if the API gives no time
MAX_CLAIM = 10
DRAIN_POLL = 0.5  # seconds; the interval at which a waiting worker checks whether to stop


class Tell(Protocol):
    def __call__(self, text: str, run: str | None = None) -> None: ...


@dataclass(frozen=True, slots=True)
class Plan:
    """The settings of a worker: its pool, its name, its command, and how many runs it executes at a time.

    ``aws_keys``: the command gets the AWS credentials of the worker. ``allow_dashes``: arguments of workflows may begin
    with ``-``."""

    pool: str
    name: str
    command: Sequence[str]
    concurrency: int = 1
    grace: float = 10.0
    aws_keys: bool = False
    allow_dashes: bool = False


@dataclass
class Worker:
    """``once`` ends the worker when the pool is empty. Set ``stop`` to drain it; set ``kill`` as well to end its active
    runs."""

    client: Client
    plan: Plan
    tell: Tell
    once: bool = False
    stop: threading.Event = field(default_factory=threading.Event)
    kill: threading.Event = field(default_factory=threading.Event)
    done: int = 0
    _wait: float = 0  # seconds, from the last answer of the API
    _retry_after: float = 0
    _busy: dict[str, threading.Thread] = field(default_factory=dict)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def run(self) -> int:
        """Work until the worker is drained. Returns the number of runs that have ended."""
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
                # With jitter, so that workers that started together do not stay synchronized.
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
        """Return a run that was claimed while the worker was being stopped; another worker gets it."""
        try:
            self._post(lease, "release", {"message": "the worker is shutting down"})
        except Failure as failure:
            self.tell(f"could not release the run: {failure.message}", lease["run_id"])

    def _begin(self, lease: Document) -> None:
        thread = threading.Thread(target=self._work, args=(lease,), name=str(lease["lease"]))
        with self._changed:
            self._busy[str(lease["lease"])] = thread
        thread.start()

    def _wait_for_room(self) -> int:
        with self._changed:
            while len(self._busy) >= self.plan.concurrency and not self.stop.is_set():
                self._changed.wait(DRAIN_POLL)
            return self.plan.concurrency - len(self._busy)

    def _drain(self) -> None:
        """Wait until all active runs have ended."""
        while self._busy:
            with self._changed:
                self._changed.wait(DRAIN_POLL)

    def _work(self, lease: Document) -> None:
        try:
            one = _Work(self, lease)
            one.do()
        except Failure as failure:
            self.tell(f"gave up: {failure.message}", str(lease["run_id"]))
        except Exception as error:  # a failure of one run does not stop the others
            self._give_up(lease, error)
        finally:
            with self._changed:
                del self._busy[str(lease["lease"])]
                self.done += 1
                self._changed.notify_all()

    def _give_up(self, lease: Document, error: Exception) -> None:
        """Report a failed attempt after a fault of this machine, such as a full disk."""
        self.tell(f"gave up: {error}", str(lease["run_id"]))
        with suppress(Failure):
            self._post(lease, "report", {"state": "failed", "message": f"the worker failed: {error}"[:MAX_WHY]})

    def _post(self, lease: Document, what: str, body: Document) -> Document:
        path = f"/v1/leases/{segment(str(lease['lease']))}/{what}"
        return self.client.post(path, {"worker": self.plan.name, **body}, repeatable=True)


class _Work:
    """One run of this worker, from its lease to its report."""

    def __init__(self, worker: Worker, lease: Document) -> None:
        self._worker, self._lease = worker, lease
        self._run_id = str(lease["run_id"])
        self._beat = float(lease["heartbeat_seconds"]) / BEATS_PER_LEASE
        self._lost = False
        self._cancelled = False
        plan = worker.plan
        self._command = Command(plan.command, lease, plan.grace, plan.aws_keys, plan.allow_dashes)

    def do(self) -> None:
        if not self._has_begun():
            return
        self._worker.tell(f"started attempt {self._lease['attempt']}", self._run_id)
        over = threading.Event()
        pulse = threading.Thread(
            target=self._keep, args=(over,), name=f"heartbeat of {self._lease['lease']}", daemon=True
        )
        with self._command:
            ended = self._command.start()
            pulse.start()
            try:
                while ended is None:
                    ended = self._command.wait(DRAIN_POLL)
                    if self._worker.kill.is_set():
                        self._command.end()
            finally:
                over.set()
            metrics, result = self._command.metrics(), self._command.result()
        pulse.join()
        if self._lost:
            self._worker.tell("lease lost: another worker has the run", self._run_id)
            return
        self._report(ended, metrics, result)

    def _has_begun(self) -> bool:
        """Report the start before the command starts, so that only one worker executes a released or lost run."""
        try:
            answer = self._post_until_answered("heartbeat", {})
        except ApiRefused as refused:
            self._worker.tell(f"not started: {refused.message}", self._run_id)
            return False
        if answer["cancel"]:
            why = f"not started: {answer.get('reason') or 'cancelled'}"[:MAX_WHY]
            self._post_until_answered("report", {"state": "failed", "message": why})
            return False
        return True

    def _keep(self, over: threading.Event) -> None:
        """Send heartbeats until the command has ended. A later heartbeat makes up for an unanswered one."""
        while not over.wait(self._beat):
            try:
                answer = self._worker._post(self._lease, "heartbeat", _with_metrics({}, self._command.metrics()))
            except ApiRefused as refused:
                if _is_passing(refused):
                    continue
                self._worker.tell(f"heartbeat refused: {refused.message}", self._run_id)
                self._lost = refused.code in ("lease_lost", "not_found")
                if self._lost:
                    self._command.end()
                    return
            except NotReachable as failure:
                self._worker.tell(f"heartbeat not answered: {failure.message}", self._run_id)
            else:
                if answer["cancel"] and not self._cancelled:
                    self._cancelled = True
                    self._worker.tell(f"cancelled: {answer.get('reason')}", self._run_id)
                    self._command.end()

    def _report(self, ended: Ended, metrics: Document, result: str | None) -> None:
        state = "succeeded" if ended.exit_code == 0 else "failed"
        body: Document = {"state": state, "exit_code": ended.exit_code, "output": ended.output}
        if ended.why:
            body["message"] = ended.why
        if result is not None:
            body["result_text"] = result
        try:
            answer = self._post_until_answered("report", _with_metrics(body, metrics))
        except ApiRefused as refused:
            self._worker.tell(f"report refused: {refused.message}", self._run_id)
        else:
            self._worker.tell(f"{state} (exit code {ended.exit_code}): {answer['state']}", self._run_id)
            if answer.get("result_refused"):
                self._worker.tell(f"result refused: {answer['result_refused']}", self._run_id)

    def _post_until_answered(self, what: str, body: Document) -> Document:
        """Repeat a request until the API answers, with growing pauses of at most one heartbeat interval, because the
        lease may still hold. A kill ends the repeats. Raises errors that a repeat cannot resolve."""
        tries = 0
        while True:
            try:
                return self._worker._post(self._lease, what, body)
            except Failure as failure:
                if not _is_passing(failure) or self._worker.kill.is_set():
                    raise
                tries += 1
                self._worker.tell(f"{what} not answered, will be repeated: {failure.message}", self._run_id)
                _sleep(min(pause_after(tries), self._beat), self._worker.kill.is_set)


def pause_after(tries: int) -> float:
    """Seconds until the next try: doubling from one, with jitter, so that workers do not return at the same time."""
    return float(min(2 ** (tries - 1), MAX_PAUSE) * random.uniform(0.5, 1.0))


def _sleep(seconds: float, hurried: Callable[[], bool]) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and not hurried():
        time.sleep(min(left, DRAIN_POLL))


def _with_metrics(body: Document, metrics: Document) -> Document:
    return {**body, "metrics": metrics} if metrics else body


def _is_passing(failure: Failure) -> bool:
    """Whether the same request may succeed later."""
    return isinstance(failure, NotReachable) or (isinstance(failure, ApiRefused) and failure.status in LATER)
