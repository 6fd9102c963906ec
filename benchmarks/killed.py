"""killed: a burst whose Lambdas are killed amid their sends, on a local cloud, into one SQS queue.

The fires of `burst_one_schedule` are due at one instant. When the first message has arrived, all processes of Lambda
`burst` are killed at once, in the middle of their sends. The tick has to find what is left. The result is how long
after the kill the next message and the last one arrived, and how long after the first tick that followed. The promise
is a tick and ten seconds (docs/guarantees.md). The messages that a killed process had sent and not recorded come twice.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.burst import AHEAD_S, PATIENCE_S, WORKFLOW, one_schedule
from benchmarks.cloud import Running, own_cloud
from benchmarks.measurement import Results
from benchmarks.product import deploy
from benchmarks.progress import Progress
from benchmarks.target_queue import Arrival, TargetQueue, figures
from chalicelib.core.instants import MINUTE

JOBS = int(os.environ.get("SLUICE_BENCH_KILLED_JOBS", "2000"))
REPETITIONS = int(os.environ.get("SLUICE_BENCH_REPETITIONS", "2"))
LOOK_EVERY_S = 0.02


def measure(progress: Progress) -> Results:
    runs = []
    for _ in progress.each(range(REPETITIONS), lambda _: "repetition"):
        runs.append(once(progress))
    return {"killed": {"jobs": JOBS, "runs": runs}}


def tables(results: Results) -> list[Table]:
    table = Table(
        *("processes killed", "sent before", "next after", "last after", "after the tick", "missed", "doubled"),
        title=f"killed: a burst of {results['killed']['jobs']:,}, in seconds after the kill, and after the next tick",
        title_justify="left",
    )
    for run in results["killed"]["runs"]:
        names = ("killed", "sent_before", "next_s", "last_s", "last_after_tick_s", "missed", "doubled")
        table.add_row(*(str(run[name]) for name in names))
    return [table]


def once(progress: Progress) -> dict[str, Any]:
    """Play the burst once, on a cloud of its own."""
    progress("starting a cloud")
    with own_cloud() as cloud:
        queue = TargetQueue(lambda: cloud.client("sqs"), "killed")
        deploy(cloud, {"workflows": {WORKFLOW: queue.workflow()}})
        one_schedule(cloud, WORKFLOW, JOBS)
        progress("waiting for the first message")
        killed, at = _kill_amid_sends(cloud, queue)
        queue.wait_for(JOBS, PATIENCE_S, lambda count: progress("arrived", count, JOBS))
        return {"killed": killed, **recovery(queue.drain(), at)}


def _kill_amid_sends(cloud: Running, queue: TargetQueue) -> tuple[int, int]:
    """Wait for the first message, then kill. Returns how many processes were killed, and the instant in epoch ms."""
    ends_at = time.monotonic() + AHEAD_S + PATIENCE_S
    while time.monotonic() < ends_at:
        if queue.count():
            at = time.time_ns() // 1_000_000
            return kill(cloud.layout.root, "burst"), at
        time.sleep(LOOK_EVERY_S)
    raise TimeoutError(f"expected a message within {AHEAD_S + PATIENCE_S:.0f} s, got none")


def kill(root: Path, function: str) -> int:
    """Kill all processes of a Lambda of the local cloud below ``root``. Returns how many there were."""
    killed = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().decode(errors="replace")
        except OSError:  # it has ended
            continue
        if str(root) in command and f"-{function}-" in command and "_worker.py" in command:
            os.kill(int(folder.name), signal.SIGKILL)
            killed += 1
    return killed


def recovery(arrivals: list[Arrival], at: int) -> dict[str, Any]:
    """What the arrivals say about a kill at this instant, in seconds. What arrived within a second of it had been sent
    before. Raises ValueError if the kill came after the last message."""
    of_burst = figures(arrivals, JOBS)
    firsts: dict[str, int] = {}
    for arrival in sorted(arrivals, key=lambda one: one.sent_at):
        firsts.setdefault(arrival.event_id, arrival.sent_at)
    later = sorted(sent_at for sent_at in firsts.values() if sent_at > at + 1000)
    if not later:
        raise ValueError(
            f"expected messages after the kill, got all {len(firsts)} before: set SLUICE_BENCH_KILLED_JOBS"
        )
    tick = (at // MINUTE + 1) * MINUTE
    after = {"next_s": later[0] - at, "last_s": later[-1] - at, "last_after_tick_s": later[-1] - tick}
    return {
        "sent_before": len(firsts) - len(later),
        **{name: round(millis / 1000, 1) for name, millis in after.items()},
        "missed": of_burst["missed"],
        "doubled": of_burst["doubled"],
    }
