"""The model by hand: one scenario, other assumptions, calibration with the measurements of a real account, recording.

python -m benchmarks.aws_model burst 10000
python -m benchmarks.aws_model steady 120 --seed 7 --assume '{"sigma": 0.6, "calls": {"dynamodb:GetItem": {"ms": 8}}}'
python -m benchmarks.aws_model lone --memory 1769
python -m benchmarks.aws_model burst 10000 --calibrate smoke.json     the last line that `make smoke` prints
python -m benchmarks.aws_model emission 10000 5 --warm 40000          10,000 timers, at most five emitters
python -m benchmarks.aws_model waking 1000 1                          a success (0: a resume) wakes 1,000 jobs
python -m benchmarks.aws_model burst 10000 --assumed pessimistic      AWS does no more than it promises
python -m benchmarks.aws_model burst 10000 --pollers 5 --assumed pessimistic   with provisioned pollers
python -m benchmarks.aws_model puts 10 100                            10 clients put 100 schedules each
python -m benchmarks.aws_model beside 25000                           a quiet namespace beside a burst of another one
python -m benchmarks.aws_model --record                               record the CPU of product code again
python -m benchmarks.aws_model registration --record                  record that of the API alone
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from benchmarks import results, tick
from benchmarks.aws_model import SCHEDULES, assumed_as, cpu, large, scenarios
from benchmarks.aws_model.calibrate import calibrated, read
from benchmarks.aws_model.functions import Source
from benchmarks.aws_model.region import Setup
from benchmarks.aws_model.services import BURSTS
from benchmarks.progress import Progress

REFERENCE = 1_000  # schedules of the tick that measures the machine
SCENARIOS: Mapping[str, Callable[..., scenarios.Figures]] = {
    each.__name__: each
    for each in (
        *(scenarios.burst, scenarios.burst_one_schedule, scenarios.steady, scenarios.lone, scenarios.idle_fire),
        *(scenarios.event, scenarios.pace, scenarios.registration, scenarios.puts, scenarios.beside),
        *(large.emission, large.overdue, large.waking, large.upload),
    )
}


def main(argv: Sequence[str] | None = None) -> int:
    """Print the figures of a scenario as JSON. Exit code 0, or 2 for wrong arguments."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.aws_model", description=__doc__.partition("\n")[0])
    parser.add_argument("scenario", nargs="?", choices=SCENARIOS)
    parser.add_argument("numbers", nargs="*", type=int, help="the arguments of the scenario, such as the jobs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--assumed", choices=results.PREDICTIONS, default="usual", help="what is assumed of AWS")
    parser.add_argument("--assume", type=json.loads, default={}, help="other assumptions, as JSON")
    parser.add_argument("--memory", type=int, help="MB of all functions")
    parser.add_argument("--warm", type=int, help="the parameter WarmWriteUnits, and WarmReadUnits if it is larger")
    parser.add_argument("--burst-concurrency", type=int, help="the parameter BurstConcurrency")
    parser.add_argument("--pollers", type=int, default=0, help="the parameter BurstMinimumPollers")
    parser.add_argument("--settings", type=json.loads, default={}, help="such as '{\"wake_shards\": 16}'")
    parser.add_argument("--calibrate", type=Path, help="a file with the last line of `make smoke`")
    parser.add_argument("--record", action="store_true", help="record the CPU of product code into cpu.json")
    options = parser.parse_args(argv)
    if options.record:
        with Progress("record") as progress:
            record(progress, options.scenario)
        return 0
    if options.scenario is None:
        parser.error("expected a scenario or --record")
    try:
        assumed = assumed_as(options.assumed).with_changes(options.assume)
        if options.calibrate:
            assumed, changed = calibrated(assumed, read(options.calibrate), cpu.load(), options.seed)
            print(json.dumps({"calibrated": changed}), file=sys.stderr)
    except (OSError, TypeError, ValueError) as error:
        parser.error(str(error))
    setup = Setup(assumed, options.seed, settings=options.settings)
    if options.memory:
        setup = setup.at_memory(options.memory)
    if options.warm:
        setup = replace(setup, warm_writes=options.warm, warm_reads=max(setup.warm_reads, options.warm))
    if options.burst_concurrency or options.pollers:
        most = options.burst_concurrency or setup.sources[BURSTS].most_pollers
        setup = replace(setup, sources={**setup.sources, BURSTS: Source(1, most, options.pollers)})
    with Progress(options.scenario) as progress:
        progress("played in virtual time")
        found = SCENARIOS[options.scenario](setup, cpu.load(), *options.numbers)
    print(json.dumps({"kind": "predicted", "seed": options.seed, **found}))
    return 0


def record(progress: Progress, scenario: str | None = None) -> None:
    """Play every scenario at a small size, and keep the CPU time of each segment. With the scenario ``registration``
    play requests to the API alone, and keep what is recorded of other functions.

    A busy machine gives a thread less work for each ms of its CPU. So the times are scaled by a reference: the CPU of a
    tick, which `make bench ONLY=tick` has measured on a quiet machine."""
    setup = Setup()
    plays = _plays_of_api if scenario == "registration" else _plays
    # Validators are built at first use, which belongs to a cold start.
    _play(plays(setup, cpu.RecordingCpu(), 20), "a small part first", progress)
    known = float(results.read()["tick"]["sizes"][0]["cpu_ms"])
    recording, references = cpu.RecordingCpu(), [tick.of_size(REFERENCE)["cpu_ms"]]
    _play(plays(setup, recording, 1), "recorded", progress)
    references.append(tick.of_size(REFERENCE)["cpu_ms"])
    scale = known / (sum(references) / len(references))
    about = {
        "recorded_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "unit": "ms of a whole CPU of the machine of docs/internals/measurements.md when it is quiet",
        "scale": round(scale, 3),
        "reference": {"tick_cpu_ms": known, "while_recording": references},
    }
    if scenario == "registration":
        cpu.save_api(recording, scale, about)
    else:
        cpu.save(recording, scale, about)


def _plays_of_api(setup: Setup, recording: cpu.RecordingCpu, part: int) -> list[partial[scenarios.Figures]]:
    return [
        partial(scenarios.registration, setup, recording, SCHEDULES // part),
        partial(scenarios.puts, setup, recording, 10, 20 // part),
    ]


def _plays(setup: Setup, recording: cpu.RecordingCpu, part: int) -> list[partial[scenarios.Figures]]:
    return [
        partial(scenarios.lone, setup, recording, 8),
        partial(scenarios.burst, setup, recording, 2_000 // part),
        partial(scenarios.burst_one_schedule, setup, recording, 1_000 // part),
        partial(scenarios.steady, setup, recording, 12, 20 // part),
        partial(scenarios.idle_fire, setup, recording, 4),
        partial(scenarios.event, setup, recording, 12),
        *(
            partial(scenarios.pace, setup, recording, most, interval, jobs)
            for most, interval, jobs in ((1, 5, 5), (10, 1, 30), (100, 1, 60))
        ),
        partial(large.emission, setup, recording, 3_000 // part, 5),
        partial(large.overdue, setup, recording, 3_000 // part, 3_000 // part),
        *(partial(large.waking, setup, recording, 400 // part, cause) for cause in (large.RESUME, large.SUCCESS)),
        *_plays_of_api(setup, recording, part),
        partial(large.upload, setup, recording, SCHEDULES // part),
    ]


def _play(plays: Sequence[partial[scenarios.Figures]], about: str, progress: Progress) -> None:
    for play in progress.each(plays, lambda play: f"{about}, {play.func.__name__}"):
        play()


if __name__ == "__main__":
    raise SystemExit(main())
