"""One Spark process with everything it starts: run to the end, or ended early as a whole."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .driver import Stop

_POLL_S = 0.05
# In the environment of every process started here, and so of everything below it: how to know them again.
_MARKER = "SLUICE_EMR_RUN_DIR"
_LOG_BYTES_AT_MOST = 200_000
_EXCEPTION = re.compile(r"^(?:Caused by: )?(?:[\w$]+\.)*[\w$]*(?:Error|Exception|Exit|Interrupt)\b(?::.*)?$")


@dataclass(frozen=True)
class Ended:
    """How a process ended: its exit code, and whether it was ended early."""

    code: int
    interrupted: bool


def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    directory: Path,
    logs: Path,
    stop: Stop,
    grace_s: float,
) -> Ended:
    """Run `command` in `directory`, writing `logs/stdout` and `logs/stderr`, until it ends.

    When `stop` is asked the whole process group is told to end, and killed after `grace_s` or the grace of `stop`.
    """
    with (logs / "stdout").open("wb") as out, (logs / "stderr").open("wb") as err:
        # A session of its own, so that a signal reaches the JVM and the Python processes below it, and nothing else.
        process = subprocess.Popen(
            command,
            env={**environment, _MARKER: str(directory)},
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        try:
            while process.poll() is None and not stop.wait(_POLL_S):
                pass
            interrupted = process.poll() is None
        finally:
            end_group(process, grace_s if stop.grace_s is None else min(stop.grace_s, grace_s))
    return Ended(process.returncode, interrupted)


def end_group(process: subprocess.Popen[bytes], grace_s: float) -> None:
    """SIGTERM to the group, SIGKILL to what is left of it after `grace_s`. Harmless when it has ended already."""
    if process.poll() is None:
        _signal_group(process.pid, signal.SIGTERM)
        until = time.monotonic() + grace_s
        while process.poll() is None and time.monotonic() < until:
            time.sleep(_POLL_S)
    # Always: the leader may have ended while a Python worker of its group has not.
    _signal_group(process.pid, signal.SIGKILL)
    process.wait()


def end_leftovers(below: Path) -> None:
    """Kill processes that `run` started in a directory below `below`, where the system shows them (Linux's /proc).

    They are left over when the emulator itself was killed and could not end them.
    """
    marker = os.fsencode(f"{_MARKER}={below}{os.sep}")
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
            if any(variable.startswith(marker) for variable in variables):
                os.kill(int(entry.name), signal.SIGKILL)
        except OSError:
            # Another's process, or one that has ended since.
            continue


def last_exceptions(logs: Path, most: int = 3) -> str:
    """The last exceptions in a driver's logs, the latest first; the last lines of `stderr` if there is none.

    Spark passes what a Python driver writes, tracebacks included, to `stdout`; what the JVM says is in `stderr`.
    """
    written = [_last_lines(logs / name) for name in ("stdout", "stderr")]
    latest_first = [line for lines in written for line in reversed(lines) if _EXCEPTION.match(line)]
    return "; ".join(list(dict.fromkeys(latest_first))[:most] or written[1][-most:])


def _last_lines(log: Path) -> list[str]:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _LOG_BYTES_AT_MOST))
        lines = file.read().decode("utf-8", "replace").splitlines()
    return [line.strip() for line in lines if line.strip()]


def _signal_group(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return
