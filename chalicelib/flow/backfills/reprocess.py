"""Run partitions, a run or fires again with everything downstream (L21): a series of backfills, one after another.

Nothing polls: the transaction that ends the backfill of a step also wakes the re-processing. One transaction writes the
state of the steps and the next backfill. So a crash at any point loses no step and begins none twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from chalicelib.core import errors, ids
from chalicelib.core.backfills import backfill as entries
from chalicelib.core.backfills import lineage, reprocess
from chalicelib.core.backfills.lineage import Follower, NotFollowed, Origin, Planned, Source, Step
from chalicelib.core.backfills.request import Backfill as BackfillRequest
from chalicelib.core.backfills.request import FireRange
from chalicelib.core.backfills.request import Reprocess as NewRequest
from chalicelib.core.dags import rounds
from chalicelib.core.dags import status as dag_status
from chalicelib.core.definitions.dag import Dag
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import SluiceError, invalid
from chalicelib.core.events.products import Product
from chalicelib.core.instants import Instant, iso
from chalicelib.core.names import dataset_name
from chalicelib.core.partition_values import decoded
from chalicelib.core.rows.backfill import Backfill, PlanPart
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.event import Event, Partition
from chalicelib.core.rows.reprocess import Reprocess
from chalicelib.core.rows.schedule import WAKE, ScheduleState, Subscription
from chalicelib.core.text import count_of
from chalicelib.core.triggers.partition import partition_key
from chalicelib.core.writes import Create, Put, Replace, Write
from chalicelib.flow import lookup, many, period_jobs, registered
from chalicelib.flow.backfills import backfill
from chalicelib.flow.backfills import plan as backfill_plan
from chalicelib.flow.definitions import store
from chalicelib.flow.runs import actions as of_runs
from chalicelib.ports import MAX_CONFLICTS, Ports, too_many_conflicts

UNKNOWN = "this partition is not registered"
MAX_READ = 500  # schedules whose subscriptions a walk reads; a plan has fewer


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of a re-processing, and what it begins with: partitions of a ``dataset``, a ``run``, or the fires of a
    ``schedule`` in ``[since, until)``. ``entries`` are those of its first step. ``not_followed`` are schedules that it
    does not run."""

    entries: tuple[str, ...]
    steps: tuple[Step, ...]
    keys: tuple[str, ...] = ()
    dataset: str = ""
    base: str = ""
    run: str = ""
    schedule: str = ""
    since: Instant | None = None
    until: Instant | None = None
    not_followed: tuple[NotFollowed, ...] = ()


def preview(ports: Ports, namespace: str, request_data: NewRequest) -> Plan:
    """The plan that a re-processing would have. Stores nothing. Raises `SluiceError` if nothing would run."""
    lookup.require(ports, "namespace", namespace)
    if request_data.run is not None:
        return _of_run(ports, namespace, request_data, request_data.run)
    if request_data.fires is not None:
        return _of_fires(ports, namespace, request_data, request_data.fires)
    return _of_dataset(ports, namespace, request_data)


def _of_dataset(ports: Ports, namespace: str, request_data: NewRequest) -> Plan:
    """The plan that begins with partitions of a dataset. Raises `SluiceError` if nothing would run."""
    name = dataset_name(request_data.dataset or "", namespace)
    stored = ports.rows.get(Definition, "dataset", name)
    if stored is None:
        raise errors.unknown_reference("dataset", "dataset", name)
    dataset = Dataset.model_validate(stored.document)
    chosen = _partitions(ports, name, dataset, request_data)
    events = [_event(ports, name, dataset, texts) for texts in chosen]
    graph = _graph(ports, [partition_key(name)], request_data.scope == "downstream")
    found = _planned(ports, graph, events, request_data, dataset=dataset)
    if not found.steps:
        hint = "sluice enable the schedules first; sluice backfill runs a disabled one"
        if found.not_followed:
            hint = f"{found.not_followed[0].schedule} {found.not_followed[0].why}"
        raise invalid("dataset", f"a dataset whose partitions start an enabled schedule, such as {name}", name, hint)
    first = {step for step in found.steps if step.upstream is None and not step.periods}
    of_events = list(zip(chosen, events, strict=True))
    steps = tuple(_of_the_dataset(step, dataset.keys, of_events) if step in first else step for step in found.steps)
    if request_data.partition is not None and ports.rows.get(Partition, name, tuple(map(decoded, chosen[0]))) is None:
        # Data may lie there from before the dataset was put, but it may also be a typing error.
        steps = tuple(
            replace(step, why=f"{step.why}; {UNKNOWN}", registered=False)
            if step.upstream is None and not step.periods
            else step
            for step in steps
        )
    base = f"s3://{dataset.bucket}/{dataset.prefix}"
    chosen_entries = tuple("/".join(texts) for texts in chosen)
    return Plan(chosen_entries, steps, dataset.keys, name, base, not_followed=found.not_followed)


def _of_run(ports: Ports, namespace: str, request_data: NewRequest, run_id: str) -> Plan:
    """The plan that begins with a run. Raises ``not_found`` (404) if the namespace has no such run, and ``conflict``
    (409) if the run cannot run again."""
    if not run_id.startswith(f"{namespace}."):
        raise errors.not_found("run", run_id, f"name a run of the namespace {namespace}, or another namespace")
    run = lookup.find_run(ports, run_id)[-1]
    schedule_state, schedule = of_runs.schedule_of(ports, run)
    if ids.is_dag_node(run.schedule):
        hint = "sluice dags rerun runs a node again; the run of the DAG can be re-processed"
        raise invalid("run", "a run outside DAGs, or one of a DAG's start", f"a run of the node {run.schedule}", hint)
    values = rounds.without(run.partition) or rounds.without(run.correlation) or {}
    nominal = iso(run.nominal_at) if run.nominal_at is not None and not values else ""
    follower = _follower_of(ports, schedule_state, schedule)
    origin = Origin(follower, ((tuple(values.items()), nominal),), f"runs {run_id} again")
    found = _planned_from(ports, origin, request_data)
    first = found.steps[0]
    return Plan(first.entries, found.steps, first.keys, run=run_id, not_followed=found.not_followed)


def _of_fires(ports: Ports, namespace: str, request_data: NewRequest, fires: FireRange) -> Plan:
    """The plan that begins with the fires of a schedule, or of a DAG. Raises `SluiceError` if it has none."""
    name = fires.schedule
    if not name.startswith(f"{namespace}."):
        hint = "send the request to the namespace of the schedule"
        raise invalid("fires.schedule", f"a schedule of the namespace {namespace}", name, hint)
    is_dag = name.count(".") == 2 and ports.rows.get(Definition, "dag", name) is not None
    schedule_state, schedule = lookup.existing(ports, ids.dag_start(name) if is_dag else name)
    wanted = BackfillRequest.model_validate({"from": fires.from_, "to": fires.to})
    try:
        plan = backfill_plan.make(ports, schedule_state, schedule, wanted, ports.clock.now())
    except SluiceError as error:
        raise error.under("fires") from None
    since, until = plan.since or 0, plan.until or 0
    why = f"fires {count_of(len(plan.entries), 'time')} from {iso(since)} to {iso(until)}"
    units = tuple(((), entry) for entry in plan.entries)
    found = _planned_from(ports, Origin(_follower_of(ports, schedule_state, schedule), units, why), request_data)
    return Plan(
        plan.entries,
        found.steps,
        schedule=schedule_state.schedule,
        since=since,
        until=until,
        not_followed=found.not_followed,
    )


def _planned_from(ports: Ports, origin: Origin, request_data: NewRequest) -> Planned:
    downstream = request_data.scope == "downstream"
    first = lineage.announced_keys(origin.follower) if downstream else ()
    return _planned(ports, _graph(ports, first, downstream), (), request_data, origin)


def _planned(
    ports: Ports,
    graph: lineage.Graph,
    events: Sequence[Event],
    request_data: NewRequest,
    origin: Origin | None = None,
    dataset: Dataset | None = None,
) -> Planned:
    """The plan. Which partitions of the data that its runs produce, and that periods need, are registered is read for
    each workflow downstream of another one."""
    known: dict[lineage.Place, bool] = {}
    downstream, now = request_data.scope == "downstream", ports.clock.now()
    while True:
        found = lineage.plan(graph, events, downstream, request_data.upto, origin, known, dataset, now)
        asked = [each for each in found.asked if each not in known]
        if not asked:
            return found
        registered_now = {(row.dataset, row.values) for row in many.rows(ports, Partition, asked)}
        known |= {each: each in registered_now for each in asked}


def _follower_of(ports: Ports, schedule_state: ScheduleState, schedule: Schedule) -> Follower:
    name, generation, version = schedule_state.schedule, schedule_state.generation, schedule_state.version
    return Follower(name, schedule, (), generation, version, _sources(ports, name, schedule))


def id_of(namespace: str, request_id: str) -> str:
    """The id of the re-processing that a request begins."""
    return ids.digest("reprocess", namespace, request_id, length=16)


def begin(
    ports: Ports,
    namespace: str,
    request_data: NewRequest,
    by: str,
    request_id: str,
    check: Callable[[Plan], None] = lambda plan: None,
) -> Reprocess:
    """Store a re-processing and begin its first step, unless ``check`` raises an error for its plan. A repeat with the
    same request id returns the same one."""
    reprocess_id = id_of(namespace, request_id)
    if ports.rows.get(Reprocess, namespace, reprocess_id) is None:
        now, plan = ports.clock.now(), preview(ports, namespace, request_data)
        check(plan)
        steps, parts = reprocess.store(reprocess_id, plan.steps)
        ports.ledger.put_all([Put(part) for part in parts])
        row = Reprocess(
            namespace=namespace,
            id=reprocess_id,
            state="RUNNING",
            dataset=plan.dataset,
            keys=plan.keys,
            base=plan.base,
            first=plan.entries[0],
            last=plan.entries[-1],
            steps=(),
            concurrency=request_data.concurrency,
            created_at=now,
            by=by,
            run=plan.run,
            schedule=plan.schedule,
            since=plan.since,
            until=plan.until,
            properties=request_data.properties,
            wake_at=now,
        )
        # A conflict means that another request with this id has stored it.
        ports.ledger.commit([Create(reprocess.with_steps(row, steps))])
    advance(ports, namespace, reprocess_id)
    return existing(ports, namespace, reprocess_id)


def existing(ports: Ports, namespace: str, reprocess_id: str) -> Reprocess:
    """A stored re-processing. Raises ``not_found`` (404) if there is none."""
    row = ports.rows.get(Reprocess, namespace, reprocess_id)
    if row is None:
        raise errors.not_found("re-processing", reprocess_id, f"list those of the namespace {namespace}")
    return row


def stop(ports: Ports, namespace: str, reprocess_id: str, runs: bool, by: str) -> Reprocess:
    """Cancel a re-processing: once this returns, none of its jobs starts any more. Returns the re-processing.

    Its runs continue, unless ``runs`` cancels them too. A finished one does not change.
    """
    for _ in range(MAX_CONFLICTS):
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

    Raises RuntimeError after ``MAX_CONFLICTS`` conflicts in a row.
    """
    for _ in range(MAX_CONFLICTS):
        row = ports.rows.get(Reprocess, namespace, reprocess_id)
        if row is None or row.wake_at is None or _step(ports, row, ports.clock.now()):
            return
    raise too_many_conflicts(f"re-processing {reprocess_id}", "the sweep will hint it again")


def _step(ports: Ports, row: Reprocess, now: Instant) -> bool:
    """Make one decision and store it. Returns False after a conflict."""
    number = reprocess.running(row)
    current = None
    if number is not None:
        schedule, own = reprocess.steps_of(row)[number].schedule, ids.step_of(row.id, number)
        if row.state == "CANCELLED" and ports.rows.get(Backfill, schedule, own) is not None:
            backfill.stop(ports, schedule, own, row.cancel_runs, f"re-processing {row.id}")
        # Read after the row: a backfill that ends later than this read raises the revision of the row.
        current = ports.rows.get(Backfill, schedule, own)
    after, begins = reprocess.advance(row, current, now)
    plan: list[Write] = []
    if begins is not None:
        made = reprocess.backfill_of(row, begins, now)
        if ports.rows.get(Backfill, made.schedule, made.id) is None:
            plan.append(Create(made))
        else:  # a repair after a restore of the tables has begun the step already, and it may have ended
            after = replace(after, wake_at=now)
    plan.append(Replace(after))
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
    parts = [ports.rows.get(PlanPart, step.plan, number) for step in left for number in entries.parts_of(step.total)]
    ports.ledger.put_all([Put(replace(part, expires_at=at)) for part in parts if part is not None])


def _partitions(ports: Ports, name: str, dataset: Dataset, request_data: NewRequest) -> list[tuple[str, ...]]:
    """The partitions that a request names, by their values as they stand in the folders, oldest first."""
    if request_data.partition is not None:
        try:
            chosen = entries.named(dataset.keys, [request_data.partition])
        except SluiceError:
            hint = "write each key once, with its value"
            expected = f"an object with exactly the keys {', '.join(dataset.keys)}"
            raise invalid("partition", expected, request_data.partition, hint) from None
        if dataset.format == "files":
            chosen = [registered.chosen(ports, name, dataset, chosen[0], "partition")]
        elif ports.rows.get(Partition, name, chosen[0]) is None:
            hint = "sluice datasets lists the snapshots"
            raise invalid("partition", f"a registered snapshot of {name}", chosen[0][0], hint)
    else:
        if dataset.format == "iceberg":
            hint = "name one snapshot as partition"
            raise invalid("from", "a single snapshot of a table, as partition", "a range of them", hint)
        known = (row.values for row in lookup.every(partial(ports.catalog.partitions, name)))
        chosen = entries.between(dataset.keys, known, request_data.from_, request_data.to)
    ordered = [entries.texts_of(entry) for entry in entries.entries_of(dataset.keys, chosen, ())]
    if not ordered:
        hint = f"sluice datasets {name} lists the registered partitions; partition may name any other"
        raise invalid("from", f"a range with a partition of {name}", "a range without one", hint)
    return ordered


def _event(ports: Ports, name: str, dataset: Dataset, texts: tuple[str, ...]) -> Event:
    """The event of a partition, as its subscribers count it."""
    known = registered.of_folder(ports, name, dataset, texts)
    return known.event if known is not None else entries.unregistered(name, dataset, texts, 0)


def _of_the_dataset(step: Step, keys: Sequence[str], chosen: Sequence[tuple[tuple[str, ...], Event]]) -> Step:
    """A first step with whole partitions as entries, because the events of the partitions start its runs. Those that
    the schedule does not count are none."""
    by, counted = () if step.keys == tuple(keys) else step.keys, set(step.entries)
    known = ((texts, event.partition or {}) for texts, event in chosen)
    partitions = [texts for texts, values in known if "/".join(values.get(key, "") for key in step.keys) in counted]
    return replace(step, entries=entries.entries_of(keys, partitions, by))


def _graph(ports: Ports, first: Sequence[str], downstream: bool) -> dict[str, list[Follower]]:
    """The followers of these event keys, and of each event that their runs announce, and so on."""
    graph: dict[str, list[Follower]] = {}
    wanted, known = list(first), 0
    while wanted:
        key = wanted.pop(0)
        graph[key] = list(_followers(ports, key))
        known += len(graph[key])
        if known > MAX_READ:
            hint = "re-process with scope only, then what follows it"
            raise invalid("dataset", f"at most {MAX_READ} schedules downstream of {first[0]}", f"{known} or more", hint)
        for follower in graph[key] if downstream else ():
            wanted += [each for each in lineage.announced_keys(follower) if each not in graph and each not in wanted]
    return graph


def _followers(ports: Ports, key: str) -> Iterator[Follower]:
    rows: dict[str, list[Subscription]] = {}
    for row in lookup.every(partial(ports.catalog.subscriptions, key)):
        if row.leaf != WAKE:
            rows.setdefault(row.schedule, []).append(row)
    for name, own in rows.items():
        state = ports.rows.get(ScheduleState, name)
        living = tuple(row for row in own if state is not None and row.generation == state.generation)
        schedule = lookup.definition_of(ports, state)
        if living and schedule is not None:
            first = living[0]
            sources = _sources(ports, name, schedule)
            datasets = period_jobs.datasets_of(ports, schedule) if schedule.per is not None else {}
            yield Follower(name, schedule, living, first.generation, first.version, sources, datasets)


def _sources(ports: Ports, name: str, schedule: Schedule) -> tuple[Source, ...]:
    """The workflows that run when a schedule does. Of a DAG's start: those of the nodes that run if all goes well."""
    if not ids.is_dag_graph(schedule.workflow):
        return (_source(ports, schedule.workflow, name, name),)
    graph = ports.rows.get(Definition, "dag", schedule.workflow)
    if graph is None:
        return ()
    dag, own = Dag.model_validate(graph.document), ids.dag_of(name)
    runs = [(node, dag.nodes[node].workflow) for node in dag_status.succeeding(dag)]
    return tuple(
        _source(ports, workflow, ids.dag_node(schedule.workflow, node), f"node {node} of {own}")
        for node, workflow in runs
    )


def _source(ports: Ports, workflow: str, schedule: str, who: str) -> Source:
    row = ports.rows.get(Definition, "workflow", workflow)
    if row is None:
        return Source(workflow, schedule, who)
    return Source(workflow, schedule, who, row.version, tuple(_products(ports, row)))


def _products(ports: Ports, row: Definition) -> Iterator[Product]:
    workflow = store.of_datasets(row)
    space = row.name.partition(".")[0]
    for name in workflow.datasets_produced(space) if workflow is not None else ():
        stored = ports.rows.get(Definition, "dataset", name)
        if workflow is not None and stored is not None:
            registers = name in workflow.datasets_registered(space)
            yield Product(name, Dataset.model_validate(stored.document), registers)
