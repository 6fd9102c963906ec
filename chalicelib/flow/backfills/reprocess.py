"""Run partitions again with everything downstream of them (L21): a series of backfills, one step after another.

Nothing polls: the transaction that ends the backfill of a step also wakes the re-processing. One transaction writes the
state of the steps and the next backfill. So a crash at any point loses no step and begins none twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from chalicelib.core import errors, ids
from chalicelib.core.backfills import backfill as entries
from chalicelib.core.backfills import lineage, reprocess
from chalicelib.core.backfills.lineage import Follower, Step
from chalicelib.core.backfills.request import Reprocess as NewRequest
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import SluiceError, invalid
from chalicelib.core.instants import Instant
from chalicelib.core.names import dataset_name
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.reprocess import Reprocess
from chalicelib.core.rows.schedule import WAKE, Subscription
from chalicelib.core.triggers.partition import partition_key
from chalicelib.core.writes import Create, Put, Replace, Write
from chalicelib.flow import lookup
from chalicelib.flow.backfills import backfill
from chalicelib.ports import MAX_RACES, Ports

MAX_READ = 500  # schedules whose subscriptions a walk reads; a plan has fewer


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of a re-processing, and the partitions with which it begins."""

    dataset: str
    keys: tuple[str, ...]
    base: str
    partitions: tuple[str, ...]
    steps: tuple[Step, ...]


def preview(ports: Ports, namespace: str, request_data: NewRequest) -> Plan:
    """The plan that a re-processing would have. Stores nothing. Raises `SluiceError` if nothing would run."""
    lookup.require(ports, "namespace", namespace)
    name = dataset_name(request_data.dataset, namespace)
    stored = ports.catalog.definition("dataset", name)
    if stored is None:
        raise errors.unknown_reference("dataset", "dataset", name)
    dataset = Dataset.model_validate(stored.document)
    chosen = _partitions(ports, name, dataset, request_data)
    events = [_event(ports, name, dataset, values) for values in chosen]
    graph = _graph(ports, partition_key(name), request_data.scope == "downstream")
    found = lineage.plan(graph, events, request_data.scope == "downstream", request_data.upto)
    if not found:
        hint = "sluice enable the schedules first; sluice backfill runs a disabled one"
        raise invalid("dataset", f"a dataset whose partitions start an enabled schedule, such as {name}", name, hint)
    steps = tuple(_of_the_dataset(step, dataset.keys, chosen) if step.upstream is None else step for step in found)
    base = f"s3://{dataset.bucket}/{dataset.prefix}"
    return Plan(name, dataset.keys, base, tuple("/".join(values) for values in chosen), steps)


def begin(ports: Ports, namespace: str, request_data: NewRequest, by: str, request_id: str) -> Reprocess:
    """Store a re-processing and begin its first step. A repeat with the same request id returns the same one."""
    reprocess_id = ids.digest("reprocess", namespace, request_id, length=16)
    if ports.jobs.reprocess(namespace, reprocess_id) is None:
        now, plan = ports.clock.now(), preview(ports, namespace, request_data)
        steps, parts = reprocess.store(reprocess_id, plan.steps)
        ports.ledger.put_all([Put(part) for part in parts])
        row = Reprocess(
            namespace=namespace,
            id=reprocess_id,
            state="RUNNING",
            dataset=plan.dataset,
            keys=plan.keys,
            base=plan.base,
            first=plan.partitions[0],
            last=plan.partitions[-1],
            steps=(),
            concurrency=request_data.concurrency,
            created_at=now,
            by=by,
            properties=request_data.properties,
            wake_at=now,
        )
        # A conflict means that another request with this id has stored it.
        ports.ledger.commit([Create(reprocess.with_steps(row, steps))])
    advance(ports, namespace, reprocess_id)
    return existing(ports, namespace, reprocess_id)


def existing(ports: Ports, namespace: str, reprocess_id: str) -> Reprocess:
    """A stored re-processing. Raises ``not_found`` (404) if there is none."""
    row = ports.jobs.reprocess(namespace, reprocess_id)
    if row is None:
        raise errors.not_found("re-processing", reprocess_id, f"list those of the namespace {namespace}")
    return row


def stop(ports: Ports, namespace: str, reprocess_id: str, runs: bool, by: str) -> Reprocess:
    """Cancel a re-processing: once this returns, none of its jobs starts any more. Returns the re-processing.

    Its runs continue, unless ``runs`` cancels them too. A finished one does not change.
    """
    for _ in range(MAX_RACES):
        row = existing(ports, namespace, reprocess_id)
        more = runs and not row.cancel_runs and row.ended_at is None
        if row.state != "RUNNING" and not more:
            return row
        after = replace(reprocess.woken(row, ports.clock.now()), cancel_runs=row.cancel_runs or runs)
        if row.state == "RUNNING":
            after = replace(after, state="CANCELLED", reason=f"re-processing {row.id} was cancelled by {by}")
        if ports.ledger.commit([Replace(after)]) is None:
            advance(ports, namespace, reprocess_id)
            return existing(ports, namespace, reprocess_id)
    raise errors.changed_meanwhile(f"re-processing {reprocess_id}")


def advance(ports: Ports, namespace: str, reprocess_id: str) -> None:
    """Check the running step, and begin the next one if it has ended. Idempotent.

    Raises RuntimeError after ``MAX_RACES`` lost races.
    """
    for _ in range(MAX_RACES):
        row = ports.jobs.reprocess(namespace, reprocess_id)
        if row is None or row.wake_at is None or _step(ports, row, ports.clock.now()):
            return
    raise RuntimeError(f"re-processing {reprocess_id} lost {MAX_RACES} races; the sweep will hint it again")


def _step(ports: Ports, row: Reprocess, now: Instant) -> bool:
    """Make one decision and store it. Returns False after a lost race."""
    number = reprocess.running(row)
    current = None
    if number is not None:
        schedule, own = reprocess.steps_of(row)[number].schedule, ids.step_of(row.id, number)
        if row.state == "CANCELLED" and ports.jobs.backfill(schedule, own) is not None:
            backfill.stop(ports, schedule, own, row.cancel_runs, f"re-processing {row.id}")
        # Read after the row: a backfill that ends later than this read raises the revision of the row.
        current = ports.jobs.backfill(schedule, own)
    after, begins = reprocess.advance(row, current, now)
    plan: list[Write] = [Replace(after)]
    if begins is not None:
        plan.append(Create(reprocess.backfill_of(row, begins, now)))
    if ports.ledger.commit(plan) is not None:
        return False
    if begins is not None:
        backfill.advance(ports, reprocess.steps_of(row)[begins].schedule, ids.step_of(row.id, begins))
    if after.expires_at is not None:
        _end_plans(ports, after, after.expires_at)
    return True


def _end_plans(ports: Ports, row: Reprocess, at: Instant) -> None:
    """Let the plans of steps that never ran expire with the row. The plan of a step that ran expires with its backfill.
    After a crash before this call, the plans stay stored."""
    left = [step for step in reprocess.steps_of(row) if not step.ran]
    parts = [ports.jobs.plan_part(step.plan, number) for step in left for number in entries.parts_of(step.total)]
    ports.ledger.put_all([Put(replace(part, expires_at=at)) for part in parts if part is not None])


def _partitions(ports: Ports, name: str, dataset: Dataset, request_data: NewRequest) -> list[tuple[str, ...]]:
    """The partitions that a request names, oldest first."""
    if request_data.partition is not None:
        try:
            chosen = entries.named(dataset.keys, [request_data.partition])
        except SluiceError:
            expected = f"an object with exactly the keys {', '.join(dataset.keys)}"
            raise invalid("partition", expected, request_data.partition) from None
        if dataset.format == "iceberg" and ports.catalog.partition(name, chosen[0]) is None:
            raise invalid("partition", f"a registered snapshot of {name}", chosen[0][0])
    else:
        if dataset.format == "iceberg":
            raise invalid("from", "a single snapshot of a table, as partition", "a range of them")
        known = (row.values for row in lookup.every(partial(ports.catalog.partitions, name)))
        chosen = entries.between(dataset.keys, known, request_data.from_, request_data.to)
    ordered = [entries.values_of(entry) for entry in entries.entries_of(dataset.keys, chosen, ())]
    if not ordered:
        hint = f"sluice datasets {name} lists the registered partitions; partition may name any other"
        raise invalid("from", f"a range with a partition of {name}", "a range without one", hint)
    return ordered


def _event(ports: Ports, name: str, dataset: Dataset, values: tuple[str, ...]) -> Event:
    """The event of a partition, as its subscribers count it."""
    known = ports.catalog.partition(name, values)
    if known is not None:
        return known.event
    partition = dict(zip(dataset.keys, values, strict=True))
    event_id = ids.event_id("partition", name, *values)
    return Event(event_id, "partition", partition_key(name), 0, 0, partition=partition, dataset=name)


def _of_the_dataset(step: Step, keys: Sequence[str], chosen: Sequence[tuple[str, ...]]) -> Step:
    """A first step with whole partitions as entries, because the events of the partitions start its runs."""
    by = () if step.keys == tuple(keys) else step.keys
    return replace(step, entries=entries.entries_of(keys, chosen, by))


def _graph(ports: Ports, first: str, downstream: bool) -> dict[str, list[Follower]]:
    """The followers of an event key and, if ``downstream``, of each status that their runs announce, and so on."""
    graph: dict[str, list[Follower]] = {}
    wanted, known = [first], 0
    while wanted:
        key = wanted.pop(0)
        graph[key] = list(_followers(ports, key))
        known += len(graph[key])
        if known > MAX_READ:
            hint = "re-process with scope only, then what follows it"
            raise invalid("dataset", f"at most {MAX_READ} schedules downstream of {first}", f"{known} or more", hint)
        for follower in graph[key] if downstream else ():
            wanted += [
                each for each in lineage.announced_keys(follower.schedule) if each not in graph and each not in wanted
            ]
    return graph


def _followers(ports: Ports, key: str) -> Iterator[Follower]:
    rows: dict[str, list[Subscription]] = {}
    for row in lookup.every(partial(ports.catalog.subscriptions, key)):
        if row.leaf != WAKE:
            rows.setdefault(row.schedule, []).append(row)
    for name, own in rows.items():
        state = ports.catalog.schedule_state(name)
        living = tuple(row for row in own if state is not None and row.generation == state.generation)
        schedule = lookup.definition_of(ports, state)
        if living and schedule is not None:
            yield Follower(name, schedule, living, _workflow_version(ports, schedule))


def _workflow_version(ports: Ports, schedule: Schedule) -> int:
    definition = (
        None if ids.is_dag_graph(schedule.workflow) else ports.catalog.definition("workflow", schedule.workflow)
    )
    return definition.version if definition is not None else 0
