"""Lambda in virtual time: environments that start cold and stay warm, concurrency, and the pollers of queues."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from benchmarks.aws_model.assumptions import cpu_share
from benchmarks.aws_model.invocation import END, CallPath, Cpu, Invocation
from benchmarks.aws_model.services import Message, Sqs

E = TypeVar("E")
GROWTH_MS = 200.0  # how often a busy queue gets more pollers
# Provisioned mode of a queue: what one poller does at most, and how many concurrent invocations a minute are added.
# https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventsourcemapping.html
POLLER_INVOKES, POLLER_RECEIVES_PER_S, PROVISIONED_PER_MINUTE = 10, 10, 1_000
RESERVED_NONE = 0


@dataclass(frozen=True, slots=True)
class Function:
    """The configuration of a function. ``reserved`` is its own share of the account's concurrency, 0 for none.
    ``code_of``: another function with the same code, by whose recorded CPU times this one runs."""

    name: str
    memory: int  # MB
    timeout_ms: float
    reserved: int = RESERVED_NONE
    code_of: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """The configuration of a queue as the event source of a function. ``most_pollers`` is its maximum of concurrent
    invocations. ``provisioned``: the minimum of pollers of its own, each of which invokes up to ten times at once; with
    0 pollers come and go."""

    batch_size: int = 10
    most_pollers: int = 1_000
    provisioned: int = 0


@dataclass
class Usage:
    """What a function has used. ``died``: invocations that Lambda has stopped at their timeout. ``longest_ms``: the
    longest billed invocation."""

    invocations: int = 0
    cold: int = 0
    died: int = 0
    failed_messages: int = 0
    throttled: int = 0
    billed_ms: float = 0.0
    longest_ms: float = 0.0
    cpu_ms: float = 0.0
    most_at_once: int = 0


@dataclass
class _Environment(Generic[E]):
    content: E
    free_since: float


class Context:
    """The context that the runtime passes to a handler."""

    def __init__(self, left: Callable[[], float]) -> None:
        self._left = left

    def get_remaining_time_in_millis(self) -> int:
        return int(self._left())


class Lambda(Generic[E]):
    """One function and its environments. ``make`` makes what an environment keeps between invocations."""

    def __init__(self, function: Function, path: CallPath, cpu: Cpu, make: Callable[[], E], account: Account) -> None:
        self.function = function
        self.usage = Usage()
        self._path, self._cpu, self._make, self._account = path, cpu, make, account
        self._free: list[_Environment[E]] = []
        self._running = 0
        self._made: deque[float] = deque()

    def invoke(
        self, work: Callable[[E, Context], None], items: int, then: Callable[[bool], None], kind: str = ""
    ) -> bool:
        """Begin an invocation; ``then`` is called at its end, with whether it ended by itself. ``kind`` names its CPU
        times apart from those of other invocations of the function. Returns False if Lambda throttles it."""
        timeline, assumed = self._path.timeline, self._path.assumed
        now = timeline.local
        self._free = [one for one in self._free if now - one.free_since <= assumed.environment_kept_ms]
        warm = bool(self._free)
        if not self._account.admits(self.function, self._running) or not (warm or self._may_grow(now)):
            self.usage.throttled += 1
            return False
        environment = self._free.pop() if warm else _Environment(self._make(), now)
        self._running += 1
        self._account.running += 1
        self.usage.invocations += 1
        self.usage.most_at_once = max(self.usage.most_at_once, self._running)
        begin = now + self._path.draws.duration(assumed.invoke_ms)
        initial = 0.0
        if not warm:
            self.usage.cold += 1
            initial = assumed.import_cpu_ms / assumed.cpu_factor / cpu_share(self.function.memory)
            begin += self._path.draws.duration(assumed.cold_start_ms) + initial

        def body() -> None:
            task = timeline.current
            assert task is not None
            kind_of = kind or self.function.code_of or self.function.name
            timed = Invocation(kind_of, self.function.memory, timeline, assumed, self._cpu)
            self._path.of_task[id(task)] = timed
            whole = False
            try:
                timed.spend(assumed.runtime_cpu_ms)
                timed.starts(items)
                work(environment.content, Context(lambda: task.ends_at - task.local))
                timed.reaches(END, 0)
                task.reach(task.local)
                whole = True
            finally:
                del self._path.of_task[id(task)]
                if not task.closing:
                    self._end(environment, timed, initial, task.local, whole)
                    then(whole)

        def run() -> None:
            timeline.begin(body, timeline.now + self.function.timeout_ms)

        timeline.at(begin, run)
        return True

    def _end(self, environment: _Environment[E], timed: Invocation, initial: float, now: float, whole: bool) -> None:
        self._running -= 1
        self._account.running -= 1
        billed = now - timed.begun + initial
        self.usage.billed_ms += billed
        self.usage.longest_ms = max(self.usage.longest_ms, billed)
        self.usage.cpu_ms += timed.cpu_ms
        self.usage.died += not whole
        if whole:  # Lambda discards an environment whose invocation timed out
            environment.free_since = now
            self._free.append(environment)

    def _may_grow(self, now: float) -> bool:
        """Whether a new environment fits into the rate at which a function grows."""
        while self._made and now - self._made[0] > 10_000:
            self._made.popleft()
        if len(self._made) >= self._path.assumed.environments_per_10_s:
            return False
        self._made.append(now)
        return True


class Account:
    """The concurrency of the account, less what functions have reserved."""

    def __init__(self, concurrency: int, functions: list[Function]) -> None:
        self.running = 0
        self._shared = concurrency - sum(function.reserved for function in functions)

    def admits(self, function: Function, running: int) -> bool:
        return running < function.reserved if function.reserved else self.running < self._shared


@dataclass
class _Queue:
    waiting: deque[Message] = field(default_factory=deque)
    busy: int = 0  # pollers that receive or wait for an invocation
    receiving: int = 0  # pollers whose receive call is under way
    pollers: float = 0.0
    growing: bool = False
    busy_at: float = 0.0


class Pollers(Generic[E]):
    """The pollers that bring the messages of a queue to a function.

    There are five at first, and 300 more a minute while messages wait. Each receives up to a batch, invokes the
    function, and deletes what it did not report as failed. A failed message comes again when the function has said so,
    or after the visibility timeout. A provisioned poller counts as ten: it waits for ten invocations at once."""

    def __init__(
        self,
        to: Lambda[E],
        sqs: Sqs,
        path: CallPath,
        handle: Callable[[E, dict[str, Any], Context], dict[str, Any]],
        arn: str,
        visibility_ms: float,
        source: Source,
    ) -> None:
        self._to, self._sqs, self._path, self._handle, self._source = to, sqs, path, handle, source
        self._arn, self._visibility_ms = arn, visibility_ms
        assumed = path.assumed
        at_first = POLLER_INVOKES * source.provisioned or assumed.pollers_at_first
        self._at_first = min(at_first, source.most_pollers)
        # Growth that is not promised does not come to provisioned pollers either.
        faster = PROVISIONED_PER_MINUTE if assumed.pollers_per_minute else 0
        self._per_minute = faster if source.provisioned else assumed.pollers_per_minute
        self._received_at = 0.0
        self._queue = _Queue(pollers=self._at_first)
        self.batches: Counter[int] = Counter()

    def comes(self, message: Message) -> None:
        """A message can be received from now on."""
        self._queue.waiting.append(message)
        self._assign()

    def _assign(self) -> None:
        queue, assumed, timeline = self._queue, self._path.assumed, self._path.timeline
        now = timeline.local
        if queue.busy == 0 and now - queue.busy_at > assumed.pollers_idle_ms:
            queue.pollers = self._at_first
        # A poller that is about to answer takes a batch; further pollers receive what it leaves, or nothing.
        while queue.receiving < len(queue.waiting) and queue.busy < int(queue.pollers):
            queue.busy += 1
            queue.receiving += 1
            takes = self._path.draws.duration(assumed.gathered_ms) + assumed.batching_window_ms
            timeline.at(self._in_turn(now + takes), self._receive)
        if len(queue.waiting) > queue.receiving and not queue.growing:
            queue.growing = True
            timeline.at(now + GROWTH_MS, self._grow)

    def _in_turn(self, at: float) -> float:
        """The instant of a receive call: provisioned pollers make only so many calls a second."""
        if self._source.provisioned:
            apart = 1_000 * POLLER_INVOKES / POLLER_RECEIVES_PER_S / self._queue.pollers
            at = self._received_at = max(at, self._received_at + apart)
        return at

    def _grow(self) -> None:
        queue = self._queue
        queue.growing = False
        if queue.waiting:
            more = self._per_minute * GROWTH_MS / 60_000
            queue.pollers = min(queue.pollers + more, self._source.most_pollers)
            self._assign()

    def _receive(self) -> None:
        queue = self._queue
        queue.receiving -= 1
        queue.busy_at = self._path.timeline.local
        batch = [queue.waiting.popleft() for _ in range(min(self._source.batch_size, len(queue.waiting)))]
        if not batch:
            queue.busy -= 1
            return
        for message in batch:
            message.received += 1
            self._sqs.in_flight[str(message.number)] = message
        self._invoke(batch)

    def _invoke(self, batch: list[Message]) -> None:
        answers: list[dict[str, Any]] = []

        def work(environment: E, context: Context) -> None:
            answers.append(self._handle(environment, self._event(batch), context))

        def ended(whole: bool) -> None:
            failed = {one["itemIdentifier"] for one in answers[0]["batchItemFailures"]} if whole else None
            self._settle(batch, failed)
            self._queue.busy -= 1
            self._queue.busy_at = self._path.timeline.local
            self._assign()

        self.batches[len(batch)] += 1
        if not self._to.invoke(work, len(batch), ended):
            retry = self._path.assumed.throttled_retry_ms
            self._path.timeline.at(self._path.timeline.local + retry, lambda: self._invoke(batch))

    def _settle(self, batch: list[Message], failed: set[str] | None) -> None:
        now = self._path.timeline.local
        for message in batch:
            name = str(message.number)
            self._sqs.in_flight.pop(name, None)
            if failed is None or name in failed:
                self._to.usage.failed_messages += 1
                again = message.visible_at or now + self._visibility_ms
                message.visible_at = None
                self._path.timeline.at(again, partial(self.comes, message))

    def _event(self, batch: list[Message]) -> dict[str, Any]:
        return {
            "Records": [
                {
                    "messageId": str(message.number),
                    "body": message.body,
                    "receiptHandle": str(message.number),
                    "attributes": {"ApproximateReceiveCount": str(message.received)},
                    "eventSourceARN": self._arn,
                }
                for message in batch
            ]
        }
