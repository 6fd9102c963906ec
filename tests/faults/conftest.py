"""The worlds of this folder keep their tables in this process. That is about fifty times as fast as moto, and the tests
build thousands of worlds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support.row_cache import rows_are_cached
from tests.support.world import World


@pytest.fixture
def make_world() -> Callable[..., World]:
    """Returns a function that makes worlds, each with its own tables."""
    return World


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture(autouse=True)
def rows_are_parsed_once() -> Iterator[None]:
    """Parse each item once, and write no log: the worlds of one test read the same items thousands of times."""
    with rows_are_cached():
        yield
