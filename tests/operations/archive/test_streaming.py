"""An export keeps about one file in memory, however many rows there are, and goes on at its last file (L14)."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any, cast

import pytest

from chalicelib.core.rows.definition import Definition
from sluice.operations.archive import export as exports
from sluice.operations.ports import Copies, StoredCopy
from tests.support.archives import SOURCE

ROW = 10_000  # bytes
PAGE = 100  # rows, about 1 MB, as a page of DynamoDB
BOUND = 40_000_000  # bytes: a file of 4 MB as lines, as one text and as bytes, two pages, and room


class Large:
    """Tables of so many rows, which are made when their page is read. ``reads`` counts the pages."""

    layout = 3

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self.reads = 0

    def page(self, table: str, cursor: Any) -> tuple[tuple[StoredCopy, ...], Any]:
        self.reads += 1
        first = cursor or 0
        last = min(first + PAGE, self._rows if table == "runs" else 1)
        found = tuple(_copy(table, number) for number in range(first, last))
        return found, last if table == "runs" and last < self._rows else None


def _copy(table: str, number: int) -> StoredCopy:
    row = Definition("workflow", f"demo.app.w{number}", 1, {}, 0, "tester")
    item = {"pk": {"S": f"{table} {number}"}, "sk": {"S": "x"}, "text": {"S": f"{number:08d}" * (ROW // 8)}}
    return StoredCopy(cast(Any, table), "Definition", row, item)


class Written:
    """Files of which the texts are dropped, as on a disk. A disk may fail at a file."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}
        self.fails_at: str | None = None
        self._small: dict[str, str] = {}

    def text(self, name: str) -> str | None:
        return self._small.get(name)

    def put(self, name: str, text: str) -> None:
        if name == self.fails_at:
            raise InterruptedError
        self.sizes[name] = len(text)
        if name.endswith(".json"):
            self._small[name] = text


def exported(rows: int, archive: Written) -> Large:
    tables = Large(rows)
    exports.export(cast(Copies, tables), archive, (), SOURCE, 0)
    return tables


def peak_of(act: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_l14_ten_times_the_rows_need_no_more_memory() -> None:
    few, many = Written(), Written()
    peaks = [peak_of(lambda: exported(800, few)), peak_of(lambda: exported(8_000, many))]
    assert (sum(few.sizes.values()) > 8_000_000, sum(many.sizes.values()) > 80_000_000) == (True, True)
    assert max(many.sizes.values()) < exports.MAX_PART + 2 * PAGE * ROW
    assert max(peaks) < BOUND, peaks
    assert peaks[1] < peaks[0] * 1.2, peaks


@pytest.mark.parametrize("failed", [0, 3, 7])
def test_l14_a_large_export_goes_on_at_its_last_file(failed: int) -> None:
    """The rows are digested again, from the first one on; those that are in files are not written again."""
    rows, archive = 3_000, Written()
    archive.fails_at = f"runs-{failed + 2:06d}.jsonl"
    with pytest.raises(InterruptedError):
        exported(rows, archive)
    before, archive.fails_at = dict(archive.sizes), None
    archive.sizes.clear()
    tables = exported(rows, archive)
    again = {name for name in archive.sizes if name.endswith(".jsonl")} & set(before)
    assert again == set(), "files that were written already"
    pages = rows // PAGE + 2
    in_files = sum(size for name, size in before.items() if name.startswith("runs")) // (PAGE * ROW)
    assert tables.reads <= 2 * pages - in_files + 1, "the second read goes on where it was"
