"""Containers of the local cloud: the command of a container, as a process of this machine.

The local cloud has no container engine. What an image holds is not here: a container needs a command that this machine
has. The process gets the environment of its container, not that of the server, and a session of its own, so that it
ends with all that it has started.

    container = Container(["python", "job.py"], environment({"DAY": "2026-11-24"}, endpoint, region), print)
    code = container.wait()
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from infra.local.layout import ROOT

Write = Callable[[str], None]  # gets each line of output, without its end
_INHERITED = ("HOME", "LANG", "LC_ALL", "USER")
_LONGEST_LINE = 65_536  # bytes; CloudWatch Logs refuses events of more than 256 KiB


class CannotPull(Exception):
    """There is no command: it would be the image's own, and no image is here."""


class CannotStart(Exception):
    """This machine does not have the command."""


class Container:
    """A command that has been started. Its output goes to ``write``, line by line; None: nowhere."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], write: Write | None) -> None:
        """Start it. Raises `CannotStart`."""
        try:
            self._process = subprocess.Popen(
                [_executable(command[0], environment), *command[1:]],
                env=dict(environment),
                cwd="/tmp",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:  # ValueError: an argument with a null byte
            why = "executable file not found in $PATH" if isinstance(error, FileNotFoundError) else str(error)
            raise CannotStart(f'exec: "{command[0][:200]}": {why} of the local cloud') from None
        self._write = write or (lambda line: None)
        self._reader = threading.Thread(target=self._read, name="container-output", daemon=True)
        self._reader.start()
        _LIVING.add(self)

    def wait(self, seconds: float | None = None) -> int | None:
        """The exit code as container engines report it: 128 and the number of the signal if one ended the command. None
        if it still runs after ``seconds``. All output has been written then."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        self._signal(signal.SIGKILL)  # what the command has left behind would keep the output open
        self._reader.join(5)
        return code if code >= 0 else 128 - code

    def stop(self, grace_s: float = 2.0) -> int:
        """Send SIGTERM, SIGKILL after ``grace_s``, and return the exit code."""
        self._signal(signal.SIGTERM)
        code = self.wait(grace_s)
        if code is None:
            self._signal(signal.SIGKILL)
            code = self.wait()
        assert code is not None
        return code

    def _read(self) -> None:
        output = self._process.stdout
        for raw in iter(lambda: output.readline(_LONGEST_LINE) if output else b"", b""):
            self._write(raw.decode(errors="replace").rstrip("\r\n"))

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):  # the whole group has ended
            os.killpg(self._process.pid, number)


_LIVING: weakref.WeakSet[Container] = weakref.WeakSet()


@atexit.register
def stop_all() -> None:
    """End the containers of a server that stops."""
    for container in list(_LIVING):
        container._signal(signal.SIGKILL)


def command_of(image: str, *, entry_point: Sequence[str] = (), command: Sequence[str] = ()) -> list[str]:
    """The command line of a container. Raises `CannotPull` if it is that of the image."""
    whole = [*entry_point, *command]
    if not whole:
        raise CannotPull(f"the local cloud pulls no image, and does not know the command of {image}: name a command")
    return whole


def environment(
    given: Mapping[str, str], endpoint: str, region: str, credentials: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The environment of a container: what its definition gives, the address of the local cloud, and ``credentials``,
    the AWS variables of its role. `python` is that of the local cloud, and
    finds the library of jobs."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return {
        **{name: os.environ[name] for name in _INHERITED if name in os.environ},
        "PATH": path,
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "AWS_EC2_METADATA_DISABLED": "true",
        "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": str(ROOT / "job_library"),
        **(credentials or {}),
        **given,
    }


def credentials_of(lambda_runtime: Any, role: str, account: str, region: str, name: str) -> dict[str, str]:
    """The AWS variables of a role, as ministack makes them for a function with that role. Empty without a role: a
    container without one has no credentials."""
    if not role:
        return {}
    arn = f"arn:aws:lambda:{region}:{account}:function:{name}"
    found: dict[str, str] = lambda_runtime.execution_credentials(
        {"FunctionArn": arn, "Role": role, "FunctionName": name}
    )
    return found


def log_into(logs: Any, scope: Callable[[], Any], group: str, stream: str, *, create_group: bool) -> Write | None:
    """Write lines to a stream of CloudWatch Logs. ``logs`` is that module of ministack, ``scope()`` enters account and
    region. None if the group does not exist, and may not be created."""
    with scope():
        if group not in logs._log_groups:
            if not create_group:
                return None
            logs._create_log_group({"logGroupName": group})
        if stream not in logs._log_groups[group]["streams"]:
            logs._create_log_stream({"logGroupName": group, "logStreamName": stream})

    def write(line: str) -> None:
        event = {"timestamp": int(time.time() * 1000), "message": line or " "}
        with scope():
            logs._put_log_events({"logGroupName": group, "logStreamName": stream, "logEvents": [event]})

    return write


def _executable(command: str, environment: Mapping[str, str]) -> str:
    """The path of a command, searched in the PATH of the container. Raises FileNotFoundError."""
    found = shutil.which(command, path=environment.get("PATH"))
    if found is None:
        raise FileNotFoundError(command)
    return found
