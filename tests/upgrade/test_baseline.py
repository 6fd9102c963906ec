"""The baseline is a commit with a known hash, and a clone without it prints instructions."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from chalicelib.aws.tables.items import FORMAT
from tests.upgrade import trees


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def test_the_tag_of_the_baseline_names_the_layout_and_its_commit() -> None:
    tag, commit = trees.baseline()

    assert tag == f"layout-{FORMAT}", "a raised layout moves the baseline: docs/operations.md, Upgrade and going back"
    assert len(commit) == 40
    tagged = git(trees.ROOT, "rev-parse", "--verify", "--quiet", f"{tag}^{{commit}}")
    assert tagged in ("", commit), "a clone may lack the tag, but not have another one"


def test_a_clone_without_the_commit_says_how_to_get_it(tmp_path: Path) -> None:
    git(tmp_path, "init")

    with pytest.raises(trees.NoBaseline, match="git fetch --unshallow --tags"):
        trees.baseline_source(tmp_path)


def test_source_without_a_repository_differs_from_shallow_clone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))

    with pytest.raises(trees.NoGit, match="is in none"):
        trees.baseline_source(tmp_path)
