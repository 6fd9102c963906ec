"""Pairs of invocations that meet at a grant between namespaces, and the expected result (O9)."""

from __future__ import annotations

from typing import Any

from chalicelib.flow.definitions import grants
from tests.faults.dying import SMALL
from tests.faults.meetings.situations_people import Act, Crossing, check, put, settle, then, uploads
from tests.support.schedules import partitions
from tests.support.world import EMR, World

ENFORCED = {**SMALL, "authorization": "enforce"}
BEFORE = partitions()
FOREIGN = partitions(workflow="lake.core.clean", policy="lake.calm")


def granting(**what: Any) -> Act:
    return lambda world: world.grant("lake", {"grants": [{"to": "demo", **what}] if what else []})


EVERYTHING = granting(run=["*"], policies=["*"])
NOTHING = granting()


def _own(world: World) -> None:
    policies = {"calm": {"max_events": 3, "interval": "1m"}}
    world.deploy({"workflows": {"clean": {"target": EMR}}, "policies": policies}, "lake", "core")


def _waking(world: World) -> None:
    grants.wake_waiting(world.ports, "lake")


def _once(ends: dict[str, list[str]]) -> bool:
    """Whether the job has run once. An attempt that was held before its call has another after it."""
    return [state for state in ends["daily"] if state != "RETRYING"] == ["SUCCEEDED"]


FOREIGN_PUT = then(_own, EVERYTHING, put("daily", FOREIGN))
GRANTS_CROSS = {
    "a check, and a grant": Crossing(
        {"daily": BEFORE}, then(FOREIGN_PUT, NOTHING, uploads(1)), check("daily"), EVERYTHING, _once, tuned=ENFORCED
    ),
    "a check, and a revocation": Crossing(
        {"daily": BEFORE}, then(FOREIGN_PUT, uploads(1)), check("daily"), NOTHING, _once, EVERYTHING, ENFORCED
    ),
    "a check of what is held, and a grant of a part": Crossing(
        {"daily": BEFORE},
        then(FOREIGN_PUT, NOTHING, uploads(1), settle),
        check("daily"),
        granting(run=["core.clean"]),
        _once,
        EVERYTHING,
        ENFORCED,
    ),
    "a waking of what is held, and a check": Crossing(
        {"daily": BEFORE},
        then(FOREIGN_PUT, NOTHING, uploads(1), settle, EVERYTHING),
        _waking,
        check("daily"),
        _once,
        tuned=ENFORCED,
    ),
    "a waking of what is held, and a revocation": Crossing(
        {"daily": BEFORE},
        then(FOREIGN_PUT, NOTHING, uploads(1), settle, EVERYTHING),
        _waking,
        NOTHING,
        _once,
        EVERYTHING,
        ENFORCED,
    ),
    "two wakings of what is held": Crossing(
        {"daily": BEFORE},
        then(FOREIGN_PUT, NOTHING, uploads(1), settle, EVERYTHING),
        _waking,
        _waking,
        _once,
        tuned=ENFORCED,
    ),
    "a put of foreign names, and a revocation": Crossing(
        {"daily": BEFORE},
        then(FOREIGN_PUT, uploads(1)),
        put("daily", {**FOREIGN, "properties": {"new": True}, "on_update": "carry"}),
        NOTHING,
        _once,
        EVERYTHING,
        ENFORCED,
    ),
    "an event of others, and a revocation": Crossing(
        {"daily": BEFORE},
        then(
            _own,
            granting(events=["e"]),
            put("daily", {**BEFORE, "trigger": {"type": "event", "event": "e", "namespace": "lake"}}),
        ),
        lambda world: world.post("e", namespace="lake"),
        NOTHING,
        lambda ends: ends["daily"] in ([], ["SUCCEEDED"]),
        EVERYTHING,
        ENFORCED,
    ),
}
