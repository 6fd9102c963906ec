"""The world of the scenarios."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.world import World


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    """A world with one shard of each index: every tick queries all shards, which takes most of the time
    of these tests.
    """
    return make_world(wake_shards=1, history_shards=1)
