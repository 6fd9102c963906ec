"""`init`: a first app that the service accepts, a job that compiles for EMR, and data that starts it."""

from __future__ import annotations

import ast
import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluice.testing import App
from tests.cli.conftest import Sluice

FILES = ["app.yaml", "jobs/daily_sales.py"] + [
    f"orders/day=2026-01-{day}/{name}" for day in ("05", "06", "07") for name in ("_SUCCESS", "orders.csv")
]
JOB = "s3://control/code/demo/orders/daily_sales.py"


@pytest.fixture
def first(sluice: Sluice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    done = sluice("init", "first")
    assert (done.exit_code, done.stderr.count("error")) == (0, 0)
    yield tmp_path / "first"


def written(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_init_writes_an_app_a_job_and_three_days_of_data(first: Path) -> None:
    assert written(first) == sorted(FILES)


def test_each_day_of_the_first_app_starts_the_job_once(first: Path) -> None:
    app = App(str(first / "app.yaml"), values={"job": JOB})
    for path in sorted((first / "orders").rglob("*")):
        if path.is_file():
            app.object("orders", path.relative_to(first / "orders").as_posix(), size=path.stat().st_size)
    for _ in range(3):
        [run] = [run for run in app.runs("daily_sales") if run.state == "RUNNING"]  # one at a time
        run.succeed()
    assert [run.state for run in app.runs("daily_sales")] == ["SUCCEEDED"] * 3
    assert app.jobs("daily_sales") == []


def test_the_first_app_is_valid_and_needs_only_its_job(sluice: Sluice, first: Path) -> None:
    assert sluice("validate", "first/app.yaml", "--set", f"job={JOB}").exit_code == 0
    assert "add --set job=" in sluice("validate", "first/app.yaml").stderr


def test_the_first_job_compiles_and_runs_on_the_python_of_emr(first: Path) -> None:
    job = first / "jobs" / "daily_sales.py"
    compile(ast.parse(job.read_text(), feature_version=(3, 9)), str(job), "exec")
    vermin = [sys.executable, Path(sys.executable).with_name("vermin"), "--target=3.9-", "--no-tips", str(job)]
    assert subprocess.run(vermin, capture_output=True, check=False).returncode == 0


def test_the_printed_commands_are_commands_with_files_that_exist(
    sluice: Sluice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = sluice("init", "first", "-n", "shop", "-a", "daily", "--json")
    commands = json.loads(done.stdout)["commands"]
    assert commands[:2] == ["source .local/endpoints.env", "cd first"]
    for command in commands[2:]:
        for part in command.replace("$(", "\n").replace(")", "").splitlines():
            program, *words = shlex.split(part)
            assert program == "sluice"
            assert sluice(*words[:1], "--help").exit_code == 0
            files = [word for word in words if word.endswith((".yaml", ".py")) or word == "orders"]
            assert all((tmp_path / "first" / file).exists() for file in files)
    assert "--to s3://lake/shop/daily/orders/" in commands[3]
    document = (tmp_path / "first" / "app.yaml").read_text()
    assert "namespace: shop\napp: daily\n" in document and "prefix: shop/daily/orders/" in document


def test_init_never_overwrites_a_file(sluice: Sluice, first: Path) -> None:
    (first / "app.yaml").write_text("mine")
    (first / "jobs" / "daily_sales.py").unlink()
    done = sluice("init", "first")
    assert done.exit_code == 2
    assert "expected a folder without these files, got first/app.yaml" in done.stderr
    assert (first / "app.yaml").read_text() == "mine"
    assert not (first / "jobs" / "daily_sales.py").exists()


def test_a_name_that_no_app_can_have_is_refused(sluice: Sluice, tmp_path: Path) -> None:
    done = sluice("init", str(tmp_path / "x"), "-a", "My App")
    assert (done.exit_code, (tmp_path / "x").exists()) == (2, False)
    assert "expected a name of lower-case letters" in done.stderr
