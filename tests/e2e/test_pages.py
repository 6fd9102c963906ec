"""README, tutorial and `sluice init` as a reader follows them: each command in a shell, on the local cloud."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.local.endpoints import Endpoints
from tests.docs.blocks import commands

pytestmark = [pytest.mark.cloud, pytest.mark.spark, pytest.mark.long]

ROOT = Path(__file__).parents[2]
PART = re.compile(
    r"^<!-- (?P<act>file|shell|then)(?:: (?P<what>.+?))? -->\n|^```(?P<language>\w*)\n(?P<text>.*?)^```\n", re.S | re.M
)
ID = re.compile(r"[\w.-]+\.m[0-9a-z]{7}\.[0-9a-f]{20}|\b[0-9a-f]{16}\b")
STATE = re.compile(r"\b(?:SUCCEEDED|FAILED|RETRYING|DONE)\b(?: \d/\d)?")
PATIENCE = 600  # seconds for one run: Spark needs ten of them on an idle machine


class Reader:
    """A reader of one page, with a shell of its own. Ids that the page shows stand for those that the shell shows."""

    def __init__(self, endpoints: Endpoints, folder: Path, namespace: str) -> None:
        self.folder, self.namespace, self.lake = folder, namespace, endpoints.outputs["LakeBucket"]
        self.environment = {**os.environ, **endpoints.environment(), "COLUMNS": "200"}
        self.environment["PATH"] = f"{Path(sys.executable).parent}:{self.environment['PATH']}"
        self.ids: dict[str, str] = {}
        self._variables: list[str] = []
        self._ended: set[tuple[str, int]] = set()
        (folder / "job_library").symlink_to(ROOT / "job_library")

    def shell(self, script: str) -> str:
        """What a script prints on stdout. Fails with all that it prints if a command fails."""
        command = ["bash", "-euc", script]
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout

    def follow(self, page: str) -> Iterator[tuple[str, str, str]]:
        """The last command of each block, what the page says that it prints, and what it prints."""
        file = ""
        parts = list(PART.finditer(page))
        for part, following in zip(parts, [*parts[1:], None], strict=True):
            if part["act"] == "file":
                file = part["what"]
            elif part["act"] == "shell":
                file = "|"
            elif part["act"] == "then":
                for _ in re.findall(r"runs (?:succeed|fail)", part["what"]):
                    self.wait()
            elif file == "|":
                self.shell(part["text"])
                file = ""
            elif part["language"] == "sh" and (typed := commands(part["text"])):
                for command in typed[:-1]:
                    self.types(command, "")
                answer = following["text"] if following and following["language"] == "text" else ""
                yield typed[-1], answer, self.types(typed[-1], answer)
            elif file:
                (self.folder / file).parent.mkdir(parents=True, exist_ok=True)
                (self.folder / file).write_text(part["text"])
                file = ""

    def types(self, command: str, reported: str) -> str:
        command = ID.sub(lambda found: self.ids[found[0]], command)
        script = "\n".join([*self._variables, command])
        if re.match(r"\w+=", command):
            name = command.partition("=")[0]
            self._variables.append(f"{name}={self.shell(f'{script}; echo ${name}').strip()}")
            return ""
        printed = self.shell(script)
        for shown, real in zip(ID.findall(reported), ID.findall(printed), strict=False):
            self.ids.setdefault(shown, real)
        return printed

    def wait(self) -> None:
        """Until one more attempt has ended, which the page has not waited for. Starts of DAGs do not count."""
        deadline = time.monotonic() + PATIENCE
        while True:
            listed = json.loads(self.shell(f"sluice runs list -n {self.namespace} --all --limit 0 --json"))["items"]
            over = [run for run in listed if run["state"] not in ("STARTING", "RUNNING")]
            ended = [(run["run_id"], run["attempt"]) for run in over if not run["schedule"].endswith("~")]
            if new := [each for each in ended if each not in self._ended]:
                self._ended.add(new[-1])
                return
            assert time.monotonic() < deadline, f"expected another end within {PATIENCE} s, got {listed}"
            time.sleep(1)


def page_of(path: str, names: dict[str, str]) -> str:
    """A page with names of its own, because an installation knows a day of data once."""
    text = (ROOT / path).read_text()
    for name, own in names.items():
        text = text.replace(name, own)
    return text


@pytest.fixture
def own() -> str:
    return f"page{uuid.uuid4().hex[:6]}"


def results(printed: str) -> list[str]:
    """The lines of a log that the job wrote, without the seconds that it took."""
    lines = re.findall(r"^(?:\{.*\}|orders of .*|revenue: .*)$", printed, flags=re.M)
    return [re.sub(r', "seconds": [\d.]+', "", line) for line in lines]


def states(command: str, printed: str) -> list[str]:
    """The states of runs and backfills; none for a log, whose page begins with what stderr says."""
    return [] if " logs " in command else STATE.findall(printed)


def compared(reader: Reader, page: str) -> int:
    """Follow a page, and compare the states that its lists and DAG runs have, and what its jobs do, with the page.
    Returns of how many commands."""
    lists = 0
    for command, answer, printed in reader.follow(page):
        if any(word in command for word in (" logs ", " list ", " dags show ")):
            shown = answer.replace("s3://sluice-lake/", f"s3://{reader.lake}/")
            until = time.monotonic() + 60  # a log, and the end of a backfill, follow the end of a run
            while results(printed) != results(shown) or states(command, printed) != states(command, shown):
                assert time.monotonic() < until, f"{command}\n{printed}"
                printed = reader.types(command, answer)
            lists += 1
    return lists


def test_the_app_of_the_readme_runs_as_it_is_pasted(cloud: Endpoints, tmp_path: Path, own: str) -> None:
    reader = Reader(cloud, tmp_path, own)
    assert compared(reader, page_of("README.md", {"hello": own})) == 2


def test_every_step_of_the_tutorial_does_what_the_page_says(cloud: Endpoints, tmp_path: Path, own: str) -> None:
    reader = Reader(cloud, tmp_path, own)
    folders = {f"${{lake}}{name}": f"${{lake}}{own}/{name}" for name in ("revenue", "stage", "published")}
    assert compared(reader, page_of("docs/tutorial.md", {"shop": own, "raw/orders": f"{own}/raw", **folders})) == 10


def test_the_commands_that_init_prints_run_its_app(cloud: Endpoints, tmp_path: Path, own: str) -> None:
    reader = Reader(cloud, tmp_path, own)
    commands = re.findall(r"^  (.*)$", reader.shell(f"sluice init first -n {own}"), flags=re.M)
    assert [command.split()[:2] for command in commands[:3]] == [
        ["cd", "first"],
        ["sluice", "apply"],
        ["sluice", "upload"],
    ]
    reader.shell("\n".join(commands))
    for _ in range(3):
        reader.wait()
    listed = json.loads(reader.shell(f"sluice runs list -n {own} --json"))["items"]
    assert sorted((run["correlation"]["day"], run["state"]) for run in listed) == [
        (f"2026-01-0{day}", "SUCCEEDED") for day in (5, 6, 7)
    ]
