"""The registry of constraints. A new kind is a file of its own, and a line in `CONSTRAINTS`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from chalicelib.core.constraints.approval import Approval
from chalicelib.core.constraints.calendar import Calendar
from chalicelib.core.constraints.concurrency import Concurrency
from chalicelib.core.constraints.constraint import Constraint, External, externals_of
from chalicelib.core.constraints.dataset_fresh import DatasetFresh
from chalicelib.core.constraints.delay import Delay
from chalicelib.core.constraints.fresh import Fresh
from chalicelib.core.constraints.load import Load
from chalicelib.core.constraints.probe import Probe
from chalicelib.core.constraints.rate import Rate
from chalicelib.core.constraints.since_last_run import SinceLastRun
from chalicelib.core.constraints.time_window import TimeWindow
from chalicelib.core.documents import tagged

# Sluice requests external answers in this order: it measures a load before it calls a probe.
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
    DatasetFresh,
)

if TYPE_CHECKING:
    AnyConstraint = Constraint
else:
    AnyConstraint = tagged(CONSTRAINTS)


def check_together(constraints: Iterable[Constraint]) -> None:
    """Raise `SluiceError` if constraints of one schedule contradict each other."""
    given = tuple(constraints)
    for kind in reversed(CONSTRAINTS):
        kind.check_together([each for each in given if isinstance(each, kind)])


def externals_by_kind(constraints: Iterable[Constraint]) -> list[dict[str, External]]:
    """The external constraints of one schedule by their keys, one dict for each kind, in the order of the requests."""
    found = externals_of(constraints)
    kinds = [{key: each for key, each in found.items() if isinstance(each, kind)} for kind in CONSTRAINTS]
    return [externals for externals in kinds if externals]
