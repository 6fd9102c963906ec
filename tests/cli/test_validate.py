"""`validate`: the service's own checks, offline, with the file and line of each problem."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Sluice

GOOD = """\
namespace: demo
app: flights
datasets:
  raw: {bucket: lake, prefix: raw/, keys: [day], ready: {done_flag: _SUCCESS}}
workflows:
  clean: {target: {type: sqs, queue_url: "https://sqs.us-east-1.amazonaws.com/123456789012/clean"}}
schedules:
  clean:
    workflow: clean
    trigger: {type: partition, dataset: raw}
"""
BAD = """\
namespace: demo
app: flights
workflows:
  clean: {target: {type: sqs, queue_url: "https://sqs.us-east-1.amazonaws.com/123456789012/clean"}}
schedules:
  nightly:
    workflw: clean
    trigger:
      type: time
      expression: 0 0 30 2 *
  daily:
    workflow: claen
    trigger: {type: time, expression: 0 5 * * *}
"""


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The working folder of a user without an API and without credentials."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_valid_app_is_named_with_its_parts(sluice: Sluice, offline: Path) -> None:
    (offline / "app.yaml").write_text(GOOD)
    done = sluice("validate", "app.yaml")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == "app.yaml: demo.flights is valid  1 workflow, 1 schedule, 1 dataset\n"


def test_every_problem_of_a_file_has_its_line(sluice: Sluice, offline: Path) -> None:
    (offline / "app.yaml").write_text(BAD)
    done = sluice("validate", "app.yaml")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "error: unknown field 'workflw'\n  field: app.yaml, line 7: schedules.nightly.workflw" in done.stderr
    assert "app.yaml, line 10: schedules.nightly.trigger.expression" in done.stderr
    assert "2 problems" in done.stderr


def test_a_wrong_reference_names_the_one_that_was_meant(sluice: Sluice, offline: Path) -> None:
    (offline / "app.yaml").write_text(BAD.replace("workflw", "workflow").replace("0 0 30 2 *", "0 0 28 2 *"))
    done = sluice("validate", "app.yaml")
    assert done.exit_code == 2
    assert done.stderr == (
        "error: expected an existing workflow, got 'demo.flights.claen'\n"
        "  field: app.yaml, line 12: schedules.daily.workflow\n"
        "  hint: did you mean 'demo.flights.clean'?\n"
    )


def test_problems_of_all_files_are_reported_together(sluice: Sluice, offline: Path) -> None:
    (offline / "a.yaml").write_text(BAD)
    (offline / "b.yaml").write_text("namespace: demo\napp: weather\nschedules: [\n")
    (offline / "c.yaml").write_text("app: weather\n")
    done = sluice("validate", "a.yaml", "b.yaml", "c.yaml")
    assert done.exit_code == 2
    for place in ("a.yaml, line 7", "b.yaml", "c.yaml: namespace"):
        assert place in done.stderr


def test_files_may_refer_to_each_other_in_any_order(sluice: Sluice, offline: Path) -> None:
    (offline / "a.yaml").write_text(GOOD)
    follows = GOOD.replace("app: flights", "app: report").replace(
        "  raw: {bucket: lake, prefix: raw/", "  out: {bucket: lake, prefix: out/"
    )
    (offline / "b.yaml").write_text(follows)
    done = sluice("validate", "b.yaml", "a.yaml")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.count("is valid") == 2


def test_what_another_app_may_define_is_left_to_the_api(sluice: Sluice, offline: Path) -> None:
    (offline / "app.yaml").write_text(GOOD.replace("dataset: raw}", "dataset: weather}"))
    done = sluice("validate", "app.yaml")
    assert done.exit_code == 0
    assert "not checked: app.yaml, line 10: schedules.clean.trigger" in done.stderr
    assert "expected an existing dataset, got 'demo.weather'" in done.stderr
    [item] = json.loads(sluice("validate", "app.yaml", "--json").stdout)["items"]
    assert (item["app"], item["unchecked"][0]["code"]) == ("demo.flights", "unknown_reference")


def test_a_placeholder_is_filled_or_reported(sluice: Sluice, offline: Path) -> None:
    (offline / "app.yaml").write_text(GOOD.replace("bucket: lake", 'bucket: "${bucket}"'))
    assert "add --set bucket=..." in sluice("validate", "app.yaml").stderr
    assert sluice("validate", "app.yaml", "--set", "bucket=lake").exit_code == 0


def test_placeholders_are_filled_from_files_of_values(sluice: Sluice, offline: Path) -> None:
    text = GOOD.replace("bucket: lake", 'bucket: "${bucket}"').replace("app: flights", "app: ${app}")
    (offline / "app.yaml").write_text(text)
    (offline / "all.yaml").write_text("bucket: 2026\napp: all\n")
    (offline / "test.json").write_text('{"app": "test", "unused": "x"}')
    both = ("--values", "all.yaml", "--values", "test.json")
    assert "demo.test is valid" in sluice("validate", "app.yaml", *both).stdout
    assert "demo.mine is valid" in sluice("validate", "app.yaml", *both, "--set", "app=mine").stdout
    assert sluice("validate", "app.yaml", "--values", "gone.yaml", "--set", "app=a").exit_code == 2


@pytest.mark.parametrize("value", ["1.50", "true", "[a]", "null"])
def test_a_value_that_is_no_text_is_refused_with_its_line(sluice: Sluice, offline: Path, value: str) -> None:
    (offline / "app.yaml").write_text(GOOD)
    (offline / "values.yaml").write_text(f"app: x\nbucket: {value}\n")
    done = sluice("validate", "app.yaml", "--values", "values.yaml")
    assert done.exit_code == 2
    assert "expected text or a whole number" in done.stderr
    assert "values.yaml, line 2: bucket" in done.stderr


def test_problems_as_json_go_to_stderr(sluice: Sluice, offline: Path) -> None:
    (offline / "app.yaml").write_text(BAD)
    done = sluice("validate", "app.yaml", "--json")
    assert (done.exit_code, done.stdout) == (2, "")
    error = json.loads(done.stderr)["error"]
    assert error["code"] == "wrong_usage" and len(error["problems"]) == 2


def test_without_the_extra_the_error_says_what_to_install(offline: Path) -> None:
    (offline / "app.yaml").write_text(GOOD)
    script = """
import sys
sys.argv[0] = "sluice"
sys.modules["aws_lambda_powertools"] = None
from sluice.cli import app
app()
"""
    command = [sys.executable, "-c", script, "validate", "app.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=offline)
    assert (done.returncode, done.stdout) == (2, "")
    assert "sluice.testing needs aws_lambda_powertools" in done.stderr
    assert "pip install 'sluice[testing]'; or let the API check the file: sluice apply --dry-run FILE" in done.stderr
