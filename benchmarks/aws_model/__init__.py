"""aws_model: PREDICTIONS of what an installation does in AWS. Nothing here is measured on AWS.

A discrete-event model: the real handlers, flows and adapters run on the tables in memory, in virtual time. Durations of
calls, CPU shares, concurrency, pollers, limits per key and quotas are those of `assumptions`; the CPU of product code
was recorded once (`cpu.json`). So two runs with one seed are equal. Every run asserts the promises (`checks`).

Each scenario is played twice: with the usual assumptions (key `aws_model` of the results), and with those of an AWS
that does no more than it promises (`aws_model_pessimistic`).

    make bench ONLY=aws_model                                    all scenarios, two hours on a quiet machine
    SLUICE_MODEL_GROUPS=burst,steady make bench ONLY=aws_model   these groups alone; the others stay as they are
    SLUICE_MODEL_ABOUT="a second"                                scenarios whose name contains this; others stay
    SLUICE_MODEL_ASSUMED=pessimistic                             one of usual and pessimistic
    python -m benchmarks.aws_model --help                        one scenario, other assumptions, calibration, recording
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any

from rich.table import Table

from benchmarks import machine, results
from benchmarks.aws_model import cpu, large, scenarios
from benchmarks.aws_model.assumptions import PESSIMISTIC, Assumptions, cpu_share
from benchmarks.aws_model.functions import Source
from benchmarks.aws_model.invocation import Cpu
from benchmarks.aws_model.region import FUNCTIONS, Setup
from benchmarks.aws_model.services import BURSTS
from benchmarks.measurement import Results
from benchmarks.progress import Progress

SIZES = tuple(int(size) for size in os.environ.get("SLUICE_MODEL_SIZES", "10000,60000,100000").split(","))
STEADY = (12, 120)  # fires a second
MINUTE_S, MANY_A_SECOND = 60, 1_667  # 100,000 fires in a minute
# Events, interval in s, jobs, schedules: the jobs of one schedule share a partition, so a fast policy has several. A
# policy that this version refuses has no figures.
PACES = ((1, 5, 12, 1), (10, 1, 300, 1), (100, 1, 3_000, 1), (200, 1, 6_000, 10), (60, 60, 45, 1))
FASTEST, WARM_FOR_FASTEST = (500, 1, 20_000, 20), 16_000  # a new table takes too few writes for it
SCHEDULES, UPLOADED = 1_000, 10_000
MANY = 10_000  # timers, overdue rows
WOKEN = (1_000, 10_000)  # jobs
EMITTERS = (1, 3, 5, 16)
# What a large installation sets: WarmWriteUnits, the shards of the wake and history indexes, and BurstConcurrency. A
# burst of 100,000 has 112 messages; with fewer invocations at once, the last ones wait for the records of the first.
WARM = 40_000
SHARDS = {"wake_shards": 16, "history_shards": 16}
BURST_CONCURRENCY = 150
PROVISIONED = 5  # pollers of the queue of bursts: a burst of 10,000 has 41 messages, and each poller takes ten
MEMORY = (256, 512, 768, 1024, 1769, 3008)
# A poller of a loaded queue may bring ten messages at once; AWS decides.
TOGETHER: dict[str, Any] = {"gathered_ms": 200.0}
Figures = dict[str, Any]
Play = tuple[str, str, Callable[[], Figures]]


def measure(progress: Progress) -> Results:
    groups = tuple(filter(None, os.environ.get("SLUICE_MODEL_GROUPS", "").split(",")))
    about = os.environ.get("SLUICE_MODEL_ABOUT", "")
    stored = results.read() if groups or about else {}
    found: Results = {}
    names = os.environ.get("SLUICE_MODEL_ASSUMED", ",".join(results.PREDICTIONS)).split(",")
    for number, name in enumerate(names):
        key, setup = results.PREDICTIONS[name], Setup(assumed_as(name))
        new = predicted(setup, cpu.load(), SIZES, progress, groups, about, (name, len(names) - number))
        found[key] = _merged(stored.get(key, {}), new, part=bool(about))
    return found


def assumed_as(name: str) -> Assumptions:
    """The assumptions of a name in `results.PREDICTIONS`."""
    return Assumptions().with_changes(PESSIMISTIC if name == "pessimistic" else {})


def _merged(kept: Mapping[str, Any], new: Figures, part: bool) -> Figures:
    """New figures beside those that were kept. A group that was played in part keeps its other entries, and the commit
    of those."""
    played = {**kept.get("played", {}), **new["played"]}
    merged = {**{name: kept[name] for name in kept if name in played}, **new, "played": played}
    for group in new["played"] if part else ():
        entries = new.get(group, [])
        abouts = {one["about"] for one in entries}
        merged[group] = [*(one for one in kept.get(group, ()) if one["about"] not in abouts), *entries]
        played[group] = kept.get("played", {}).get(group, new["played"][group])
    return merged


def predicted(
    setup: Setup,
    recorded: Cpu,
    sizes: tuple[int, ...],
    progress: Progress,
    groups: Collection[str] = (),
    about: str = "",
    passes: tuple[str, int] = ("", 1),
) -> Figures:
    """All predictions or some of them, with the seed and the assumptions. ``played`` has the commit and date of each
    group, and when its CPU was recorded. ``passes`` is for the progress: the name of these assumptions, and of how many
    the predictions are still to be made, these included."""
    found: Figures = {"kind": "predicted", "seed": setup.seed, "assumed": setup.assumed.as_json()}
    about_groups = found["played"] = {}
    chosen = (play for play in plays(setup, recorded, sizes) if not groups or play[0] in groups)
    played = [play for play in chosen if about in play[1]]
    origin = {**machine.origin().measured_at, "cpu": cpu.recorded_at()}
    assumed, times = passes
    for group, about, play in progress.each(
        played, lambda play: f"{assumed} {play[0]}: {play[1]}".strip(), itemgetter(1), times
    ):
        about_groups.setdefault(group, {name: origin[name] for name in ("commit", "dirty", "date", "cpu")})
        if figures := play():
            found.setdefault(group, []).append({"about": about, **figures})
    return found


def plays(setup: Setup, recorded: Cpu, sizes: tuple[int, ...]) -> list[Play]:
    """The scenarios by group, each with what it is about."""
    together = replace(setup, assumed=setup.assumed.with_changes(TOGETHER))
    warm = replace(setup, warm_writes=WARM, warm_reads=WARM)
    bursts = {**setup.sources, BURSTS: Source(1, BURST_CONCURRENCY)}
    wide = replace(warm, settings={**setup.settings, **SHARDS}, sources=bursts)
    provisioned = {**setup.sources, BURSTS: replace(setup.sources[BURSTS], provisioned=PROVISIONED)}
    own = replace(setup, sources=provisioned)
    fastest = replace(setup, warm_writes=WARM_FOR_FASTEST, warm_reads=WARM_FOR_FASTEST)
    not_warm = replace(setup, settings={**setup.settings, "keep_warm": False})
    return [
        ("burst", f"{sizes[0]:,} schedules", partial(scenarios.burst, setup, recorded, sizes[0])),
        # New tables prepare a larger burst for minutes, so it is announced.
        *(
            ("burst", f"{size:,}, warm, 16 shards", partial(scenarios.burst, wide, recorded, size))
            for size in sizes[1:]
        ),
        ("burst", f"{sizes[0]:,}, messages together", partial(scenarios.burst, together, recorded, sizes[0])),
        (
            "burst",
            f"{sizes[0]:,}, {PROVISIONED} provisioned pollers",
            partial(scenarios.burst, own, recorded, sizes[0]),
        ),
        ("burst", f"{sizes[0]:,} events of one", partial(scenarios.burst_one_schedule, setup, recorded, sizes[0])),
        *(("steady", f"{rate} a second", partial(scenarios.steady, setup, recorded, rate)) for rate in STEADY),
        (
            "steady",
            f"{MANY_A_SECOND:,} a second, warm, 16 shards",
            partial(scenarios.steady, wide, recorded, MANY_A_SECOND, MINUTE_S),
        ),
        *(
            ("emission", f"{MANY:,} timers", partial(large.emission, warm, recorded, MANY, emitters))
            for emitters in EMITTERS
        ),
        ("overdue", "overdue alone", partial(large.overdue, setup, recorded, MANY)),
        ("overdue", "beside as many timers", partial(large.overdue, setup, recorded, MANY, MANY)),
        *(
            ("waking", f"{cause} of {jobs:,}", partial(large.waking, setup, recorded, jobs, number))
            for number, cause in enumerate(large.CAUSES)
            for jobs in WOKEN
        ),
        ("lone", "one a minute", partial(scenarios.lone, setup, recorded)),
        ("lone", "after an idle hour", partial(scenarios.idle_fire, setup, recorded)),
        ("lone", "the same with KeepWarm=false", partial(scenarios.idle_fire, not_warm, recorded)),
        ("event", "object to StartJobRun", partial(scenarios.event, setup, recorded)),
        *(
            ("policies", f"{most} in {interval} s", partial(scenarios.pace, setup, recorded, most, interval, *load))
            for most, interval, *load in PACES
        ),
        ("policies", "500 in 1 s, warm", partial(scenarios.pace, fastest, recorded, *FASTEST)),
        ("registration", f"{SCHEDULES:,} in one PUT", partial(scenarios.registration, setup, recorded, SCHEDULES)),
        ("upload", f"{UPLOADED:,} uploaded", partial(large.upload, setup, recorded, UPLOADED)),
        ("puts", "10 clients", partial(scenarios.puts, setup, recorded, 10, 100)),
        *(("memory", f"{memory} MB", partial(of_memory, setup, recorded, memory)) for memory in MEMORY),
    ]


def of_memory(setup: Setup, recorded: Cpu, memory: int) -> Figures:
    """What one memory size of all functions does to latency and to the cost of Lambda."""
    sized = setup.at_memory(memory)
    fire = scenarios.lone(sized, recorded, 15)
    idle = scenarios.idle_fire(sized, recorded, 9)
    job = scenarios.event(sized, recorded, 15)
    many = scenarios.burst(sized, recorded, 500)
    put = scenarios.registration(sized, recorded, 100)
    return {
        "memory": memory,
        "cpu": round(cpu_share(memory), 2),
        "fire_ms": fire["lateness_ms"]["p50"],
        "fire_usd": fire["lambda_usd_per_million"],
        "idle_fire_ms": idle["lateness_ms"]["p50"],
        "start_ms": job["notified_to_start_ms"]["p50"],
        "start_usd": job["lambda_usd_per_million"],
        "tick_s": many["tick_seconds"],
        "burst_s": many["seconds"],
        "put_s": put["seconds"],
    }


def tables(found: Results) -> list[Table]:
    played = ((name, found[key]) for name, key in results.PREDICTIONS.items() if key in found)
    return [
        _shown(f"{group} (predicted, {name} assumptions)", one[group])
        for name, one in played
        for group in one
        if isinstance(one[group], list)
    ]


def _shown(title: str, entries: list[Figures]) -> Table:
    names = list(dict.fromkeys(name for entry in entries for name in entry))
    table = Table(*(name.replace("_", " ") for name in names), title=title, title_justify="left")
    for entry in entries:
        table.add_row(*(_cell(entry.get(name, "")) for name in names))
    return table


def _cell(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {part:,}" for name, part in value.items())
    return f"{value:,}" if isinstance(value, int | float) else str(value)


__all__ = ["FUNCTIONS", "assumed_as", "measure", "of_memory", "predicted", "tables"]
