"""Find schedules that would trigger themselves: by statuses of runs, and by what workflows produce (C1, L22).

The search follows schedules instead of workflows, because some leaves count the runs of one schedule only. It runs at
every put and enable, so the request that would close a cycle fails. It follows the nodes of a DAG from its start alone,
because the DAG's document was already checked for cycles.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from chalicelib.core import ids
from chalicelib.core.dags import rounds
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.errors import SluiceError
from chalicelib.core.rows import kinds
from chalicelib.core.rows.schedule import WAKE, ScheduleState, Version
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.partition import partition_key
from chalicelib.core.triggers.program_status import status_key
from chalicelib.core.triggers.size import size_key
from chalicelib.core.why import joined, mention, plain
from chalicelib.flow import lookup
from chalicelib.ports import Ports

MAX_DOWNSTREAM = 1_000  # schedules that the search for a cycle follows

Start = tuple[str, str]  # a schedule, and the workflow that it starts


class _Trail(NamedTuple):
    """The schedules from the first one of a search to one that it has found, and the workflows and datasets between."""

    schedules: tuple[str, ...]
    names: tuple[str, ...]

    def to(self, start: Start, through: tuple[str, ...]) -> _Trail:
        return _Trail((*self.schedules, start[0]), (*self.names, *through, start[1]))


@dataclass(frozen=True, slots=True)
class _Search:
    """What a search reads. ``name`` is the document that is put: its stored version, if it has one, is not followed.
    ``disabled`` are the disabled schedules that it follows, too."""

    ports: Ports
    name: str
    disabled: Mapping[str, Schedule]

    def walk(self, trails: dict[Start, _Trail]) -> Iterator[tuple[Start, _Trail]]:
        """The starts, and all those downstream of them, each with the trail that led to it."""
        queue = list(trails)
        while queue and len(trails) < MAX_DOWNSTREAM:
            start = queue.pop(0)
            yield start, trails[start]
            for following, through in self._downstream(start):
                if following not in trails:
                    trails[following] = trails[start].to(following, through)
                    queue.append(following)

    def by_data(self, datasets: Iterable[str]) -> Iterator[tuple[Start, tuple[str, ...]]]:
        """The schedules, with their workflows, that data of these datasets triggers, each with its dataset."""
        for dataset in datasets:
            for key in (partition_key(dataset), size_key(dataset)):
                for schedule, definition in self._subscribed(key):
                    if dataset in tree.datasets(definition.trigger):
                        yield (schedule, definition.workflow), (dataset,)
            for schedule, definition in self.disabled.items():
                if dataset in tree.datasets(definition.trigger):
                    yield (schedule, definition.workflow), (dataset,)

    def _downstream(self, start: Start) -> Iterator[tuple[Start, tuple[str, ...]]]:
        starter, workflow = start
        for status in ("STARTED", "COMPLETED", "FAILED", "KILLED"):
            for schedule, definition in self._subscribed(status_key(workflow, status)):
                if tree.waits_for(definition.trigger, workflow, starter, status):
                    yield (schedule, definition.workflow), ()
        for schedule, definition in self.disabled.items():
            if any(upstream.counts(workflow, starter) for upstream in tree.upstreams(definition.trigger)):
                yield (schedule, definition.workflow), ()
        yield from self.by_data(produced(self.ports, workflow))

    def _subscribed(self, key: str) -> Iterator[tuple[str, Schedule]]:
        """The other enabled schedules that count an event, with their definitions."""
        for row in self.ports.catalog.subscriptions(key, 1000, None).items:
            starts = row.schedule != self.name and row.leaf != WAKE  # one that only meets a constraint starts nothing
            version = self.ports.rows.get(Version, row.schedule, row.version) if starts else None
            if version is not None:
                yield row.schedule, Schedule.model_validate(version.definition)


def check_schedule(
    ports: Ports, name: str, schedule: Schedule, starts: Collection[Start], with_disabled: bool = False
) -> None:
    """Raise ``cycle`` if this schedule triggers itself, by following the subscriptions of enabled schedules. With
    ``with_disabled`` it follows disabled schedules of the same app, too, which have no subscriptions. So no two
    schedules can be put that cannot both be enabled."""
    upstreams, datasets = tree.upstreams(schedule.trigger), tree.datasets(schedule.trigger)
    if not (upstreams or datasets) or schedule.by == rounds.BY:
        return
    search = _Search(ports, name, _disabled(ports, name) if with_disabled else {})
    for (starter, workflow), trail in search.walk({start: _Trail(start[:1], start[1:]) for start in starts}):
        if any(upstream.counts(workflow, starter) for upstream in upstreams):
            raise _cycle(trail, (), search, f"schedule {name}")
        for dataset in produced(ports, workflow) if datasets else ():
            if dataset in datasets:
                raise _cycle(trail, (dataset,), search, f"schedule {name}")


def check_workflow(ports: Ports, name: str, workflow: Workflow, with_disabled: bool = False) -> None:
    """Raise ``cycle`` if the data that a workflow produces leads to its next run. ``with_disabled`` is as in
    `check_schedule`."""
    datasets = workflow.datasets_produced(name.partition(".")[0])
    if not datasets:
        return
    search = _Search(ports, name, _disabled(ports, name) if with_disabled else {})
    own = _Trail((), (name,))
    for start, trail in search.walk({start: own.to(start, through) for start, through in search.by_data(datasets)}):
        if start[1] == name:
            raise _cycle(_Trail(trail.schedules, trail.names[:-1]), (), search, f"workflow {name}")


def produced(ports: Ports, workflow: str) -> tuple[str, ...]:
    """The datasets that a workflow produces, by its stored definition."""
    if ids.is_dag_graph(workflow):
        return ()
    found = lookup.workflow_of(ports, workflow)
    return found.datasets_produced(workflow.partition(".")[0]) if found is not None else ()


def _cycle(trail: _Trail, through: tuple[str, ...], search: _Search, put: str) -> SluiceError:
    names = [*trail.names, *through, trail.names[0]]
    cycle = joined((mention("other", name) for name in names), " -> ")
    hint = plain("break the cycle: trigger one of these by time or by its data")
    others = [schedule for schedule in trail.schedules if schedule in search.disabled]
    if any(name.count(".") == 1 for name in names):
        hint = plain("break the cycle: trigger one of these by time, or let one of them produce another dataset")
    if others:
        hint = plain(
            f"{put} and the disabled ",
            mention("other", others[0]),
            " would wait for each other, so only one of them could be enabled: trigger one of the two by time or by "
            "its data, or delete one",
        )
    field = "produces" if put.startswith("workflow") else "trigger"
    return SluiceError("cycle", plain("expected triggers without a cycle, got ", cycle), field, hint)


def _disabled(ports: Ports, name: str) -> dict[str, Schedule]:
    """The other disabled schedules of the app of a document that wait for runs or data, by their names; among the first
    `MAX_DOWNSTREAM` schedules of the app."""
    found: dict[str, Schedule] = {}
    listed = ports.catalog.schedules(name.rpartition(".")[0], MAX_DOWNSTREAM, None).items
    others = [schedule for schedule in listed if schedule != name and not ids.is_of_dag(schedule)]
    seen = ports.prefetch.read(ports, [kinds.key(ScheduleState, schedule) for schedule in others])
    for schedule in others:
        schedule_state = seen.rows.get(ScheduleState, schedule)
        if schedule_state is not None and schedule_state.exists and schedule_state.mode == "disabled":
            definition = lookup.definition_of(ports, schedule_state)
            if definition is not None and (tree.upstreams(definition.trigger) or tree.datasets(definition.trigger)):
                found[schedule] = definition
    return found
