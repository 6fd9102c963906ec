"""The parts of a queue: the queue of a policy of many starts a second is divided, because its rows share a partition.

A part is a row of its own, with its own waiters and its own ``wake_at``. The pace, and the lease of the server, stay in
the row of the limit itself, to which no job writes that joins or leaves. Each job joins one part. The server reads the
heads of all parts and merges them by rank, so the order is that of one queue. Jobs of a divided queue never acquire a
permit directly, because no single row shows whether others wait.

The number of parts follows from the policy. It never falls. The row of the limit keeps it, so that the server finds the
jobs of all parts after the policy was made slower.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chalicelib.core import ids
from chalicelib.core.instants import SECOND, Millis
from chalicelib.core.limits import names
from chalicelib.core.limits.permits import Pace, PermitRequest
from chalicelib.core.rows.limit import LimitState, Waiter

# If an invocation crashes after a job has joined a part, and before it has woken the queue, a sweep finds the part.
CHECKED: Millis = 30 * SECOND


def count(ask: PermitRequest, state: LimitState) -> int:
    """Into how many parts the queue of a limit is divided; 0 if it is not."""
    return max(ask.parts, state.parts) if isinstance(ask, Pace) else 0


def queue_of(ask: PermitRequest, state: LimitState, job_id: str) -> str:
    """The name of the queue that a job joins: that of the limit, or of a part."""
    number = count(ask, state)
    return names.part(ask.limit_name, 1 + int(ids.digest(job_id, length=4), 16) % number) if number else ask.limit_name


def queues(state: LimitState) -> tuple[str, ...]:
    """The names of all queues of a limit. Jobs that joined before it was divided, and runs, are in the first one."""
    return (state.limit_name, *(names.part(state.limit_name, number) for number in range(1, state.parts + 1)))


def merged(pages: Iterable[tuple[Sequence[Waiter], bool]]) -> list[Waiter]:
    """The waiters of some queues in the order of their ranks. Each page says whether more may follow in its queue: what
    ranks behind the end of such a page is left out."""
    known = [(page, more) for page, more in pages if page]
    end = min((page[-1].rank for page, more in known if more), default=None)
    found = sorted((waiter for page, _ in known for waiter in page), key=lambda waiter: waiter.rank)
    return [waiter for waiter in found if end is None or waiter.rank <= end]
