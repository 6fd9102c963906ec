"""How many refusals become audit records, so that a flood of refused requests does not cost without limit."""

from __future__ import annotations

from chalicelib.core.instants import MINUTE, Instant, Millis

AGAIN_AFTER: Millis = 1 * MINUTE  # equal refusals of one signer within this time share a record
MAX_A_MINUTE = 30  # records of one process
MAX_KNOWN = 1_000  # kinds of refusals that a process remembers

Same = tuple[str, ...]


class Refusals:
    """The refusals that one process has seen lately. Within a minute it records the first of equal ones, and at most
    `MAX_A_MINUTE` in all; the next record counts those that were left out."""

    def __init__(self) -> None:
        self._begun: Instant = 0
        self._taken = 0
        self._known: dict[Same, tuple[Instant, int]] = {}

    def count(self, same: Same, now: Instant) -> int:
        """How many equal refusals a record stands for that is written now; 0 to write none."""
        if now - self._begun >= MINUTE:
            self._begun, self._taken = now, 0
        last, left_out = self._known.get(same, (None, 0))
        recent = last is not None and now - last < AGAIN_AFTER
        if recent or self._taken >= MAX_A_MINUTE:
            self._remember(same, last if last is not None else now - AGAIN_AFTER, left_out + 1)
            return 0
        self._taken += 1
        self._remember(same, now, 0)
        return left_out + 1

    def _remember(self, same: Same, at: Instant, left_out: int) -> None:
        self._known.pop(same, None)
        self._known[same] = (at, left_out)
        if len(self._known) > MAX_KNOWN:
            del self._known[next(iter(self._known))]
