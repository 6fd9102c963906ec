"""Two versions of the service in one process: source trees with different package names.

A tree is the service's code of a commit, or of the working copy. In its copy the package has another name, the clock is
the one that tests set, and clients of AWS are those of `account.py`. Nothing else is changed.
"""

from __future__ import annotations

import atexit
import io
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
PACKAGE, MAP = "chalicelib", "app.py"  # what is deployed: `app.py` names the Lambdas, the package holds the rest
BASELINE = Path(__file__).with_name("baseline.txt")
# The replacements for modules of the outside world, as whole import lines.
_OUTSIDE = {
    re.compile(r"^(\s*)import time$", re.MULTILINE): r"\1from tests.upgrade import hand_time as time",
    re.compile(r"^(\s*)import boto3$", re.MULTILINE): r"\1from tests.upgrade import account as boto3",
}
# Code that would reach the outside world in spite of the replacements.
_LEAKS = re.compile(r"^\s*(import time\b|from time import|import boto3\b(?! as)|from boto3 import)|datetime\.now\(",
                    re.MULTILINE)  # fmt: skip

# Text to replace in a file of the tree (or in all of them, for "**"), and its replacement.
Changes = Mapping[str, Mapping[str, str]]


class NoBaseline(RuntimeError):
    """The commit of the baseline cannot be read here."""


class NoGit(NoBaseline):
    """There is no repository at all: the source was unpacked from an archive."""


def baseline() -> tuple[str, str]:
    """The tag and the full commit hash of the baseline."""
    (line,) = (line for line in BASELINE.read_text().splitlines() if line and not line.startswith("#"))
    tag, commit = line.split()
    return tag, commit


@cache
def baseline_source(repository: Path = ROOT) -> Path:
    """The service's code of the baseline. Raises `NoBaseline`, with instructions, if this clone does not have it."""
    tag, commit = baseline()
    folder = _folder("baseline")
    try:
        done = _git(repository, "archive", commit, PACKAGE, MAP)
        inside = _git(repository, "rev-parse", "--git-dir")
    except FileNotFoundError:
        raise NoGit("expected git, which has the code of the baseline; it is not installed") from None
    if inside.returncode:
        raise NoGit(f"expected a git repository, which has the code of the baseline; {repository} is in none")
    if done.returncode:
        raise NoBaseline(
            f"expected commit {commit} (tag {tag}), the baseline of tests/upgrade, in this clone. It is not there: "
            f"`git fetch --unshallow --tags`, or `git fetch origin tag {tag}`. git said: {done.stderr.decode().strip()}"
        )
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


@cache
def present_source() -> Path:
    """The service's code in the working copy."""
    folder = _folder("present")
    shutil.copytree(ROOT / PACKAGE, folder / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / MAP, folder / MAP)
    return folder


def copied(source: Path, name: str, changes: Changes | None = None) -> str:
    """Copy a tree so that it can be imported beside others. Returns the name of its copy of `app.py`.

    ``changes`` make it another version. The text of each change must exist in the tree.
    """
    package, entry = f"{PACKAGE}_{name}", f"app_{name}"
    if entry in sys.modules:
        return entry
    folder = _folder(name)
    found: set[tuple[str, str]] = set()
    for path in sorted(source.rglob("*.py")):
        place = path.relative_to(source)
        text = path.read_text()
        for pattern, there in (changes or {}).items():
            for before, after in there.items() if place.match(pattern) else ():
                if before in text:
                    found.add((pattern, before))
                    text = text.replace(before, after)
        text = re.sub(rf"\b{PACKAGE}\b", package, text)
        for line, instead in _OUTSIDE.items():
            text = line.sub(instead, text)
        if leak := _LEAKS.search(text):
            raise AssertionError(f"{place} reaches the real world by {leak.group().strip()!r}: add it to {__file__}")
        target = folder / (f"{entry}.py" if str(place) == MAP else str(place).replace(PACKAGE, package, 1))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    wanted = {(pattern, before) for pattern, there in (changes or {}).items() for before in there}
    if wanted - found:
        raise AssertionError(f"the tree {name} has nothing to change for {wanted - found}")
    sys.path.append(str(folder))
    return entry


def modules(name: str) -> list[ModuleType]:
    """All modules of a copied tree that are loaded."""
    own = (f"{PACKAGE}_{name}", f"app_{name}")
    return [module for place, module in sys.modules.items() if place.split(".")[0] in own]


def _git(repository: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", *arguments], cwd=repository, capture_output=True, check=False)


def _folder(name: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix=f"sluice-{name}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
