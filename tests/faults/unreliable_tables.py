"""Tables with faults at chosen calls: a call is throttled, or a write is carried out and its answer is lost."""

from __future__ import annotations

from collections.abc import Callable, Collection

from botocore.exceptions import ClientError, ConnectionClosedError

from sluice.testing.memory_tables import MemoryTables


class Unreliable:
    """Counts the calls and the writes of tables. ``throttled`` are numbers of calls, ``unanswered`` numbers of writes
    that are carried out without an answer. Both count from 1, repeats included. ``counts`` says whether a call counts
    at all.
    """

    def __init__(
        self,
        tables: MemoryTables,
        throttled: Collection[int] = (),
        unanswered: Collection[int] = (),
        counts: Callable[[], bool] = lambda: True,
    ) -> None:
        self.counts = counts
        self.calls = self.writes = 0
        self.throttled, self.unanswered = throttled, unanswered
        self.in_act: int | None = None
        tables.before_call, tables.after_write = self._called, self._written

    def _called(self) -> None:
        if not self.counts():
            return
        self.calls += 1
        if self.calls in self.throttled:
            raise throttled()

    def _written(self) -> None:
        self.writes += 1
        if self.writes in self.unanswered:
            raise no_answer()


def throttled() -> ClientError:
    return ClientError({"Error": {"Code": "ThrottlingException", "Message": "too many requests"}}, "memory")


def no_answer() -> ConnectionClosedError:
    return ConnectionClosedError(endpoint_url="https://dynamodb")
