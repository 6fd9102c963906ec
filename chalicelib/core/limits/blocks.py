"""Blocks of permits: one write to a pace acquires the appointments of the next jobs in its queue.

A single permit costs a dozen calls, one after the other, which is too slow for a pace of several starts a second. The
rules of a permit hold for each permit of a block (`core/limits/permits.py`). Its start begins at its appointment or at
most the tolerance later, or not with this permit.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count, takewhile

from chalicelib.core.instants import SECOND, Instant, Millis
from chalicelib.core.limits import names
from chalicelib.core.limits.permits import LEAD, Pace

# A job that becomes urgent, or joins with a higher priority, waits for the end of the blocks that are acquired already.
MAX_SPAN: Millis = 400
# From the write of a block until its first start: the rows of its jobs are read, decided and leased.
READY: Millis = 350
# How long before the first appointment of a block Sluice reads the queue.
SERVED_EARLY: Millis = 550
# Jobs that one invocation prepares and sends. Sluice divides a block with more jobs among several invocations.
PART = 50
# The time that an invocation has from one call of a block to its next one: a call and a read of the rows take less.
BETWEEN: Millis = 70
# Calls to a target begin together if their appointments lie within this share of the tolerance. The rest of it is for
# a read of the schedule states that takes long, and for the call before.
TOGETHER = 0.5


@dataclass(frozen=True, slots=True)
class Block:
    """The appointments of the next jobs of a queue, and the ``head`` of the pace after them."""

    appointments: tuple[Instant, ...]
    head: Instant


def is_fast(pace: Pace) -> bool:
    """Whether permits of a pace are acquired in blocks: those of a policy, if they follow each other within a second.
    Those of a target's own pace never are: its jobs start one by one."""
    return pace.spacing < SECOND and names.is_pace(pace.limit_name) and not names.is_target_pace(pace.limit_name)


def next_block(pace: Pace, head: Instant, now: Instant, jobs: int) -> Block | None:
    """The next appointments of a pace, for at most so many jobs; None if the first one lies too far ahead.

    The block spans at most `MAX_SPAN` and ends at most `LEAD` ahead, so that a changed policy holds soon."""
    base = max(head, now + READY)
    latest = min(base + MAX_SPAN - 1, now + LEAD)
    free = takewhile(lambda at: at <= latest, (base + pace.after(number) for number in count()))
    appointments = tuple(at for at, _ in zip(free, range(jobs), strict=False))
    return Block(appointments, base + pace.after(len(appointments))) if appointments else None


def most(pace: Pace) -> int:
    """How many appointments a block has at most."""
    return sum(1 for _ in takewhile(lambda number: pace.after(number) < MAX_SPAN, count()))


def senders(pace: Pace) -> int:
    """How many invocations send a full block."""
    apart = max(pace.spacing, int(pace.tolerance * TOGETHER))
    return max(-(-most(pace) // PART), min(most(pace), -(-BETWEEN // apart)))


def served_at(head: Instant, now: Instant) -> Instant:
    """When the queue is read for the next block."""
    return max(now, head - SERVED_EARLY)
