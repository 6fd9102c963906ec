"""sustained: the highest rate of fires that holds for five minutes, of Sluice and of other schedulers, on one machine.

A rate holds if all fires come and the p99 of their lateness is below a second. Each fire has a schedule of its own, as
in `steady`; all are stored before the first instant. The fires of the first ten seconds must come, too, but their
lateness does not count: they start processes, such as those of Lambdas.

The rate is doubled until it does not hold, each time for a minute, and bisected to a tenth. Then the rate that was
found is played for five minutes. If it does not hold for so long, it is lowered by a tenth, and played again.

Sluice runs on its local cloud, a new one for each probe, and each fire is a message in a queue. The seconds take turns
among `QUEUES` queues: each receive from a queue of the local cloud passes all of its messages, so short ones are read
sooner. The others are those of `peers`: each fire is a line that the worker appends to a file, which costs less.

    SLUICE_BENCH_PROBE_S=60 SLUICE_BENCH_CONFIRM_S=300     seconds of a probe, and of the confirmation
    SLUICE_BENCH_WARM_S=10                                 seconds before, whose lateness does not count
    SLUICE_BENCH_RATE=32 SLUICE_BENCH_MOST_RATE=4096       the first rate, and the highest that is tried
    SLUICE_BENCH_SCHEDULERS=sluice,huey                    those whose names contain this; others keep their results"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from rich.table import Table

from benchmarks import machine, results, steady
from benchmarks.burst import WORKFLOW
from benchmarks.cloud import own_cloud
from benchmarks.measurement import Results
from benchmarks.peers import OURS, SHARES
from benchmarks.peers.fire import lines
from benchmarks.peers.play import FireCount, Installed, Measured, Peer, ahead_s, firing, installed
from benchmarks.product import deploy
from benchmarks.progress import Progress
from benchmarks.sustained.search import LIMIT_MS, Bounds, Probe, Search, highest
from benchmarks.target_queue import Arrival, TargetQueue, figures

BOUNDS = Bounds(
    start=int(os.environ.get("SLUICE_BENCH_RATE", "32")),
    most=int(os.environ.get("SLUICE_BENCH_MOST_RATE", "4096")),
    probe_s=int(os.environ.get("SLUICE_BENCH_PROBE_S", "60")),
    confirm_s=int(os.environ.get("SLUICE_BENCH_CONFIRM_S", "300")),
)
WARM_S = int(os.environ.get("SLUICE_BENCH_WARM_S", "10"))
CHOSEN = tuple(filter(None, os.environ.get("SLUICE_BENCH_SCHEDULERS", "").lower().split(",")))
# Schedules are stored at this pace or faster. They must be there before a tick prepares the first of them.
STORED_PER_S = 300
QUEUES = 20
POLL_EVERY_S = 1.0  # after the last instant
POLL_SELDOM_S = 10.0  # before: each count costs a call for each queue
GRACE_S = 30.0  # after the last instant; what has not come by then is missed
LATE = 0.01  # with a larger share of the fires late, the p99 is not below the limit
HEADS = ("scheduler", "a second", "for, s", "p50 ms", "p99 ms", "max ms", "doubled", "did not hold", "probes")


@dataclass(frozen=True)
class Scheduler:
    """``play`` plays a rate for some seconds, after `WARM_S` of it. ``ahead_s`` is how long so many jobs are stored
    before the first is due."""

    name: str
    play: Callable[[int, int, Progress], Probe]
    ahead_s: Callable[[int], int]


def measure(progress: Progress) -> Results:
    """The entry ``sustained``: what was found for each scheduler, with the commit and the date."""
    progress("installing the other schedulers")
    with installed() as among:
        found = of_all(chosen([OUR_OWN, *(of_peer(peer, among) for peer in among.present)], CHOSEN), BOUNDS, progress)
    kept = results.read().get("sustained", {}).get("schedulers", ()) if CHOSEN else ()
    return {"sustained": {"left_out": among.left_out, "schedulers": merged(kept, found)}}


def chosen(schedulers: Sequence[Scheduler], parts: Sequence[str]) -> list[Scheduler]:
    """The schedulers whose names contain one of these parts; without any, all. Ends the program if a part is in no
    name."""
    names = [one.name.lower() for one in schedulers]
    if unknown := [part for part in parts if not any(part in name for name in names)]:
        known = "; ".join(one.name for one in schedulers)
        raise SystemExit(f"bench: SLUICE_BENCH_SCHEDULERS: expected parts of {known}, got {', '.join(unknown)}")
    return [one for one in schedulers if not parts or any(part in one.name.lower() for part in parts)]


def merged(kept: Sequence[Measured], found: Sequence[Measured]) -> list[Measured]:
    """The entries with those found anew, in their former order; new names come last."""
    new = {one["name"]: one for one in found}
    return [*(new.pop(one["name"], one) for one in kept), *new.values()]


def of_all(schedulers: Sequence[Scheduler], bounds: Bounds, progress: Progress) -> list[Measured]:
    """An entry for each scheduler. One that does not store its jobs in time has an ``error`` instead of a rate."""
    found: list[Measured] = []
    for scheduler in progress.each(schedulers, lambda one: one.name):
        about = {"name": scheduler.name, **machine.origin().measured_at}
        try:
            found.append({**about, **entry(of_one(scheduler, bounds, progress))})
        except RuntimeError as error:
            found.append({**about, "error": str(error)})
    return found


def of_one(scheduler: Scheduler, bounds: Bounds, progress: Progress) -> Search:
    """The search of one scheduler."""

    def told(search: Search) -> None:
        rate, seconds = search.next() or (0, 0)
        number = len(search.probes) + len(search.confirmations) + 1
        progress.part(f"probe {number}, {rate:,} a second for {seconds} s")
        played = [(pace, WARM_S + of) for pace, of in search.left()]
        progress.takes(sum(of + scheduler.ahead_s(pace * of) for pace, of in played))

    return highest(bounds, lambda rate, seconds: scheduler.play(rate, seconds, progress), told)


def entry(search: Search) -> Measured:
    """``per_second`` is the confirmed rate, 0 if there is none; ``at_least``: no rate failed up to the highest that was
    tried. ``failed`` is the lowest rate that did not hold."""
    held = search.found()
    failed = [probe.per_second for probe in (*search.probes, *search.confirmations) if not probe.holds]
    return {
        "per_second": held.per_second if held else 0,
        "at_least": held is not None and not failed,
        "failed": min(failed, default=None),
        "seconds": search.bounds.confirm_s,
        "lateness_ms": held.lateness_ms if held else None,
        "doubled": held.doubled if held else 0,
        "probes": [probe.as_json() for probe in search.probes],
        "confirmations": [probe.as_json() for probe in search.confirmations],
    }


def play_ours(per_second: int, seconds: int, progress: Progress) -> Probe:
    """Play a rate with Sluice on a local cloud. Raises RuntimeError if storing the schedules took too long."""
    every_s, most = WARM_S + seconds, LATE * per_second * seconds
    jobs = per_second * every_s
    progress("starting a cloud")
    with own_cloud() as cloud:
        queues = {
            f"{WORKFLOW}{number}": TargetQueue(lambda: cloud.client("sqs"), f"sustained-{number}")
            for number in range(QUEUES)
        }
        deploy(cloud, {"workflows": {name: queue.workflow() for name, queue in queues.items()}})
        ahead = our_ahead_s(jobs)
        first = steady.spread_out(
            cloud, per_second, every_s, ahead, lambda count: progress("stored", count, jobs), tuple(queues)
        )
        first_s = first / 1000
        if time.time() > first_s - steady.AHEAD_S + 1:
            raise RuntimeError(f"expected {jobs:,} schedules to be stored within {ahead - steady.AHEAD_S} s, got fewer")
        progress("waiting for the first instant")
        time.sleep(max(0.0, first_s - time.time()))
        counted = partial(_count, queues.values())
        missing = jobs - all_or_late(counted, jobs, first_s + every_s, most, progress)
        if missing > most:
            return too_few(per_second, seconds, missing)
        progress("reading the messages")
        arrivals = [arrival for queue in queues.values() for arrival in queue.drain()]
        return probe_of(per_second, seconds, arrivals, first)


def _count(queues: Iterable[TargetQueue]) -> int:
    return sum(queue.count() for queue in queues)


def our_ahead_s(jobs: int) -> int:
    return steady.AHEAD_S + 5 + jobs // STORED_PER_S


OUR_OWN = Scheduler(OURS, play_ours, our_ahead_s)


def of_peer(peer: Peer, among: Installed) -> Scheduler:
    def play(per_second: int, seconds: int, progress: Progress) -> Probe:
        every_s, most = WARM_S + seconds, LATE * per_second * seconds
        jobs = per_second * every_s
        with firing(peer, among, jobs, per_second, {}, progress) as fires:
            time.sleep(max(0.0, fires.due_s - time.time()))
            missing = jobs - all_or_late(FireCount(fires.file), jobs, fires.due_s + every_s, most, progress)
            if missing > most:
                return too_few(per_second, seconds, missing)
            return probe_of(per_second, seconds, arrivals_of(lines(fires.file)), fires.due_s * 1000)

    return Scheduler(peer.name, play, ahead_s)


def arrivals_of(fires: Iterable[tuple[int, int, int]]) -> list[Arrival]:
    """The fires of a peer. One before its instant counts as on time."""
    return [Arrival(str(number), due, max(at, due)) for number, due, at in fires]


def probe_of(per_second: int, seconds: int, arrivals: Sequence[Arrival], first: int) -> Probe:
    """The probe with these arrivals; ``first`` is the first instant in epoch ms. All must have come; the lateness is
    that of those that are due after `WARM_S`."""
    every = figures(arrivals, per_second * (WARM_S + seconds))
    counted = [one for one in arrivals if one.nominal_at >= first + WARM_S * 1000]
    if not counted:
        return too_few(per_second, seconds, every["missed"])
    late = figures(counted, per_second * seconds)["lateness_ms"]
    return replace(too_few(per_second, seconds, every["missed"]), lateness_ms=late, doubled=every["doubled"])


def too_few(per_second: int, seconds: int, missing: int) -> Probe:
    """The probe of which so many have not come, whose lateness is not known."""
    return Probe(per_second, seconds, max(0, per_second * seconds - missing), None)


def all_or_late(count: Callable[[], int], jobs: int, last_s: float, most: float, progress: Progress) -> int:
    """Wait until all jobs have fired, or more than ``most`` are late, so that the rate does not hold, or the grace is
    over. All are due before ``last_s``, in epoch s. Returns how many have fired."""
    while True:
        late_s = time.time() - last_s
        arrived = count()
        progress("arrived", arrived, jobs)
        if arrived >= jobs or late_s > GRACE_S or (late_s > LIMIT_MS / 1000 and jobs - arrived > most):
            return arrived
        left_s = -late_s  # until the last instant
        time.sleep(max(POLL_EVERY_S, min(POLL_SELDOM_S, left_s)))


def row_of(one: Measured) -> tuple[str, ...]:
    """The cells of a scheduler, for the terminal and the page."""
    if "error" in one:
        return (one["name"], f"not measured: {one['error'].splitlines()[0]}", *[""] * (len(HEADS) - 2))
    late = [f"{one['lateness_ms'][share]:,.0f}" if one["lateness_ms"] else "" for share in SHARES]
    rate = f"{'at least ' if one['at_least'] else ''}{one['per_second']:,}"
    failed = "" if one["failed"] is None else f"{one['failed']:,}"
    tried = str(len(one["probes"]) + len(one["confirmations"]))
    return (one["name"], rate, str(one["seconds"]), *late, str(one["doubled"]), failed, tried)


def tables(found: Results) -> list[Table]:
    title = f"sustained: the highest rate with a p99 of the lateness below {LIMIT_MS:,} ms"
    table = Table(*HEADS, title=title, title_justify="left")
    for one in found["sustained"]["schedulers"]:
        table.add_row(*row_of(one))
    return [table]


def over_budget(found: Results) -> list[str]:
    """The schedulers that could not be measured, with the reason."""
    return [f"{one['name']}: {one['error']}" for one in found["sustained"]["schedulers"] if "error" in one]
