"""The leaf ``nodes``: the end of the nodes before a node of a DAG, by its join rule (W17). No user can name it."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from chalicelib.core.documents import StoredReference
from chalicelib.core.rows.job import Progress
from chalicelib.core.triggers.leaf import Leaf, Upstream, since
from chalicelib.core.triggers.patterns import Flattened
from chalicelib.core.triggers.program_status import Status, status_key

JOINED = "joined"  # the field of an event's payload that says: the rule of this node is met
MAX_BEFORE = 45  # nodes before one node, as many as statuses that lead to one
Rule = Literal["all_succeeded", "none_failed", "all_done", "one_succeeded", "one_failed"]

_SAID: dict[Rule, str] = {
    "all_succeeded": "all nodes before it succeeded, with the results that its edges ask for",
    "none_failed": "all nodes before it ended, and none failed",
    "all_done": "all nodes before it ended",
    "one_succeeded": "a node before it succeeded",
    "one_failed": "a node before it failed",
}
_TO_COME: dict[Rule, str] = {
    "all_succeeded": "the success of all nodes before it, with the results that its edges ask for",
    "none_failed": "the end of all nodes before it, of which none fails",
    "all_done": "the end of all nodes before it",
    "one_succeeded": "the success of a node before it",
    "one_failed": "the failure of a node before it",
}


class NodesTrigger(Leaf):
    """The ``rule`` of a node is met by the ends of the nodes before it. Nodes end without a run, too, so no status of a
    run meets the leaf: `flow/runs/joins.py` decides by the states of all nodes, and applies one event.

    ``nodes`` has the full names of the workflow and the schedule of each node before."""

    type: Literal["nodes"]
    rule: Rule
    nodes: dict[str, tuple[StoredReference, StoredReference]] = Field(min_length=1, max_length=MAX_BEFORE)

    internal: ClassVar[bool] = True

    def event_keys(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(status_key(workflow, self._status) for workflow, _ in self.nodes.values()))

    def accepts(self, payload: Flattened, started_by: str | None = None) -> bool:
        return JOINED in payload.root

    def missing(self, progress: Progress | None) -> str:
        return f"{_TO_COME[self.rule]} ({self._names})"

    def arrived(self, progress: Progress) -> str:
        return f"{_SAID[self.rule]} ({self._names}) {since(progress)}"

    def upstreams(self) -> tuple[Upstream, ...]:
        return tuple(Upstream(workflow, schedule, (self._status,)) for workflow, schedule in self.nodes.values())

    @property
    def _status(self) -> Status:
        """The status under which the leaf is listed. A node that waits for a failure passes its priority to none."""
        return "FAILED" if self.rule == "one_failed" else "COMPLETED"

    @property
    def _names(self) -> str:
        return ", ".join(sorted(self.nodes))
