"""The adapters of targets by target type. Each is imported and built when it is first needed, so that a Lambda that
starts no EMR runs never makes an EMR client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from chalicelib.aws.targets.clients import Clients
from chalicelib.core.runs.target_roles import NotAssumed, TargetRole
from chalicelib.core.targets.answers import Never, NoAnswer
from chalicelib.ports import TargetAdapter
from chalicelib.settings import Settings

if TYPE_CHECKING:
    from chalicelib.aws.targets.assumed import AssumedRoles
    from chalicelib.aws.targets.http import HttpTarget
    from chalicelib.aws.targets.lambda_function import LambdaTarget
    from chalicelib.aws.targets.meters import Meters


# The module of this package whose `build(clients, settings)` makes the adapter.
ADAPTERS: Mapping[str, str] = {
    "emr_serverless": "emr_serverless",
    "sqs": "sqs",
    "sns": "sns",
    "http": "http",
    "lambda": "lambda_function",
    "event_bus": "event_bus",
    "step_functions": "step_functions",
    "batch": "batch",
    "ecs": "ecs",
    "glue": "glue",
    "aws_api": "aws_api",
    "athena": "athena",
    "emr_eks": "emr_eks",
    "worker": "worker",
    "dag": "dag_start",
    "each": "each",
}


class AwsTargets:
    """Implements `ports.Targets`."""

    def __init__(self, clients: Clients, settings: Settings) -> None:
        self._clients, self._settings = clients, settings
        self._built: dict[tuple[str, TargetRole | None], TargetAdapter] = {}

    def of(self, kind: str, role: TargetRole | None = None) -> TargetAdapter:
        if kind not in ADAPTERS:
            raise ValueError(f"expected a target of type {', '.join(ADAPTERS)}, got {kind!r}")
        if (kind, role) not in self._built:
            module = import_module(f"chalicelib.aws.targets.{ADAPTERS[kind]}")
            clients = self._clients if role is None else replace(self._clients, make=self._roles.maker(role))
            self._built[kind, role] = module.build(clients, self._settings)
        return self._built[kind, role]

    def assume(self, kind: str, role: TargetRole) -> NotAssumed | None:
        refused = self._roles.renew(role)
        if refused is None:
            self.of(kind, role)
        return refused

    def check(self, target: Mapping[str, Any]) -> None:
        from chalicelib.aws.targets import api_models  # it reads the models of botocore

        api_models.check(target)

    def probe(
        self, target: Mapping[str, Any], question: Mapping[str, Any], role: TargetRole | None = None
    ) -> bytes | Never | NoAnswer:
        # The document of a probe allows only these two types.
        return cast("HttpTarget | LambdaTarget", self.of(str(target["type"]), role)).probe(target, question)

    def measure(self, source: Mapping[str, Any]) -> float | Never | NoAnswer:
        return self._meters.measure(source)

    @cached_property
    def _roles(self) -> AssumedRoles:
        from chalicelib.aws.targets.assumed import CALL, AssumedRoles

        make_as, now, stage = self._clients.make_as, self._clients.now, self._clients.stage
        if make_as is None:
            raise RuntimeError("expected clients with the credentials of roles, got none: wiring.py makes them")
        return AssumedRoles(cache(lambda: self._clients.make("sts", **CALL)), make_as, now, stage)

    @cached_property
    def _meters(self) -> Meters:
        from chalicelib.aws.targets.meters import Meters

        return Meters(cache(self._clients.make), self._clients.now)
