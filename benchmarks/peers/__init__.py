"""peers: the burst and the steady load of Sluice and of other schedulers, on one machine, one after the other.

Each repetition plays the burst with every scheduler, and then the steady load; so what disturbs the machine for a while
disturbs all of them. Sluice runs on its local cloud (`burst`, `steady`), each peer in processes of its own (`fire.py`)
with a database of its own (`stores.py`). The peers are installed into `build/peers` from `requirements.lock`.

A fire of Sluice is a message in a queue of the local cloud, stamped by the queue. A fire of a peer is a line that its
worker appends to a file, with the present instant, which costs less. So there is a second burst, ``messages``: each
job of a peer sends its message to such a queue, too. The results are medians over the repetitions, their spread, and
the ratio of each median to Sluice's. `SLUICE_BENCH_LOADS=burst,steady` plays these loads alone, and keeps the
results of the others.

``message_cpu_ms`` is the CPU time for a message, in ms by part: all that was used from the moment when all schedules
are stored to the record of the last message, divided by the messages. The parts are the Lambdas and the emulator of
Sluice, and the processes of a peer and the server of its store. ``cpu_s`` is that of the whole machine for each run,
from a second before the instant to the last arrival."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import inf

from rich.table import Table

from benchmarks import burst, steady
from benchmarks.measurement import Results
from benchmarks.peers.play import PEERS, SCHEDULER, Installed, Measured, installed, play_messages, play_peer
from benchmarks.processes import EMULATOR, LAMBDA
from benchmarks.progress import Progress

REPETITIONS = int(os.environ.get("SLUICE_BENCH_REPETITIONS", "5"))
OURS = "Sluice, local cloud"
SHARES = ("p50", "p99", "max")
TITLES = {"burst": "burst", "messages": "burst of messages", "steady": "steady load"}
# A repetition of all of them takes some twenty minutes.
LOADS = os.environ.get("SLUICE_BENCH_LOADS", ",".join(TITLES)).split(",")
STORES = (EMULATOR, *dict.fromkeys(peer.store for peer in PEERS))
CPU_HEADS = ("scheduler", "own processes", "database, queue, emulator", "both", "by part")

Play = Callable[[Progress], Measured]


def measure(progress: Progress) -> Results:
    """An entry for each load, such as ``peers_burst``: the figures of each scheduler, and ``left_out``."""
    runs: dict[str, dict[str, list[Measured]]] = {name: {} for name, _, _ in loads_of()}
    before: dict[str, list[float]] = {name: [] for name in runs}
    progress("installing the other schedulers")
    with installed() as among:
        plays = [
            (repetition, load, name, play)
            for repetition in range(1, REPETITIONS + 1)
            for load, jobs, per_second in loads_of()
            for name, play in _players(among, load, jobs, per_second)
        ]
        for repetition, load, name, play in progress.each(plays, _named, lambda one: f"{one[1]}: {one[2]}"):
            if len(before[load]) < repetition:
                before[load].append(round(os.getloadavg()[0], 2))
            runs[load].setdefault(name, []).append(play(progress))
            if (load, name) == ("burst", OURS) and "messages" in runs:
                # Sluice's burst is one of messages: it is not played twice.
                runs["messages"].setdefault(OURS, []).append(runs["burst"][OURS][-1])
    summed = with_ratios({load: [summary(name, of) for name, of in found.items()] for load, found in runs.items()})
    about = {"repetitions": REPETITIONS, "left_out": among.left_out}
    return {
        f"peers_{load}": {**about, "loads": before[load], "schedulers": entries} for load, entries in summed.items()
    }


def _named(play: tuple[int, str, str, Play]) -> str:
    repetition, load, name, _ = play
    return f"repetition {repetition} of {REPETITIONS}, {TITLES[load]}, {name}"


def loads_of() -> tuple[tuple[str, int, int], ...]:
    """The name of each load to play, its jobs and how many are due in each second (0: all at once). Ends the program
    at an unknown name."""
    if unknown := set(LOADS) - set(TITLES):
        names = ", ".join(TITLES)
        raise SystemExit(f"bench: SLUICE_BENCH_LOADS: expected names of {names}, got {', '.join(sorted(unknown))}")
    every_second = ("steady", steady.PER_SECOND * steady.SECONDS, steady.PER_SECOND)
    every = ("burst", burst.JOBS, 0), ("messages", burst.JOBS, 0), every_second
    return tuple(load for load in every if load[0] in LOADS)


def _players(among: Installed, load: str, jobs: int, per_second: int) -> Iterator[tuple[str, Play]]:
    """The name of each scheduler that plays a load, and what plays it."""
    ours: dict[str, Play] = {"burst": partial(burst.once, "burst", burst.one_shots), "steady": steady.once}
    if load == "messages" and "burst" not in LOADS:
        yield OURS, ours["burst"]
    elif load in ours:
        yield OURS, ours[load]
    play = play_messages if load == "messages" else play_peer
    for peer in among.present:
        yield peer.name, partial(play, peer, among, jobs, per_second)


def summary(name: str, runs: Sequence[Measured]) -> Measured:
    """The medians of a scheduler's runs, and the least and most of them for the pace. Missed and doubled are sums."""
    late = [one["lateness_ms"] for one in runs if "lateness_ms" in one]
    paces = [one["per_second"] for one in runs]
    return {
        "name": name,
        "jobs": runs[0]["jobs"],
        "runs": paces,
        "cpu_s": [one["cpu_s"] for one in runs if one.get("cpu_s") is not None],
        "per_second": round(statistics.median(paces), 1),
        "least": min(paces),
        "most": max(paces),
        "lateness_ms": {share: statistics.median(one[share] for one in late) for share in SHARES} if late else {},
        **{count: sum(one.get(count, 0) for one in runs) for count in ("missed", "doubled", "early")},
        "message_cpu_ms": message_cpu_ms(runs),
    }


def message_cpu_ms(runs: Sequence[Measured]) -> dict[str, float]:
    """The median CPU time of each part for a message that arrived, in ms; empty if no run has it. A run whose messages
    were not all recorded is left out."""
    found = [one for one in runs if "part_cpu_s" in one and 0 < one["jobs"] - one["missed"] <= one.get("recorded", inf)]
    parts = dict.fromkeys(part for one in found for part in one["part_cpu_s"])
    each = {
        part: [1000 * one["part_cpu_s"].get(part, 0.0) / (one["jobs"] - one["missed"]) for one in found]
        for part in parts
    }
    return {part: round(statistics.median(values), 3) for part, values in each.items()}


def cpu_row(one: Measured) -> tuple[str, ...]:
    """The cells of a scheduler's CPU time for a message, in ms: its own processes, its database, queue and emulator,
    both, and each part."""
    parts: Mapping[str, float] = one["message_cpu_ms"]
    own = sum(ms for part, ms in parts.items() if part == SCHEDULER or part.startswith(LAMBDA))
    stores = sum(ms for part, ms in parts.items() if part in STORES)
    named = ", ".join(f"{part} {ms:.2f}" for part, ms in sorted(parts.items(), key=lambda one: -one[1]))
    return (one["name"], f"{own:.2f}", f"{stores:.2f}", f"{own + stores:.2f}", named)


def with_ratios(summed: dict[str, list[Measured]]) -> dict[str, list[Measured]]:
    """The summaries with the ratio of each to Sluice: of the pace of a burst, and of the p99 of the steady load."""
    for load, (ours, *_) in summed.items():
        for one in summed[load]:
            if load != "steady":
                one["ratio"] = round(one["per_second"] / ours["per_second"], 2)
            elif one["lateness_ms"]:
                one["ratio"] = round(one["lateness_ms"]["p99"] / max(ours["lateness_ms"]["p99"], 1), 1)
            else:
                one["ratio"] = None
    return summed


def tables(results: Results) -> list[Table]:
    found = {load: results[f"peers_{load}"] for load in TITLES if f"peers_{load}" in results}
    figures = [_table(load, one["schedulers"], one["repetitions"]) for load, one in found.items()]
    return [*figures, *(_cpu_table(load, one["schedulers"]) for load, one in found.items())]


def _cpu_table(load: str, entries: Sequence[Measured]) -> Table:
    title = f"{TITLES[load]}, CPU ms for a message, from all schedules stored to the last record"
    table = Table(*CPU_HEADS, title=title, title_justify="left")
    for one in entries:
        if one.get("message_cpu_ms"):
            table.add_row(*cpu_row(one))
    return table


def _table(load: str, entries: Sequence[Measured], repetitions: int) -> Table:
    ratio = "p99 to ours" if load == "steady" else "pace to ours"
    title = f"{TITLES[load]}, medians of {repetitions}, lateness in ms"
    table = Table(title=title, title_justify="left")
    for heading in (
        "scheduler",
        "per second",
        "least to most",
        ratio,
        "p50",
        "p99",
        "max",
        "missed",
        "doubled",
        "early",
    ):
        table.add_column(heading, justify="left" if heading == "scheduler" else "right")
    for one in entries:
        table.add_row(*(str(cell) for cell in row_of(one)))
    return table


def row_of(one: Measured) -> tuple[object, ...]:
    """The cells of a scheduler, for the terminal and the page."""
    late = [f"{one['lateness_ms'][share]:,.0f}" if one["lateness_ms"] else "" for share in SHARES]
    spread = f"{one['least']:,.0f} to {one['most']:,.0f}"
    counts = (one["missed"], one["doubled"], one["early"])
    return (
        one["name"],
        f"{one['per_second']:,.0f}",
        spread,
        "" if one["ratio"] is None else one["ratio"],
        *late,
        *counts,
    )
