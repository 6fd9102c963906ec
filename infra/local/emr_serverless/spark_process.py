"""One Spark process with all its child processes: run to its end, or ended early as a whole."""

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
# An environment variable that child processes inherit, by which all processes started here can be found again.
_MARKER = "SLUICE_EMR_RUN_DIR"
_MAX_LOG_BYTES = 200_000
# A line of Spark's own log below the level ERROR, which is no reason of a failure.
_LOG_LINE = re.compile(r"(?:[\d/:., -]+ )?(?:TRACE|DEBUG|INFO|WARN|WARNING)\b|WARNING: |:: ")
_EXCEPTION = re.compile(r"^(?:Caused by: )?(?:[\w$]+\.)*[\w$]*(?:Error|Exception|Exit|Interrupt)\b(?::.*)?$")


@dataclass(frozen=True)
class Ended:
    """The end of a process: its exit code, and whether it was ended early."""

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

    A request in `stop` ends the whole process group, by SIGKILL after `grace_s` or the grace time of `stop`.
    """
    with (logs / "stdout").open("wb") as out, (logs / "stderr").open("wb") as err:
        # A separate session, so that a signal reaches exactly the JVM and its Python processes.
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
    """Send SIGTERM to the group, and SIGKILL to the rest after `grace_s`. No effect if the group has ended."""
    if process.poll() is None:
        _signal_group(process.pid, signal.SIGTERM)
        until = time.monotonic() + grace_s
        while process.poll() is None and time.monotonic() < until:
            time.sleep(_POLL_S)
    # Always: a Python worker of the group may outlive its leader.
    _signal_group(process.pid, signal.SIGKILL)
    process.wait()


def end_leftovers(below: Path) -> None:
    """Kill the processes that `run` started in a directory below `below`, if the system lists them (Linux's /proc).

    They remain if the emulator itself was killed and could not end them.
    """
    marker = os.fsencode(f"{_MARKER}={below}{os.sep}")
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
            if any(variable.startswith(marker) for variable in variables):
                os.kill(int(entry.name), signal.SIGKILL)
        except OSError:
            # A process of another user, or one that has just ended.
            continue


def last_exceptions(logs: Path, maximum: int = 3) -> str:
    """The last exceptions in a driver's logs, newest first; the last line of the job's output if there are none.

    Spark writes the output of a Python driver, tracebacks included, to `stdout`; the JVM writes to `stderr`.
    """
    written = [_last_lines(logs / name) for name in ("stdout", "stderr")]
    latest_first = [line for lines in written for line in reversed(lines) if _EXCEPTION.match(line)]
    own = [line for line in written[0] or written[1] if not _LOG_LINE.match(line)]
    return "; ".join(list(dict.fromkeys(latest_first))[:maximum] or own[-1:])


def _last_lines(log: Path) -> list[str]:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _MAX_LOG_BYTES))
        lines = file.read().decode("utf-8", "replace").splitlines()
    return [line.strip() for line in lines if line.strip()]


def _signal_group(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return
