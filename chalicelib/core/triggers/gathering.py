"""The leaves that count events of their own, as one type of field: what a quiet or an absent leaf may be about.

A new one is a file of its own, and a name here.
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
