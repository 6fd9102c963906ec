"""A refused document: every problem with its file and line, and how to fix it."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Sluice
from tests.cli.played_api import Played, PlayedApi

APP = """\
namespace: demo
app: flights
schedules:
  nightly:
    workflw: clean
    trigger:
      type: time
      expression: 0 0 30 2 *
"""
UNKNOWN = {
    "code": "unknown_field",
    "message": "unknown field 'workflw'",
    "field": "schedules.nightly.workflw",
    "hint": "did you mean 'workflow'?",
}
NEVER = {
    "code": "invalid",
    "message": "expected a cron expression that some date matches, got '0 0 30 2 *'",
    "field": "schedules.nightly.trigger.expression",
    "hint": None,
}


def apply(api: PlayedApi, sluice: Sluice, folder: Path, error: object) -> str:
    path = folder / "app.yaml"
    path.write_text(APP)
    api.play("GET", "/v1/namespaces/demo", {"name": "demo"})
    api.play("PUT", "/v1/namespaces/demo/apps/flights", Played(400, {"error": error}))
    done = sluice("apply", str(path))
    assert (done.exit_code, done.stdout) == (1, "")
    return done.stderr.replace(str(path), "app.yaml")


def test_one_problem_is_told_with_its_line(api: PlayedApi, sluice: Sluice, tmp_path: Path) -> None:
    assert apply(api, sluice, tmp_path, UNKNOWN) == (
        "error: unknown field 'workflw'\n"
        "  field: app.yaml, line 5: schedules.nightly.workflw\n"
        "  hint: did you mean 'workflow'?\n"
    )


def test_all_problems_are_told_with_their_lines(api: PlayedApi, sluice: Sluice, tmp_path: Path) -> None:
    error = {**UNKNOWN, "message": "unknown field 'workflw' (and 1 more)", "problems": [UNKNOWN, NEVER]}
    assert apply(api, sluice, tmp_path, error) == (
        "error: unknown field 'workflw'\n"
        "  field: app.yaml, line 5: schedules.nightly.workflw\n"
        "  hint: did you mean 'workflow'?\n"
        "error: expected a cron expression that some date matches, got '0 0 30 2 *'\n"
        "  field: app.yaml, line 8: schedules.nightly.trigger.expression\n"
        "2 problems\n"
    )
