"""What a backfill is to run: the entries of its plan, and the event that each of them gives to its run (L12, T17)."""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.core.backfills import backfill
from chalicelib.core.backfills.request import Backfill as NewRequest
from chalicelib.core.backfills.request import PartitionRange
from chalicelib.core.definitions.dataset import SNAPSHOT, Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import invalid, unknown_reference
from chalicelib.core.instants import Instant, iso, parse_instant
from chalicelib.core.names import dataset_name
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.triggers import tree
from chalicelib.ports import Ports

BATCH_SIZE = 500


@dataclass(frozen=True, slots=True)
class Plan:
    """Entries in the order in which they are to run, and what they are: those of an interval, or of a dataset."""

    entries: tuple[str, ...]
    since: Instant | None = None
    until: Instant | None = None
    dataset: str | None = None
    keys: tuple[str, ...] = ()
    base: str = ""


def make(
    ports: Ports, schedule_state: ScheduleState, schedule: Schedule, request_data: NewRequest, now: Instant
) -> Plan:
    """The plan of a wish. Refused if the schedule does not fit it, or nothing is in it."""
    if request_data.partitions is None:
        plan = _times(ports, schedule_state, schedule, request_data, now)
    else:
        plan = _partitions(ports, schedule_state, schedule, request_data.partitions)
    if request_data.order == "newest":
        plan = Plan(plan.entries[::-1], plan.since, plan.until, plan.dataset, plan.keys, plan.base)
    return plan


def _times(
    ports: Ports, schedule_state: ScheduleState, schedule: Schedule, request_data: NewRequest, now: Instant
) -> Plan:
    since, until = parse_instant(request_data.from_ or "", "from"), parse_instant(request_data.to or "", "to")
    if since >= until:
        raise invalid("to", f"an instant after {iso(since)}", request_data.to)
    if until > now:
        hint = "what is still to come is the schedule's own business: sluice enable, sluice preview"
        raise invalid("to", f"an instant that is over (it is {iso(now)})", request_data.to, hint)
    timer = ports.catalog.timer(schedule_state.schedule)
    entries = backfill.instants(schedule, timer.anchor if timer else None, since, until)
    if not entries:
        raise invalid("to", "an interval in which the schedule would have fired", f"{iso(since)} to {iso(until)}")
    return Plan(entries, since, until)


def _partitions(ports: Ports, schedule_state: ScheduleState, schedule: Schedule, request_data: PartitionRange) -> Plan:
    name = _dataset_of(schedule_state.schedule, schedule, request_data)
    stored = ports.catalog.definition("dataset", name)
    if stored is None:
        raise unknown_reference("partitions.dataset", "dataset", name)
    dataset = Dataset.model_validate(stored.document)
    if dataset.format == "iceberg":
        chosen = _snapshots(ports, name, request_data)
    elif request_data.values is not None:
        chosen = backfill.named(dataset.keys, request_data.values)
    else:
        chosen = backfill.between(dataset.keys, _registered(ports, name), request_data.from_, request_data.to)
    entries = backfill.entries_of(dataset.keys, chosen, schedule.by)
    if not entries:
        hint = f"sluice datasets {name} lists what is registered; values may name others"
        raise invalid("partitions", f"a range that holds a partition of {name}", "one that holds none", hint)
    return Plan(entries, dataset=name, keys=dataset.keys, base=f"s3://{dataset.bucket}/{dataset.prefix}")


def _snapshots(ports: Ports, table: str, request_data: PartitionRange) -> list[tuple[str, ...]]:
    """The snapshots that were named. Their ids are in no order, and of an unknown one there is nothing to tell."""
    hint = f"name them by values; sluice datasets {table} lists those that are known"
    if request_data.values is None:
        raise invalid("partitions.from", "snapshots of a table one by one", "a range of them", hint)
    chosen = backfill.named(SNAPSHOT, request_data.values)
    for number, values in enumerate(chosen):
        if ports.catalog.partition(table, values) is None:
            raise invalid(f"partitions.values.{number}", f"a snapshot of {table} that is known", values[0], hint)
    return chosen


def _dataset_of(name: str, schedule: Schedule, request_data: PartitionRange) -> str:
    waited = backfill.datasets_of(schedule)
    if not waited:
        hint = "give an interval (from, to) for a time trigger; one that waits for other runs follows their backfill"
        raise invalid(
            "partitions", "a schedule whose trigger waits for partitions", tree.describe(schedule.trigger), hint
        )
    if request_data.dataset is None and len(waited) > 1:
        raise invalid("partitions.dataset", f"one of the datasets it waits for: {', '.join(waited)}", None)
    full = waited[0] if request_data.dataset is None else dataset_name(request_data.dataset, name.partition(".")[0])
    if full not in waited:
        raise invalid(
            "partitions.dataset", f"a dataset that the schedule waits for: {', '.join(waited)}", request_data.dataset
        )
    return full


def _registered(ports: Ports, dataset: str) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    cursor: str | None = None
    while True:
        page = ports.catalog.partitions(dataset, BATCH_SIZE, cursor)
        found += [partition.values for partition in page.items]
        if page.cursor is None:
            return found
        cursor = page.cursor


class Entries:
    """The entries of a stored plan, read part by part when they are needed."""

    def __init__(self, ports: Ports, row: Backfill) -> None:
        self._ports, self._row = ports, row
        self._parts: dict[int, tuple[str, ...]] = {}

    def __getitem__(self, index: int) -> str:
        number, offset = divmod(index, backfill.PART)
        if number not in self._parts:
            part = self._ports.jobs.plan_part(self._row.plan, number)
            self._parts[number] = part.entries if part is not None else ()
        return self._parts[number][offset]

    def event(self, index: int) -> Event:
        """What the run of an entry is told of: the fire of that instant, or the partition as the registry knows it."""
        if self._row.dataset is None:
            return backfill.fire_event(self._row, self[index])
        values = backfill.values_of(self[index])
        known = self._ports.catalog.partition(self._row.dataset, values)
        return known.event if known is not None else backfill.partition_event(self._row, values)
