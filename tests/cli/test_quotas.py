"""`sluice quotas`: the quotas of a namespace, and what it uses (O9)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi

PATH = "/v1/namespaces/demo/quotas"
VIEW = {
    "name": "demo", "kind": "quotas", "version": 2, "schedules": 500,
    "effective": {"schedules": 500, "fires_per_second": 1000.0, "documents": 200_000, "requests_per_second": 500.0,
                  "waiting_jobs": 50_000},
    "used": {"schedules": 12, "fires_per_second": 0.25, "documents": 40, "waiting_jobs": 3},
}  # fmt: skip


def test_quotas_are_shown_with_their_use_and_origin(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", PATH, VIEW)
    result = sluice("quotas", "demo")
    lines = [line.split() for line in result.output.splitlines()]
    assert result.exit_code == 0
    assert ["schedules", "12", "500", "this", "namespace"] in lines
    assert ["fires_per_second", "0.25", "1000", "the", "installation"] in lines


@pytest.mark.parametrize(("version", "expected"), [(2, '"2"'), (0, None)])
def test_a_file_replaces_the_quotas_that_were_read(
    api: PlayedApi, sluice: Sluice, tmp_path: Path, version: int, expected: str | None
) -> None:
    """Version 0 is that of a namespace without quotas of its own."""
    file = tmp_path / "quotas.yaml"
    file.write_text("schedules: 800\n")
    api.play("GET", PATH, {**VIEW, "version": version})
    api.play("PUT", PATH, {"name": "demo", "kind": "quotas", "did": "replaced", "version": 3})
    result = sluice("quotas", "demo", "--file", str(file))
    assert result.exit_code == 0 and "replaced the quotas of demo" in result.output
    [request] = api.sent("PUT", PATH)
    assert request.body == {"schedules": 800}
    assert request.headers.get("if-match") == expected
