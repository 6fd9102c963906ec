"""A ledger between a world and its own ledger, which calls functions around the writes of a step.

    class Watched(LedgerBetween):
        def before(self, writes): ...      # right before each commit; an error here prevents the commit
        def after(self, writes, conflict): ...

    world.ports = world.with_ports(ledger=Watched(world.ports.ledger))

`Before` runs one action right before the first commit that a test selects, as another Lambda would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from chalicelib.core.writes import Conflict, Put, Write


class LedgerBetween:
    """Passes every call on to the inner ledger."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def before(self, writes: Sequence[Write]) -> None:
        """Called before each commit."""

    def before_puts(self, writes: Sequence[Put]) -> None:
        """Called before each batch of puts."""

    def after(self, writes: Sequence[Write], conflict: Conflict | None) -> None:
        """Called after each commit with its result."""

    def commit(self, writes: Sequence[Write]) -> Conflict | None:
        self.before(writes)
        conflict: Conflict | None = self.inner.commit(writes)
        self.after(writes, conflict)
        return conflict

    def put_all(self, writes: Sequence[Put]) -> None:
        self.before_puts(writes)
        self.inner.put_all(writes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class Before(LedgerBetween):
    """Runs an action once, right before the first commit that ``picks`` chooses; by default before the first one."""

    def __init__(
        self, inner: Any, act: Callable[[], object], picks: Callable[[Sequence[Write]], bool] = lambda writes: True
    ) -> None:
        super().__init__(inner)
        self._act, self._picks, self.acted = act, picks, False

    def before(self, writes: Sequence[Write]) -> None:
        if not self.acted and self._picks(writes):
            self.acted = True
            self._act()


def has_kind(name: str) -> Callable[[Sequence[Write]], bool]:
    """Selects a commit that contains a write of this kind."""
    return lambda writes: any(type(write).__name__ == name for write in writes)
