"""Background processes of the local cloud: found while they run, never confused, ended with all their children."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from infra.local import processes

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]
DEAF = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)",
]
WITH_CHILD = [
    *(sys.executable, "-c"),
    "import subprocess, sys, time; c = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
    "print(c.pid, flush=True); time.sleep(60)",
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file that a process locks."""
    return tmp_path / "some.process"


def start(file: Path, command: list[str]) -> processes.Running:
    return processes.start(file, command, 4711, os.environ, file.with_suffix(".log"), file.parent)


def first_line(file: Path) -> str:
    log, until = file.with_suffix(".log"), time.monotonic() + 10
    while not (log.exists() and log.read_text()) and time.monotonic() < until:
        time.sleep(0.02)
    return log.read_text().strip()


def test_a_process_is_found_until_it_is_stopped(file: Path) -> None:
    started = start(file, SLEEP)
    assert processes.find(file) == started == processes.Running(started.pid, 4711)
    assert processes.stop(file, 5)
    assert processes.find(file) is None
    assert not file.exists()


def test_a_process_that_never_existed_is_not_found(file: Path) -> None:
    assert processes.find(file) is None
    assert not processes.stop(file, 5)


def test_the_file_of_a_killed_process_is_stale(file: Path) -> None:
    started = start(file, SLEEP)
    os.kill(started.pid, 9)
    os.waitpid(started.pid, 0)
    assert file.exists()
    assert processes.find(file) is None


def test_a_pid_reused_by_another_program_is_not_killed(file: Path) -> None:
    stranger = subprocess.Popen(SLEEP)
    file.write_text(json.dumps({"pid": stranger.pid, "port": 4711}))
    assert processes.find(file) is None
    assert not processes.stop(file, 5)
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()


def test_a_process_that_does_not_listen_is_killed(file: Path) -> None:
    start(file, DEAF)
    assert first_line(file) == "deaf"
    assert processes.stop(file, 0.2)
    assert processes.find(file) is None


def test_stopping_ends_everything_that_was_started(file: Path) -> None:
    start(file, WITH_CHILD)
    child = int(first_line(file))
    assert processes.stop(file, 5)
    assert not _alive(child)


def test_stopping_waits_for_a_killed_process_that_still_runs(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = start(file, WITH_CHILD)
    child = int(first_line(file))
    assert sorted(processes.members(started.pid)) == sorted([started.pid, child])
    killed = threading.Timer(0.5, os.kill, (child, signal.SIGKILL))
    # Only the first process gets the signal at once, as on a machine that is too busy to run the second one.
    monkeypatch.setattr(os, "killpg", lambda pid, number: killed.start())
    assert processes.stop(file, 5)
    assert not _alive(child)


def test_a_machine_without_ps_stops_processes(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start(file, SLEEP)
    monkeypatch.setenv("PATH", "")
    assert processes.stop(file, 5)
    assert processes.find(file) is None


def _alive(pid: int) -> bool:
    # An orphan that was not reaped yet has ended all the same.
    state = subprocess.run(["ps", "-o", "state=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return bool(state) and not state.startswith("Z")
