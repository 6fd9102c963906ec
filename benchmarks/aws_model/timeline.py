"""Virtual time: tasks run one at a time, each in a thread of its own, in the order of their instants.

A task is ordinary blocking code. Where it meets the rest of the model, it calls `reach` with an instant, and goes on
when everything before that instant has happened. Between two such points it only adds to its own time. Instants are
milliseconds since 1970, with fractions.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable
from itertools import count

Act = Callable[[], None]


class Stopped(BaseException):
    """Ends a task: its time is used up, or the model is closed. Product code does not catch it."""


class Task:
    """A thread of virtual time. ``local`` is its instant, at or after that of the timeline. ``ends_at``: it is stopped
    at that instant."""

    def __init__(self, timeline: Timeline, body: Act, ends_at: float) -> None:
        self.local = timeline.now
        self.ends_at = ends_at
        self.closing = False
        self.died: BaseException | None = None
        self._timeline = timeline
        self._body = body
        self._baton = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def reach(self, instant: float) -> None:
        """Wait until everything before ``instant`` has happened. Raises Stopped if the task ends earlier."""
        self.local = max(self.local, min(instant, self.ends_at))
        self._timeline.hand_over(self)
        if self.closing or instant > self.ends_at:
            raise Stopped

    def resume(self) -> None:
        """Let the task run until it waits again or ends. Called by the timeline."""
        if self._thread.ident is None:
            self._thread.start()
        else:
            self._baton.release()

    def pause(self) -> None:
        self._baton.acquire()

    def _run(self) -> None:
        try:
            self._body()
        except Stopped:
            pass
        except BaseException as error:  # raised again by the timeline, in the thread of the model
            self.died = error
        self._timeline.ended(self)


class Timeline:
    """The agenda of a model: what happens at which instant."""

    def __init__(self, begin: float) -> None:
        self.now = begin
        self.current: Task | None = None
        self._agenda: list[tuple[float, int, Act | Task]] = []
        self._order = count()
        self._end = begin
        self._tasks: set[Task] = set()
        self._main = threading.Semaphore(0)

    @property
    def local(self) -> float:
        """The present instant as the running code sees it."""
        return self.now if self.current is None else self.current.local

    def at(self, instant: float, act: Act) -> None:
        """Do this at an instant; at once, if that has passed."""
        self._push(max(instant, self.now), act)

    def begin(self, body: Act, ends_at: float) -> Task:
        """Start a task now."""
        task = Task(self, body, ends_at)
        self._tasks.add(task)
        self._push(self.now, task)
        return task

    def run(self, end: float, until: Callable[[], bool] = lambda: False) -> None:
        """Play the agenda up to an instant, or until the condition holds. Raises what a task has raised."""
        self._end = end
        while self._agenda and self._agenda[0][0] <= end and not until():
            self.now, _, what = heapq.heappop(self._agenda)
            if isinstance(what, Task):
                self._resume(what)
            else:
                what()
        if not until():
            self.now = max(self.now, end)

    def close(self) -> None:
        """End all tasks, so that no thread is left."""
        for task in list(self._tasks):
            task.closing = True
            self._resume(task)

    def hand_over(self, task: Task) -> None:
        """Called by the running task: go on at once if nothing happens before its instant, else wait."""
        if task.closing:
            return
        if task.local <= self._end and (not self._agenda or task.local < self._agenda[0][0]):
            self.now = max(self.now, task.local)
            return
        self._push(task.local, task)
        self._main.release()
        task.pause()

    def ended(self, task: Task) -> None:
        self._tasks.discard(task)
        self._main.release()

    def _resume(self, task: Task) -> None:
        self.current = task
        task.resume()
        self._main.acquire()
        self.current = None
        if task.died is not None:
            raise task.died

    def _push(self, instant: float, what: Act | Task) -> None:
        heapq.heappush(self._agenda, (instant, next(self._order), what))
