"""A measurement replaces its own keys and leaves those of other measurements, with their commit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import durations, results
from benchmarks.__main__ import main
from benchmarks.event import WARM_UP, Times, figures
from benchmarks.machine import Origin

OLD = Origin({"commit": "aaa"}, {"cores": 2}, {"python": "3.11.1"})
NEW = Origin({"commit": "bbb"}, {"cores": 4}, {"python": "3.11.2"})


def test_only_measured_results_are_replaced() -> None:
    first = results.merge({}, {"event": {"p50_s": 1.0}, "cost": [1]}, OLD)
    second = results.merge(first, {"event": {"p50_s": 2.0}}, NEW)

    assert (second["event"], second["cost"]) == ({"p50_s": 2.0}, [1])
    assert (second["measured_at"], second["machine"]) == ({"commit": "bbb"}, {"cores": 4})
    assert second["origins"] == {"event": {"commit": "bbb"}, "cost": {"commit": "aaa"}}


def test_results_are_read_back_and_a_missing_file_is_empty(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    assert results.read(file) == {}
    results.write({"cost": []}, file)
    assert results.read(file) == {"cost": []}


def test_an_unknown_measurement_name_is_refused() -> None:
    assert main(["weather"]) == 2


TERMINATED = """
import os, signal, types
from benchmarks import __main__ as command

def measure(progress):
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        print("cloud stopped")

command.load = lambda name: types.SimpleNamespace(measure=measure)
command.main(["tick"])
"""


def test_a_terminated_measurement_stops_what_it_has_started() -> None:
    found = subprocess.run([sys.executable, "-c", TERMINATED], capture_output=True, text=True, timeout=60, check=False)
    assert (found.stdout, found.returncode) == ("cloud stopped\n", 143), found.stderr


def test_percentiles_are_measured_values() -> None:
    assert durations.percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert durations.percentile([float(number) for number in range(1, 51)], 0.99) == 50.0


def test_the_warm_up_is_separate_and_the_parts_add_up() -> None:
    cold, warm = Times(0.0, 3.0, 4.0, 5.0, 6.0), Times(10.0, 10.25, 10.5, 10.625, 10.75)
    found = figures([cold] * WARM_UP + [warm] * 2)

    assert (found["repetitions"], found["p50_s"], found["cold_s"]) == (2, 0.75, 6.0)
    assert sum(part["p50_s"] for part in found["parts"].values()) == pytest.approx(0.75)
