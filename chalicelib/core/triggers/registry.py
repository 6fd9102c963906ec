"""The kinds of leaves, and the kinds of events that a dry run accepts.

A new kind needs a module of its own and an entry in `LEAVES`, or in `gathering.py` if it counts events of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chalicelib.core.documents import tagged, types_of
from chalicelib.core.rows.event import Event
from chalicelib.core.triggers.absent import AbsentTrigger
from chalicelib.core.triggers.elapsed import ElapsedTrigger
from chalicelib.core.triggers.gathering import GATHERING
from chalicelib.core.triggers.leaf import Given, Leaf
from chalicelib.core.triggers.quiet import QuietTrigger
from chalicelib.core.triggers.time import TimeTrigger

LEAVES: tuple[type[Leaf], ...] = (TimeTrigger, *GATHERING, QuietTrigger, ElapsedTrigger, AbsentTrigger)
GIVEN: tuple[type[Given], ...] = tuple(dict.fromkeys(given for leaf in LEAVES if (given := leaf.given) is not None))

_OF_TYPE = {kind: leaf for leaf in LEAVES for kind in types_of(leaf)}

if TYPE_CHECKING:
    AnyGiven = Given
else:
    AnyGiven = tagged(GIVEN)


def event_fields(event: Event) -> dict[str, Any]:
    """The fields of an event in the context of a run, besides its kind, id and instant. Empty if no leaf counts
    events of this kind."""
    leaf = _OF_TYPE.get(event.kind)
    return leaf.event_fields(event) if leaf is not None else {}


def lacks(event: Event) -> str:
    """Which of several partitions an event says are missing, in words; empty for most events."""
    leaf = _OF_TYPE.get(event.kind)
    return leaf.lacks(event) if leaf is not None else ""
