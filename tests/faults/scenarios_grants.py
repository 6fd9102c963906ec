"""What waits for a grant of another namespace, or for the approval of its workflow, for `test_crash_points.py` (O9)."""

from __future__ import annotations

from typing import Any

from chalicelib.core.definitions.workflow import Workflow
from chalicelib.flow.definitions import store
from chalicelib.flow.jobs import actions
from tests.faults.dying import POLICIES, Scenario, finish, passes, people, upload
from tests.faults.scenarios_basic import CLEAN
from tests.support.world import EMR, World

ADA = "arn:aws:iam::123456789012:user/ada"
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


def _asking(world: World, *approval: Any) -> None:
    """Namespace ``lake`` has a workflow, which asks for an approval if one is given."""
    document = Workflow.model_validate({"target": EMR, **dict(approval)}).model_dump(mode="json")
    people(world, lambda: store.put(world.ports, "workflow", "lake.core.clean", document, "tester"))


def _of_a_foreign_workflow(world: World) -> None:
    """A schedule runs the workflow of another namespace, which asks for an approval."""
    for kind, name in (("namespace", "lake"), ("app", "lake.core")):
        people(world, lambda kind=kind, name=name: store.put(world.ports, kind, name, {}, "tester"))
    _asking(world, ("approval", {"type": "approval", "people": [ADA]}))
    _grants(world, run=["core.clean"])
    people(world, lambda: world.put("clean", {**CLEAN, "workflow": "lake.core.clean"}))
    upload(world, 1)
    passes(world, "1m")


def _approved_by_its_owner(world: World) -> None:
    _of_a_foreign_workflow(world)
    for job in world.jobs("clean"):
        people(world, lambda job=job: actions.approve(world.ports, job.job_id, ADA))
    finish(world)


def _asked_for_no_more(world: World) -> None:
    _of_a_foreign_workflow(world)
    _asking(world)
    finish(world)


def _approved_without_a_grant(world: World) -> None:
    """Its approval remains, while the job waits for the grant that was taken back."""
    _of_a_foreign_workflow(world)
    _grants(world)
    for job in world.jobs("clean"):
        people(world, lambda job=job: actions.approve(world.ports, job.job_id, ADA))
    passes(world, "1m")
    assert world.runs("clean") == []
    _grants(world, run=["*"])
    finish(world)


APPROVED: dict[str, Any] = {
    "approved by the owner of its workflow": _approved_by_its_owner,
    "its workflow asks for no approval any more": _asked_for_no_more,
    "approved while its grant is taken back": _approved_without_a_grant,
}
GRANTED = {
    **{
        name: Scenario({"clean": CLEAN}, act, [({"clean": ["SUCCEEDED"]}, 1)], tuned=ENFORCED)
        for name, act in APPROVED.items()
    },
    "held by a revocation, and granted again": Scenario(
        {"clean": CLEAN}, _held_and_granted, [({"clean": ["SUCCEEDED"]}, 1)], tuned=ENFORCED
    ),
    "held by a revocation, and granted in parts": Scenario(
        {"clean": CLEAN}, _held_and_granted_in_parts, [({"clean": ["SUCCEEDED"]}, 1)], tuned=ENFORCED
    ),
}
