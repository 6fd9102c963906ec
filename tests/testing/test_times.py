"""The table of the times that tests take."""

from __future__ import annotations

import pytest

from tests.support import times
from tests.support.times import table

REPORT = """<testsuites><testsuite>
<testcase classname="tests.core.test_ids" name="a" time="1.5"><properties><property name="cpu_s" value="1.25"/>
</properties></testcase>
<testcase classname="tests.core.jobs.test_check" name="b" time="0.5"/>
<testcase classname="tests.faults.test_crash_points.SomeClass" name="c" time="91.2"><properties>
<property name="cpu_s" value="61.2"/></properties></testcase>
</testsuite></testsuites>"""


def test_the_table_has_each_folder_and_the_longest_files() -> None:
    assert list(table(REPORT))[2:] == [
        "| `tests/faults` | 1 | 61 | 91 |",
        "| `tests/core` | 2 | 1 | 2 |",
        "| `all` | 3 | 62 | 93 |",
        "tests/faults/test_crash_points.py: 1 tests in 61 CPU seconds",
    ]


def test_a_test_has_at_most_what_all_cores_give(monkeypatch: pytest.MonkeyPatch) -> None:
    """A local cloud that ends in a test has used its CPU long before."""
    monkeypatch.setattr(times, "CORES", 2)
    report = REPORT.replace('value="61.2"', 'value="500"')
    assert list(table(report))[2] == "| `tests/faults` | 1 | 182 | 91 |"
