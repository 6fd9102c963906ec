"""cpu: the CPU that the Lambdas take for each message of a burst, step by step, without the emulator.

The handlers, flows, adapters and clients of boto3 are the real ones. The tables are in memory and answer in this
process, and there is no network; what the answers take is left out. The figures are CPU times of this process, which
other processes disturb less than wall times. Each case is played some times, and of each step the least time counts.

`lone` has many schedules of one document, which are due once, at one instant. In `varied`, each has properties of its
own. `batch` has one schedule whose fire has as many events.
`SLUICE_BENCH_CPU_MESSAGES` is the number of messages of a case."""

from __future__ import annotations

import gc
import heapq
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import wraps
from typing import Any
from unittest.mock import patch

from rich.table import Table

from benchmarks.burst import shot
from benchmarks.cost.paths import SQS
from benchmarks.cost.plant import Plant, Targets, fresh_tables
from benchmarks.cost.services import APPLICATION
from benchmarks.loader import rows_of
from benchmarks.measurement import Results
from benchmarks.progress import Progress
from benchmarks.wire import Answer, Wire
from chalicelib.aws.hints import SqsHints
from chalicelib.aws.tables.wire_format import as_it_is
from chalicelib.aws.targets.emr_serverless import EmrServerlessTarget
from chalicelib.aws.targets.sqs import SqsTarget
from chalicelib.core.instants import SECOND
from chalicelib.core.writes import Put
from chalicelib.flow.deliveries.books import Books
from chalicelib.flow.fires import emit
from chalicelib.flow.system import dispatch

MESSAGES = int(os.environ.get("SLUICE_BENCH_CPU_MESSAGES", "3000"))
REPETITIONS = int(os.environ.get("SLUICE_BENCH_REPETITIONS", "3"))
AHEAD_S, AFTER_S = 150, 30
WORKFLOW = "notify"
NAME = "demo.flights.shot{:05d}"
# What a step is: the functions whose time it has. A step that calls another one does not have the time of that one.
STEPS = {
    "emit": ((emit, "emit_due"), (emit, "split"), (emit, "emit_together")),
    "prepare": ((dispatch, "begin"),),
    "send": ((dispatch, "finish"),),
    "record": ((Books, "keep"),),
}
OTHER = "other"  # messages of hints are read, metrics are written, the sweep finds nothing
CASES = ("lone", "varied", "batch")


class Stopwatch:
    """Counts the CPU time of the product, step by step, while an invocation is in progress."""

    def __init__(self, wire: Wire) -> None:
        self.used: defaultdict[str, float] = defaultdict(float)
        self._wire = wire
        self._step: str | None = None
        self._since = 0.0

    @contextmanager
    def within(self, step: str) -> Iterator[None]:
        former = self._switch(step)
        try:
            yield
        finally:
            self._switch(former)

    def _switch(self, step: str | None) -> str | None:
        now, former = time.process_time() - self._wire.used_s, self._step
        if former is not None:
            self.used[former] += now - self._since
        self._step, self._since = step, now
        return former

    def around(self, step: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            with self.within(step):
                return function(*args, **kwargs)

        return timed


class CpuPlant(Plant):
    """The product with clients of boto3, whose steps are timed."""

    def __init__(self) -> None:
        self._wire = Wire()
        self.watch = Stopwatch(self._wire)
        tables, names, schema = fresh_tables()
        client = as_it_is(self._wire.client("dynamodb", _of(tables), retries={"total_max_attempts": 1}))
        super().__init__(tables, names, schema, lambda _: client, logged=True)
        queue = self._wire.client("sqs", _of(self.sqs))
        self.ports = replace(
            self.ports,
            hints=SqsHints(queue, "https://sqs.us-east-1.amazonaws.com/123456789012/hints", self.clock),
            targets=Targets(EmrServerlessTarget(self.emr, APPLICATION, "", ""), SqsTarget(queue)),
        )

    def invoke(self, name: str, handler: Callable[[dict[str, Any]], Any], event: dict[str, Any]) -> Any:
        with self.watch.within(OTHER):
            return super().invoke(name, handler, event)

    def pass_by(self, span: int) -> None:
        """As `Plant.pass_by`, but each invocation begins at its own instant, as if all of them ran at once."""
        end = self.clock.now() + span
        while self._agenda and self._agenda[0][0] <= end:
            self.clock.instant, _, act = heapq.heappop(self._agenda)
            act()
        self.clock.instant = end

    def play(self, documents: Sequence[dict[str, Any]]) -> int:
        """Load a schedule of each document, and pass the instant at which they are due. Returns how many messages were
        sent."""
        self.deploy({"workflows": {WORKFLOW: {"target": SQS}}})
        now = self.clock.now() // SECOND * SECOND
        named = ((NAME.format(number), document) for number, document in enumerate(documents))
        self.ports.ledger.put_all([Put(row) for name, document in named for row in rows_of(name, document, now)])
        with ExitStack() as patched:
            for step, functions in STEPS.items():
                for owner, function in functions:
                    timed = self.watch.around(step, getattr(owner, function))
                    patched.enter_context(patch.object(owner, function, timed))
            patched.enter_context(_without_collector())
            self.pass_by((AHEAD_S + AFTER_S) * SECOND)
        return self.sqs.delivered_to_targets


def measure(progress: Progress) -> Results:
    found: dict[str, Any] = {}
    for number, case in enumerate(CASES):
        runs = []
        for repetition in range(REPETITIONS):
            progress(case, number * REPETITIONS + repetition, len(CASES) * REPETITIONS)
            runs.append(once(case, MESSAGES))
        found[case] = least(runs)
    return {"cpu": {"messages": MESSAGES, "cases": found}}


def once(case: str, messages: int) -> dict[str, float]:
    """The CPU time in ms of each step for a message. Raises RuntimeError if not all messages were sent."""
    plant = CpuPlant()
    sent = plant.play(documents_of(case, messages))
    if sent != messages:
        raise RuntimeError(f"expected {messages} messages, got {sent}")
    return {step: plant.watch.used[step] * 1000 / messages for step in (*STEPS, OTHER)}


def documents_of(case: str, messages: int) -> list[dict[str, Any]]:
    """The documents of the schedules of a case, which send this many messages."""
    document = shot(WORKFLOW, AHEAD_S)
    match case:
        case "lone":
            return [document] * messages
        case "varied":
            return [document | {"properties": {"shop": f"shop-{number}"}} for number in range(messages)]
        case _:
            return [document | {"spread": {"count": messages}}]


def least(runs: list[dict[str, float]]) -> dict[str, Any]:
    """The least time of each step over the runs, their sum, and the sum of each run."""
    steps = {step: round(min(run[step] for run in runs), 4) for step in runs[0]}
    sums = [round(sum(run.values()), 4) for run in runs]
    return {"steps": steps, "sum": round(sum(steps.values()), 4), "runs": sums}


def tables(results: Results) -> list[Table]:
    found = results["cpu"]
    table = Table(
        *("case", *STEPS, OTHER, "sum", "each run"),
        title=f"cpu: ms of the Lambdas for each of {found['messages']:,} messages",
        title_justify="left",
    )
    for case, one in found["cases"].items():
        steps = (f"{one['steps'][step]:.3f}" for step in (*STEPS, OTHER))
        table.add_row(case, *steps, f"{one['sum']:.3f}", ", ".join(f"{total:.3f}" for total in one["runs"]))
    return [table]


def _of(service: Any) -> Answer:
    """Answers an operation by the method of a replacement that has its name in Python."""

    def answer(operation: str, members: Any) -> Any:
        name = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in operation).lstrip("_")
        return getattr(service, name)(**members)

    return answer


@contextmanager
def _without_collector() -> Iterator[None]:
    """Without the garbage collector, which would search the rows in memory, too."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
