"""A trigger as a tree of nodes, with what each part has gathered, for views. It shows the decision of `tree.evaluate`,
part by part, in the same words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from chalicelib.core.instants import Instant
from chalicelib.core.rows.job import Progress
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.leaf import Leaf
from chalicelib.core.triggers.tree import AnyTrigger, Composite, NumberedLeaf


@dataclass(frozen=True, slots=True)
class Node:
    """A part of a trigger. A leaf needs events, of a ``size`` leaf bytes; a combination needs ``need`` of its children.

    ``have`` may exceed ``need``. ``leaf`` is the number of a leaf; None for a combination. ``changes_at`` is when the
    part is met without a further event."""

    type: str
    text: str
    need: int
    have: int
    met: bool
    arrived: tuple[str, ...]
    missing: tuple[str, ...]
    changes_at: Instant | None
    leaf: str | None
    children: tuple[Node, ...] = ()


def nodes(trigger: AnyTrigger, progress: Mapping[str, Progress], now: Instant) -> Node:
    """The root of the tree at ``now``, given the events that the leaves have gathered."""
    return _node(trigger, progress, now, iter(tree.leaves(trigger)))


def _node(
    trigger: AnyTrigger, progress: Mapping[str, Progress], now: Instant, numbered: Iterator[NumberedLeaf[Leaf]]
) -> Node:
    if not isinstance(trigger, Composite):
        number = next(numbered).id
        gathered = progress.get(number)
        state, (have, need) = trigger.evaluate(gathered, now), trigger.amounts(gathered)
        text = trigger.describe()
        return Node(trigger.type, text, need, have, state.met, state.arrived, state.missing, state.changes_at, number)
    children = tuple(_node(child, progress, now, numbered) for child in trigger.triggers)
    need, have = tree.needed(trigger), sum(child.met for child in children)
    changes = [child.changes_at for child in children if not child.met and child.changes_at is not None]
    changes_at = min(changes, default=None)
    return Node(trigger.type, tree.describe(trigger), need, have, have >= need, (), (), changes_at, None, children)
