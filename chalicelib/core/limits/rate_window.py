"""Lines: one mechanism for everything scarce. A line is a permit rule and a queue by priority (docs/design.md, Lines).

*Slots* hand out a permit while ``active < limit`` and get it back when the run ends. *Pace* hands out permits in time:
a leaky bucket in its virtual-scheduling form (ITU-T I.371), ``head`` being the instant at which the bucket is empty.

A *log* remembers the last starts, and has a permit when the n-th last is old enough.

A newcomer takes a permit when there is one **and** nobody waits; it joins the queue under the exact negation of that,
so no wake-up can fall between look and wait, and nobody overtakes. Lines have one order (logs, slots of the workflow,
of the next at a policy, of groups, of the pool, of the EMR application, then pace), and a job takes them in that order,
holding what it has while it queues for the next: so no two jobs can wait for each other.
"""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.core.instants import Instant, Millis
from chalicelib.core.limits.names import rate_limit
from chalicelib.core.rows.limit import LimitState


@dataclass(frozen=True, slots=True)
class RateWindow:
    """What a job asks of a log line: fewer than ``limit`` claims in the last ``span`` ms (C5). ``binding`` False: its
    start is counted there, for the sake of others, but not limited."""

    limit_name: str
    limit: int
    span: Millis
    binding: bool = True

    @property
    def order(self) -> tuple[int, int, str]:
        return (0, self.span, self.limit_name)


def frees_at(ask: RateWindow, state: LimitState) -> Instant:
    """When a log line has its next permit: as soon as its ``limit``-th last start is ``span`` old."""
    newest = sorted(state.starts.values(), reverse=True)
    return newest[ask.limit - 1] + ask.span if len(newest) >= ask.limit else 0


def outdated(ask: RateWindow, state: LimitState) -> tuple[str, ...]:
    """The starts that a log line need not remember once there is one more.

    Of the last ``limit`` each may be that of a job which is dropped before it starts, so as many before them are kept.
    """
    oldest_first = sorted(state.starts.items(), key=lambda start: (start[1], start[0]))
    return tuple(holder for holder, _ in oldest_first[: max(len(oldest_first) - 2 * ask.limit + 1, 0)])


def rate_window_of(workflow: str, rule: str, binding: bool) -> RateWindow:
    limit, _, span = rule.partition("/")
    return RateWindow(rate_limit(workflow, rule), int(limit), int(span), binding)
