"""What a command imports: nothing that it does not use. `make bench ONLY=startup` measures the time."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import typer

from sluice.cli import ENTRIES
from sluice.cli.lazy import Entry, Quick
from sluice.cli.reprocess import WithoutBegin
from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi
from tests.cli.recorded import CLEAN, SCHEDULES

SCRIPT = """
import sys
sys.argv[0] = "sluice"
from sluice.cli import app
try:
    app()
finally:
    print(*sys.modules, sep="\\n", file=sys.stderr)
"""
SLOW = {"botocore", "yaml", "chalicelib", "pydantic", "urllib3", "boto3"}


def imported(*args: str) -> set[str]:
    """The modules that a command imports, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", SCRIPT, *args], capture_output=True, text=True, check=False)
    return set(done.stderr.splitlines())


def test_the_import_of_the_command_line_loads_no_slow_module() -> None:
    code = "import json, sys, sluice.cli; print(json.dumps([*sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not SLOW & set(json.loads(done.stdout))


@pytest.mark.parametrize("args", [["--help"], ["why"], ["why", "--help"], ["run", "--help"], ["aply"]])
def test_help_and_wrong_usage_load_no_slow_module(args: list[str]) -> None:
    modules = imported(*args)
    assert "sluice.cli.frame" in modules
    assert not modules & {*SLOW, "typer.rich_utils", "rich.markdown", "rich.traceback"}


def test_with_keys_in_the_environment_no_botocore_is_loaded(api: PlayedApi) -> None:
    api.play("GET", f"{SCHEDULES}/clean/why", {"schedule": CLEAN, "state": "enabled", "why": "waits", "jobs": []})
    modules = imported("why", "schedule", CLEAN)
    assert len(api.requests) == 1
    assert not modules & SLOW


def test_a_command_imports_no_other_command() -> None:
    loaded = {name for name in imported("--help") if name.startswith("sluice.cli.")}
    assert loaded == {f"sluice.cli.{name}" for name in ("frame", "lazy", "values", "help")}


def test_the_collector_has_nothing_to_do_at_the_exit() -> None:
    """Handlers run in reverse order: this one after that of the command line."""
    code = "import atexit, gc; atexit.register(lambda: print(gc.get_freeze_count(), len(gc.get_objects())))"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; import sluice.cli"], capture_output=True, text=True, check=True
    )
    frozen, left = map(int, done.stdout.split())
    assert frozen > 10_000 > left


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_the_list_of_commands_has_the_text_of_each(entry: Entry) -> None:
    command = entry.load()
    first = " ".join(command.help.split("\n\n")[0].split())
    assert (entry.help, entry.name) == (first, entry.name)


def test_a_number_that_is_wrong_is_refused_as_all_input_is(sluice: Sluice) -> None:
    done = sluice("runs", "list", "-n", "demo", "--limit", "ten")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("error: expected a whole number, got 'ten'")


def test_typer_is_replaced_only_where_values_are_plain() -> None:
    [upload] = [entry.load() for entry in ENTRIES if entry.name == "upload"]
    context = upload.make_context("upload", ["a.py", "--app", "demo.x"])
    assert [str(path) for path in context.params["files"]] == ["a.py"]
    assert not isinstance(context.params["files"][0], str)
    assert isinstance(upload, typer.core.TyperCommand)


def test_a_group_with_a_class_of_its_own_keeps_it() -> None:
    [reprocess] = [entry.load() for entry in ENTRIES if entry.name == "reprocess"]
    assert isinstance(reprocess, WithoutBegin) and isinstance(reprocess, Quick)
