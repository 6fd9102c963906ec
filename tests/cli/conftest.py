"""The command line against a simulated API: `api` prepares the answers, `sluice` is the command."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import pytest
from typer.testing import CliRunner, Result

from sluice.cli import app
from tests.cli.played_api import KEY, REGION, SECRET, PlayedApi, playing


class Sluice(Protocol):
    def __call__(self, *args: str, input: str | None = None) -> Result: ...


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of a user on a terminal of 100 columns, independent of the developer's environment."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION", "SLUICE_API_URL", "SLUICE_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS", "SLUICE_TRACEBACK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_REGION", REGION)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[PlayedApi]:
    with playing() as api:
        monkeypatch.setenv("SLUICE_API_URL", api.url)
        yield api


@pytest.fixture
def sluice() -> Sluice:
    def run(*args: str, input: str | None = None) -> Result:
        return CliRunner().invoke(app, list(args), input=input, catch_exceptions=False)

    return run
