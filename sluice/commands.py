"""The command that a worker executes for one run: its inputs, its output, and its end."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any

from sluice.client import Document

MAX_OUTPUT = 16_000  # characters of the last lines that are reported
MAX_METRICS, MAX_BYTES = 20, 1_000  # limits of the API: the number of metrics, and their size as JSON
MAX_WHY = 500  # characters of a reason
NOT_STARTED = 127  # the exit code of a shell for a command that does not exist


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a command: exit code (negative: the signal), the last output lines, and a reason if there is one."""

    exit_code: int
    output: str
    why: str = ""


class Command:
    """One command in a process group of its own, so that its child processes end with it."""

    def __init__(self, command: Sequence[str], lease: Document, grace: float) -> None:
        self._command, self._lease, self._grace = command, lease, grace
        self._folder = TemporaryDirectory(prefix="sluice-run-")
        self._context = Path(self._folder.name, "context.json")
        self._process: subprocess.Popen[bytes] | None = None
        self._tail: deque[str] = deque(maxlen=1_000)
        self._reader: threading.Thread | None = None
        self._asked = threading.Event()

    def __enter__(self) -> Command:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._signal(signal.SIGKILL)  # processes that the command left behind in its group
        self._folder.cleanup()

    def start(self) -> Ended | None:
        """Start the command. Returns its end if it could not be started, else None."""
        self._context.write_text(json.dumps(self._lease.get("context")))
        command = _filled(self._command, self._lease, str(self._context))
        try:
            self._process = subprocess.Popen(
                command,
                env={**os.environ, **self._variables()},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:  # ValueError: an argument contains a null byte
            why = error.strerror if isinstance(error, OSError) else None
            return Ended(NOT_STARTED, "", f"{command[0][:200]} could not be started: {why or error}"[:MAX_WHY])
        self._reader = threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True)
        self._reader.start()
        return None

    def wait(self, seconds: float) -> Ended | None:
        """The end of the command, or None if it is still running after ``seconds``."""
        if self._process is None:
            raise RuntimeError("expected a started command; call start() first")
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        self._signal(signal.SIGKILL)  # a surviving child would keep the output open
        if self._reader is not None:
            self._reader.join(self._grace)
        return Ended(code, "".join(self._tail)[-MAX_OUTPUT:])

    def end(self) -> None:
        """Send SIGTERM, and SIGKILL after the grace time. Further calls have no effect."""
        if self._asked.is_set():
            return
        self._asked.set()
        self._signal(signal.SIGTERM)
        threading.Thread(target=self._kill_later, daemon=True).start()

    def metrics(self) -> dict[str, Any]:
        """The metrics that the command has written so far: a flat JSON object; empty for anything else. Metrics beyond
        the limits, and numbers that JSON cannot hold, are left out: a refused heartbeat would lose the lease."""
        try:
            written = json.loads(Path(self._folder.name, "metrics.json").read_bytes())
        except (OSError, ValueError):
            return {}
        accepted: dict[str, Any] = {}
        for name, value in written.items() if isinstance(written, dict) else ():
            finite = isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
            if finite and len(accepted) < MAX_METRICS and len(json.dumps({**accepted, name: value})) <= MAX_BYTES:
                accepted[name] = value
        return accepted

    def _variables(self) -> dict[str, str]:
        return {
            "SLUICE_RUN_ID": str(self._lease["run_id"]),
            "SLUICE_ATTEMPT": str(self._lease["attempt"]),
            "SLUICE_SCHEDULE": str(self._lease["schedule"]),
            "SLUICE_WORKFLOW": str(self._lease["workflow"]),
            "SLUICE_PROPERTIES": json.dumps(self._lease["properties"]),
            "SLUICE_CONTEXT_FILE": str(self._context),
            "SLUICE_METRICS_FILE": str(Path(self._folder.name, "metrics.json")),
        }

    def _read(self, pipe: Any) -> None:
        """Copy the output line by line to stdout, and keep its end."""
        for raw in iter(lambda: pipe.readline(MAX_OUTPUT), b""):
            line = raw.decode(errors="replace")
            self._tail.append(line)
            sys.stdout.write(line)
            sys.stdout.flush()

    def _kill_later(self) -> None:
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(self._grace)
        self._signal(signal.SIGKILL)

    def _signal(self, which: signal.Signals) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError, PermissionError):  # the whole group has ended
                os.killpg(self._process.pid, which)


def _filled(command: Sequence[str], lease: Document, context: str) -> list[str]:
    """The command with its placeholders filled in. ``{args}`` as a word of its own becomes one word per argument."""
    arguments = [str(argument) for argument in lease["arguments"]]
    filled: list[str] = []
    for word in command:
        if word == "{args}":
            filled += arguments
        else:
            filled.append(word.replace("{run_id}", str(lease["run_id"])).replace("{context}", context))
    return filled
