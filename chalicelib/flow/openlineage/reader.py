"""What the events of OpenLineage say besides the rows of runs: documents and events, read once in a while (H6)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from chalicelib.core.definitions.dag import Dag
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.instants import MINUTE, Instant, Millis
from chalicelib.core.openlineage.datasets import NOWHERE, Place
from chalicelib.core.openlineage.events import Known, dataset_names, is_group
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import Version
from chalicelib.flow.runs import context
from chalicelib.ports import Ports

KEPT: Millis = 5 * MINUTE  # a changed document of a workflow or a dataset is in events after this time
MAX_EVENTS = 200  # events of a run that are read: those of a dataset name its partitions
MOST = 5_000  # things of a kind that are kept

T = TypeVar("T")


class Kept(Generic[T]):
    """The last things that were read, each for ``span`` ms; None: for good."""

    def __init__(self, span: Millis | None, most: int = MOST) -> None:
        self._span, self._most = span, most
        self._known: OrderedDict[object, tuple[Instant, T]] = OrderedDict()

    def get(self, key: object, now: Instant, read: Callable[[], T]) -> T:
        known = self._known.get(key)
        if known is not None and (self._span is None or now - known[0] < self._span):
            return known[1]
        found = read()
        self._known[key] = (now, found)
        self._known.move_to_end(key)
        while len(self._known) > self._most:
            self._known.popitem(last=False)
        return found


class Reader:
    """Reads with one process's memory: a workflow of a thousand runs is read once in five minutes."""

    def __init__(self, ports: Ports, place: Place = NOWHERE) -> None:
        self.ports, self._place = ports, place
        self._schedules: Kept[Schedule | None] = Kept(None)
        self._workflows: Kept[Workflow | None] = Kept(KEPT)
        self._datasets: Kept[Dataset | None] = Kept(KEPT)
        self._graphs: Kept[Dag | None] = Kept(None)
        self._events: Kept[tuple[Event, ...]] = Kept(None)

    def known(self, run: Run) -> Known:
        """What the events about a run say besides its row."""
        now = self.ports.clock.now()
        schedule = self._schedules.get((run.schedule, run.version), now, lambda: self._schedule(run))
        events = () if is_group(run) else self._events.get((run.run_id, run.attempt), now, lambda: self._events_of(run))
        known = Known(schedule, self.workflow(run.workflow), {}, events, self._place)
        names = dataset_names(run, known)
        found = {name: self._datasets.get(name, now, partial(self._dataset, name)) for name in names}
        there = {name: dataset for name, dataset in found.items() if dataset is not None}
        return Known(schedule, known.workflow, there, events, self._place)

    def workflow(self, name: str) -> Workflow | None:
        def read() -> Workflow | None:
            row = self.ports.rows.get(Definition, "workflow", name)
            return Workflow.model_validate(row.document) if row is not None else None

        return self._workflows.get(name, self.ports.clock.now(), read)

    def graph(self, name: str) -> Dag | None:
        """The graph of a DAG, which never changes."""

        def read() -> Dag | None:
            row = self.ports.rows.get(Definition, "dag", name)
            return Dag.model_validate(row.document) if row is not None else None

        return self._graphs.get(name, self.ports.clock.now(), read)

    def _schedule(self, run: Run) -> Schedule | None:
        row = self.ports.rows.get(Version, run.schedule, run.version)
        return Schedule.model_validate(row.definition) if row is not None else None

    def _dataset(self, name: str) -> Dataset | None:
        row = self.ports.rows.get(Definition, "dataset", name)
        return Dataset.model_validate(row.document) if row is not None else None

    def _events_of(self, run: Run) -> tuple[Event, ...]:
        if run.event is not None and run.named is None:
            return (run.event,)  # the others are data of the same values; to find them takes rights of a claim
        return context.events_of(self.ports, run, MAX_EVENTS)
