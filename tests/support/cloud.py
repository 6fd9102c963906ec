"""The fixture `cloud`: this checkout's local cloud, for tests that are marked `cloud`.

One that is up is used, brought to the present code, and left up. Otherwise it is started, and stopped at the end.
"""

from collections.abc import Iterator

import pytest

from infra.local import cloud as local_cloud
from infra.local.endpoints import Endpoints


@pytest.fixture(scope="session")
def cloud() -> Iterator[Endpoints]:
    """Where the local cloud is; `cloud.client("sqs")` gives a client, `cloud.outputs` the names."""
    running = local_cloud.up()
    yield running.endpoints
    if running.started:
        local_cloud.down()
