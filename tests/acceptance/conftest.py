"""The world of the scenarios."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.world import World


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    """One shard of each index: every tick asks all of them, which is what most of the time here would go into."""
    return make_world(wake_shards=1, history_shards=1)
