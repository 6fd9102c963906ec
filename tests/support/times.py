"""How long the tests of each folder took, from a report of pytest.

    make test                                           # writes build/tests.xml
    python -m tests.support.times build/tests.xml       # prints a table, and the files that took the longest

The times are those of the machine, of one process after the other: with two workers, `make test` takes half of the sum.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

TESTS = Path(__file__).parents[1]
MAX_FILE_S = 60  # a file that takes longer is listed


def table(report: str) -> Iterator[str]:
    """The lines of a table in Markdown: tests and seconds of each folder, then the files over `MAX_FILE_S` seconds."""
    folders: dict[str, list[float]] = defaultdict(list)
    files: dict[str, list[float]] = defaultdict(list)
    for case in ElementTree.fromstring(report).iter("testcase"):
        file = _file(case.get("classname", ""))
        seconds = float(case.get("time", "0"))
        files[file].append(seconds)
        folders["/".join(file.split("/")[:2])].append(seconds)
    yield "| tests | how many | seconds |"
    yield "|---|---|---|"
    for folder, times in sorted(folders.items(), key=lambda item: -sum(item[1])):
        yield f"| `{folder}` | {len(times):,} | {sum(times):,.0f} |"
    for file, times in sorted(files.items(), key=lambda item: -sum(item[1])):
        if sum(times) > MAX_FILE_S:
            yield f"{file}: {len(times)} tests in {sum(times):.0f} s"


def _file(classname: str) -> str:
    """`tests/core/test_ids.py` of `tests.core.test_ids`, also if a class of tests follows."""
    parts = classname.split(".")
    while parts and not (TESTS.parent / "/".join(parts)).with_suffix(".py").is_file():
        parts.pop()
    return "/".join(parts) + ".py" if parts else classname


if __name__ == "__main__":
    print("\n".join(table(Path(sys.argv[1]).read_text())))
