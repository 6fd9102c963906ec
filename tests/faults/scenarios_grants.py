"""What waits for a grant of another namespace, for `test_crash_points.py` (O9)."""

from __future__ import annotations

from typing import Any

from chalicelib.flow.definitions import store
from tests.faults.dying import POLICIES, Scenario, finish, passes, people, upload
from tests.faults.scenarios_basic import CLEAN
from tests.support.world import World

ENFORCED = {"authorization": "enforce"}


def _grants(world: World, **what: Any) -> None:
    document = {"grants": [{"to": "demo", **what}] if what else []}
    people(world, lambda: world.grant("lake", document))


def _own(world: World) -> None:
    """Namespace ``lake`` owns a policy, which the schedule uses."""
    people(world, lambda: store.put(world.ports, "namespace", "lake", {}, "tester"))
    people(world, lambda: store.put(world.ports, "policy", "lake.calm", POLICIES["calm"], "tester"))
    _grants(world, policies=["calm"])
    people(world, lambda: world.put("clean", {**CLEAN, "policy": "lake.calm"}))


def _held_and_granted(world: World) -> None:
    _own(world)
    _grants(world)
    upload(world, 1)
    passes(world, "1m")
    _grants(world, policies=["calm"])
    finish(world)


def _held_and_granted_in_parts(world: World) -> None:
    """The first grant is for something else, so that the job waits again."""
    _own(world)
    _grants(world)
    upload(world, 1)
    _grants(world, pools=["*"])
    _grants(world, policies=["*"])
    finish(world)


GRANTED = {
    "held by a revocation, and granted again": Scenario(
        {"clean": CLEAN}, _held_and_granted, [({"clean": ["SUCCEEDED"]}, 1)], tuned=ENFORCED
    ),
    "held by a revocation, and granted in parts": Scenario(
        {"clean": CLEAN}, _held_and_granted_in_parts, [({"clean": ["SUCCEEDED"]}, 1)], tuned=ENFORCED
    ),
}
