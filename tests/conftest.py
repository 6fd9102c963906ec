"""Fixtures that several folders share."""

from __future__ import annotations

import functools
import os
import resource
import zoneinfo
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import botocore.session
import hypothesis
import moto.core.responses
import pytest
from moto import mock_aws

from tests.support import tables
from tests.support.world import World

pytest_plugins = [
    *("tests.support.aws_rules", "tests.support.permissions", "tests.support.cloud"),
    "tests.faults.meetings.summary",
    "sluice.pytest_plugin",
]
# The duration of an example depends on the machine, not on the code.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")
CLOUD = ("AWS_ENDPOINT_URL", "SLUICE_")  # variables that direct a client to one cloud or another
# The folders with tests that need the local cloud or Spark, and some tests that do not.
CLOUDY = ("tests/aws/", "tests/e2e/", "tests/jobs/", "tests/local/", "tests/faults/test_races.py")
# Files that take longer than a minute, and whose tests share no set-up: each test may have another worker.
LONGEST = ("tests/faults/test_crash_points.py", "tests/faults/test_memory_tables.py", "tests/faults/test_paces_slow.py")

# The tests that read zones by themselves have the rules of the service, not those of the machine.
zoneinfo.reset_tzpath(to=())
zoneinfo.ZoneInfo.clear_cache()

# A mocked AWS begins with a new session each time, and reads its methods at each call. The parsed models of botocore's
# services, and moto's classes, stay the same.
botocore.session.create_loader = functools.cache(botocore.session.create_loader)
moto.core.responses.method_names_from_class = functools.cache(moto.core.responses.method_names_from_class)


@pytest.fixture(autouse=True, scope="module")
def no_cloud_is_left_in_the_environment() -> Iterator[None]:
    """Fails a module of tests that leaves environment variables which would direct later tests to another cloud."""
    before = _named_clouds()
    yield
    after = _named_clouds()
    for name in after.keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)
    assert after == before, "a test has changed the environment: use monkeypatch"


def _named_clouds() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(CLOUD)}


@pytest.fixture
def make_world(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., World]]:
    """Returns a function that makes worlds, each on fresh tables in this process, many times as fast as moto.
    `tests/faults/test_memory_tables.py` compares these tables with moto, call by call. ``SLUICE_TEST_TABLES=moto``
    plays the same tests on moto.
    """
    if os.environ.get("SLUICE_TEST_TABLES") != "moto":
        yield World
        return
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
    """Order the tests: rules and flows first, then those that need the local cloud, then Spark, so that a broken rule
    is found early. With several workers the cloud tests begin at once, beside the rest.
    """
    weight = {"spark": 2, "cloud": 1}
    heavy = [item for item in items if any(mark.name in weight for mark in item.iter_markers())]
    if stray := [item.nodeid for item in heavy if not item.nodeid.startswith(CLOUDY)]:
        raise pytest.UsageError(f"expected what needs the local cloud or Spark below {CLOUDY}, got {stray}")
    several = -1 if hasattr(config, "workerinput") else 1
    items.sort(key=lambda item: several * max((weight.get(mark.name, 0) for mark in item.iter_markers()), default=0))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give one of several workers all tests that need the cloud or Spark. The others share the rest, file by file, and
    test by test where a file takes longer than a minute: so no worker ends long after the others.
    """
    from xdist.scheduler import LoadScopeScheduling

    class OneCloud(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            if nodeid.startswith(CLOUDY):
                return "cloud"
            return nodeid if nodeid.startswith(LONGEST) else nodeid.partition("::")[0]

    return OneCloud(config, log)


_BEGAN = pytest.StashKey[float]()


def _cpu_seconds() -> float:
    """The CPU time of this process and of those that have ended and were waited for."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    item.stash[_BEGAN] = _cpu_seconds()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Add the CPU seconds of each test and its fixtures, which `tests/support/times.py` reads. In CI a skip is a
    failure: a test that was skipped has proved nothing."""
    if call.when == "teardown":
        item.user_properties.append(("cpu_s", f"{_cpu_seconds() - item.stash[_BEGAN]:.3f}"))
    report: Any = yield
    if report.skipped and os.environ.get("CI") and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which counts as a failure in CI: {report.longrepr}"
    return report
