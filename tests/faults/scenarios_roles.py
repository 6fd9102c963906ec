"""Scenarios of targets that are called with the role of their namespace, for `test_crash_points.py` (O10)."""

from __future__ import annotations

from functools import partial
from typing import Any

from chalicelib.flow.runs.follow import request_cancel
from tests.faults.dying import Scenario, passes, people, tick
from tests.faults.scenarios_delivered import SENT_ONCE
from tests.support.crash import lost, redelivered
from tests.support.reasons import says
from tests.support.schedules import at
from tests.support.world import World

ROLES = "arn:aws:iam::123456789012:role/"
ONE, TWO = f"{ROLES}sluice-target-one", f"{ROLES}sluice-target-two"
TUNED = {"target_role_arns": (f"{ROLES}*",)}
AT_ONE = "1 12 2 3 *"
BURST: dict[str, Any] = {**SENT_ONCE, "spread": {"count": 5, "over": "1ms"}}


def _until_one(world: World) -> None:
    world.clock.pass_by("20s")
    tick(world)
    for _ in range(5):
        world.clock.pass_by("20s")
        world.settle(lost)


def _sent_with_role(world: World) -> None:
    redelivered(lambda: world.allow("demo", target_role=ONE))
    _until_one(world)


def _throttled(world: World) -> None:
    """STS throttles for two minutes, first with no credentials in the process."""
    redelivered(lambda: world.allow("demo", target_role=ONE))
    world.targets.sts.down = "Throttling"
    _until_one(world)
    passes(world, "1m")
    world.targets.sts.down = ""
    passes(world, "1m", "1m")


def _changed_between_tries(world: World) -> None:
    """IAM refuses the role, and an administrator names another one."""
    redelivered(lambda: world.allow("demo", target_role=ONE))
    world.targets.sts.denied.add(ONE)
    _until_one(world)
    people(world, lambda: world.allow("demo", target_role=TWO))
    passes(world, "1m", "1m")


def _launched_and_followed(world: World) -> None:
    """A run is launched with a role and polled; another role is named while it runs. The event of its end arrives."""
    redelivered(lambda: world.allow("demo", target_role=ONE))
    _until_one(world)
    people(world, lambda: world.allow("demo", target_role=TWO))
    for run in world.targets.emr.runs.values():
        run.state = "RUNNING"
    passes(world, "3m", "11m")
    for run in list(world.targets.emr.runs.values()):
        redelivered(partial(world.emr_says, run.id, "SUCCESS"))
    world.settle(lost)


def _cancelled(world: World) -> None:
    redelivered(lambda: world.allow("demo", target_role=ONE))
    _until_one(world)
    for run in world.targets.emr.runs.values():
        run_id = run.name.rpartition("-")[0]
        redelivered(partial(request_cancel, world.ports, run_id, 1, says("no longer needed")))
    world.settle(lost)
    passes(world, "1m", "1m")


def _only(*roles: str) -> Any:
    """Every call of a target was made with one of these roles, and with credentials that were valid."""

    def holds(world: World) -> bool:
        sts = world.targets.sts
        return {role for _, _, role in sts.called_as} <= set(roles) and not sts.expired

    return holds


ROLED = {
    "deliveries with the role of their namespace": Scenario(
        {"message": BURST}, _sent_with_role, [({"message": ["SUCCEEDED"] * 5}, 0)],
        messages=5, tuned=TUNED, holds=_only(ONE),
    ),
    "deliveries while STS throttles": Scenario(
        {"message": BURST}, _throttled, [({"message": ["SUCCEEDED"] * 5}, 0)],
        messages=5, tuned=TUNED, holds=_only(ONE),
    ),
    "deliveries whose role is replaced after a refusal": Scenario(
        {"message": BURST}, _changed_between_tries, [({"message": ["SUCCEEDED"] * 5}, 0)],
        messages=5, tuned=TUNED, holds=_only(TWO),
    ),
    "a run with the role of its namespace, which changes while it runs": Scenario(
        {"daily": at(AT_ONE)}, _launched_and_followed, [({"daily": ["SUCCEEDED"]}, 1)],
        tuned=TUNED, holds=_only(ONE, TWO),
    ),
    "a run whose role STS does not give at first": Scenario(
        {"daily": at(AT_ONE)}, _throttled, [({"daily": ["SUCCEEDED"]}, 1)], tuned=TUNED, holds=_only(ONE),
    ),
    "a run that is cancelled with the role of its namespace": Scenario(
        {"daily": at(AT_ONE)}, _cancelled,
        [({"daily": [state]}, started) for state, started in (("CANCELLED", 1), ("ABORTED", 0), ("SUCCEEDED", 1))],
        tuned=TUNED, holds=_only(ONE),
    ),
}  # fmt: skip
