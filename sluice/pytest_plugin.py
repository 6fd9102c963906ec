"""The pytest plugin: the fixture ``sluice_app``. It imports `sluice.testing` only for tests that use the fixture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from sluice.testing import App


@pytest.fixture
def sluice_app() -> Iterator[type[App]]:
    """Makes apps: ``sluice_app("app.yaml", at="2026-03-02T12:00Z")``, each in a separate installation in memory.

    While the test runs, the service logs errors only.
    """
    from sluice.testing import App

    with App.quiet():
        yield App
