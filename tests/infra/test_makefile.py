"""The commands of a checkout: they exist, they explain themselves, and CI runs the same checks as a developer."""

import importlib.util
import os
import subprocess
from pathlib import Path

from infra import generate

ROOT = Path(__file__).parents[2]
TARGETS = (
    "help venv demo test test-long worlds lint generate mutants up down reset package deploy undeploy bench example "
    "docs"
).split()


def make(*arguments: str) -> str:
    """The output of `make`. An inner make must not get the outer one's flags."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(["make", *arguments], cwd=ROOT, capture_output=True, text=True, env=environment, check=True)
    return done.stdout


def test_help_lists_every_target() -> None:
    listed = [line.split()[1] for line in make("help").splitlines()]
    assert set(TARGETS) <= set(listed)


def test_make_test_is_lint_types_and_tests() -> None:
    commands = make("--dry-run", "test")
    parts = ("ruff check", "ruff format --check", "mypy --strict", "infra.generate --check", "pytest -m")
    order = [commands.index(part) for part in parts]
    assert order == sorted(order)


def test_each_generated_file_exists_and_so_does_what_writes_it() -> None:
    for name, command in generate.GENERATED:
        assert (ROOT / name).is_file()
        assert importlib.util.find_spec(command.split()[0]) is not None


def test_ci_runs_make_test_and_nothing_else() -> None:
    commands = [line for line in (ROOT / ".ci/run").read_text().splitlines() if line and not line.startswith("#")]
    assert commands == ["set -eu", 'cd "$(dirname "$0")/.."', "exec make test"]
    assert os.access(ROOT / ".ci/run", os.X_OK)
