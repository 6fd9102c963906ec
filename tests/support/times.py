"""How long the tests of each folder took, from a report of pytest.

    make test                                           # writes build/tests.xml
    python -m tests.support.times build/tests.xml       # prints a table, and the files that took the longest

CPU seconds have the fixtures and the processes that a test waits for, but not those of the local cloud. A process that
ends in a test may have begun long before it, so a test has at most what all cores give while it runs. Seconds are those
of the machine, of one process after the other: with two workers, `make test` takes half of the sum.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

TESTS = Path(__file__).parents[1]
CORES = os.cpu_count() or 1
MAX_FILE_S = 30  # a file that takes more CPU seconds is listed


def table(report: str) -> Iterator[str]:
    """The lines of a table in Markdown: tests, CPU seconds and seconds of each folder, then the files that took more
    than `MAX_FILE_S` CPU seconds."""
    folders: dict[str, list[tuple[float, float]]] = defaultdict(list)
    files: dict[str, list[float]] = defaultdict(list)
    for case in ElementTree.fromstring(report).iter("testcase"):
        file = _file(case.get("classname", ""))
        seconds = float(case.get("time", "0"))
        cpu = sum(float(each.get("value", "0")) for each in case.iter("property") if each.get("name") == "cpu_s")
        cpu = min(cpu, seconds * CORES)
        files[file].append(cpu)
        folders["/".join(file.split("/")[:2])].append((cpu, seconds))
    yield "| tests | how many | CPU seconds | seconds |"
    yield "|---|---|---|---|"
    everything = [each for times in folders.values() for each in times]
    for folder, times in [*sorted(folders.items(), key=_cpu_of), ("all", everything)]:
        in_all, long = (sum(each) for each in zip(*times, strict=True))
        yield f"| `{folder}` | {len(times):,} | {in_all:,.0f} | {long:,.0f} |"
    for file, used in sorted(files.items(), key=lambda item: -sum(item[1])):
        if sum(used) > MAX_FILE_S:
            yield f"{file}: {len(used)} tests in {sum(used):.0f} CPU seconds"


def _cpu_of(folder: tuple[str, list[tuple[float, float]]]) -> float:
    return -sum(cpu for cpu, _ in folder[1])


def _file(classname: str) -> str:
    """`tests/core/test_ids.py` of `tests.core.test_ids`, also if a class of tests follows."""
    parts = classname.split(".")
    while parts and not (TESTS.parent / "/".join(parts)).with_suffix(".py").is_file():
        parts.pop()
    return "/".join(parts) + ".py" if parts else classname


if __name__ == "__main__":
    print("\n".join(table(Path(sys.argv[1]).read_text())))
