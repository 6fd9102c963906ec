"""The table of the times that tests take."""

from __future__ import annotations

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
