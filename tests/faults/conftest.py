"""The worlds of this folder stand on tables in this process, some fifty times as fast as moto: there are thousands."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.faults.memory_tables import QuickWorld


@pytest.fixture
def make_world() -> Callable[..., QuickWorld]:
    """Makes worlds, each on tables of its own."""
    return QuickWorld


@pytest.fixture
def world() -> QuickWorld:
    return QuickWorld()
