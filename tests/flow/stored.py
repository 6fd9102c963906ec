"""The stored rows, as tests compare them: every item of the tables, and the states of an app's schedules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import boto3

from chalicelib.core.definitions.app import App
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.flow import lookup
from chalicelib.flow.definitions import store
from chalicelib.flow.deploy import deploy
from chalicelib.flow.deploy.plan import Report
from tests.support.world import World


def rows(world: World, *tables: str) -> dict[str, Any]:
    """Every item of these tables (by default of all three), by table and key."""
    named = {getattr(world.ports.settings, f"{table}_table"): table for table in tables or ("catalog", "jobs", "runs")}
    return {f"{named[name]} {item['pk']['S']} {item['sk']['S']}": item for name, item in _items(world, named)}


def _items(world: World, names: Iterable[str]) -> Iterator[tuple[str, Any]]:
    if world.is_in_memory:
        yield from ((name, item) for name, item in world.tables.rows() if name in names)
        return
    scan = boto3.client("dynamodb").get_paginator("scan")
    for name in names:
        yield from ((name, item) for page in scan.paginate(TableName=name) for item in page["Items"])


def everything(world: World) -> Any:
    """All rows and stored deployments, to compare when nothing may be stored."""
    return rows(world), dict(world.payloads.deployments)


def send(world: World, document: dict[str, Any], app: str = "demo.flights", **how: Any) -> Report:
    """Deploy a document, to any app, with any of the flags of a request."""
    namespace, _, short = app.partition(".")
    store.put(world.ports, "namespace", namespace, {}, "tester")
    return deploy.deploy(world.ports, namespace, short, App.model_validate(document), how.pop("by", "tester"), **how)


def living(world: World, app: str = "demo.flights") -> dict[str, str]:
    """The mode of each schedule of an app, by short name."""
    names = lookup.schedules_of(world.ports, app)
    schedule_states = {name: world.ports.rows.get(ScheduleState, name) for name in names}
    return {
        name.rpartition(".")[2]: schedule_state.mode
        for name, schedule_state in schedule_states.items()
        if schedule_state is not None
    }


def workflows(world: World, app: str = "demo.flights") -> list[str]:
    return sorted(row.name.rpartition(".")[2] for row in lookup.definitions_in(world.ports, "workflow", app))


def note(world: World, app: str = "demo.flights") -> Any:
    """The deployed parts that the app's row records."""
    return store.get(world.ports, "app", app).document["deployed"]
