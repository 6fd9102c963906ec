"""The versions under test: the baseline, the present code, and changed copies of each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.upgrade import account, trees
from tests.upgrade.lambdas import Version


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[account.Account]:
    """A new account for each test, and the environment of its Lambdas."""
    for name, content in account.ENVIRONMENT.items():
        monkeypatch.setenv(name, content)
    with account.played(account.Account()) as made:
        yield made


@pytest.fixture(scope="session")
def baseline_tree() -> Path:
    """The source of the baseline."""
    try:
        return trees.baseline_source()
    except trees.NoGit as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def _baseline(baseline_tree: Path) -> Version:
    return Version(baseline_tree, "old")


@pytest.fixture(scope="session")
def _present() -> Version:
    return Version(trees.present_source(), "new")


@pytest.fixture
def old(_baseline: Version) -> Version:
    _baseline.cold()
    return _baseline


@pytest.fixture
def new(_present: Version) -> Version:
    _present.cold()
    return _present
