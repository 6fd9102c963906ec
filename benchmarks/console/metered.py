"""The API in this process on the tables of a local cloud, with each call to the tables counted."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pkgutil import iter_modules
from typing import Any
from unittest.mock import patch

from chalice.test import Client

from benchmarks.cloud import Running
from benchmarks.cost.meter import MeteredDynamo, table_of
from benchmarks.cost.tally import Tally
from benchmarks.product import environment, ports_of
from chalicelib.aws.tables.dynamo import Dynamo
from chalicelib.aws.tables.table_ports import table_ports
from chalicelib.ports import Ports
from chalicelib.web import routes
from tests.support import tables as template_tables


@dataclass(frozen=True)
class Read:
    """The calls to the tables of one request, and the read units that DynamoDB would bill."""

    calls: int
    units: float


class Metered:
    """Sends requests to the API. What a Lambda keeps in memory is new for each, as after its start."""

    def __init__(self, cloud: Running) -> None:
        from app import app

        self._environment = environment(cloud)
        self._client, self._tally = Client(app), Tally({})
        outputs = cloud.endpoints.outputs
        schema = {outputs[name]: table_of(name, each) for name, each in template_tables.definitions().items()}
        self._ports = ports_of(cloud)
        self._dynamo = MeteredDynamo(cloud.client("dynamodb"), schema, self._tally)

    def ask(self, method: str, path: str, body: str | None) -> Read:
        """Send one request. Raises RuntimeError unless it succeeds."""
        calls, units, found = self._tally.calls.total(), self._tally.read_units, self._fresh()
        names = [f"chalicelib.web.routes.{module.name}.ports" for module in iter_modules(routes.__path__)]
        with _replaced([*names, "chalicelib.web.access.ports"], lambda: found), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="IAMAuthorizer is not a supported in local mode")
            with patch.dict("os.environ", self._environment), patch("chalicelib.flow.views.schedule_list._known", {}):
                answer: Any = self._client.http.request(method, path, headers={}, body=(body or "").encode())
        if answer.status_code >= 300:
            raise RuntimeError(f"expected an answer of {path}, got {answer.status_code}: {answer.body[:300]!r}")
        return Read(self._tally.calls.total() - calls, self._tally.read_units - units)

    def _fresh(self) -> Ports:
        dynamo = Dynamo(self._dynamo, self._ports.settings)
        return replace(
            self._ports,
            ledger=dynamo,
            **table_ports(dynamo),
        )


class _replaced:  # noqa: N801 - used like a function
    """Replace each of these names for the time of a block."""

    def __init__(self, names: list[str], new: Any) -> None:
        self._patches = [patch(name, new, create=True) for name in names]

    def __enter__(self) -> None:
        for each in self._patches:
            each.start()

    def __exit__(self, *_: object) -> None:
        for each in self._patches:
            each.stop()
