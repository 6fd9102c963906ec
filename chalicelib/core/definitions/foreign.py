"""What a schedule uses of other namespaces, and how their grants stand (O9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from chalicelib.core.access.grants import ForeignUse, GrantKind
from chalicelib.core.definitions import overrides
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.rows.grants import GrantsRow
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.leaf import Leaf, Upstream
from chalicelib.core.writes import ExpectGrants

_EVENT = "event:"
_KINDS: dict[str, GrantKind] = {
    "workflow": "follow",
    "pool": "pools",
    "dataset": "datasets",
}  # of what a constraint reads


@dataclass(frozen=True, slots=True)
class UsedGrants:
    """Uses of other namespaces: the grants that were read for them, by namespace, and the uses without a grant."""

    uses: tuple[ForeignUse, ...] = ()
    rows: Mapping[str, GrantsRow | None] = field(default_factory=dict)
    missing: tuple[ForeignUse, ...] = ()

    @property
    def expected(self) -> list[ExpectGrants]:
        """The conditions of a transaction that relies on these grants, or on the lack of them."""
        return [ExpectGrants(namespace, row) for namespace, row in self.rows.items()]


NOTHING = UsedGrants()


def of_claim(name: str, schedule: Schedule, workflow: Workflow | None) -> tuple[ForeignUse, ...]:
    """What a start of a schedule uses of other namespaces: its workflow, pool and policy, and what its constraints
    read. The pool that a workflow names is used by the namespace of the workflow, not by that of the schedule."""
    own = name.partition(".")[0]
    found = [ForeignUse("run", schedule.workflow, own)]
    if schedule.policy is not None:
        found.append(ForeignUse("policies", schedule.policy, own))
    if schedule.pool is not None:
        found.append(ForeignUse("pools", schedule.pool, own))
    elif workflow is not None and (pool := overrides.pool_of(workflow, schedule)) is not None:
        found.append(ForeignUse("pools", pool, schedule.workflow.partition(".")[0]))
    for constraint in schedule.constraints:
        for use in constraint.references():
            kind = _KINDS.get(use.kind)
            found += [ForeignUse(kind, use.of, own)] if kind is not None else []
    return _foreign(found)


def of_schedule(name: str, schedule: Schedule) -> tuple[ForeignUse, ...]:
    """All that a schedule uses of other namespaces, at its start and in its trigger."""
    leaves = (use for leaf in tree.leaves(schedule.trigger) for use in of_leaf(name, leaf.trigger))
    return tuple(dict.fromkeys((*of_claim(name, schedule, None), *leaves)))


def of_leaf(name: str, leaf: Leaf) -> tuple[ForeignUse, ...]:
    """What one leaf of a schedule's trigger uses of other namespaces."""
    own = name.partition(".")[0]
    found = [ForeignUse("datasets", dataset.name, own) for dataset in leaf.datasets()]
    found += [use for upstream in leaf.upstreams() for use in _of_upstream(upstream, own)]
    found += [_of_event(key, own) for key in leaf.event_keys() if key.startswith(_EVENT)]
    return _foreign(found)


def _of_upstream(upstream: Upstream, own: str) -> list[ForeignUse]:
    """The uses of the runs for which a leaf waits. A run belongs to the schedule that started it, if the leaf names
    one. A schedule that runs the workflow of others needs their grant to run it, so its own runs need no other."""
    if upstream.schedule is None:
        return [ForeignUse("follow", upstream.workflow, own)]
    found = [ForeignUse("follow", upstream.schedule, own, upstream.workflow)]
    starter = upstream.schedule.partition(".")[0]
    if upstream.workflow.partition(".")[0] != starter:
        found.append(ForeignUse("run" if starter == own else "follow", upstream.workflow, own))
    return found


def _of_event(key: str, own: str) -> ForeignUse:
    namespace, _, kind = key.removeprefix(_EVENT).partition(":")
    return ForeignUse("events", f"{namespace}.{kind}", own)


def _foreign(found: Iterable[ForeignUse]) -> tuple[ForeignUse, ...]:
    return tuple(dict.fromkeys(use for use in found if use.owner != use.by))
