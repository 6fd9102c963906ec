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
from sluice.visible import visible

MAX_OUTPUT = 16_000  # characters of the last lines that are reported
MAX_METRICS, MAX_BYTES = 20, 1_000  # limits of the API: the number of metrics, and their size as JSON
MAX_RESULT = 70_000  # characters of a result that are reported; the API keeps at most 10,000 bytes
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

    def __init__(
        self,
        command: Sequence[str],
        lease: Document,
        grace: float,
        aws_keys: bool = False,
        allow_dashes: bool = False,
    ) -> None:
        self._command, self._lease, self._grace = command, lease, grace
        self._aws_keys, self._allow_dashes = aws_keys, allow_dashes
        self._folder = TemporaryDirectory(prefix="sluice-run-")
        self._context = Path(self._folder.name, "context.json")
        self._result = Path(self._folder.name, "result.json")
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
        option = None if self._allow_dashes else _option_of(self._command, self._lease)
        if option is not None:
            return Ended(NOT_STARTED, "", f"{_DASH}, got {option[:100]!r}; {_DASH_HINT}")
        self._context.write_text(json.dumps(self._lease.get("context")))
        command = _filled(self._command, self._lease, str(self._context))
        try:
            self._process = subprocess.Popen(
                command,
                env={**_environment(self._aws_keys), **self._variables()},
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

    def result(self) -> str | None:
        """The JSON text that the command has written as its result; None if it has written none. Of a text that is too
        long, as much as the API needs to refuse it."""
        try:
            with open(self._result, encoding="utf-8", errors="replace") as file:
                return file.read(MAX_RESULT)
        except OSError:
            return None

    def _variables(self) -> dict[str, str]:
        return {
            "SLUICE_RUN_ID": str(self._lease["run_id"]),
            "SLUICE_ATTEMPT": str(self._lease["attempt"]),
            "SLUICE_SCHEDULE": str(self._lease["schedule"]),
            "SLUICE_WORKFLOW": str(self._lease["workflow"]),
            "SLUICE_PROPERTIES": json.dumps(self._lease["properties"]),
            "SLUICE_CONTEXT_FILE": str(self._context),
            "SLUICE_METRICS_FILE": str(Path(self._folder.name, "metrics.json")),
            "SLUICE_RESULT_FILE": str(self._result),
        }

    def _read(self, pipe: Any) -> None:
        """Copy the output line by line to stdout, and keep its end."""
        for raw in iter(lambda: pipe.readline(MAX_OUTPUT), b""):
            line = raw.decode(errors="replace")
            self._tail.append(line)
            sys.stdout.write(visible(line))
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


_DASH = "expected arguments that do not begin with '-', because the command would read them as its options"
_DASH_HINT = "put -- before {args} in the command of the worker, or start the worker with --allow-dashes"
# What gives a process the credentials of its parent: keys, and places where an SDK finds others.
# https://docs.aws.amazon.com/sdkref/latest/guide/settings-reference.html
CREDENTIALS = frozenset(
    {
        *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN"),
        *("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"),
        *("AWS_ROLE_ARN", "AWS_ROLE_SESSION_NAME", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CREDENTIAL_EXPIRATION"),
        *("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"),
        *("AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"),
    }
)


def _environment(aws_keys: bool) -> dict[str, str]:
    """The environment of the worker, without its AWS credentials unless the worker passes them on. They let the command
    claim and end other runs of the pool."""
    return {name: value for name, value in os.environ.items() if aws_keys or name not in CREDENTIALS}


def _option_of(command: Sequence[str], lease: Document) -> str | None:
    """The first argument that the command would read as an option; None if there is none. Where ``{args}`` stands
    first, the arguments are the command itself."""
    if "{args}" not in command[1:] or "--" in command[: command.index("{args}")] or command[0] == "{args}":
        return None
    return next((str(argument) for argument in lease["arguments"] if str(argument).startswith("-")), None)


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
