"""The fixture `cloud`: this checkout's local cloud, for tests that are marked `cloud`.

One that is up is used, brought to the present code, and left up. Otherwise it is started, and stopped at the end.
`SLUICE_TEST_THROTTLE=0.05` refuses one call in twenty, of any kind, once it is up.
"""

import os
from collections.abc import Iterator

import pytest

from infra.local import cloud as local_cloud
from infra.local.endpoints import Endpoints
from infra.local.layout import Layout
from infra.local.throttle import Rule, write


@pytest.fixture(scope="session")
def cloud() -> Iterator[Endpoints]:
    """Where the local cloud is; `cloud.client("sqs")` gives a client, `cloud.outputs` the names."""
    running = local_cloud.up()
    share = float(os.environ.get("SLUICE_TEST_THROTTLE", "0"))
    if share:
        write(Layout().throttle, [Rule("*", share)])
    yield running.endpoints
    if share:
        Layout().throttle.unlink()
    if running.started:
        local_cloud.down()
