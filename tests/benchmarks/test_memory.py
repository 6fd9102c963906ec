"""The table of cost against latency by memory size, from the model of AWS; the template's defaults depend on it."""

from pathlib import Path

import pytest

from benchmarks import memory, results
from benchmarks.aws_model import MEMORY
from benchmarks.aws_model.assumptions import cpu_share


def test_a_cpu_is_shared_by_memory_and_a_thread_has_one_at_most() -> None:
    assert cpu_share(512) == pytest.approx(0.29, abs=0.005)
    assert (cpu_share(1769), cpu_share(3008)) == (1, 1)


def test_the_memory_table_has_a_row_for_each_size() -> None:
    size = {
        "memory": 1769,
        "assumed": "usual",
        "cpu": 1.0,
        "fire_ms": 61,
        "fire_usd": 23.456,
        "idle_fire_ms": 200,
        "start_ms": 440,
    }
    rest = {"start_usd": 30.0, "burst_s": 1.5, "tick_s": 2.25, "put_s": 6.04}
    lines = list(memory.table([size | rest] * 2))
    assert len(lines) == 2 + 2
    assert lines[3] == "| 1,769 | usual | 1.00 | 61 ms, $23.46 | 200 ms | 440 ms, $30.00 | 1.50 s | 2.2 s | 6.0 s |"


def test_memory_sizes_of_the_results_are_those_of_the_model() -> None:
    assert tuple(size["memory"] for size in results.read()["aws_model"]["memory"]) == MEMORY


def test_the_page_shows_the_table_of_the_committed_results(capsys: pytest.CaptureFixture[str]) -> None:
    memory.main()
    page = (Path(__file__).parents[2] / "docs" / "internals" / "measurements.md").read_text()
    shown = page.partition("<!-- memory -->")[2].partition("<!-- end -->")[0]
    assert shown.strip() == capsys.readouterr().out.strip()
