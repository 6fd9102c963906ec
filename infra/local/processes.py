"""Background processes that outlive the command that started them.

A lock, not a pid, shows whether a process is running: the process holds its own file locked from start to end. So a
file that a crash or a reboot left behind is recognized as stale, and a reused pid is harmless.
"""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Running:
    """A running background process: its pid (also its process group) and the port on which it listens."""

    pid: int
    port: int


def find(file: Path) -> Running | None:
    """The process that holds `file`, or None if it has ended or never existed."""
    try:
        with file.open("r+") as handle:
            try:
                # Shared, so that two simultaneous callers do not mistake each other for the process.
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return Running(**json.load(handle))
    except (FileNotFoundError, json.JSONDecodeError, TypeError):
        return None
    return None


def start(
    file: Path, command: Sequence[str], port: int, environment: Mapping[str, str], log: Path, cwd: Path
) -> Running:
    """Start `command` detached from this terminal, append its output to `log`, and record it in `file`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w+") as handle, log.open("ab") as output:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            cwd=cwd,
            start_new_session=True,
            # The lock lasts while a process holds this descriptor: the child does, its own children do not.
            pass_fds=[handle.fileno()],
        )
        running = Running(process.pid, port)
        json.dump(asdict(running), handle)
    return running


def stop(file: Path, patience_seconds: float) -> bool:
    """End the process of `file` and all processes that it has started. False if it was not running.

    The process itself gets SIGTERM first, so that it can write its state. Its group is killed once it has ended, or
    when `patience_seconds` have passed. On a busy machine a killed process runs for a moment more, so `stop` returns
    when the last one of the group has ended."""
    running = find(file)
    if running is None:
        file.unlink(missing_ok=True)
        return False
    with suppress(ProcessLookupError):
        os.kill(running.pid, signal.SIGTERM)
    deadline = time.monotonic() + patience_seconds
    while find(file) is not None and time.monotonic() < deadline:
        time.sleep(0.05)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(running.pid, signal.SIGKILL)
    while find(file) is not None or members(running.pid):
        time.sleep(0.05)
    file.unlink(missing_ok=True)
    return True


def members(group: int) -> list[int]:
    """The pids of a process group, without those that have ended and that nobody has reaped.

    None on a machine without the command ``ps``, such as a slim image: there `stop` cannot wait for them."""
    if shutil.which("ps") is None:
        return []
    listed = subprocess.run(["ps", "-eo", "pgid=,pid=,state="], capture_output=True, text=True, check=True).stdout
    rows = (line.split() for line in listed.splitlines())
    return [int(pid) for pgid, pid, state in rows if int(pgid) == group and not state.startswith("Z")]
