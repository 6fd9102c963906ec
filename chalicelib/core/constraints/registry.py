"""Every kind of constraint: a new one is its own file, and a line here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from chalicelib.core.constraints.approval import Approval
from chalicelib.core.constraints.calendar import Calendar
from chalicelib.core.constraints.concurrency import Concurrency
from chalicelib.core.constraints.constraint import Constraint, External, externals_of
from chalicelib.core.constraints.delay import Delay
from chalicelib.core.constraints.fresh import Fresh
from chalicelib.core.constraints.load import Load
from chalicelib.core.constraints.probe import Probe
from chalicelib.core.constraints.rate import Rate
from chalicelib.core.constraints.since_last_run import SinceLastRun
from chalicelib.core.constraints.time_window import TimeWindow
from chalicelib.core.documents import tagged

# External ones are asked in this order: a load is measured before a probe is called.
CONSTRAINTS: tuple[type[Constraint], ...] = (
    Concurrency,
    Delay,
    TimeWindow,
    SinceLastRun,
    Rate,
    Fresh,
    Load,
    Approval,
    Probe,
    Calendar,
)

if TYPE_CHECKING:
    AnyConstraint = Constraint
else:
    AnyConstraint = tagged(CONSTRAINTS)


def check_together(constraints: Iterable[Constraint]) -> None:
    """Refuse the constraints of one schedule that do not fit together."""
    given = tuple(constraints)
    for kind in reversed(CONSTRAINTS):
        kind.check_together([each for each in given if isinstance(each, kind)])


def externals_by_kind(constraints: Iterable[Constraint]) -> list[dict[str, External]]:
    """The external constraints of one schedule by their keys, kind by kind, in the order in which they are asked."""
    found = externals_of(constraints)
    kinds = [{key: each for key, each in found.items() if isinstance(each, kind)} for kind in CONSTRAINTS]
    return [each for each in kinds if each]
