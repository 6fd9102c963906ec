"""The leaves that count events, as the type of one field: those that a quiet or an absent leaf may contain.

A new one needs a module of its own and an entry here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chalicelib.core.documents import tagged
from chalicelib.core.triggers.cloudwatch_alarm import CloudWatchAlarmTrigger
from chalicelib.core.triggers.event import EventTrigger
from chalicelib.core.triggers.leaf import GatheringLeaf
from chalicelib.core.triggers.partition import PartitionTrigger
from chalicelib.core.triggers.program_status import ProgramStatusTrigger
from chalicelib.core.triggers.size import SizeTrigger

GATHERING: tuple[type[GatheringLeaf], ...] = (
    PartitionTrigger,
    SizeTrigger,
    ProgramStatusTrigger,
    EventTrigger,
    CloudWatchAlarmTrigger,
)

if TYPE_CHECKING:
    AnyGathering = GatheringLeaf
else:
    AnyGathering = tagged(GATHERING)
