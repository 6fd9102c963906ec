"""What memory a Lambda should have: cost against time, PREDICTED by a model of AWS. Nothing here is measured on AWS.

The model: Lambda gives a function a share of a CPU that grows with its memory, one whole CPU at 1,769 MB. What a path
computes takes as much longer as that share is smaller; what it waits for does not. The calls of a path are counted
(`benchmarks/cost`), the milliseconds of a call are those that `prices.py` assumes. The CPU of a call is what boto3 took
on the machine of docs/performance.md, and a CPU of Lambda is taken for one of that machine. More than one CPU helps
nobody here, for an invocation is one thread.

    python -m benchmarks.memory        # the table of docs/performance.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks import results
from benchmarks.cost.prices import CALL_MS, LAMBDA_GB_SECOND, LAMBDA_REQUEST, MILLION

# https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
WHOLE_CPU = 1769  # MB
SIZES = (256, 512, 768, 1024, 1769, 3008)
CPU_PER_CALL, CPU_PER_INVOCATION = 1.3, 5.0  # ms: boto3 and our code for a call; the runtime and the log for the rest
WAITED_FOR = tuple(CALL_MS)


@dataclass(frozen=True, slots=True)
class Work:
    """What Lambdas do for one run: invocations, ms of CPU, and ms of waiting for answers."""

    invocations: float
    cpu_ms: float
    waited_ms: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """Time that the Lambdas of one run take, and dollars of Lambda for a million runs, at a memory in MB."""

    memory: int
    ms: float
    usd_per_million: float


def cpu_share(memory: int) -> float:
    """How much of one CPU a function of so many MB has, for one thread."""
    return min(memory / WHOLE_CPU, 1.0)


def work_of(calls: Mapping[str, float]) -> Work:
    """The work behind counted calls, named `<service>:<Operation>`; those of Lambda itself are its invocations."""
    invocations = sum(count for name, count in calls.items() if name.startswith("lambda:"))
    made = {name: count for name, count in calls.items() if name.partition(":")[0] in WAITED_FOR}
    # What Lambda's own poller does for a queue is not done by the function.
    made = {name: count for name, count in made.items() if name not in ("sqs:ReceiveMessage", "sqs:DeleteMessageBatch")}
    cpu = sum(made.values()) * CPU_PER_CALL + invocations * CPU_PER_INVOCATION
    return Work(invocations, cpu, sum(count * CALL_MS[name.partition(":")[0]] for name, count in made.items()))


def predict(work: Work, memory: int) -> Prediction:
    """Time and cost of some work at a memory."""
    ms = work.waited_ms + work.cpu_ms / cpu_share(memory)
    gb_seconds = ms / 1000 * memory / 1024
    return Prediction(memory, ms, MILLION * (gb_seconds * LAMBDA_GB_SECOND + work.invocations * LAMBDA_REQUEST))


def table(costs: list[dict[str, Any]], cold_cpu_ms: float) -> Iterator[str]:
    """The lines of a Markdown table: for each size the paths, and what the imports of a cold start take."""
    paths = [str(cost["path"]) for cost in costs]
    yield f"| MB | CPU | {' | '.join(paths)} | cold start, imports |"
    yield f"|---|---|{'---|' * len(paths)}---|"
    for memory in SIZES:
        told = [predict(work_of(cost["calls"]), memory) for cost in costs]
        cells = " | ".join(f"{each.ms:.0f} ms, ${each.usd_per_million:.2f}" for each in told)
        yield f"| {memory:,} | {cpu_share(memory):.2f} | {cells} | {cold_cpu_ms / cpu_share(memory):,.0f} ms |"


def of_results(found: Mapping[str, Any]) -> Iterator[str]:
    """The table out of results that have `cost` and `cold_start`."""
    return table(found["cost"], max(float(each["handler_cpu_ms"]) for each in found["cold_start"]))


def main() -> None:
    """Print the table out of the committed results."""
    print("\n".join(of_results(results.read())))


if __name__ == "__main__":
    main()
