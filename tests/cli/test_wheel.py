"""The wheel that `pip install .` makes: the client, typed, with only what a client needs."""

from __future__ import annotations

import ast
import email
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ("sluice", "chalicelib", "pyproject.toml", "setup.py", "MANIFEST.in", "LICENSE", "README.md")
BUILD_OF_CONSOLE = ("index.html", "favicon.svg", "assets/index-1a2b.js", ".vite/manifest.json")  # of make console
CLIENT = {"botocore", "pyyaml", "rich", "typer", "tzdata"}
MODULES = {"botocore": "botocore", "yaml": "pyyaml", "rich": "rich", "typer": "typer", "tzdata": "tzdata"}
# The plugin of pytest is loaded by pytest alone; `sluice.testing` and `sluice.operations` need the extra ``testing``.
OF_TESTS = ("sluice/testing/", "sluice/operations/", "sluice/pytest_plugin.py")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source, built = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("built")
    for name in SOURCE:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif (ROOT / name).exists():
            shutil.copy(ROOT / name, source / name)
    static = source / "sluice" / "console" / "static"
    shutil.rmtree(static, ignore_errors=True)
    for name in BUILD_OF_CONSOLE:
        (static / name).parent.mkdir(parents=True, exist_ok=True)
        (static / name).write_text("built")
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", str(built), str(source)]
    subprocess.run(command, check=True)
    [made] = built.glob("sluice-*.whl")
    return made


@pytest.fixture(scope="module")
def names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


@pytest.fixture(scope="module")
def required(wheel: Path) -> dict[str, set[str]]:
    """The distributions that the wheel requires, by extra; ``""`` are those of the client."""
    with zipfile.ZipFile(wheel) as archive:
        [metadata] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        lines = email.message_from_bytes(archive.read(metadata)).get_all("Requires-Dist") or []
    found: dict[str, set[str]] = {}
    for line in lines:
        extra = re.search(r"extra == [\"'](\w+)[\"']", line)
        found.setdefault(extra[1] if extra else "", set()).add(re.split(r"[^\w-]", line)[0])
    return found


def test_the_wheel_holds_the_typed_client_and_nothing_beside(names: list[str]) -> None:
    tops = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == {"sluice"}
    for name in ("py.typed", "system_app.yaml", "library.py", "builder.py", "cli/__init__.py", "testing/app.py"):
        assert f"sluice/{name}" in names
    present = {str(path.relative_to(ROOT)) for path in (ROOT / "sluice").rglob("*.py")}
    assert present <= set(names)


def test_the_wheel_carries_the_build_of_the_console(names: list[str]) -> None:
    assert {f"sluice/console/static/{name}" for name in BUILD_OF_CONSOLE} <= set(names)


def test_the_wheel_requires_only_what_a_client_needs(required: dict[str, set[str]]) -> None:
    assert required[""] == CLIENT
    assert {"pydantic", "boto3", "pytest"} <= required["testing"]


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield str(node.module).partition(".")[0]


def test_the_client_imports_nothing_that_it_does_not_require() -> None:
    client = [path for path in (ROOT / "sluice").rglob("*.py")
              if not str(path.relative_to(ROOT)).startswith(OF_TESTS)]  # fmt: skip
    others = {name for path in client for name in imported(ast.parse(path.read_text()))}
    outside = others - set(sys.stdlib_module_names) - {"sluice"}
    assert outside == set(MODULES)
    assert {MODULES[name] for name in outside} <= CLIENT


def test_an_installed_client_shows_its_help(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    code = "import sluice; assert '/site/' in sluice.__file__; from sluice.cli import app; app()"
    environment = os.environ | {"PYTHONPATH": str(site), "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, "-c", code, "--help"], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "apply" in done.stdout and "why" in done.stdout
