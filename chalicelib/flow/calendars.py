"""Read the holiday calendars that a schedule names (T30)."""

from __future__ import annotations

from chalicelib.core.definitions.calendar import HolidayCalendar
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.rows.definition import Definition
from chalicelib.core.triggers import tree
from chalicelib.ports import Ports


def read(ports: Ports, schedule: Schedule) -> Schedule:
    """The schedule, whose triggers know the holidays of their calendars from now on. A calendar that is gone has
    none."""
    for name in schedule.calendars:
        row = ports.rows.get(Definition, "calendar", name)
        tree.learn(schedule.trigger, name, HolidayCalendar.model_validate(row.document).holidays() if row else None)
    return schedule
