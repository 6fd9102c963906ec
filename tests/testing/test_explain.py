"""The explanation of an app under test, and that pytest shows it for a test that fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from sluice.testing import App
from tests.testing.test_apps import AT, EMR, FLIGHTS, document, on
from tests.testing.test_dags import NIGHTLY

ROOT = Path(__file__).parents[2]


def test_an_explanation_has_what_ran_what_waits_and_why(sluice_app: type[App]) -> None:
    content = document(on(FLIGHTS, {"type": "concurrency", "max": 1, "on_unmet": "wait"}))
    content["workflows"]["step"] = {"target": EMR}
    content["schedules"]["report"] = {
        "workflow": "step",
        "trigger": {"type": "time", "expression": "0 6 * * *"},
    }
    content["dags"] = {"nightly": NIGHTLY}
    app = sluice_app(content, at=AT)
    app.partition("flights", day=1)
    app.partition("flights", day=2)
    app.dag_run("nightly", day=1).node("load").fail("out of memory")
    text = app.explain()
    assert text.startswith("demo.flights at 2026-03-02T12:00:00.000Z\n")
    assert "\njoin: enabled\n  2026-03-02 12:00:00 RUNNING: day=1: trigger met: 1 partition of demo.flights" in text
    assert "\n  waits: day=2: " in text
    assert "\nreport: disabled\n  why: the schedule is disabled: enable it, or run it now" in text
    assert "\n  2026-03-02 12:00:00 FAILED: day=1: trigger met: 1 partition of demo.flights came" in text
    assert "\n    load FAILED: out of memory\n    check BLOCKED: needs load COMPLETED, which is FAILED\n" in text
    assert "\n    load RUNNING: trigger met: demo.flights.nightly reached COMPLETED" in text
    assert "~" not in text


def test_a_long_history_is_cut_to_its_newest_lines(sluice_app: type[App]) -> None:
    app = sluice_app(document(on({"type": "time", "expression": "0 * * * *"}, coalesce=False)), at=AT)
    app.advance("12h")
    lines = app.explain().splitlines()
    assert "  4 earlier runs" in lines
    assert sum(line.endswith(" RUNNING: due") for line in lines) == 8
    assert "  next fire: 2026-03-03 01:00:00" in lines


def test_pytest_shows_the_explanation_of_a_failed_test(tmp_path: Path) -> None:
    test = f"""
def test_it_runs(sluice_app):
    app = sluice_app({document(on(FLIGHTS))!r}, at={AT!r})
    app.partition("flights", day=1)
    assert app.run("join").state == "SUCCEEDED"


def test_it_passes(sluice_app):
    sluice_app({document(on(FLIGHTS))!r}, at={AT!r})
"""
    (tmp_path / "test_app.py").write_text(test)
    options = ["-q", "-n0", "-p", "no:cacheprovider", "-p", "sluice.pytest_plugin"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "test_app.py"],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    assert done.stdout.count("demo.flights in Sluice") == 1
    assert "join: enabled\n  2026-03-02 12:00:00 RUNNING: day=1: trigger met" in done.stdout
