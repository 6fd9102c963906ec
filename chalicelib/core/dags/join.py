"""Join rules: whether a node of a DAG runs, by the ends of the nodes before it (W17) and their results (W18).

`judge` is a function of the ends alone, and not of their order. So what it has once decided stays decided, however many
more nodes end.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from chalicelib.core.definitions.dag import JoinRule

# What the end of a node before means for an edge. met: it ended as the edge requires. unmet: it succeeded, and its
# result does not match the pattern of the edge. skipped: it was skipped, or the edge waits for a failure that did not
# happen. failed: any other end, and a success without a result to match. open: it has not ended.
Outcome = Literal["met", "unmet", "skipped", "failed", "open"]
# START: the node runs. SKIPPED, BLOCKED: it never will. OPEN: it depends on nodes that have not ended.
Decision = Literal["START", "SKIPPED", "BLOCKED", "OPEN"]

_AT_ONCE: dict[tuple[JoinRule, Outcome], Decision] = {
    ("all_succeeded", "failed"): "BLOCKED",
    ("none_failed", "failed"): "BLOCKED",
    ("one_succeeded", "met"): "START",
    ("one_failed", "failed"): "START",
}
# The rules whose success takes care of the failure of a node before. The others run beside it, and the DAG run fails.
HANDLES: tuple[JoinRule, ...] = ("one_succeeded", "one_failed")


def judge(rule: JoinRule, outcomes: Collection[Outcome]) -> Decision:
    """Whether a node runs. ``outcomes`` are those of the edges that lead to it; a node without edges runs."""
    if rule == "always":
        return "START"
    at_once = next((_AT_ONCE[rule, outcome] for outcome in outcomes if (rule, outcome) in _AT_ONCE), None)
    if at_once is not None:
        return at_once
    return "OPEN" if "open" in outcomes else _in_the_end(rule, outcomes)


def _in_the_end(rule: JoinRule, outcomes: Collection[Outcome]) -> Decision:
    """The decision when all nodes before have ended, and no single one of them decides. If a result does not match,
    the node is skipped under each rule but ``one_succeeded``."""
    if rule == "one_succeeded":
        return "BLOCKED" if "failed" in outcomes else "SKIPPED"
    if rule == "one_failed" or "unmet" in outcomes:
        return "SKIPPED"
    return "SKIPPED" if rule == "all_succeeded" and "skipped" in outcomes else "START"
