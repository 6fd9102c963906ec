"""dataset_fresh: a partition of a dataset has come recently (C18)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal, Self

from chalicelib.core.constraints.constraint import Condition, Constraint, OnUnmet, Situation, Use
from chalicelib.core.documents import Duration, Reference
from chalicelib.core.instants import Millis, duration, format_duration, iso
from chalicelib.core.names import Names
from chalicelib.core.states import WaitReason
from chalicelib.core.triggers.partition import partition_key


class DatasetFresh(Constraint):
    """A partition of ``dataset`` has come ``within`` a span before now (C18). The default is the span ``fresh`` of the
    dataset, as it is then. ``on_unmet`` has no default.

    The age of a partition counts from its arrival. What its keys say does not matter: a day of last year that comes
    now is the newest partition."""

    wait_reason: ClassVar[WaitReason] = "upstream"

    type: Literal["dataset_fresh"]
    dataset: Reference
    within: Duration | None = None
    on_unmet: OnUnmet

    @property
    def span(self) -> Millis | None:
        return duration(self.within) if self.within is not None else None

    def describe(self) -> str:
        span = "the span fresh of the dataset" if self.span is None else format_duration(self.span)
        return f"a partition of {self.dataset} came within {span}"

    def evaluate(self, s: Situation) -> Condition:
        newest = s.newest.get(self.dataset)
        if newest is None:
            return self.unmet("none has come yet")
        span = self.span if self.span is not None else s.fresh.get(self.dataset)
        if span is None:
            return self.unmet("the dataset no longer says how long it is fresh")
        name = "/".join(f"{key}={value}" for key, value in newest.partition.items())
        came, ends = f"the newest, {name}, came at {iso(newest.at)}", newest.at + span
        return self.met(came) if s.now <= ends else self.unmet(f"{came} and was fresh until {iso(ends)}")

    def resolve(self, names: Names) -> Self:
        return self.model_copy(update={"dataset": names.in_namespace(self.dataset)})

    def references(self) -> Iterable[Use]:
        return (Use("dataset", self.dataset, "dataset"),)

    def datasets(self) -> tuple[str, ...]:
        return (self.dataset,)

    def datasets_with_fresh(self) -> tuple[str, ...]:
        return (self.dataset,) if self.within is None else ()

    def wake_keys(self, workflow: str) -> tuple[str, ...]:
        """The event of each partition."""
        return (partition_key(self.dataset),)

    def awaits(self) -> str:
        return f"a partition of {self.dataset}"
