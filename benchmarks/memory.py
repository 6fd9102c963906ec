"""The memory size of a Lambda: cost against time, PREDICTED by a model of AWS. Nothing here is measured on AWS.

The model: a function's share of a CPU grows with its memory, up to one CPU at 1,769 MB. A smaller share makes
computation proportionally slower, but not waiting. The calls of a path are counted (`benchmarks/cost`); the duration of
a call is that of `prices.py`. The CPU time of a call is that of boto3 on the machine of docs/performance.md, and a
Lambda CPU is assumed to equal one of that machine. More than one CPU has no effect, because an invocation uses one
thread.

    python -m benchmarks.memory        # the table of docs/performance.md"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks import results
from benchmarks.cost.prices import CALL_MS, LAMBDA_GB_SECOND, LAMBDA_REQUEST, MILLION

# https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
WHOLE_CPU = 1769  # MB
SIZES = (256, 512, 768, 1024, 1769, 3008)
CPU_PER_CALL, CPU_PER_INVOCATION = 1.3, 5.0  # ms: boto3 and Sluice's code per call; runtime and log per invocation
WAITED_FOR = tuple(CALL_MS)


@dataclass(frozen=True, slots=True)
class Work:
    """The work of all Lambdas for one run: invocations, ms of CPU, and ms of waiting for answers."""

    invocations: float
    cpu_ms: float
    waited_ms: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """The Lambda time of one run in ms, and the Lambda cost of a million runs in dollars, at a memory in MB."""

    memory: int
    ms: float
    usd_per_million: float


def cpu_share(memory: int) -> float:
    """The share of one CPU that one thread of a function with this memory (MB) has."""
    return min(memory / WHOLE_CPU, 1.0)


def work_of(calls: Mapping[str, float]) -> Work:
    """The work of counted calls, named `<service>:<Operation>`; calls of Lambda itself are its invocations."""
    invocations = sum(count for name, count in calls.items() if name.startswith("lambda:"))
    made = {name: count for name, count in calls.items() if name.partition(":")[0] in WAITED_FOR}
    # Lambda's own poller makes these calls for a queue, not the function.
    made = {name: count for name, count in made.items() if name not in ("sqs:ReceiveMessage", "sqs:DeleteMessageBatch")}
    cpu = sum(made.values()) * CPU_PER_CALL + invocations * CPU_PER_INVOCATION
    return Work(invocations, cpu, sum(count * CALL_MS[name.partition(":")[0]] for name, count in made.items()))


def predict(work: Work, memory: int) -> Prediction:
    """Time and cost of some work with a memory size (MB)."""
    ms = work.waited_ms + work.cpu_ms / cpu_share(memory)
    gb_seconds = ms / 1000 * memory / 1024
    return Prediction(memory, ms, MILLION * (gb_seconds * LAMBDA_GB_SECOND + work.invocations * LAMBDA_REQUEST))


def table(costs: list[dict[str, Any]], cold_cpu_ms: float) -> Iterator[str]:
    """The lines of a Markdown table: for each size the paths, and the duration of a cold start's imports."""
    paths = [str(cost["path"]) for cost in costs]
    yield f"| MB | CPU | {' | '.join(paths)} | cold start, imports |"
    yield f"|---|---|{'---|' * len(paths)}---|"
    for memory in SIZES:
        predictions = [predict(work_of(cost["calls"]), memory) for cost in costs]
        cells = " | ".join(f"{prediction.ms:.0f} ms, ${prediction.usd_per_million:.2f}" for prediction in predictions)
        yield f"| {memory:,} | {cpu_share(memory):.2f} | {cells} | {cold_cpu_ms / cpu_share(memory):,.0f} ms |"


def of_results(found: Mapping[str, Any]) -> Iterator[str]:
    """The table from results that have `cost` and `cold_start`."""
    return table(found["cost"], max(float(entry["handler_cpu_ms"]) for entry in found["cold_start"]))


def main() -> None:
    """Print the table from the committed results."""
    print("\n".join(of_results(results.read())))


if __name__ == "__main__":
    main()
