"""Background processes that outlive the command that started them.

Whether one is alive is told by a lock, not by its pid: the process holds its own file locked from birth to death, so
a file left behind by a crash or a reboot is seen to be stale, and a pid that was given to somebody else is harmless.
"""

import fcntl
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Running:
    """A background process that is alive: its pid (also its process group) and the port it was told to listen on."""

    pid: int
    port: int


def find(file: Path) -> Running | None:
    """The process that holds `file`, or None when it has ended or never was."""
    try:
        with file.open("r+") as handle:
            try:
                # Shared: two that ask at the same time must not take each other for the process.
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return Running(**json.load(handle))
    except (FileNotFoundError, json.JSONDecodeError, TypeError):
        return None
    return None


def start(
    file: Path, command: Sequence[str], port: int, environment: Mapping[str, str], log: Path, cwd: Path
) -> Running:
    """Start `command` detached from this terminal, its output appended to `log`, and note it in `file`."""
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
            # The lock lives as long as somebody holds this descriptor: the child does, its own children do not.
            pass_fds=[handle.fileno()],
        )
        running = Running(process.pid, port)
        json.dump(asdict(running), handle)
    return running


def stop(file: Path, patience_seconds: float) -> bool:
    """End the process of `file` and whatever it has started. False when it was not running.

    The process itself is asked first, so that it can write its state; its group is killed when it has gone, or when
    `patience_seconds` have passed.
    """
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
    while find(file) is not None:
        time.sleep(0.05)
    file.unlink(missing_ok=True)
    return True
