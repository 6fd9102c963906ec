"""The files of a release: what is in them, and that the client of its wheel works on each Python of this machine."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from infra import release, system_app
from sluice import documents

ROOT = Path(__file__).parents[2]
CHANGELOG = (
    "# Changelog\n\n## [Unreleased]\n\nnew\n\n## [0.1.0] - 2026-12-01\n\n### Added\n- first\n\n## [0.0.1]\n\nold\n"
)
# Imports each module of the client, with each warning as an error.
IMPORTED = (
    "import importlib, pkgutil, sluice\n"
    "for module in pkgutil.walk_packages(sluice.__path__, 'sluice.'):\n"
    "    if '_service' not in module.name:\n"
    "        importlib.import_module(module.name)\n"
)
TEST = (
    "def test_a_schedule_runs(sluice_app):\n"
    "    app = sluice_app('app.yaml')\n"
    "    app.advance('1d')\n"
    "    assert app.runs()\n"
)
APP = (
    "namespace: demo\napp: shop\nworkflows: {w: {target: {type: emr_serverless, entry_point: 's3://c/j.py'}}}\n"
    "schedules: {s: {workflow: w, enabled: true, trigger: {type: time, expression: '0 5 * * *'}}}\n"
)


def pythons() -> list[str]:
    """The interpreters of this machine from 3.11 on, each version once."""
    found = {minor: path for minor in range(11, 16) if (path := shutil.which(f"python3.{minor}"))}
    # What pyenv puts on the path works in some folders only.
    installed = {path.parents[1].name: str(path) for path in Path.home().glob(".pyenv/versions/3.*/bin/python3")}
    found |= {int(name.split(".")[1]): path for name, path in sorted(installed.items())}
    return [path for minor, path in sorted(found.items()) if minor >= 11]


def test_the_changes_of_a_version_are_its_section() -> None:
    assert release.changes(CHANGELOG, "0.1.0") == "# Changes of 0.1.0\n\n### Added\n- first\n"
    assert release.changes(CHANGELOG, "0.2.0") == "# Changes of 0.2.0\n\nnew\n"
    with pytest.raises(release.ReleaseError, match="got none"):
        release.changes("# Changelog\n", "0.1.0")


def test_the_checksums_are_those_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"2")
    (tmp_path / "a").write_bytes(b"1")
    assert [path.name for path in release.summed(tmp_path)] == ["a", "b", "SHA256SUMS"]
    assert [path.name for path in release.summed(tmp_path)] == ["a", "b", "SHA256SUMS"]
    lines = (tmp_path / "SHA256SUMS").read_text().splitlines()
    assert lines == [f"{hashlib.sha256(text).hexdigest()}  {name}" for name, text in (("a", b"1"), ("b", b"2"))]


def test_an_archive_has_no_times_and_no_owners(tmp_path: Path) -> None:
    (tmp_path / "site/css").mkdir(parents=True)
    (tmp_path / "site/index.html").write_text("x")
    (tmp_path / "site/css/a.css").write_text("y")
    for name in ("one.tar.gz", "two.tar.gz"):
        release.archived(tmp_path / name, tmp_path / "site")
    assert (tmp_path / "one.tar.gz").read_bytes() == (tmp_path / "two.tar.gz").read_bytes()
    with tarfile.open(tmp_path / "one.tar.gz") as archive:
        entries = archive.getmembers()
    assert [(each.name, each.mtime, each.uid) for each in entries] == [
        ("site/css/a.css", 0, 0),
        ("site/index.html", 0, 0),
    ]


def test_the_bundle_of_the_system_app_is_what_a_stage_gets(tmp_path: Path) -> None:
    release.zipped(tmp_path / "system-app.zip", {path.name: path for path in (system_app.APP, *system_app.JOBS)})
    with zipfile.ZipFile(tmp_path / "system-app.zip") as archive:
        archive.extractall(tmp_path)
    sent = documents.load(str(tmp_path / "system_app.yaml"), {"lake": "l", "code": "s3://c/code/"})
    named = {
        name.rpartition("/")[2]
        for workflow in sent["workflows"].values()
        for name in (workflow["target"]["entry_point"], workflow["target"].get("spark_submit_parameters", ""))
        if name.endswith(".py")
    }
    assert named
    assert {name for name in named if not (tmp_path / name).exists()} == set()
    page = (ROOT / "docs/installation.md").read_text()
    assert [job.name for job in system_app.JOBS if job.name not in page] == []


def test_a_release_needs_the_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(release, "SITE", ROOT / "build" / "no-site")
    assert release.main([str(tmp_path)]) == 1
    assert (
        capsys.readouterr().err
        == "release: expected build/no-site/index.html, got none; run `make docs`, or `make release`\n"
    )


@pytest.mark.long
def test_a_release_is_reproducible_and_its_client_works(tmp_path: Path) -> None:
    """`make release` twice gives the same bytes. Its wheel is installed for each Python; warnings are errors."""
    built = []
    for name in ("one", "two"):
        subprocess.run(["make", "release", f"OUT={tmp_path / name}"], cwd=ROOT, check=True, capture_output=True)
        built.append((tmp_path / name / "release" / release.SUMS).read_text())
    assert built[0] == built[1]
    [wheel] = (tmp_path / "one/release").glob("sluice-*.whl")
    (tmp_path / "app.yaml").write_text(APP)
    (tmp_path / "test_app.py").write_text(TEST)
    assert pythons()
    for number, interpreter in enumerate(pythons()):
        python = tmp_path / f"venv{number}/bin/python"
        subprocess.run([interpreter, "-m", "venv", str(python.parents[1])], check=True)
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", f"{wheel}[testing]"], check=True, capture_output=True
        )
        for command in (["-c", IMPORTED], ["-m", "pytest", "-q", "test_app.py"], ["-m", "compileall", "-q", "-f", "."]):
            done = subprocess.run([python, "-W", "error", *command], cwd=tmp_path, capture_output=True, text=True)
            assert done.returncode == 0, f"{interpreter} {command}: {done.stdout}{done.stderr}"
