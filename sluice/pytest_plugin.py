"""The pytest plugin: the fixture ``sluice_app``. It imports `sluice.testing` only for tests that use the fixture."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from sluice.testing import App

_APPS = pytest.StashKey[list["App"]]()  # the apps that a test has made


@pytest.fixture
def sluice_app(request: pytest.FixtureRequest) -> Iterator[type[App]]:
    """Makes apps: ``sluice_app("app.yaml", at="2026-03-02T12:00Z")``, each in a separate installation in memory.

    While the test runs, the service logs errors only. If it fails, pytest shows `App.explain` of each app.
    """
    from sluice.testing import App

    made: list[App] = []

    class Shown(App):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            made.append(self)

    request.node.stash[_APPS] = made
    with App.quiet():
        yield Shown
    made.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call" and report.failed:
        for app in item.stash.get(_APPS, []):
            report.sections.append((f"{app.namespace}.{app.app} in Sluice", _explained(app)))
    return report


def _explained(app: App) -> str:
    try:
        return app.explain()
    except Exception as error:  # the failure of the test must stay in sight
        return f"no explanation: {error!r}"
