"""`make bench`: measure, show the results, and store them in benchmarks/results.json.

Usage: `python -m benchmarks [NAME ...]`. With names, only these measurements. How far each is goes to stderr.
"""

from __future__ import annotations

import signal
import sys
import time
from types import FrameType

from rich.console import Console

from benchmarks import machine, results
from benchmarks.measurement import ALL, load, over_budget
from benchmarks.progress import Progress


def main(arguments: list[str]) -> int:
    """Exit code 0 if all were measured, 1 if one failed (the others are stored) or exceeds its budget, 2 for an unknown
    name."""
    console, errors = Console(width=max(Console().width, 120)), Console(stderr=True)
    unknown = [name for name in arguments if name not in ALL]
    if unknown:
        errors.print(f"bench: expected names of {', '.join(ALL)}, got {', '.join(unknown)}", style="red")
        return 2
    signal.signal(signal.SIGTERM, end)
    failed = 0
    for name in [name for name in ALL if name in arguments or not arguments]:
        # Before the start: later the load would be that of the benchmark, and the checkout may have changed.
        origin = machine.origin()
        begun = time.monotonic()
        try:
            with Progress(name) as progress:
                measured = load(name).measure(progress)
        except Exception:
            errors.print_exception()
            failed += 1
            continue
        origin = origin.ended()
        for table in load(name).tables(measured):
            console.print(table, "")
        # Written after each measurement, so that an interruption loses only one.
        results.write(results.merge(results.read(), measured, origin))
        exceeded = over_budget(name, measured)
        for text in exceeded:
            errors.print(f"bench: {text}", style="red")
        failed += bool(exceeded)
        loads = f"load before {origin.measured_at['load']}, after {origin.measured_at['load_after']}"
        console.print(f"{name}: {time.monotonic() - begun:.0f} s, {loads}\n")
    return 1 if failed else 0


def end(number: int, frame: FrameType | None) -> None:
    """End the program as ctrl-c does, so that a measurement stops the clouds and servers that it has started."""
    raise SystemExit(128 + number)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
