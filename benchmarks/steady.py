"""steady: twelve fires a second for a minute, each to an SQS queue, through the deployed Lambdas of a local cloud.

A million fires a day are twelve a second. Each fire has its own schedule, which fires once (`burst.shot`); twelve are
due in every second. The schedules are loaded some two minutes ahead, and the minute tick prepares the fires."""

from __future__ import annotations

import os
import time
from typing import Any

from rich.table import Table

from benchmarks.burst import WORKFLOW, shot
from benchmarks.cloud import Running, own_cloud
from benchmarks.loader import load
from benchmarks.measurement import Progress, Results
from benchmarks.product import APP, NAMESPACE, deploy, ports_of
from benchmarks.target_queue import TargetQueue, figures
from chalicelib.core.instants import SECOND

PER_SECOND = 12
SECONDS = int(os.environ.get("SLUICE_BENCH_SECONDS", "60"))
AHEAD_S = 100
PATIENCE_S = 90.0


def measure(progress: Progress) -> Results:
    jobs = PER_SECOND * SECONDS
    progress("starting a cloud", 0, jobs)
    with own_cloud() as cloud:
        queue = TargetQueue(lambda: cloud.client("sqs"), "steady")
        deploy(cloud, {"workflows": {WORKFLOW: queue.workflow()}})
        begun = time.monotonic()
        spread_out(cloud)
        progress("waiting", 0, jobs)
        time.sleep(max(0.0, AHEAD_S + SECONDS - (time.monotonic() - begun)))
        queue.wait_for(jobs, PATIENCE_S, lambda count: progress("arrived", count, jobs))
        return {"steady": {"offered_per_second": PER_SECOND, **figures(queue.drain(), jobs)}}


def spread_out(cloud: Running) -> None:
    ports = ports_of(cloud)
    now = ports.clock.now() // SECOND * SECOND
    for second in range(SECONDS):
        names = [f"{NAMESPACE}.{APP}.s{second:03d}x{number:02d}" for number in range(PER_SECOND)]
        load(ports.ledger, names, shot(WORKFLOW, AHEAD_S + second), now)


def tables(results: Results) -> list[Table]:
    one: dict[str, Any] = results["steady"]
    title = f"steady: {one['offered_per_second']} fires a second, lateness at the target queue in ms"
    table = Table("jobs", "p50", "p99", "max", "missed", "doubled", title=title, title_justify="left")
    late = (f"{one['lateness_ms'][share]:.0f}" for share in ("p50", "p99", "max"))
    table.add_row(str(one["jobs"]), *late, str(one["missed"]), str(one["doubled"]))
    return [table]
