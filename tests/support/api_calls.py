"""Clients of any service of AWS in memory. They check each request against AWS's own rules, and remember it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore import xform_name
from botocore.exceptions import ClientError, ReadTimeoutError

from chalicelib.aws import models
from infra.local import service_model

TARGET = {"type": "aws_api", "service": "ecs", "action": "run_task", "input": {"taskDefinition": "{{workflow}}"}}


@dataclass
class ApiCalls:
    """``refusals`` are errors to raise instead of answers, the first one first. ``lose_answers`` is the number of calls
    that take effect without an answer. ``answers`` are the answers by ``service:Operation``; another one is empty.
    ``made`` are the calls that took effect, with their requests."""

    answers: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    refusals: list[Exception] = field(default_factory=list)
    lose_answers: int = 0
    made: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    clients: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def make(self, service: str, **options: Any) -> Any:
        self.clients.append((service, options))
        return _Client(self, service)

    def call(self, service: str, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        wrong = service_model.problems(service, operation, request)
        assert not wrong, f"{service}:{operation}: {'; '.join(wrong)}"
        if self.refusals:
            raise self.refusals.pop(0)
        self.made.append((f"{service}:{operation}", request))
        if self.lose_answers:
            self.lose_answers -= 1
            raise ReadTimeoutError(endpoint_url=f"https://{service}.example")
        of_request = {"ResponseMetadata": {"RequestId": f"q{len(self.made)}"}}
        return {**self.answers.get(f"{service}:{operation}", {}), **of_request}


class _Client:
    def __init__(self, calls: ApiCalls, service: str) -> None:
        self._calls, self._service = calls, service

    def __getattr__(self, method: str) -> Callable[..., dict[str, Any]]:
        names = {xform_name(name): name for name in models.model(self._service).operation_names}
        return lambda **request: self._calls.call(self._service, names[method], request)


def refused(code: str, message: str = "no", status: int = 400) -> ClientError:
    answer = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "x")
