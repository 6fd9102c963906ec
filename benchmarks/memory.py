"""The memory size of a Lambda: cost against latency, PREDICTED by the model of AWS (`benchmarks/aws_model`).

A function's share of a CPU grows with its memory, up to one CPU at 1,769 MB; an invocation is one thread. The model
plays the same scenarios with each size for all functions. Each column shows the function that decides it.

    python -m benchmarks.memory        # the table of docs/internals/measurements.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks import results

# A heading, and how an entry of the results is shown below it.
COLUMNS: tuple[tuple[str, str], ...] = (
    ("MB", "{memory:,}"),
    ("assumed of AWS", "{assumed}"),
    ("CPU", "{cpu:.2f}"),
    ("`check`: a lone fire is late", "{fire_ms:,.0f} ms, ${fire_usd:.2f}"),
    ("the same after an idle hour", "{idle_fire_ms:,.0f} ms"),
    ("`objects`, `check`: object to StartJobRun", "{start_ms:,.0f} ms, ${start_usd:.2f}"),
    ("`burst`: 500 due at once, all out", "{burst_s:.2f} s"),
    ("`tick`: prepares these 500", "{tick_s:.1f} s"),
    ("`api`: PUT of 100 schedules, cold", "{put_s:.1f} s"),
)


def table(sizes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The lines of a Markdown table with a row for each memory size."""
    yield f"| {' | '.join(heading for heading, _ in COLUMNS)} |"
    yield f"|{'---|' * len(COLUMNS)}"
    for size in sizes:
        yield f"| {' | '.join(shown.format(**size) for _, shown in COLUMNS)} |"


def of_results(found: Mapping[str, Any]) -> Iterator[str]:
    """The table from results that have `aws_model`."""
    return table([{**one, "assumed": name} for name, one in results.predictions(found, "memory")])


def main() -> None:
    """Print the table from the committed results."""
    print("\n".join(of_results(results.read())))


if __name__ == "__main__":
    main()
