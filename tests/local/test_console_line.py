"""The line that opens the web console, at the end of `make up` and `make demo`."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from examples.flights import demo, watch
from infra.local import cloud
from infra.local.console_line import console_line
from infra.local.endpoints import Endpoints

OUTPUTS = dict.fromkeys(("ApiUrl", "LakeBucket", "ControlBucket", "CatalogTable", "JobsTable", "RunsTable"), "value")


def test_the_line_opens_the_console_at_a_namespace(tmp_path: Path) -> None:
    (tmp_path / "index.html").touch()
    assert console_line("demo", tmp_path) == "source .local/endpoints.env && .venv/bin/sluice console -n demo"


def test_the_line_builds_a_page_that_is_missing(tmp_path: Path) -> None:
    line = console_line(None, tmp_path)
    assert line == "source .local/endpoints.env && make console && .venv/bin/sluice console"
    assert subprocess.run(["bash", "-nc", line], check=False).returncode == 0


def test_make_up_ends_with_the_line_of_the_console(capsys: pytest.CaptureFixture[str]) -> None:
    up = cloud.Up(Endpoints("http://a", "http://b", "key", "secret", OUTPUTS), True, "created", True)
    cloud._say_up(Console(width=120), up, 1.0)
    assert capsys.readouterr().out.splitlines()[-1].startswith(console_line())


def test_make_demo_ends_with_the_line_before_its_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Played(demo.Demo):
        """A demo that has ended: no cloud, no runs."""

        def __init__(self, endpoints: Any, steps: watch.Steps, scene: demo.Scene) -> None:
            self.steps, self.scene, self.name = steps, scene, "demo-1"

        def deploy(self) -> None: ...
        def review(self) -> None: ...
        def upload(self) -> None: ...
        def stop(self) -> None: ...
        def watch(self) -> None: ...
        def runs(self) -> list[dict[str, Any]]:
            return []

        why_waiting = runs

        def result(self) -> tuple[list[str], list[list[str]]]:
            return [name for name, _, _ in demo.SHOWN], []

    monkeypatch.setattr(demo, "Demo", Played)
    monkeypatch.setattr(cloud, "ensure_up", lambda: Endpoints("http://a", "http://b", "k", "s", OUTPUTS))
    assert demo.main() == 0
    *_, line, answer = capsys.readouterr().out.splitlines()
    assert line.endswith(console_line("demo-1")) and answer.startswith('{"demo": "ok"')
