"""burst: many fires due at one instant, through the deployed Lambdas of a local cloud, into one SQS queue.

`burst` has one one-shot schedule per fire (`R1/PT<n>S`), `burst_one_schedule` one schedule whose fire has as many
events. `loader` writes the schedules into the tables, minutes before the instant. The minute tick prepares their fires,
the queue of bursts invokes Lambda `burst`, and `burst` delivers. The measured time is from the due instant to the last
arrival at the target, by SQS's timestamps.

Each is played five times (`SLUICE_BENCH_REPETITIONS`), alternately. The result is the run of the median pace, with the
pace of each run and those that are outliers. So one disturbed run is no figure. Each run says how much CPU time the
machine used from a second before the instant to the last arrival. The same calls take more of it on a slower host.
``part_cpu_s`` is what the emulator and each Lambda used from the last schedule that was stored to the record of the
last run: it has the preparation and the records too."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from rich.table import Table

from benchmarks.cloud import Running, own_cloud
from benchmarks.loader import load
from benchmarks.machine import used_from
from benchmarks.measurement import Results
from benchmarks.processes import Sampler, of_cloud
from benchmarks.product import APP, NAMESPACE, deploy, ports_of, wait_for_records
from benchmarks.progress import Progress
from benchmarks.target_queue import TargetQueue, figures
from chalicelib.core.instants import SECOND

JOBS = int(os.environ.get("SLUICE_BENCH_JOBS", "10000"))
WORKFLOW = "deliver"
REPETITIONS = int(os.environ.get("SLUICE_BENCH_REPETITIONS", "5"))
# Seconds from the load to the instant. Two ticks lie in between, so a tick prepares the fires before the last minute.
AHEAD_S = int(os.environ.get("SLUICE_BENCH_AHEAD", "150"))
# If no message arrives for this long, the rest counts as missed. More than a minute: the sweep finds what a hint lost.
PATIENCE_S = 90.0

SAMPLED_EVERY_S = 5.0  # the CPU time of each part, rarely, because looking takes some of it

Begin = Callable[[Running, str, int], None]


def measure(progress: Progress) -> Results:
    loads = {"burst": one_shots} | ({"burst_one_schedule": one_schedule} if has_spread() else {})
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in loads}
    plays = [(repetition, name) for repetition in range(1, REPETITIONS + 1) for name in loads]
    for _, name in progress.each(
        plays, lambda play: f"repetition {play[0]} of {REPETITIONS}, {play[1]}", itemgetter(1)
    ):
        runs[name].append({"load": round(os.getloadavg()[0], 2), **once(name, loads[name], progress)})
    return {name: median_of(of) for name, of in runs.items()}


def median_of(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The run of the median pace, with the pace and the load before of each. Missed and doubled are those of all runs.

    A run is an outlier if its pace is further from the median than three times the median of these distances. It must
    also be further than a tenth of the median."""
    paces = [one["per_second"] for one in runs]
    middle = statistics.median_low(paces)
    typical = statistics.median(abs(pace - middle) for pace in paces)
    found = next(one for one in runs if one["per_second"] == middle)
    return {
        **{name: value for name, value in found.items() if name != "load"},
        **{name: sum(one[name] for one in runs) for name in ("missed", "doubled")},
        "runs": [{"per_second": one["per_second"], "load": one["load"], **_cpu(one)} for one in runs],
        "outliers": [pace for pace in paces if abs(pace - middle) > max(3 * typical, middle / 10)],
    }


def _cpu(one: dict[str, Any]) -> dict[str, Any]:
    return {"cpu_s": one["cpu_s"]} if "cpu_s" in one else {}


def tables(results: Results) -> list[Table]:
    table = Table(
        *("what", "jobs", "seconds", "per second", "p50", "p99", "max", "missed", "doubled"),
        title="burst: from the due instant to the arrival at the target queue, lateness in ms",
        title_justify="left",
    )
    for name, one in results.items():
        late = (f"{one['lateness_ms'][share]:.0f}" for share in ("p50", "p99", "max"))
        figures_of = (one["jobs"], one["seconds"], one["per_second"], *late, one["missed"], one["doubled"])
        table.add_row(name, *(str(figure) for figure in figures_of))
        paces = ", ".join(map(_pace, one.get("runs", ())))
        table.caption = f"{table.caption or ''}{name}, each run: {paces}; outliers: {one.get('outliers') or 'none'}\n"
    return [table]


def _pace(run: dict[str, Any]) -> str:
    return f"{run['per_second']:,.0f} (CPU {run.get('cpu_s')} s, load {run['load']})"


def one_shots(cloud: Running, workflow: str, jobs: int) -> None:
    """Store ``jobs`` schedules, each due once, all at the same instant."""
    ports = ports_of(cloud)
    names = [f"{NAMESPACE}.{APP}.shot{number:05d}" for number in range(jobs)]
    load(ports.ledger, names, shot(workflow, AHEAD_S), ports.clock.now() // SECOND * SECOND)


def shot(workflow: str, seconds: int) -> dict[str, Any]:
    """A schedule that fires once, this many seconds after it was put."""
    return {"workflow": workflow, "enabled": True, "trigger": {"type": "time", "expression": f"R1/PT{seconds}S"}}


def one_schedule(cloud: Running, workflow: str, jobs: int) -> None:
    """Store one schedule that is due once, with ``jobs`` events."""
    ports = ports_of(cloud)
    document = shot(workflow, AHEAD_S) | {"spread": {"count": jobs}}
    load(ports.ledger, [f"{NAMESPACE}.{APP}.many"], document, ports.clock.now() // SECOND * SECOND)


def has_spread() -> bool:
    """Whether a schedule can set how many events its fire has."""
    from chalicelib.core.definitions.schedule import Schedule

    return "spread" in Schedule.model_fields


def once(name: str, begin: Begin, progress: Progress) -> dict[str, Any]:
    """Play a burst once, on a cloud of its own."""
    progress("starting a cloud")
    with own_cloud() as cloud:
        queue = TargetQueue(lambda: cloud.client("sqs"), name.replace("_", "-"))
        deploy(cloud, {"workflows": {WORKFLOW: queue.workflow()}})
        progress("loading schedules")
        begun = time.monotonic()
        begin(cloud, WORKFLOW, JOBS)
        progress("waiting for the instant")
        with Sampler(partial(of_cloud, cloud.layout.root), SAMPLED_EVERY_S) as sampler:
            cpu = used_from(AHEAD_S - (time.monotonic() - begun) - 1)
            queue.wait_for(JOBS, PATIENCE_S, lambda count: progress("arrived", count, JOBS))
            used = cpu()
            recorded = wait_for_records(cloud, JOBS)
        return {**figures(queue.drain(), JOBS), **used, "recorded": recorded, "part_cpu_s": sampler.used()}
