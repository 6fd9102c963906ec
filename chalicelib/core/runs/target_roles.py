"""The IAM role with which Sluice calls the targets of a namespace, if its allow-list names one (O10).

Without one, the Lambdas call targets with their own roles. With one, IAM bounds what the calls of a namespace reach.
"""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.core.instants import SECOND, Millis
from chalicelib.core.rows.run import Run
from chalicelib.core.runs import launch
from chalicelib.core.targets import registry
from chalicelib.core.targets.answers import Never, NotNow

# A call of STS with its repeat: 2 s to connect and 3 s to read, twice, and the pause (`aws/targets/assumed.py`).
MAX_ASSUME: Millis = 11 * SECOND


@dataclass(frozen=True, slots=True)
class TargetRole:
    """The role ``arn`` as ``namespace`` assumes it. Two namespaces never share a session, even of one role."""

    arn: str
    namespace: str


@dataclass(frozen=True, slots=True)
class NotAssumed:
    """Why a role has no credentials. ``denied``: IAM refused it, so a repeat helps only after a change of policies;
    otherwise STS throttled the call or did not answer."""

    why: str
    denied: bool


def namespace_of(run: Run) -> str:
    """The namespace whose role a run uses: that of its workflow, whose document names the target."""
    return run.workflow.partition(".")[0]


def role_of(run: Run) -> TargetRole | None:
    """The role on record in the row of a run; None if it is called with the role of the Lambda."""
    return TargetRole(run.target_role, namespace_of(run)) if run.target_role else None


def uses_role(run: Run) -> bool:
    """Whether calls of the target of a run are signed for AWS."""
    return registry.of_run(run).is_signed(run.request.target)


def instead_of_call(refused: NotAssumed, run: Run) -> NotNow | Never:
    """The answer to a call that was not made, because its role has no credentials.

    It delays no other run, because others have other roles. A new role, or a change of its policies, takes effect only
    after some minutes. So a refusal of IAM is final only after ten minutes, for a run with a lifecycle; for a delivery
    its policy decides.
    """
    if refused.denied and registry.of_run(run).has_lifecycle and not launch.may_pass(run):
        return Never(refused.why)
    return NotNow(refused.why, alone=True)
