"""The fixture `cloud`: this checkout's local cloud, for tests that are marked `cloud`.

A cloud that is up is used, updated to the present code, and left up. Otherwise it is started, and stopped at the end.
`SLUICE_TEST_THROTTLE=0.05` refuses one call in twenty, of any kind, once it is up.

A test on it fails if IAM refuses any call of its Lambdas: such a call would fail in AWS as well.
"""

import os
from collections.abc import Iterator

import pytest

from infra.local import cloud as local_cloud
from infra.local import refusals
from infra.local.endpoints import Endpoints
from infra.local.layout import Layout
from infra.local.throttle import Rule, write


@pytest.fixture(scope="session")
def cloud() -> Iterator[Endpoints]:
    """The address of the local cloud. `cloud.client("sqs")` returns a client, `cloud.outputs` the names."""
    running = local_cloud.up()
    share = float(os.environ.get("SLUICE_TEST_THROTTLE", "0"))
    if share:
        write(Layout().throttle, [Rule("*", share)])
    yield running.endpoints
    if share:
        Layout().throttle.unlink()
    if running.started:
        local_cloud.down()


@pytest.fixture(autouse=True)
def lambdas_are_refused_nothing(request: pytest.FixtureRequest) -> Iterator[None]:
    """Checks the local cloud's list of calls that a role does not allow."""
    if not request.node.get_closest_marker("cloud") or request.node.get_closest_marker("own_resources"):
        yield
        return
    before = len(refusals.read(Layout().refusals))
    yield
    answer = [f"{each['caller']} may not {each['action']} on {each['resource']}"
            for each in refusals.read(Layout().refusals, before)]  # fmt: skip
    assert not answer, "IAM has refused Lambdas of the local cloud:\n" + "\n".join(dict.fromkeys(answer))
