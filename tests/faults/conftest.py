"""The worlds of this folder keep their tables in this process. That is about fifty times as fast as moto, and the tests
build thousands of worlds.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.faults.memory_tables import QuickWorld


@pytest.fixture
def make_world() -> Callable[..., QuickWorld]:
    """Returns a function that makes worlds, each with its own tables."""
    return QuickWorld


@pytest.fixture
def world() -> QuickWorld:
    return QuickWorld()
