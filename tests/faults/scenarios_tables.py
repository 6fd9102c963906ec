"""For `test_crash_points.py`: commits of an Iceberg table (T21), of which every other notification is lost, and objects
that a manifest lists (T8), each notified twice.
"""

from __future__ import annotations

from typing import Any

from chalicelib.core.events.partitions import ObjectCreated
from chalicelib.flow.definitions import store
from chalicelib.flow.ingest.objects import match_object
from tests.faults.dying import Scenario, finish, people, tick
from tests.support.crash import lost, redelivered
from tests.support.iceberg_files import BUCKET, TABLE, file, lay_down
from tests.support.world import World

COMMITS = 5
SNAPSHOT = {"type": "snapshot", "dataset": "orders"}


def on(trigger: dict[str, Any], workflow: str) -> dict[str, Any]:
    return {"workflow": workflow, "enabled": True, "trigger": trigger}


def _commits(world: World) -> None:
    document = {**TABLE, "keys": ["snapshot"], "operations": ["append"]}
    people(world, lambda: store.put(world.ports, "dataset", "demo.orders", document, "tester"))
    people(world, lambda: world.put("batch", on({**SNAPSHOT, "count": COMMITS - 1}, "clean")))
    people(world, lambda: world.put("bulk", on({"type": "size", "dataset": "orders", "bytes": 200}, "join")))
    lay_down(world, COMMITS)
    for number in (3, 1, COMMITS, COMMITS):
        at = world.clock.now()
        redelivered(lambda number=number, at=at: match_object(world.ports, ObjectCreated(BUCKET, file(number), at)))
        world.settle(lost)
    tick(world)
    finish(world)


def _snapshots(world: World, name: str) -> list[list[str]]:
    """The snapshots that each run got, in its context or in its manifest."""
    return [sorted(event["snapshot"]["id"] for event in world.given(run)) for run in world.runs(name)]


def _counted_once(world: World, name: str, events: int) -> bool:
    """Whether the runs of a schedule got so many events, each of them in one run."""
    found = [event["id"] for run in world.runs(name) for event in world.given(run)]
    return len(found) == len(set(found)) == events


FOLDER = "raw/listed/month=09/"


def _listed(world: World) -> None:
    ready = {"manifest": "_MANIFEST"}
    document = {"bucket": "lake", "prefix": "raw/listed/", "keys": ["month"], "ready": ready, "rewritten": "again"}
    people(world, lambda: store.put(world.ports, "dataset", "demo.listed", document, "tester"))
    people(world, lambda: world.put("each", on({"type": "partition", "dataset": "listed"}, "clean")))
    names = ["a.csv", "b.csv", "c.csv"]
    for number, name in enumerate(["a.csv", "_MANIFEST", "b.csv", "c.csv", "d.csv", "_MANIFEST"]):
        key, at = f"{FOLDER}{name}", world.clock.now()
        world.lake.objects["lake-bucket", key] = "\n".join(names) if name == "_MANIFEST" else ""
        world.lake.put_at["lake-bucket", key] = at
        created = ObjectCreated("lake-bucket", key, at, 1, "", f"{number:08X}")
        redelivered(lambda created=created: match_object(world.ports, created))
        redelivered(lambda created=created: match_object(world.ports, created))
        world.settle(lost)
        world.clock.pass_by("10s")
    tick(world)
    finish(world)


TABLES = {
    "a manifest, the objects that it lists, and another version of it": Scenario(
        {},
        _listed,
        # While the tables are busy, the job of the first event may still gather when the second one comes.
        [({"each": ["SUCCEEDED", "SUCCEEDED"]}, 2), ({"each": ["SUCCEEDED"]}, 1)],
        holds=lambda world: _counted_once(world, "each", 2),
    ),
    "commits of a table, counted and weighed": Scenario(
        {},
        _commits,
        [({"batch": ["SUCCEEDED"], "bulk": ["SUCCEEDED"]}, 2)],
        holds=lambda world: [_snapshots(world, name) for name in ("batch", "bulk")] == [[["1", "2", "3", "4"]]] * 2,
    ),
}
