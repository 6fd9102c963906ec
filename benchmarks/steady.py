"""steady: twelve fires a second for a minute, each to an SQS queue, through the deployed Lambdas of a local cloud.

A million fires a day are twelve a second. Each fire has its own schedule, which fires once (`burst.shot`); twelve are
due in every second. The schedules are loaded some two minutes ahead, and the minute tick prepares the fires."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rich.table import Table

from benchmarks.burst import SAMPLED_EVERY_S, WORKFLOW, shot
from benchmarks.cloud import Running, own_cloud
from benchmarks.loader import load_each
from benchmarks.measurement import Results
from benchmarks.processes import Sampler, of_cloud
from benchmarks.product import APP, NAMESPACE, deploy, ports_of, wait_for_records
from benchmarks.progress import Progress
from benchmarks.target_queue import TargetQueue, figures
from chalicelib.core.instants import SECOND

PER_SECOND = 12
SECONDS = int(os.environ.get("SLUICE_BENCH_SECONDS", "60"))
AHEAD_S = 100
PATIENCE_S = 90.0


def measure(progress: Progress) -> Results:
    return {"steady": {"offered_per_second": PER_SECOND, **once(progress)}}


def once(progress: Progress) -> dict[str, Any]:
    """Play the load once, on a cloud of its own."""
    jobs = PER_SECOND * SECONDS
    progress("starting a cloud")
    with own_cloud() as cloud:
        queue = TargetQueue(lambda: cloud.client("sqs"), "steady")
        deploy(cloud, {"workflows": {WORKFLOW: queue.workflow()}})
        begun = time.monotonic()
        spread_out(cloud, PER_SECOND, SECONDS, AHEAD_S, lambda count: progress("stored", count, jobs))
        progress("waiting for the instants")
        with Sampler(partial(of_cloud, cloud.layout.root), SAMPLED_EVERY_S) as sampler:
            time.sleep(max(0.0, AHEAD_S + SECONDS - (time.monotonic() - begun)))
            queue.wait_for(jobs, PATIENCE_S, lambda count: progress("arrived", count, jobs))
            recorded = wait_for_records(cloud, jobs)
        return {**figures(queue.drain(), jobs), "recorded": recorded, "part_cpu_s": sampler.used()}


def spread_out(
    cloud: Running, per_second: int, seconds: int, ahead_s: int, stored: Callable[[int], None],
    workflows: Sequence[str] = (WORKFLOW,),
) -> int:  # fmt: skip
    """Store schedules that fire once, so many due in each second, the first ones ``ahead_s`` from now. The seconds
    take turns among the workflows. ``stored`` gets how many there are so far. Returns the first instant in epoch ms."""
    ports = ports_of(cloud)
    now = ports.clock.now() // SECOND * SECOND
    groups = [
        (
            [f"{NAMESPACE}.{APP}.s{second:03d}x{number:02d}" for number in range(per_second)],
            shot(workflows[second % len(workflows)], ahead_s + second),
        )
        for second in range(seconds)
    ]
    for count in load_each(ports.ledger, groups, now):
        stored(count)
    return now + ahead_s * SECOND


def tables(results: Results) -> list[Table]:
    one: dict[str, Any] = results["steady"]
    title = f"steady: {one['offered_per_second']} fires a second, lateness at the target queue in ms"
    table = Table("jobs", "p50", "p99", "max", "missed", "doubled", title=title, title_justify="left")
    late = (f"{one['lateness_ms'][share]:.0f}" for share in ("p50", "p99", "max"))
    table.add_row(str(one["jobs"]), *late, str(one["missed"]), str(one["doubled"]))
    return [table]
