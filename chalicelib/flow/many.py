"""Read many schedules together: their states and their definitions, a hundred per call."""

from __future__ import annotations

from collections.abc import Sequence

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.flow import lookup
from chalicelib.ports import Ports

Found = tuple[ScheduleState, Schedule]


def schedules(ports: Ports, names: Sequence[str]) -> dict[str, Found]:
    """The schedules of these names that exist, in the given order. Versions that this process knows are not read."""
    read = ports.prefetch.read(ports, [("schedule_state", name) for name in names])
    states = [state for name in names if (state := read.catalog.schedule_state(name)) is not None and state.exists]
    read = ports.prefetch.read(ports, [("version", state.schedule, state.version) for state in states])
    pairs = ((state, lookup.definition_of(read, state)) for state in states)
    return {state.schedule: (state, schedule) for state, schedule in pairs if schedule is not None}
