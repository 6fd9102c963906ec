"""The frame of all commands: help, colours, wrong usage, and exit codes."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import sluice as package
from tests.cli.conftest import Sluice
from tests.cli.played_api import Played, PlayedApi
from tests.cli.recorded import CLEAN, SCHEDULES, run, schedule

COMMANDS = [
    *["init", "apply", "convert", "validate", "get", "describe", "delete", "message", "upload"],
    *["enable", "disable", "pause", "resume", "run", "skip", "unskip", "event"],
    *["why", "top", "preview", "dry-run", "jobs", "runs", "logs", "records", "versions", "datasets", "buckets"],
]

MESSAGES = [f"message {word}" for word in ("put", "get", "list", "delete")]


def test_help_lists_every_command_in_its_panel_and_has_examples(sluice: Sluice) -> None:
    text = sluice("--help").stdout
    places = [text.index(f"│ {command} ") for command in COMMANDS]
    assert places == sorted(places)
    assert text.index(" Define ") < text.index(" Act ") < text.index(" Look ") < text.index("Examples")
    assert "sluice run demo.flights.clean --wait" in text
    assert "0 success, 1 error from the server, 2 wrong usage, 3 server not reachable" in text
    assert "completion" not in text


@pytest.mark.parametrize(
    "command", [*COMMANDS, "runs list", "runs show", "why job", "why run", "why schedule", *MESSAGES]
)
def test_every_command_has_help_and_json(sluice: Sluice, command: str) -> None:
    shown = sluice(*command.split(), "-h")
    assert shown.exit_code == 0
    assert "--json" in shown.stdout or command in ("runs", "why", "message", "datasets", "jobs")


def test_version_is_printed(sluice: Sluice) -> None:
    assert sluice("--version").stdout.startswith("sluice")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("aply", "x"), "did you mean 'apply'?"),
        (("run", CLEAN, "--fast"), "expected an option of sluice run, got '--fast'"),
        (("run",), "expected the argument NAME, got nothing"),
        (("get", "shedules"), "expected one of namespaces, apps"),
        (("get", "shedules"), "hint: did you mean schedules?"),
        (("get", "schedule", "clean"), "expected a schedule as namespace.app.schedule, got 'clean'"),
        (("get", "schedule", "clean"), "add --namespace ... --app ..."),
        (("get", "dataset", "a.b.c"), "expected a dataset as namespace.dataset, got 'a.b.c'"),
        (("get", "schedule", "demo..clean"), "got 'demo..clean'"),
        (("get", "apps"), "expected a namespace, got none"),
        (("jobs",), "expected a namespace, got none"),
        (("run", CLEAN, "-p", "day"), "expected key=value, got 'day'"),
        (("runs", "list", "-n", "demo", "--day", "yesterday"), "expected a day such as"),
        (("apply", "missing.yaml"), "expected a readable file, got missing.yaml"),
        (("runs", "list", "-n", "demo", "--limit", "-1"), "--limit"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_sends_nothing(
    api: PlayedApi, sluice: Sluice, args: tuple[str, ...], words: str
) -> None:
    done = sluice(*args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert words.lower() in done.stderr.lower()
    assert not api.requests


def test_a_group_without_a_command_shows_its_help(sluice: Sluice) -> None:
    for args in ([], ["why"], ["runs"]):
        shown = sluice(*args)
        assert shown.exit_code == 2
        assert "Usage: sluice" in shown.stdout
        assert "error" not in shown.stderr


def test_without_an_address_the_error_says_where_to_get_one(sluice: Sluice) -> None:
    done = sluice("get", "namespaces")
    assert done.exit_code == 2
    assert "expected SLUICE_API_URL in the environment, got nothing" in done.stderr
    assert "hint: source .local/endpoints.env" in done.stderr


def test_an_api_refusal_exits_with_1(api: PlayedApi, sluice: Sluice) -> None:
    api.refuse("GET", f"{SCHEDULES}/clean", 404, "not_found", f"no schedule named '{CLEAN}'")
    done = sluice("get", "schedule", CLEAN)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == f"error: no schedule named '{CLEAN}'\n"


def test_a_wrong_signature_is_exit_code_1(api: PlayedApi, sluice: Sluice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "us-west-2")
    done = sluice("get", "namespaces")
    assert done.exit_code == 1
    assert "the signature was refused" in done.stderr
    assert "check the AWS credentials and the region" in done.stderr


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "http://sluice.invalid"])
def test_an_unreachable_api_is_exit_code_3(sluice: Sluice, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("SLUICE_API_URL", url)
    monkeypatch.setenv("NO_PROXY", "*")
    done = sluice("get", "namespaces")
    assert done.exit_code == 3
    assert f"error: expected an API at {url}, got no connection" in done.stderr


def test_an_internal_error_is_shown_without_a_traceback(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", "/v1/namespaces", {"items": [{"no": "name"}], "next_cursor": None})
    done = sluice("get", "namespaces")
    assert done.exit_code == 1
    assert "Traceback" not in done.stderr
    assert "SLUICE_TRACEBACK=1" in done.stderr


def test_errors_leave_stdout_clean_for_machines(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", "/v1/namespaces", Played(400, {"error": {"code": "bad_cursor", "message": "expected a cursor"}}))
    done = sluice("get", "namespaces", "--json")
    assert (done.exit_code, done.stdout) == (1, "")


@pytest.mark.parametrize(
    ("args", "code", "error"),
    [
        (("get", "schedule", CLEAN), 1, {"code": "in_use", "message": "no", "field": "NAME", "hint": "wait"}),
        (
            ("get", "schedules"),
            2,
            {
                "code": "wrong_usage",
                "message": "expected a namespace, got none",
                "field": "--namespace",
                "hint": "add -n NAME, or set SLUICE_NAMESPACE; sluice get namespaces lists the names",
            },
        ),
        (
            ("run",),
            2,
            {
                "code": "wrong_usage",
                "message": "expected the argument NAME, got nothing",
                "field": "NAME",
                "hint": "sluice run --help",
            },
        ),
    ],
)
def test_with_json_an_error_is_json_on_stderr(
    api: PlayedApi, sluice: Sluice, args: tuple[str, ...], code: int, error: dict[str, str | None]
) -> None:
    api.refuse("GET", f"{SCHEDULES}/clean", 409, "in_use", "no", field="NAME", hint="wait")
    done = sluice(*args, "--json")
    assert (done.exit_code, done.stdout) == (code, "")
    assert json.loads(done.stderr) == {"error": error}


def test_a_process_prints_its_errors_as_json() -> None:
    script = "import sys; sys.argv[0] = 'sluice'; from sluice.cli import app; app()"
    command = [sys.executable, "-c", script, "get", "zebras", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, json.loads(done.stderr)["error"]["field"]) == (2, "KIND")


def test_an_error_beside_the_arguments_of_others_is_text(api: PlayedApi, sluice: Sluice) -> None:
    done = sluice("worker", "run", "--pool", "etl", "--", "job", "--json")
    assert (done.exit_code, done.stderr.startswith("error: expected a namespace")) == (2, True)


def test_states_have_colors_on_a_terminal_only(api: PlayedApi, sluice: Sluice, monkeypatch: pytest.MonkeyPatch) -> None:
    api.lists["/v1/namespaces/demo/runs"] = [run(state="FAILED")]
    assert "\x1b[" not in sluice("runs", "list", "-n", "demo").stdout
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b[1;31mFAILED\x1b[0m" in sluice("runs", "list", "-n", "demo").stdout
    monkeypatch.setenv("NO_COLOR", "1")
    assert "31m" not in sluice("runs", "list", "-n", "demo").stdout


def test_texts_of_the_api_are_not_read_as_markup(api: PlayedApi, sluice: Sluice) -> None:
    api.lists["/v1/namespaces/demo/runs"] = [run(state="FAILED", reason="[bold]index[0] :boom: [/x]")]
    assert "[bold]index[0] :boom: [/x]" in sluice("runs", "list", "-n", "demo").stdout


def test_in_a_pipe_a_row_is_one_text_row(api: PlayedApi, sluice: Sluice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS")
    long = "at '0 5 * * *' in America/New_York and " * 20
    api.lists[SCHEDULES] = [schedule() | {"triggered_by": long.strip()}]
    lines = sluice("get", "schedules", "-n", "demo", "-a", "flights").stdout.splitlines()
    assert len(lines) == 2
    assert lines[1].endswith(long.strip())


def test_on_a_narrow_terminal_nothing_to_copy_is_truncated(
    api: PlayedApi, sluice: Sluice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    name = "demo.flights." + "a" * 60
    api.lists["/v1/namespaces/demo/runs"] = [run(f"{name}.m3k2j9x1.0123456789abcdef0123", state="FAILED")]
    assert f"{name}.m3k2j9x1.0123456789abcdef0123" in sluice("runs", "list", "-n", "demo").stdout


def test_the_package_never_imports_the_service() -> None:
    """It is installed without the service, so it may only use its own dependencies. pytest loads its plugin."""
    root = Path(str(package.__file__)).parent
    allowed = {"botocore", "yaml", "rich", "typer", "tzdata", "sluice"} | set(sys.stdlib_module_names)
    service = {file for name in ("testing", "operations") for file in (root / name).rglob("*.py")}
    for file in set(root.rglob("*.py")) - {root / "pytest_plugin.py", *service}:
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            assert {name.partition(".")[0] for name in names} <= allowed, file


def test_a_help_shows_brackets_and_no_backticks(sluice: Sluice) -> None:
    """Square brackets are no markup: a user copies them. Backticks are how docstrings mark a command."""
    assert "load[failed]" in " ".join(sluice("dags", "rerun", "--help").stdout.split())
    for words in ([], ["dags"], ["runs"], ["pools"], ["policies"], ["why"], ["datasets"]):
        assert "``" not in sluice(*words, "--help").stdout, words
