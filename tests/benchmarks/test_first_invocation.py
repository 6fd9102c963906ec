"""What the first invocation of each Lambda imports: a counted budget, because times differ between machines.

A child process for each handler reports its modules (`benchmarks/first_invocation.py`). All run at a time, once."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest

from benchmarks import cold_start
from benchmarks.machine import ROOT
from chalicelib import handlers

# The most modules of the service that a first invocation may import: the present number and a small margin. A larger
# number makes each cold start slower. Import what only some events need in the function that needs it.
BUDGETS: Final = {"api": 294, "tick": 230, "objects": 274, "check": 306, "run_state": 277}
# Packages that no event needs, and those that none of the measured events needs.
ROUTES = (
    *("chalicelib.web", "chalicelib.flow.views", "chalicelib.flow.definitions.store", "chalicelib.core.quotas"),
    *("chalicelib.flow.definitions.references", "chalicelib.core.access.roles"),
)
NEVER = ("chalicelib.flow.deploy", "chalicelib.flow.history", "chalicelib.web.answers", "chalicelib.web.bodies", "yaml")
OF_OTHER_REFS = (
    *("chalicelib.flow.backfills", "chalicelib.flow.dags", "chalicelib.flow.schedules"),
    *("chalicelib.flow.ingest.objects", "chalicelib.core.definitions.dag", "chalicelib.core.backfills.reprocess"),
)
UNNEEDED: Final = {
    "api": NEVER,
    "tick": (*NEVER, *ROUTES, *OF_OTHER_REFS, "chalicelib.flow.jobs", "chalicelib.flow.runs"),
    "objects": (*NEVER, *ROUTES, "chalicelib.flow.backfills", "chalicelib.flow.dags", "chalicelib.flow.jobs"),
    "check": (*NEVER, *ROUTES, *OF_OTHER_REFS),
    "run_state": (*NEVER, *ROUTES, *OF_OTHER_REFS, "chalicelib.flow.jobs"),
}


@pytest.fixture(scope="module")
def imported() -> dict[str, list[str]]:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(cold_start.HANDLERS, pool.map(cold_start.first_invocation, cold_start.HANDLERS), strict=True))


@pytest.mark.parametrize("handler", cold_start.HANDLERS)
def test_a_first_invocation_imports_few_modules(imported: dict[str, list[str]], handler: str) -> None:
    own = [name for name in imported[handler] if name.split(".")[0] == "chalicelib"]
    assert len(own) <= BUDGETS[handler], f"{handler} imports more of the service than before: {sorted(own)}"


@pytest.mark.parametrize("handler", cold_start.HANDLERS)
def test_a_first_invocation_imports_nothing_unneeded(imported: dict[str, list[str]], handler: str) -> None:
    prefixes = tuple(f"{package}." for package in UNNEEDED[handler])
    assert [name for name in imported[handler] if f"{name}.".startswith(prefixes)] == []


@pytest.mark.parametrize(
    ("handler", "served"),
    [("app.app", True), ("app.check", False), ("app.run_state", False), ("wrapper.handler", True), (None, True)],
)
def test_only_a_lambda_of_events_has_no_routes(
    monkeypatch: pytest.MonkeyPatch, handler: str | None, served: bool
) -> None:
    if handler is None:
        monkeypatch.delenv("_HANDLER", raising=False)
    else:
        monkeypatch.setenv("_HANDLER", handler)
    assert handlers.serves_routes() is served


def test_imports_of_steps_start_few_garbage_collections() -> None:
    code = """
import app, gc
before = gc.get_stats()[0]["collections"]
import chalicelib.aws.tables.runs, chalicelib.flow.jobs.check, chalicelib.flow.system.dispatch
print(gc.get_stats()[0]["collections"] - before)"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(done.stdout) <= 12
