"""The page of the web console: its commands are run as they stand there, and print what the page says."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.played_api import KEY, REGION, SECRET, PlayedApi, playing
from tests.cli.terminal import heed_ctrl_c
from tests.docs.session import ROOT

TEXT = (ROOT / "docs" / "console.md").read_text()
((COMMANDS, PRINTED),) = re.findall(r"^```sh\n(.*?)^```\n```text\n(.*?)^```$", TEXT, flags=re.S | re.M)
OPENED = re.findall(r"`sluice (open [^`]*)`", TEXT)
RUN = "demo.flights.clean.mwpf8i2l.6562d4990586c37d8acd"
RUN_CLI = "from sluice.cli import app; app()"
DEFAULT_PORT = "8484"


@pytest.fixture
def port() -> str:
    """A free port: the default one may be in use on the machine of a reader who opens the console."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Variables as `.local/endpoints.env` sets them, for a played API with one schedule and one run. The browser is the
    program `true`."""
    with playing() as api:
        _fill(api)
        variables = {
            "SLUICE_API_URL": api.url,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": REGION,
            "NO_PROXY": "127.0.0.1",
            "XDG_RUNTIME_DIR": str(tmp_path),
            "BROWSER": "true",
            "PYTHONPATH": str(ROOT),
        }
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        yield {**kept, **variables}


def _fill(api: PlayedApi) -> None:
    api.play("GET", "/v1/whoami", {"arn": "arn:aws:iam::1:user/ada", "account": "1", "region": REGION, "stage": "dev"})
    api.play("GET", "/v1/namespaces/demo/apps/flights/schedules/clean", {"name": "demo.flights.clean"})
    api.play("GET", f"/v1/runs/{RUN}", {"run_id": RUN})


def command(words: str, port: str, *more: str) -> list[str]:
    program, *arguments = shlex.split(words)
    assert program == "sluice"
    return [sys.executable, "-c", RUN_CLI, *arguments, "--port", port, *more]


def test_the_console_page_shows_what_its_commands_do(port: str, environment: dict[str, str]) -> None:
    shell, serve = COMMANDS.splitlines()
    assert shell == "source .local/endpoints.env", "the environment of this test stands for it"
    wanted = PRINTED.replace(DEFAULT_PORT, port)
    console = subprocess.Popen(
        command(serve, port),
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=heed_ctrl_c,
    )
    try:
        assert console.stdout is not None
        assert "".join(console.stdout.readline() for _ in wanted.splitlines()) == wanted
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
            assert b"<!doctype html>" in answer.read().lower()
        views = [_opens(words, port, environment) for words in OPENED]
        assert views == ["/schedules/demo.flights.clean", f"/runs/{RUN}"]
    finally:
        console.send_signal(signal.SIGINT)
        output, _ = console.communicate(timeout=10)
    assert (console.returncode, output) == (0, "the console has ended\n")


def _opens(words: str, port: str, environment: dict[str, str]) -> str:
    """The view that `sluice open` opens in the console that runs."""
    given = command(f"sluice {words.replace('ID', RUN)}", port, "--no-open")
    done = subprocess.run(given, env=environment, capture_output=True, text=True, timeout=20, check=True)
    address, _, token = done.stdout.strip().partition("#token=")
    assert token
    return address.removeprefix(f"http://127.0.0.1:{port}")
