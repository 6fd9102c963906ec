"""The API of this checkout behind HTTP, at a fixed instant, and the command line in front of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from chalicelib.core.instants import Instant, parse_instant
from sluice.cli import app
from tests.web.conftest import Api
from tests.workers.served import Served, serving
from tests.wrong_inputs.pages import Example

NOW = "2026-11-22T12:00:00Z"
STANDING = Path(__file__).parent / "standing.yaml"
ENVIRONMENT = {
    "AWS_REGION": "us-east-1",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
    "NO_PROXY": "127.0.0.1",
    "COLUMNS": "100",
}
OTHERS = ("SLUICE_NAMESPACE", "SLUICE_TRACEBACK", "FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS")


class FixedClock:
    """The clock of the API: it stands at `NOW`, so that answers with instants are the same at each run."""

    def now(self) -> Instant:
        return parse_instant(NOW)

    def wait_until(self, instant: Instant) -> None:
        assert instant <= self.now(), f"expected no step that waits, got one until {instant}"


@contextmanager
def standing() -> Iterator[Served]:
    """The API with the app of ``standing.yaml``."""
    with serving(FixedClock()) as served:
        api: Api = served.api
        api.put("/v1/namespaces/demo/apps/flights", yaml.safe_load(STANDING.read_text()))
        yield served


def answer(served: Served, example: Example, folder: Path) -> str:
    """What the command prints on both streams, and its exit code, as a page shows it."""
    for name, content in example.files.items():
        (folder / name).write_text(content)
    with pytest.MonkeyPatch.context() as patch:
        for name in OTHERS:
            patch.delenv(name, raising=False)
        for name, value in {**ENVIRONMENT, "SLUICE_API_URL": served.url, **example.settings}.items():
            patch.setenv(name, value)
        patch.chdir(folder)
        done = CliRunner().invoke(app, example.arguments, catch_exceptions=False)
    return f"{done.stdout}{done.stderr}exit code {done.exit_code}\n".replace(served.url, "http://api.example")
