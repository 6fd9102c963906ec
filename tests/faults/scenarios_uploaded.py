"""A deployment of an uploaded document, for `test_crash_points.py` (L8)."""

from __future__ import annotations

import json
from typing import Any

from chalicelib.core.definitions.app import App
from chalicelib.flow.deploy import deploy, uploaded
from tests.faults.dying import Scenario, passes, people
from tests.support.crash import lost
from tests.support.schedules import partitions
from tests.support.world import SQS, World

APP, UPLOAD = "demo.orders", "u1"
NAMES = ("first", "second", "third")
DOCUMENT: dict[str, Any] = {
    "workflows": {"notify": {"target": SQS}},
    "schedules": {name: partitions(workflow="notify", dataset="demo.flights") for name in NAMES},
}


def _upload(world: World) -> None:
    sent = json.dumps(DOCUMENT).encode()
    world.payloads.uploads[APP, UPLOAD] = sent

    def send() -> None:
        plan = deploy.checked(world.ports, "demo", "orders", App.model_validate(DOCUMENT), None)
        uploaded.begin(world.ports, plan, UPLOAD, sent, "tester")

    people(world, send)
    world.settle(lost)
    passes(world, "1m", "1m")


def _is_deployed(world: World) -> bool:
    found = world.ports.catalog.schedules(APP, 10, None).items
    return uploaded.existing(world.ports, APP, UPLOAD).state == "DONE" and len(found) == len(NAMES)


UPLOADED = {
    "an app that is deployed from an uploaded document": Scenario(
        {"daily": partitions(enabled=False)}, _upload, [({"daily": []}, 0)], holds=_is_deployed
    ),
}
