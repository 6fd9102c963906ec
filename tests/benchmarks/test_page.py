"""The page about performance shows the figures of the results."""

from __future__ import annotations

from benchmarks import results
from benchmarks.page import NOT_YET, PAGE, TABLES, page


def test_e9_the_page_has_the_figures_of_the_results() -> None:
    text = PAGE.read_text()
    assert page(text, results.read()) == text, "run: python -m benchmarks.page"
    for name in TABLES:
        assert f"<!-- {name} -->" in text


def test_a_missing_measurement_says_so() -> None:
    assert page("<!-- tick -->\n<!-- end -->", {}) == f"<!-- tick -->\n{NOT_YET}\n<!-- end -->"


def test_a_table_has_a_row_for_each_size_and_one_for_the_growth() -> None:
    one = {"schedules": 1_000, "calls": 10, "read_units": 2.0, "write_units": 5, "cpu_ms": 1.5}
    growth = {"calls": 1.0, "read_units": 1.0, "write_units": 1.0, "cpu_ms": 1.01}
    found = {"tick": {"sizes": [one], "growth": growth}}
    lines = page("<!-- tick -->\nold\n<!-- end -->", found).splitlines()
    assert lines[3] == "| 1,000 | 10 | 2.0 | 5 | 1.5 |"
    assert lines[4] == "| growth, first to last | 1.0 | 1.0 | 1.0 | 1.01 |"
