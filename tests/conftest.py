"""Fixtures that several folders share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from tests.support import tables
from tests.support.world import World

pytest_plugins = ["tests.support.cloud"]


@pytest.fixture
def make_world(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., World]]:
    """Makes worlds, each on fresh tables of its own."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    made = 0
    with mock_aws():
        client = boto3.client("dynamodb", region_name="us-east-1")

        def make(**tuned: Any) -> World:
            nonlocal made
            made += 1
            return World(client, tables.create(client, f"w{made}"), **tuned)

        yield make


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Rules and flows first, then what needs the local cloud, then Spark: a broken rule is told at once.

    With several workers, one has all that needs the cloud, from the start; the others have the rest, file by file.
    """
    weight = {"spark": 2, "cloud": 1}
    items.sort(key=lambda item: max((weight.get(mark.name, 0) for mark in item.iter_markers()), default=0))
    if config.pluginmanager.hasplugin("dsession") or hasattr(config, "workerinput"):
        for item in items:
            heavy = any(mark.name in weight for mark in item.iter_markers())
            item.add_marker(pytest.mark.xdist_group("cloud" if heavy else item.path.name))
        items.sort(key=lambda item: not any(mark.name in weight for mark in item.iter_markers()))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """In CI a skip is a failure: what was not run was not shown."""
    report: Any = yield
    if report.skipped and os.environ.get("CI") and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which counts as a failure in CI: {report.longrepr}"
    return report
