"""Every pinned distribution has hashes, and what installs pins refuses files with another hash."""

import hashlib
import re
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from infra import package
from tests.infra.test_makefile import make

ROOT = Path(__file__).parents[2]
LOCKS = {
    "requirements.lock": ("requirements.txt", "requirements-dev.txt"),
    "requirements-lambda.lock": ("requirements.txt",),
    "docs/requirements.lock": ("docs/requirements.txt",),
    "console/requirements.lock": ("console/requirements.txt",),
    "benchmarks/peers/requirements.lock": ("benchmarks/peers/requirements.txt",),
}
_HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def pins(lock: str) -> dict[str, tuple[str, list[str]]]:
    """The version and the hashes of each distribution in a list of pins."""
    text = "\n".join(line for line in (ROOT / lock).read_text().splitlines() if not line.lstrip().startswith("#"))
    found = {}
    for entry in filter(str.strip, text.replace("\\\n", " ").splitlines()):
        wanted, *hashes = entry.split()
        requirement = Requirement(wanted)
        [exact] = requirement.specifier
        assert exact.operator == "==", entry
        found[canonicalize_name(requirement.name)] = (exact.version, hashes)
    return found


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_has_a_hash(lock: str) -> None:
    found = pins(lock)
    assert found
    assert not [name for name, (_, hashes) in found.items() if not hashes or not all(map(_HASH.fullmatch, hashes))]


@pytest.mark.parametrize("lock", LOCKS)
def test_a_list_of_pins_has_what_its_requirements_name(lock: str) -> None:
    """`make lock` was run after the last change of a requirement."""
    rows = [row for file in LOCKS[lock] for row in (ROOT / file).read_text().splitlines()]
    wanted = [Requirement(row) for row in rows if row and not row.startswith(("#", "-r"))]
    found = {name: version for name, (version, _) in pins(lock).items()}
    assert {(canonicalize_name(each.name), str(each.specifier)) for each in wanted} <= {
        (name, f"=={version}") for name, version in found.items()
    }


def test_what_is_deployed_is_what_is_tested() -> None:
    tested = pins("requirements.lock")
    assert {name: tested.get(name) for name in pins("requirements-lambda.lock")} == pins("requirements-lambda.lock")


def test_what_is_deployed_has_all_that_it_imports() -> None:
    """pip installs the list without looking for anything else, so the list must be complete."""
    deployed = pins("requirements-lambda.lock").keys()
    needed = {
        canonicalize_name(requirement.name)
        for name in deployed
        for requirement in map(Requirement, distribution(name).requires or [])
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""})
    }
    assert needed - deployed == set()


@pytest.mark.parametrize("target", ["venv", "docs", "console"])
def test_make_installs_nothing_without_its_hash(target: str) -> None:
    commands = make("--dry-run", "--always-make", target).splitlines()
    installs = [line for line in commands if "pip install" in line and "--editable ." not in line]
    assert installs
    assert not [line for line in installs if "--require-hashes" not in line or ".lock" not in line]


def test_a_wheel_with_another_hash_is_not_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = _wheel(tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    lock = tmp_path / "pins.lock"
    lock.write_text(f"tiny==1.0 --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n")
    package.download(lock, tmp_path / "good", "arm64")
    assert (tmp_path / "good" / "tiny.py").read_text() == "VALUE = 1\n"
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("added.py", "import os\n")
    with pytest.raises(package.PackageError, match="(?s)pins.lock.*hash"):
        package.download(lock, tmp_path / "bad", "arm64")
    assert not (tmp_path / "bad" / "tiny.py").exists()
    lock.write_text("tiny==1.0\n")
    with pytest.raises(package.PackageError, match="hash"):
        package.download(lock, tmp_path / "unpinned", "arm64")


def _wheel(folder: Path) -> Path:
    """A wheel of one module for any machine, as an index would offer it."""
    path = folder / "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tiny.py", "VALUE = 1\n")
        archive.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        archive.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("tiny-1.0.dist-info/RECORD", "")
    return path
