"""What holds waiting jobs, during one request: the rows of their schedules are read a hundred per call, each once."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from chalicelib.core.jobs import holds
from chalicelib.core.jobs.holds import Hold, HoldKind
from chalicelib.core.rows import kinds
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.kinds import Key
from chalicelib.core.rows.schedule import ScheduleState, Version
from chalicelib.core.views import At, View, shown
from chalicelib.flow.facts import Parsed
from chalicelib.ports import Page, Ports

Read = Callable[[int, str | None], Page[Job]]


class HoldView(View):
    """What a job waits for, in few kinds. ``name`` is that of a limit, a constraint, a schedule or a namespace, ``of``
    says the same in words, and ``changes_at`` is when time alone may end the wait."""

    kind: HoldKind
    name: str
    of: str
    changes_at: At | None


class Holding:
    """What holds each of many waiting jobs. All reads are eventually consistent, as those of the lists are."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._parsed = Parsed()
        self._states: dict[str, ScheduleState | None] = {}

    def page(self, read: Read) -> Read:
        """The same read of a list, which also reads what the views of its jobs need."""

        def reading(limit: int, cursor: str | None) -> Page[Job]:
            page = read(limit, cursor)
            self.read(page.items)
            return page

        return reading

    def read(self, jobs: Iterable[Job]) -> None:
        """Read the schedules of those jobs whose own rows do not say what holds them."""
        now = self._ports.clock.now()
        unclear = {job.schedule for job in jobs if holds.by_row(job, now) is None}
        names = sorted(unclear - self._states.keys())
        known, states = states_and_versions(self._ports, names)
        for name in names:
            self._states[name] = states.get(name)
            self._parsed.schedule(known, states.get(name))

    def of(self, job: Job) -> tuple[Hold, ...]:
        """What holds a job, at least one."""
        now = self._ports.clock.now()
        if holds.by_row(job, now) is None and job.schedule not in self._states:
            self.read([job])
        state = self._states.get(job.schedule)
        return holds.holds_of(job, state, self._parsed.schedule(self._ports, state), now)


def states_and_versions(ports: Ports, names: Iterable[str]) -> tuple[Ports, dict[str, ScheduleState]]:
    """The ports that know the state and the present definition of each of these schedules, and the states of those that
    exist."""
    named = list(names)
    wanted: list[Key] = [kinds.key(ScheduleState, name) for name in named]
    known = ports.prefetch.read(ports, wanted, strong=False)
    found = ((name, known.rows.get(ScheduleState, name)) for name in named)
    states = {name: state for name, state in found if state is not None}
    versions: list[Key] = [kinds.key(Version, name, state.version) for name, state in states.items()]
    return known.prefetch.read(known, versions, strong=False), states


def hold_view(hold: Hold) -> HoldView:
    return shown(HoldView, hold)
