"""A leaf around a leaf that gathers: it refers to what the inner one refers to."""

from __future__ import annotations

from chalicelib.core.access.allowed import Named
from chalicelib.core.triggers.gathering import AnyGathering
from chalicelib.core.triggers.leaf import DatasetReference, Leaf, Upstream


class NestedLeaf(Leaf):
    """The base of `quiet` and `absent`, which are about the events of the leaf ``of``."""

    of: AnyGathering

    def datasets(self) -> tuple[DatasetReference, ...]:
        return self.of.datasets()

    def named(self) -> tuple[Named, ...]:
        return self.of.named()

    def upstreams(self) -> tuple[Upstream, ...]:
        return self.of.upstreams()
