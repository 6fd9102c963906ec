"""The plan of a backfill: its entries, and the job of each of them (L12, T17)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from chalicelib.core.backfills import backfill
from chalicelib.core.backfills.periods import PeriodStatus
from chalicelib.core.backfills.request import Backfill as NewRequest
from chalicelib.core.backfills.request import PartitionRange
from chalicelib.core.definitions import foreign
from chalicelib.core.definitions.dataset import SNAPSHOT, Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import invalid, unknown_reference
from chalicelib.core.instants import Instant, iso, parse_instant
from chalicelib.core.jobs import gather, of_period
from chalicelib.core.names import dataset_name
from chalicelib.core.rows.backfill import Backfill, PlanPart
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.event import Event, Partition
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import ScheduleState, Timer
from chalicelib.core.triggers import tree
from chalicelib.flow import grants, lookup, registered
from chalicelib.flow.backfills import by_period
from chalicelib.flow.backfills.by_period import Whole
from chalicelib.ports import Ports


@dataclass(frozen=True)
class Plan:
    """The entries of a plan in the order of their runs: instants of an interval, partitions of a dataset, or periods of
    the schedule. A selection has in ``now`` what became of each entry of the range so far, in the same order, and in
    ``in_flight`` the entries that it leaves alone (L23).

    ``whole`` has what is there of each period (T25). One that lacks something runs only if it was ``named``. A
    selection has the others in ``incomplete``."""

    entries: tuple[str, ...]
    since: Instant | None = None
    until: Instant | None = None
    dataset: str | None = None
    keys: tuple[str, ...] = ()
    base: str = ""
    now: Mapping[str, PeriodStatus] = field(default_factory=dict)
    in_flight: tuple[str, ...] = ()
    whole: Mapping[str, Whole] = field(default_factory=dict)
    named: bool = False
    incomplete: tuple[str, ...] = ()

    @property
    def is_of_periods(self) -> bool:
        return bool(self.whole)

    @cached_property
    def chosen(self) -> frozenset[str]:
        return frozenset(self.entries)


def make(
    ports: Ports, schedule_state: ScheduleState, schedule: Schedule, request_data: NewRequest, now: Instant
) -> Plan:
    """The plan of a backfill request. Raises SluiceError if the request does not fit the schedule, or if the plan has
    no entries."""
    grants.require(ports, foreign.of_schedule(schedule_state.schedule, schedule), "schedule")
    if request_data.partitions is None and schedule.per is not None:
        each = schedule.per.each
        hint = f"name periods as partitions, both ends included: --from {each}=LABEL --to {each}=LABEL"
        raise invalid("from", f"periods, because of per: {each}", request_data.from_, hint)
    if request_data.partitions is None:
        plan = _times(ports, schedule_state, schedule, request_data, now)
    elif schedule.per is not None:
        plan = _periods(ports, schedule_state.schedule, schedule, request_data.partitions, now)
    else:
        plan = _partitions(ports, schedule_state, schedule, request_data.partitions)
    if request_data.order == "newest":
        return replace(plan, entries=plan.entries[::-1])
    return plan


def _times(
    ports: Ports, schedule_state: ScheduleState, schedule: Schedule, request_data: NewRequest, now: Instant
) -> Plan:
    since, until = parse_instant(request_data.from_ or "", "from"), parse_instant(request_data.to or "", "to")
    if since >= until:
        raise invalid("to", f"an instant after {iso(since)}", request_data.to, "exchange from and to")
    if until > now:
        hint = "the schedule itself makes future fires: see sluice enable and sluice preview"
        raise invalid("to", f"an instant in the past (it is {iso(now)})", request_data.to, hint)
    timer = ports.rows.get(Timer, schedule_state.schedule)
    entries = backfill.instants(schedule, timer.anchor if timer else None, since, until)
    if not entries:
        hint = "lengthen the interval; from is included, to is excluded"
        expected = "an interval in which the schedule would have fired"
        raise invalid("to", expected, f"{iso(since)} to {iso(until)}", hint)
    return Plan(entries, since, until)


def _periods(ports: Ports, name: str, schedule: Schedule, request_data: PartitionRange, now: Instant) -> Plan:
    entries = by_period.entries(ports, schedule, request_data, now)
    whole = by_period.wholes(ports, schedule, entries, now)
    if not entries:
        hint = f"sluice periods {name} lists them"
        raise invalid("partitions", f"a range with a period of {name}", "a range without one", hint)
    return Plan(entries, keys=schedule.keys, whole=whole, named=request_data.values is not None)


def _partitions(ports: Ports, schedule_state: ScheduleState, schedule: Schedule, request_data: PartitionRange) -> Plan:
    name = _dataset_of(schedule_state.schedule, schedule, request_data)
    stored = ports.rows.get(Definition, "dataset", name)
    if stored is None:
        raise unknown_reference("partitions.dataset", "dataset", name)
    dataset = Dataset.model_validate(stored.document)
    if dataset.format == "iceberg":
        chosen = _snapshots(ports, name, request_data)
    elif request_data.values is not None:
        given = enumerate(backfill.named(dataset.keys, request_data.values))
        chosen = [
            registered.chosen(ports, name, dataset, texts, f"partitions.values.{number}") for number, texts in given
        ]
    else:
        known = (partition.values for partition in lookup.every(partial(ports.catalog.partitions, name)))
        chosen = backfill.between(dataset.keys, known, request_data.from_, request_data.to)
    entries = backfill.entries_of(dataset.keys, chosen, schedule.by)
    for number, values in enumerate(chosen if request_data.values is not None else ()):
        of_period.check_listed(schedule, _by_key(dataset, "/".join(values)), f"partitions.values.{number}")
    entries = tuple(each for each in entries if gather.unlisted_of(schedule, _by_key(dataset, each)) is None)
    if not entries:
        hint = f"sluice datasets {name} lists the registered ones; --partition (`values` in a request) names others"
        raise invalid("partitions", f"a range with a partition of {name}", "a range without one", hint)
    return Plan(entries, dataset=name, keys=dataset.keys, base=f"s3://{dataset.bucket}/{dataset.prefix}")


def _by_key(dataset: Dataset, entry: str) -> dict[str, str]:
    return dict(zip(dataset.keys, backfill.values_of(entry), strict=False))


def _snapshots(ports: Ports, table: str, request_data: PartitionRange) -> list[tuple[str, ...]]:
    """The snapshots that a request names. Raises ``invalid`` for a range, because snapshot ids have no order, and for
    an unknown snapshot, because Sluice has no event of it."""
    hint = f"name each by --partition (`values` in a request); sluice datasets {table} lists the registered ones"
    if request_data.values is None:
        raise invalid("partitions.from", "snapshots of a table one by one", "a range of them", hint)
    chosen = backfill.named(SNAPSHOT, request_data.values)
    for number, values in enumerate(chosen):
        if ports.rows.get(Partition, table, values) is None:
            raise invalid(f"partitions.values.{number}", f"a registered snapshot of {table}", values[0], hint)
    return chosen


def _dataset_of(name: str, schedule: Schedule, request_data: PartitionRange) -> str:
    datasets = backfill.datasets_of(schedule)
    if not datasets:
        hint = "give an interval (from, to) for a time trigger; a trigger that waits for runs follows their backfill"
        expected = "a schedule whose trigger waits for partitions"
        raise invalid("partitions", expected, tree.describe(schedule.trigger), hint)
    field, named = "partitions.dataset", f"that the schedule waits for: {', '.join(datasets)}"
    if request_data.dataset is None and len(datasets) > 1:
        raise invalid(field, f"one of the datasets {named}", None, "name it as partitions.dataset")
    full = datasets[0] if request_data.dataset is None else dataset_name(request_data.dataset, name.partition(".")[0])
    if full not in datasets:
        raise invalid(field, f"a dataset {named}", request_data.dataset, "name one of these")
    return full


class Entries:
    """The entries of a stored plan, read part by part on first use."""

    def __init__(self, ports: Ports, row: Backfill) -> None:
        self._ports, self._row = ports, row
        self._parts: dict[int, tuple[str, ...]] = {}
        self._parent: Entries | None = None

    def __getitem__(self, index: int) -> str:
        number, offset = divmod(index, backfill.PART)
        if number not in self._parts:
            part = self._ports.rows.get(PlanPart, self._row.plan, number)
            self._parts[number] = part.entries if part is not None else ()
        return self._parts[number][offset]

    def job(self, index: int, by: tuple[str, ...], created_at: Instant, now: Instant) -> Job:
        """The job of an entry. ``by`` are the correlation keys of the schedule."""
        if self._row.periods:
            return backfill.job_of_period(self._row, index, self[index], created_at, now)
        return backfill.job_of(self._row, index, self.event(index), by, created_at, now)

    def event(self, index: int) -> Event:
        """The event for the run of an entry. It is the fire of that instant, the event of the registered partition, or
        the status of a step's upstream."""
        if self._row.upstream is not None:
            return backfill.status_event(self._row, self[index], self._upstream_run(index))
        if self._row.dataset is None:
            return backfill.fire_event(self._row, self[index])
        known = self._ports.rows.get(Partition, self._row.dataset, backfill.values_of(self[index]))
        return known.event if known is not None else backfill.partition_event(self._row, self[index])

    def _upstream_run(self, index: int) -> Run | None:
        """The last attempt of the run in the parent step from which an entry follows, None if there is none."""
        parent = self._parent_entries()
        number = parent.number_for(self[index], self._row.keys, index) if parent is not None else None
        if parent is None or number is None:
            return None
        attempts = self._ports.runs.attempts(backfill.job_id(parent._row, number, parent._row.generation))
        return attempts[-1] if attempts else None

    def number_for(self, entry: str, keys: tuple[str, ...], near: int) -> int | None:
        """The number of the entry from which an entry of a later step follows. Both plans have one order in most
        cases, so the search begins ``near``."""
        total = self._row.total
        numbers = [near, *range(total)] if near < total else range(total)
        return next((each for each in numbers if backfill.is_for(entry, keys, self[each], self._row.keys)), None)

    def _parent_entries(self) -> Entries | None:
        row = self._row
        if self._parent is None and row.parent is not None and row.parent_schedule is not None:
            parent = self._ports.rows.get(Backfill, row.parent_schedule, row.parent)
            self._parent = Entries(self._ports, parent) if parent is not None else None
        return self._parent
