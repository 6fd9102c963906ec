"""Read many schedules together: their states and their definitions, a hundred per call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import lifetime
from chalicelib.core.rows import kinds
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.kinds import Key, Part
from chalicelib.core.rows.schedule import ScheduleState, Timer, Version
from chalicelib.core.rows.stored import StoredRow
from chalicelib.flow import lookup
from chalicelib.ports import Ports

AT_ONCE = 100
Found = tuple[ScheduleState, Schedule]
R = TypeVar("R", bound=StoredRow)


def schedules(ports: Ports, names: Sequence[str]) -> dict[str, Found]:
    """The schedules of these names that exist, in the given order. Versions that this process knows are not read."""
    return _found(ports, names)[1]


def schedules_in(ports: Ports, app: str) -> Iterator[tuple[str, Schedule]]:
    """The schedules of an app, by their names. A hundred are read when those before them have been used."""
    names = iter(lookup.schedules_of(ports, app))
    while part := list(islice(names, AT_ONCE)):
        yield from ((name, schedule) for name, (_, schedule) in schedules(ports, part).items())


def read_ahead(ports: Ports, names: Sequence[str]) -> tuple[Ports, dict[str, Found]]:
    """The same, and the ports with these schedules and their workflows read ahead, as they are now."""
    read, found = _found(ports, names)
    workflows = dict.fromkeys(schedule.workflow for _, schedule in found.values())
    return read.prefetch.read(read, [kinds.key(Definition, "workflow", name) for name in workflows]), found


def rows_of(ports: Ports, names: Sequence[str], timers: bool = False) -> Ports:
    """The ports with the states and versions of these schedules read ahead; with ``timers`` those of the ones that
    exist, too."""
    read, found = states(ports, names)
    return versions(read, [state for state in found if state.exists], timers)


def ended_of(ports: Ports, names: Sequence[str]) -> Ports:
    """The ports with the states of these schedules read ahead, and with the versions of those that Sluice deleted at
    their end."""
    read, found = states(ports, names)
    return versions(read, [state for state in found if not state.exists and state.by == lifetime.BY])


def states(ports: Ports, names: Sequence[str], strong: bool = True) -> tuple[Ports, list[ScheduleState]]:
    """The ports with the states of these schedules read ahead, and the states, also of schedules that were deleted."""
    read = ports.prefetch.read(ports, [kinds.key(ScheduleState, name) for name in names], strong=strong)
    return read, [state for name in names if (state := read.rows.get(ScheduleState, name)) is not None]


def versions(ports: Ports, states: Sequence[ScheduleState], timers: bool = False, strong: bool = True) -> Ports:
    """The ports with the present versions of these schedules read ahead, with ``timers`` their timers, too."""
    wanted: list[Key] = [kinds.key(Version, state.schedule, state.version) for state in states]
    wanted += [kinds.key(Timer, state.schedule) for state in states if timers]
    return ports.prefetch.read(ports, wanted, strong=strong)


def rows(ports: Ports, row: type[R], keys: Iterable[tuple[Part, ...]], strong: bool = True) -> list[R]:
    """The rows of a class that exist under these keys, in the given order."""
    places = list(keys)
    read = ports.prefetch.read(ports, [kinds.key(row, *place) for place in places], strong=strong)
    return [found for place in places if (found := read.rows.get(row, *place)) is not None]


def _found(ports: Ports, names: Sequence[str]) -> tuple[Ports, dict[str, Found]]:
    read, found = states(ports, names)
    living = [state for state in found if state.exists]
    read = versions(read, living)
    pairs = ((state, lookup.definition_of(read, state)) for state in living)
    return read, {state.schedule: (state, schedule) for state, schedule in pairs if schedule is not None}
