"""The kinds of leaves, and the kinds of events that a dry run accepts.

A new kind needs a module of its own and an entry in these tuples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chalicelib.core.documents import tagged
from chalicelib.core.triggers.absent import AbsentTrigger
from chalicelib.core.triggers.elapsed import ElapsedTrigger
from chalicelib.core.triggers.event import GivenEvent
from chalicelib.core.triggers.gathering import GATHERING
from chalicelib.core.triggers.given import Given, GivenTime
from chalicelib.core.triggers.leaf import Leaf
from chalicelib.core.triggers.partition import GivenPartition
from chalicelib.core.triggers.program_status import GivenStatus
from chalicelib.core.triggers.quiet import QuietTrigger
from chalicelib.core.triggers.size import GivenSize
from chalicelib.core.triggers.time import TimeTrigger

LEAVES: tuple[type[Leaf], ...] = (TimeTrigger, *GATHERING, QuietTrigger, ElapsedTrigger, AbsentTrigger)
GIVEN: tuple[type[Given], ...] = (GivenTime, GivenPartition, GivenSize, GivenStatus, GivenEvent)

if TYPE_CHECKING:
    AnyGiven = Given
else:
    AnyGiven = tagged(GIVEN)
