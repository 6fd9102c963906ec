"""concurrency: a maximum of concurrent runs (C1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from pydantic import Field

from chalicelib.core import ids
from chalicelib.core.constraints.constraint import Condition, Constraint, Situation
from chalicelib.core.documents import Name
from chalicelib.core.limits import names
from chalicelib.core.limits.permits import Slots
from chalicelib.core.states import WaitReason
from chalicelib.core.text import count_of


class Concurrency(Constraint):
    """Fewer than ``max`` active runs of the workflow, or of all runs that name the same ``group`` (C1)."""

    queues: ClassVar[Literal["no", "if_waiting", "always"]] = "always"
    wait_reason: ClassVar[WaitReason] = "slots"
    for_backfill: ClassVar[bool] = True
    needs_lifecycle: ClassVar[bool] = True

    type: Literal["concurrency"]
    max: int = Field(ge=1, le=100_000)
    group: Name | None = None
    on_unmet: Literal["abort", "wait", "cancel_other"] = "abort"

    def describe(self) -> str:
        whose = f"of group {self.group}" if self.group else "of the workflow"
        return f"at most {count_of(self.max, 'run')} {whose} at a time"

    def evaluate(self, s: Situation) -> Condition:
        limit_name = self._limit(s.workflow, s.namespace)
        active, held = s.limit_state(limit_name).active, limit_name in s.job.held
        why = "this job holds a slot" if held else f"{active} of {self.max} in use"
        return self.met(why) if held or active < self.max else self.unmet(why)

    def permits(self, workflow: str, namespace: str) -> Iterable[Slots]:
        return (Slots(self._limit(workflow, namespace), self.max),)

    def groups(self) -> tuple[str, ...]:
        return (self.group,) if self.group is not None else ()

    def makes_room(self) -> bool:
        return self.on_unmet == "cancel_other"

    def _limit(self, workflow: str, namespace: str) -> str:
        """The limit whose slots count. A group belongs to the schedule's namespace. The runs of a DAG count together,
        also those of an older graph of it."""
        if self.group is not None:
            return names.group_limit(namespace, self.group)
        if ids.is_dag_graph(workflow):
            return names.dag_limit(ids.dag_of(workflow))
        return names.workflow_limit(workflow)
