"""Read many schedules together: their states and their definitions, a hundred per call."""

from __future__ import annotations

from collections.abc import Sequence

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import lifetime
from chalicelib.core.rows import kinds
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.kinds import Key
from chalicelib.core.rows.schedule import ScheduleState, Timer, Version
from chalicelib.flow import lookup
from chalicelib.ports import Ports

Found = tuple[ScheduleState, Schedule]


def schedules(ports: Ports, names: Sequence[str]) -> dict[str, Found]:
    """The schedules of these names that exist, in the given order. Versions that this process knows are not read."""
    return _found(ports, names)[1]


def read_ahead(ports: Ports, names: Sequence[str]) -> tuple[Ports, dict[str, Found]]:
    """The same, and the ports with these schedules and their workflows read ahead, as they are now."""
    read, found = _found(ports, names)
    workflows = dict.fromkeys(schedule.workflow for _, schedule in found.values())
    return read.prefetch.read(read, [kinds.key(Definition, "workflow", name) for name in workflows]), found


def rows_of(ports: Ports, names: Sequence[str], timers: bool = False) -> Ports:
    """The ports with the states and versions of these schedules read ahead; with ``timers`` those of the ones that
    exist, too."""
    read = ports.prefetch.read(ports, [kinds.key(ScheduleState, name) for name in names])
    states = [state for name in names if (state := read.rows.get(ScheduleState, name)) is not None and state.exists]
    wanted: list[Key] = [kinds.key(Version, state.schedule, state.version) for state in states]
    wanted += [kinds.key(Timer, state.schedule) for state in states if timers]
    return read.prefetch.read(read, wanted)


def ended_of(ports: Ports, names: Sequence[str]) -> Ports:
    """The ports with the states of these schedules read ahead, and with the versions of those that Sluice deleted at
    their end."""
    read = ports.prefetch.read(ports, [kinds.key(ScheduleState, name) for name in names])
    states = [state for name in names if (state := read.rows.get(ScheduleState, name)) is not None]
    ended = [state for state in states if not state.exists and state.by == lifetime.BY]
    return read.prefetch.read(read, [kinds.key(Version, state.schedule, state.version) for state in ended])


def _found(ports: Ports, names: Sequence[str]) -> tuple[Ports, dict[str, Found]]:
    read = rows_of(ports, names)
    states = [state for name in names if (state := read.rows.get(ScheduleState, name)) is not None and state.exists]
    pairs = ((state, lookup.definition_of(read, state)) for state in states)
    return read, {state.schedule: (state, schedule) for state, schedule in pairs if schedule is not None}
