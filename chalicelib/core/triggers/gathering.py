"""The leaves that count events, as the type of one field: those that a quiet or an absent leaf may contain, and the
base of these two.

A new one needs a module of its own and an entry here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chalicelib.core.access.allowed import Named
from chalicelib.core.documents import tagged
from chalicelib.core.triggers.cloudwatch_alarm import CloudWatchAlarmTrigger
from chalicelib.core.triggers.event import EventTrigger
from chalicelib.core.triggers.leaf import DatasetReference, GatheringLeaf, Leaf, Upstream
from chalicelib.core.triggers.partition import PartitionTrigger
from chalicelib.core.triggers.patterns import Flattened
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


class NestedLeaf(Leaf):
    """The base of `quiet` and `absent`, which are about the events of the leaf ``of``."""

    of: AnyGathering

    @property
    def nothing(self) -> str:
        return self.of.nothing

    def event_keys(self) -> tuple[str, ...]:
        return self.of.event_keys()

    def accepts(self, payload: Flattened, started_by: str | None = None) -> bool:
        return self.of.accepts(payload, started_by)

    def datasets(self) -> tuple[DatasetReference, ...]:
        return self.of.datasets()

    def named(self) -> tuple[Named, ...]:
        return self.of.named()

    def upstreams(self) -> tuple[Upstream, ...]:
        return self.of.upstreams()
