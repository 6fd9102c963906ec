"""How far a measurement is: plain lines on stderr, at most one every few seconds.

    burst: repetition 2 of 5, burst_one_schedule (4 of 10): arrived, 300 of 10,000; 17 min so far, about 26 min left

The steps of a measurement are planned before the first one, each with a kind. The time that is left is estimated from
the steps that are done: a step takes as long as the mean of its kind, or, while none of its kind is done, as long as
the mean of all. A step may state its own estimate, for example when it waits for an instant."""

from __future__ import annotations

import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import mean
from typing import TypeVar

EVERY_S = 5.0  # at most one line in this time
LOOKED_EVERY_S = 1.0
REPEATED_S = 30.0  # a line is repeated after this time, with a new estimate, while nothing else is said

Item = TypeVar("Item")


@dataclass(slots=True)
class _Step:
    """The step that is being measured. ``kind`` is None if it was not planned; ``until``: when it ends, by its own
    estimate."""

    kind: str | None
    about: str
    begun: float
    until: float | None = None
    part: str = ""
    detail: str = ""


@dataclass
class Progress:
    """The progress of one measurement. Use it as a context: a thread writes what is said between two lines, so that a
    step that waits shows that it is alive.

    ``write`` takes one line without its end. ``clock`` returns seconds."""

    name: str
    write: Callable[[str], None] = field(default=lambda line: print(line, file=sys.stderr, flush=True))
    clock: Callable[[], float] = time.monotonic
    _plan: list[str] = field(default_factory=list)
    _took: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    _step: _Step | None = None
    _written_at: float = float("-inf")
    _unsaid: bool = False
    _ended: threading.Event = field(default_factory=threading.Event)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self._begun = self.clock()

    def __enter__(self) -> Progress:
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    def __call__(self, about: str, done: int = 0, total: int = 0) -> None:
        """Say what the present step does, and how much of it is done; without ``total`` the former alone."""
        with self._lock:
            if self._step is None:
                self._step = _Step(None, "", self.clock())
            self._step.detail = f"{about}, {done:,} of {total:,}" if total else about
            self._unsaid = True
            self.look()

    def each(
        self,
        items: Iterable[Item],
        about: Callable[[Item], str],
        kind: Callable[[Item], str] | None = None,
        passes: int = 1,
    ) -> Iterator[Item]:
        """The items, each as a step, which is numbered. ``kind``: steps of one kind take about as long; without it, all
        are of one. ``passes``: how often steps of the same kinds are still gone through, this time included."""
        every = list(items)
        self.plan([kind(item) if kind else "" for item in every] * passes)
        for number, item in enumerate(every, 1):
            with self.step(f"{about(item)} ({number} of {len(every)})", kind(item) if kind else ""):
                yield item

    def plan(self, kinds: Sequence[str]) -> None:
        """Plan the steps to come, by their kinds. A former plan is forgotten, the time that its steps took is not."""
        with self._lock:
            self._plan = list(kinds)

    @contextmanager
    def step(self, about: str, kind: str = "") -> Iterator[None]:
        """A step, which ends with the block."""
        with self._lock:
            if kind in self._plan:
                self._plan.remove(kind)
            step = self._step = _Step(kind, about, self.clock())
            self._unsaid = True
            self.look()
        yield
        with self._lock:
            self._took[kind].append(self.clock() - step.begun)
            self._step = None

    def part(self, about: str) -> None:
        """Name the part of the present step that begins, which stays in its lines until the next part."""
        with self._lock:
            if self._step is not None:
                self._step.part, self._step.detail, self._unsaid = about, "", True

    def takes(self, seconds: float) -> None:
        """State that the present step ends in so many seconds."""
        with self._lock:
            if self._step is not None:
                self._step.until = self.clock() + seconds

    def left_s(self) -> float | None:
        """The seconds until the end of the last step that is planned; None if they cannot be estimated."""
        now, step = self.clock(), self._step
        known = [took for of in self._took.values() for took in of]
        rest = 0.0
        if step is not None and step.until is not None:
            rest, known = max(0.0, step.until - now), known or [max(step.until, now) - step.begun]
        elif step is not None and step.kind is not None and known:
            rest = max(0.0, self._usual(step.kind, known) - (now - step.begun))
        elif not self._plan:
            return None
        return rest + sum(self._usual(kind, known) for kind in self._plan) if known else None

    def look(self) -> None:
        """Write a line, if there is something new to say or nothing was said for a while, and it is time."""
        with self._lock:
            now = self.clock()
            if self._step is None or now - self._written_at < (EVERY_S if self._unsaid else REPEATED_S):
                return
            self._written_at, self._unsaid = now, False
            self.write(self._line(self._step, now))

    def _line(self, step: _Step, now: float) -> str:
        parts = [part for part in (self.name, step.about, step.part, step.detail) if part]
        left = self.left_s()
        times = f"{spoken(now - self._begun)} so far"
        return f"{': '.join(parts)}; {times}" + ("" if left is None else f", about {spoken(left)} left")

    def _usual(self, kind: str, known: Sequence[float]) -> float:
        return mean(self._took.get(kind) or known)

    def _run(self) -> None:
        while not self._ended.wait(LOOKED_EVERY_S):
            self.look()


def spoken(seconds: float) -> str:
    """A time for people: seconds, and from ten minutes on minutes."""
    return f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 60:.0f} min"
