"""One invocation of a function in virtual time: what it spends on CPU and on calls, and its bill."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from benchmarks.aws_model.assumptions import Assumptions, Draws, cpu_share
from benchmarks.aws_model.cpu import Segment
from benchmarks.aws_model.timeline import Timeline

BEGIN, END, WAIT = "begin", "end", "wait"


class Cpu(Protocol):
    """The CPU time of product code (`cpu.py`)."""

    def begin(self) -> None: ...

    def end(self, segment: Segment) -> float: ...


class Invocation:
    """The meter of one invocation. Its clock is that of its task."""

    def __init__(self, function: str, memory: int, timeline: Timeline, assumed: Assumptions, cpu: Cpu) -> None:
        self.function = function
        self.begun = timeline.local
        self.cpu_ms = 0.0
        self._share = cpu_share(memory) * assumed.cpu_factor
        self._timeline, self._cpu = timeline, cpu
        self._before, self._answered = BEGIN, 1

    def spend(self, milliseconds: float) -> None:
        """Use this much time of a whole CPU."""
        self.cpu_ms += milliseconds
        task = self._timeline.current
        assert task is not None, "an invocation runs in a task"
        task.local += milliseconds / self._share

    def starts(self, items: int) -> None:
        self._before, self._answered = BEGIN, items
        self._cpu.begin()

    def reaches(self, name: str, items: int) -> None:
        """The product code has come to this call."""
        self.spend(self._cpu.end(Segment(self.function, self._before, name, self._answered, items)))

    def goes_on(self, name: str, items: int) -> None:
        """The product code goes on after this call, which returned so many items."""
        self._before, self._answered = name, items
        self._cpu.begin()


class CallPath:
    """The way of every call from product code to a service of the model.

    ``invocation`` is set while product code runs in a task; without one, calls take no time (to set up a scenario)."""

    def __init__(self, timeline: Timeline, assumed: Assumptions, draws: Draws) -> None:
        self.timeline, self.assumed, self.draws = timeline, assumed, draws
        self.calls: Counter[str] = Counter()
        self.of_task: dict[int, Invocation] = {}

    @property
    def invocation(self) -> Invocation | None:
        task = self.timeline.current
        return None if task is None else self.of_task.get(id(task))

    def there(self, name: str, items: int = 1) -> float:
        """The way to a service: product CPU, that of boto3, and half of the call's duration. Returns the other half."""
        invocation = self.invocation
        if invocation is None:
            return 0.0
        task = self.timeline.current
        assert task is not None
        self.calls[name] += 1
        invocation.reaches(name, items)
        assumed = self.assumed.calls[name]
        invocation.spend(assumed.cpu_ms + assumed.cpu_ms_per_item * items)
        half = self.draws.call(name, items) / 2
        task.reach(task.local + half)
        return half

    def back(self, name: str, half: float, items: int = 1) -> None:
        """The way back with an answer of so many items."""
        invocation, task = self.invocation, self.timeline.current
        if invocation is not None and task is not None:
            task.local += half
            invocation.goes_on(name, items)

    def wait_until(self, instant: float) -> None:
        """Wait in the function, which is billed."""
        invocation, task = self.invocation, self.timeline.current
        if invocation is None or task is None:
            return
        invocation.reaches(WAIT, 0)
        task.reach(instant)
        invocation.goes_on(WAIT, 0)
