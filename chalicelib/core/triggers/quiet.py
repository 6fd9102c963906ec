"""The leaf ``quiet``: another leaf is met, and then no further event of it arrives for a span (T12)."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from chalicelib.core.documents import Duration
from chalicelib.core.instants import Instant, Millis, duration, format_duration, iso
from chalicelib.core.names import Names
from chalicelib.core.rows.job import Progress
from chalicelib.core.triggers.gathering import NestedLeaf
from chalicelib.core.triggers.leaf import LeafState


class QuietTrigger(NestedLeaf):
    """The leaf ``of`` is met, and then none of its events arrives for ``after``: all chunks have arrived (T12)."""

    type: Literal["quiet"]
    after: Duration

    revocable: ClassVar[bool] = True  # another chunk ends the quiet

    @property
    def silence(self) -> Millis:
        return duration(self.after)

    def evaluate(self, progress: Progress | None, now: Instant) -> LeafState:
        arrived = (self.arrived(progress),) if progress else ()
        if progress is None or not self.of.is_enough(progress):
            return LeafState(met=False, arrived=arrived, missing=(self.missing(progress),))
        span, quiet_at = format_duration(self.silence), progress.last_at + self.silence
        if now >= quiet_at:
            return LeafState(met=True, arrived=(*arrived, f"none came for {span}"), missing=())
        missing = f"{span} without another {self.of.noun()} (until {iso(quiet_at)})"
        return LeafState(met=False, arrived=arrived, missing=(missing,), changes_at=quiet_at)

    def amounts(self, progress: Progress | None) -> tuple[int, int]:
        return self.of.amounts(progress)

    def describe(self) -> str:
        return f"{self.of.describe()}, {self._then()}"

    def missing(self, progress: Progress | None) -> str:
        return f"{self.of.missing(progress)}, {self._then()}"

    def arrived(self, progress: Progress) -> str:
        return f"{self.of.arrived(progress)}, the last at {iso(progress.last_at)}"

    def resolve(self, names: Names) -> Self:
        return self.model_copy(update={"of": self.of.resolve(names)})

    def _then(self) -> str:
        return f"then {format_duration(self.silence)} without another"
