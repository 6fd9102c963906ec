"""A version of the service, by its entry points: the Lambdas of `app.py` and the events that AWS sends them.

This module holds everything that these tests use of another version's inside. It is little: `app.py` names the Lambdas,
the environment names tables and queues, and a cache of a module is a function with `cache_clear`.
"""

from __future__ import annotations

import base64
import importlib
import json
import pkgutil
import sys
import warnings
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from chalice.local import LambdaContext
from chalice.test import Client

from tests.support.stored import class_of
from tests.upgrade import trees
from tests.upgrade.trees import Changes

BUS = {"version": "0", "account": "123456789012", "region": "us-east-1", "resources": []}
STREAM = "arn:aws:dynamodb:us-east-1:123456789012:table/runs/stream/2026-03-02T00:00:00.000"
MEMORY, MAX_MILLIS = 512, 120_000


class Version:
    """One version of the service, ready to be invoked."""

    def __init__(self, source: Path, name: str, changes: Changes | None = None) -> None:
        self.name = name
        entry = trees.copied(source, name, changes)
        self._app = importlib.import_module(entry).app
        self._load_all(f"{trees.PACKAGE}_{name}")
        self._modules = trees.modules(name)
        self._http = Client(self._app).http

    def cold(self) -> None:
        """Clear the caches of former invocations in this process, as in a new Lambda."""
        for module in self._modules:
            for value in list(vars(module).values()):
                if callable(getattr(value, "cache_clear", None)):
                    value.cache_clear()

    # -- Lambdas -------------------------------------------------------------------------------------------------

    def tick(self) -> Any:
        return self._invoke("tick", {**BUS, "id": "tick", "source": "aws.events", "detail-type": "Scheduled Event",
                                     "time": "2026-03-02T12:00:00Z", "detail": {}})  # fmt: skip

    def objects(self, event: dict[str, Any]) -> Any:
        return self._invoke("objects", event)

    def hints(self, event: dict[str, Any]) -> Any:
        return self._invoke("check", event)

    def run_state(self, job_run: str, application: str, state: str, time: str) -> Any:
        detail = {"jobRunId": job_run, "applicationId": application, "state": state, "updatedAt": time}
        kind = "EMR Serverless Job Run State Change"
        return self._invoke("run_state", {**BUS, "id": job_run, "detail-type": kind, "source": "aws.emr-serverless",
                                          "time": time, "detail": detail})  # fmt: skip

    def custom(self, event: dict[str, Any]) -> Any:
        return self._invoke("custom", event)

    def lake(self, rows: list[Mapping[str, Any]]) -> Any:
        """Deliver rows of the runs table as they are now, through its stream."""
        return self._invoke("lake", {"Records": [_change(number, item) for number, item in enumerate(rows)]})

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Send a request to the API. Returns its status and its answer.

        A request may come while another one is played. In AWS each has a process of its own, so Chalice keeps the
        present request in the app; here it is put back."""
        outer = getattr(self._app, "current_request", None)
        try:
            return self._answer(method, path, body, headers)
        finally:
            self._app.current_request = outer

    def _answer(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> tuple[int, Any]:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        data = b"" if body is None else json.dumps(body).encode()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="IAMAuthorizer is not a supported in local mode")
            answer = self._http.request(method, path, headers=sent, body=data)
        return answer.status_code, json.loads(answer.body) if answer.body else None

    # -- rows ----------------------------------------------------------------------------------------------------

    def read(self, item: dict[str, Any]) -> dict[str, Any]:
        """A stored item as this version reads it: its fields by name."""
        answer: dict[str, Any] = _plain(
            self.module("aws.tables.items").from_item(self._classes()[class_of(item)], item)
        )
        return answer

    def module(self, name: str) -> Any:
        """A module of this version, by its name."""
        return sys.modules[f"{trees.PACKAGE}_{self.name}.{name}"]

    def has(self, name: str) -> bool:
        """Whether this version has a class of rows of this name."""
        return name in self._classes()

    def _classes(self) -> dict[str, Any]:
        """The classes of rows, by their names."""
        return {row.__name__: row for row in self.module("core.rows.kinds").ROWS}

    def _invoke(self, name: str, event: dict[str, Any]) -> Any:
        return self._app.handler_map[name](event, LambdaContext(name, MEMORY, max_runtime_ms=MAX_MILLIS))

    @staticmethod
    def _load_all(package: str) -> None:
        """Load the modules that a Lambda would load when it first needs them."""
        for found in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            importlib.import_module(found.name)


def _change(number: int, item: Mapping[str, Any]) -> dict[str, Any]:
    """A change in the form of a stream. An event is JSON: bytes come as base64.
    https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html#events-sample-dynamodb
    """
    image = {name: {"B": base64.b64encode(content["B"]).decode()} if "B" in content else content
             for name, content in item.items()}  # fmt: skip
    answer = {"Keys": {"pk": item["pk"], "sk": item["sk"]}, "SequenceNumber": f"{number:030}", "NewImage": image,
            "ApproximateCreationDateTime": 1_772_452_800, "SizeBytes": 26, "StreamViewType": "NEW_IMAGE"}  # fmt: skip
    return {"eventID": f"e{number}", "eventName": "MODIFY", "eventVersion": "1.1", "eventSource": "aws:dynamodb",
            "awsRegion": "us-east-1", "dynamodb": answer, "eventSourceARN": STREAM}  # fmt: skip


def _plain(content: Any) -> Any:
    """Values of two versions have different classes, even if they are equal; returns comparable ones."""
    if is_dataclass(content) and not isinstance(content, type):
        plain = {each.name: _plain(getattr(content, each.name)) for each in fields(content) if each.name != "unknown"}
        return {name: part for name, part in plain.items() if part is not None}  # a field that only one version has
    if isinstance(content, Mapping):
        return {name: _plain(part) for name, part in content.items()}
    return [_plain(part) for part in content] if isinstance(content, tuple | list) else content
