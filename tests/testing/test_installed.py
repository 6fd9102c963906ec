"""`pip install sluice[testing]`: the fixture works without a checkout, and the client stays small."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sluice.testing import service

ROOT = Path(__file__).parents[2]
SOURCE = ("sluice", "chalicelib", "pyproject.toml", "setup.py", "MANIFEST.in")
USERS_TEST = """
import sys

APP = {
    "namespace": "demo",
    "app": "x",
    "workflows": {"clean": {"target": {"type": "emr_serverless", "entry_point": "s3://code/job.py"}}},
    "schedules": {"clean": {"workflow": "clean", "enabled": True, "trigger": {"type": "event", "event": "go"}}},
}


def test_an_event_starts_it(sluice_app):
    app = sluice_app(APP, at="2026-03-02T12:00Z")
    app.event("go")
    app.run("clean").succeed()
    assert app.run("clean").state == "SUCCEEDED"
    assert "_service" in sys.modules["chalicelib"].__path__[0]
    assert "chalice" not in sys.modules, "expected the steps of the service without its routes"
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the distribution was installed."""
    copy, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    for name in SOURCE:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, copy / name)
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, "--target", str(target), str(copy)], check=True)
    return target


def run(site: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=folder, env=os.environ | {"PYTHONPATH": str(site)}, capture_output=True, text=True
    )


def test_an_installed_fixture_runs_a_test(site: Path, tmp_path: Path) -> None:
    (tmp_path / "test_app.py").write_text(USERS_TEST)
    done = run(site, tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_app.py")
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_install_puts_no_chalicelib_at_the_top(site: Path) -> None:
    assert (site / "sluice" / "testing" / "_service" / "chalicelib" / "ports.py").is_file()
    assert not (site / "chalicelib").exists()


def test_installed_operations_run_the_copy_of_the_service(site: Path, tmp_path: Path) -> None:
    code = "import sluice.operations.commands, chalicelib; print(chalicelib.__path__[0])"
    done = run(site, tmp_path, "-c", code)
    assert done.stdout == f"{site / 'sluice/testing/_service/chalicelib'}\n", done.stderr


def test_the_client_and_the_plugin_load_no_service(site: Path, tmp_path: Path) -> None:
    code = "import sys, sluice, sluice.cli, sluice.pytest_plugin; print({'chalicelib', 'pydantic'} & set(sys.modules))"
    assert run(site, tmp_path, "-c", code).stdout == "set()\n"


def test_an_installed_command_line_writes_and_validates_an_app(site: Path, tmp_path: Path) -> None:
    script = "import sys; sys.argv[0] = 'sluice'; from sluice.cli import app; app()"
    assert run(site, tmp_path, "-c", script, "init", "first").returncode == 0
    done = run(site, tmp_path, "-c", script, "validate", "first/app.yaml", "--set", "job=s3://code/daily_sales.py")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "first/app.yaml: demo.orders is valid  1 workflow, 1 schedule, 1 dataset\n"


def test_another_chalicelib_is_named(site: Path, tmp_path: Path) -> None:
    (tmp_path / "chalicelib").mkdir()
    (tmp_path / "chalicelib" / "__init__.py").touch()
    done = run(site, tmp_path, "-c", "import chalicelib, sluice.testing")
    assert f"expected to import chalicelib of Sluice, got ['{tmp_path}/chalicelib']" in done.stderr


def test_a_missing_service_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ImportError, match=r"expected the service's code in .*; install sluice\[testing\] again"):
        service.find((tmp_path,))
