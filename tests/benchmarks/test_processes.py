"""The CPU time of processes, by the part of the cloud or of the scheduler that they belong to."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.processes import Reading, Sampler, cpu_by_part, of_cloud, of_trees, part_of

BURN_S = 0.3
BURN = f"import time\nends = time.process_time() + {BURN_S}\nwhile time.process_time() < ends: pass\ninput()"
CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BURN!r}])"


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("python -m infra.local.aws", "emulator"),
        ("python /x/.local/tmp/ministack-lambda-sluice-local-burst-6t66m3c2/_worker.py", "Lambda burst"),
        ("python /x/.local/tmp/ministack-lambda-sluice-local-run-state-6t66m3c2/_worker.py", "Lambda run-state"),
        ("python -m infra.local.emr_serverless --port 1", "others"),
    ],
)
def test_w11_a_process_belongs_to_a_part_of_the_cloud(command: str, part: str) -> None:
    assert part_of(command) == part


@contextmanager
def _running(code: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", code], cwd=folder, stdin=subprocess.PIPE) as process:
        yield process
        process.communicate(b"\n")


def test_w11_the_cpu_of_a_cloud_is_that_of_its_processes(tmp_path: Path) -> None:
    """Of processes of this cloud alone, by their command or their folder."""
    with _running(BURN, tmp_path) as process:
        while cpu_by_part(of_cloud(tmp_path)).get("others", 0.0) < BURN_S - 0.05:
            assert process.poll() is None
        assert set(cpu_by_part(of_cloud(tmp_path))) == {"others"}
    assert cpu_by_part(of_cloud(tmp_path)) == {}


def test_the_cpu_of_a_scheduler_has_that_of_its_children(tmp_path: Path) -> None:
    with _running(CHILD, tmp_path) as process:
        roots = {"scheduler": process.pid, "gone": 2**22 + 1}
        while len(of_trees(roots)) < 2 or cpu_by_part(of_trees(roots))["scheduler"] < BURN_S - 0.05:
            assert process.poll() is None
        assert {part for part, _ in of_trees(roots).values()} == {"scheduler"}
    assert of_trees({"scheduler": process.pid}) == {}


def test_w11_the_cpu_of_a_span_is_that_between_its_samples() -> None:
    samples = [(0.0, {"a": 1.0}), (1.0, {"a": 2.0, "b": 0.5}), (2.0, {"a": 2.0, "b": 3.0})]
    sampler = Sampler(dict, samples=[*samples])
    assert sampler.used(0.0, 1.0) == {"a": 1.0, "b": 0.5}
    assert sampler.used(1.5, 9.0) == {"b": 2.5}
    assert sampler.used() == {"a": 1.0, "b": 3.0}


def test_a_process_that_has_ended_keeps_what_it_used() -> None:
    """Another one may get its number."""
    readings: list[Reading] = [
        {(7, 1): ("a", 1.0), (8, 1): ("b", 5.0)},
        {(7, 1): ("a", 4.0), (8, 1): ("b", 5.0)},
        {(7, 2): ("a", 0.5), (8, 1): ("b", 5.0)},
    ]
    waiting = iter(readings)
    sampler = Sampler(lambda: next(waiting))
    for _ in readings:
        sampler.sample()
    assert sampler.used() == {"a": 3.5}


def test_a_block_is_sampled_at_its_begin_and_its_end(tmp_path: Path) -> None:
    with Sampler(lambda: of_trees({"own": os.getpid()}), every_s=3_600) as sampler:
        assert len(sampler.samples) == 1
    assert len(sampler.samples) == 2
    assert not sampler._thread.is_alive()
