"""Pages that a reader follows command by command: played on the command line and the service of this checkout.

    <!-- file: app.yaml -->          the block below is written to this file; `add:` appends it
    <!-- shell -->                   the block below is run by a shell
    <!-- then: 5m; runs succeed -->  what happens before the next block, see `Session.happens`
    <!-- delivered: events.0 -->     the JSON below is this part of what was delivered last, or all of it: `body`
    ```sh
    sluice why schedule shop.orders.clean
    ```
    ```text
    ...what the last command of the block prints...
    ```

The service runs in memory from Monday, 2 March 2026, 12:00 UTC, and EMR is played. In an output, a line `...` stands
for any lines. Of a block of commands those of `sluice` are run, and none of them may fail; what they print may be left
out. Other commands (`make`, `source`, `export`) are those of a machine, and are not run.

    python -m tests.docs.session docs/tutorial.md      writes the outputs
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import uuid
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from chalice.test import Client as ChaliceClient
from typer.testing import CliRunner

from chalicelib.core.targets.answers import NotNow
from chalicelib.web.table import ROUTES
from sluice.cli import app as command_line
from sluice.cli import frame, runs, upload
from sluice.client import Client
from sluice.signing import Reply
from tests.docs.blocks import commands
from tests.support.dags import hands_on
from tests.support.fakes import EmrRun
from tests.support.world import World

ROOT = Path(__file__).parents[2]
ADDRESS = "http://sluice.example/api"
USER = "arn:aws:iam::123456789012:user/ada"
WIDTH = "110"
EMR_FAILED = "Job execution failed, please check complete logs in configured logging destination. "
PART = re.compile(
    r"^<!-- (?P<act>file|add|then|shell|delivered)(?:: (?P<what>.+?))? -->\n"
    r"|^```(?P<language>\w*)\n(?P<text>.*?)^```\n",
    flags=re.S | re.M,
)


class Session:
    """One reader at a terminal, in a folder of their own."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world, self.folder = world, folder
        self._variables: dict[str, str] = {}
        (folder / "jobs").symlink_to(ROOT / "jobs")
        (folder / "job_library").symlink_to(ROOT / "job_library")

    def played(self, page: str) -> str:
        """The page as it must be: with the output of each command."""
        self._writes: tuple[str, str] | None = None
        self._printed: str | None = None  # by the last command of the block before
        return PART.sub(self._part, page)

    def _part(self, part: re.Match[str]) -> str:
        if part["act"] == "then":
            self.happens(part["what"])
        elif part["act"]:
            self._writes = part["act"], part["what"]
        elif self._writes is not None:
            (act, name), self._writes = self._writes, None
            if act == "delivered":
                return f"```json\n{self._delivered(name, part['text'])}```\n"
            if act == "shell":
                subprocess.run(["bash", "-euc", part["text"]], cwd=self.folder, check=True)
                return part[0]
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a" if act == "add" else "w") as file:
                file.write(part["text"])
        elif part["language"] == "sh":
            printed = [self.types(command) for command in commands(part["text"])]
            self._printed = printed[-1] if printed else None
        elif part["language"] == "text":
            printed, self._printed = self._printed, None
            assert printed is not None, f"expected a block of commands before an output, got none: {part['text']}"
            return f"```text\n{_agreed(printed, part['text'])}```\n"
        return part[0]

    def _delivered(self, where: str, reported: str) -> str:
        """A part of the message that came last, and the JSON of the page if it is the same."""
        queue = self.world.targets.queue
        data = queue.data[-1]
        found: Any = json.loads(data["text"]) if data is not None else queue.messages[-1][1]
        for step in () if where == "body" else where.split("."):
            found = found[int(step) if step.isdigit() else step]
        return reported if reported and json.loads(reported) == found else f"{json.dumps(found, indent=1)}\n"

    def types(self, command: str) -> str:
        """Run a command, and let what it sets going come to rest. ``NAME=$(sluice ...)end`` keeps what it prints, and
        the end."""
        variable = re.fullmatch(r"(\w+)=\$\((.+)\)(\S*)", command)
        if variable is not None:
            self._variables[variable[1]] = self.types(variable[2]).rstrip("\n") + variable[3]
            return ""
        name, *arguments = shlex.split(re.sub(r"\$(\w+)", lambda found: self._variables[found[1]], command))
        assert name == "sluice", f"expected a command of sluice, got {command!r}"
        with contextlib.chdir(self.folder):
            result = CliRunner().invoke(command_line, arguments, catch_exceptions=False)
        assert result.exit_code == 0, f"{command} fails: {result.output}"
        self.world.settle()
        return "".join(f"{line.rstrip()}\n" for line in result.output.splitlines())

    def happens(self, steps: str) -> None:
        """``5m``: a span passes, tick by tick. ``at 2026-03-03T05:59:00Z``: the clock turns to an instant before which
        nothing falls due. ``runs start``, ``runs succeed``, ``runs fail: exit code 1``: all active runs do, at EMR.
        ``run fails NAME: text``, ``run succeeds NAME``: those of one workflow do. ``runs bill: 1500 6000 0``: EMR bills
        the active runs so many thousandths of vCPU-hours, of GB-hours of memory and of storage. ``runs hand on: {}``:
        they have this result. ``driver prints: text``: the log of the last run. ``receiver is down: text``,
        ``receiver is up``: no delivery arrives, and all do."""
        for step in steps.split("; "):
            self._step(step)
            self.world.settle()

    def _step(self, step: str) -> None:
        act, _, text = step.partition(": ")
        if re.fullmatch(r"(\d+[dhms])+", step):
            self.world.pass_by(step)
        elif act.startswith("at "):
            self.world.clock.wait_until(_instant(act[3:]))
            self.world.tick()
        elif act in ("receiver is down", "receiver is up"):
            self.world.targets.queue.down = NotNow(text) if text else None
        elif act == "runs hand on":
            for run in self._live():
                hands_on(self.world, run, json.loads(text))
        elif act == "runs bill":
            for run in self._live():
                run.billed = tuple(int(number) for number in text.split())
        elif act == "driver prints":
            last = list(self.world.targets.emr.runs.values())[-1]
            application = self.world.ports.settings.emr_application_id
            folder = f"logs/{last.name.partition('.')[0]}/applications/{application}/jobs/{last.id}/SPARK_DRIVER"
            self.world.payloads.logs[f"{folder}/stdout.gz"] = text + "\n"
        else:
            how = re.fullmatch(r"runs? (start|succeed|fail)s?( \w+)?", act)
            assert how is not None, f"expected a step, got {step!r}"
            state = {"start": "RUNNING", "succeed": "SUCCESS", "fail": "FAILED"}[how[1]]
            # A reason that begins with the exit code is one of the local cloud, which shortens what EMR says.
            details = text if text.startswith("exit code") else f"{EMR_FAILED}{text}"
            self._move(state, details if text else "", (how[2] or "").strip())

    def _live(self) -> list[EmrRun]:
        return [run for run in self.world.targets.emr.runs.values() if run.state in ("SUBMITTED", "RUNNING")]

    def _move(self, state: str, details: str, workflow: str) -> None:
        named = [run for run in self._live() if not workflow or run.request["workflow"].endswith(f".{workflow}")]
        assert named, f"expected an active run for {state}, got none"
        for run in named:
            self.world.emr_says(run.id, state, details)


def _agreed(printed: str, reported: str) -> str:
    """What the page says, if only the lines that it leaves out differ from what was printed; else what was printed."""
    left_out = re.escape(reported).replace(re.escape("...\n"), r"(?:.*\n)*?")
    return reported if re.fullmatch(left_out, printed) else printed


class InProcess:
    """Requests of the client, answered by the routes of the service in this process."""

    def __init__(self) -> None:
        from app import app

        self._client = ChaliceClient(app)

    def send(self, method: str, url: str, headers: Mapping[str, str], content: bytes | None) -> Reply:
        # The log and the metrics of the service go where those of a Lambda go: not to the terminal.
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="IAMAuthorizer is not a supported in local mode")
            path = url.removeprefix(ADDRESS)
            answer = self._client.http.request(method, path, headers=dict(headers), body=content or b"")
        return Reply(answer.status_code, {k.lower(): v for k, v in answer.headers.items()}, answer.body)


class Bucket:
    """S3 for `sluice upload`: an object is put, and its notification arrives."""

    def __init__(self, world: World) -> None:
        self._world = world

    def put_object(self, Bucket: str, Key: str, Body: Any) -> None:
        content = Body.read()
        self._world.upload(Key, Bucket, len(content), text=content)


@contextlib.contextmanager
def session(folder: Path) -> Iterator[Session]:
    """A reader on a new installation. The environment and the clock are those of the page until the end."""
    world, numbers = _installation(), count(1)
    client = Client(ADDRESS, InProcess())
    with pytest.MonkeyPatch.context() as patch:
        for name in ("SLUICE_NAMESPACE", "FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS", "SLUICE_API_URL"):
            patch.delenv(name, raising=False)
        patch.setenv("COLUMNS", WIDTH)
        for route in ROUTES:
            route.handler()  # imports its module, which a first request would do too late
        for module in [each for name, each in sys.modules.items() if name.startswith("chalicelib.web.")]:
            for name, value in (("ports", lambda: world.ports), ("caller", lambda request: USER)):
                if hasattr(module, name):
                    patch.setattr(module, name, value)
        patch.setattr(Client, "from_environment", lambda: client)
        patch.setattr(frame, "now", lambda: datetime.fromtimestamp(world.clock.now() / 1000, UTC))
        patch.setattr(upload, "_s3", lambda: Bucket(world))
        for module in (uuid, runs):
            patch.setattr(module, "uuid4", lambda: uuid.UUID(int=next(numbers)))
        yield Session(world, folder)


def _installation() -> World:
    """A new installation, whose buckets have the names of the pages."""
    world = World()
    buckets = {"lake_bucket": "sluice-lake", "control_bucket": "sluice-control"}
    world.ports = replace(world.ports, settings=replace(world.ports.settings, **buckets))
    world.payloads.context_uri = lambda run_id: f"s3://sluice-control/context/{run_id}.json"
    return world


def _instant(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def main(pages: list[str]) -> None:
    for page in pages:
        with tempfile.TemporaryDirectory() as folder, session(Path(folder)) as reader:
            path = ROOT / page
            path.write_text(reader.played(path.read_text()))


if __name__ == "__main__":
    os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
    main(sys.argv[1:])
