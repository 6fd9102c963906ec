"""Read what the triggers of a schedule have to know: holiday calendars (T30), and the periods of datasets (T29)."""

from __future__ import annotations

from chalicelib.core.definitions.calendar import HolidayCalendar
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.events.periods import names_of
from chalicelib.core.rows.definition import Definition
from chalicelib.core.triggers import tree
from chalicelib.ports import Ports


def read(ports: Ports, schedule: Schedule) -> Schedule:
    """The schedule, whose triggers know the holidays of their calendars from now on, and the periods of their datasets.
    A calendar that is gone has no holidays, and a dataset that is gone no periods."""
    for name in schedule.calendars:
        row = ports.rows.get(Definition, "calendar", name)
        tree.learn(schedule.trigger, name, HolidayCalendar.model_validate(row.document).holidays() if row else None)
    return read_periods(ports, schedule)


def read_periods(ports: Ports, schedule: Schedule) -> Schedule:
    """The schedule, whose triggers know the periods of their datasets from now on."""
    for name in schedule.periodic:
        row = ports.rows.get(Definition, "dataset", name)
        names = names_of(Dataset.model_validate(row.document)) if row is not None else None
        tree.learn_periods(schedule.trigger, name, names)
    return schedule
