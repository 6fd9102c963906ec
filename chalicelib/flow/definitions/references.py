"""Check that the references of a schedule, and the datasets of a workflow, exist and fit, and that no schedule triggers
itself (T10, L17, L22, C1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chalicelib.core import errors, ids
from chalicelib.core.access.allowed import Named
from chalicelib.core.access.grants import ForeignUse, GrantKind
from chalicelib.core.constraints.constraint import Constraint, Use
from chalicelib.core.dags import rounds
from chalicelib.core.definitions import foreign, roll_up
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.errors import Problems, SluiceError
from chalicelib.core.events import periods, products
from chalicelib.core.jobs.permits import rates_of
from chalicelib.core.limits import names
from chalicelib.core.limits.permits import MAX_RATES
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.targets.target import require_lifecycle
from chalicelib.core.time import period_names
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.leaf import DatasetReference, Leaf, Upstream
from chalicelib.core.why import mention, plain
from chalicelib.flow import grants, lookup, many
from chalicelib.flow.definitions import addresses, allowed, cycles
from chalicelib.flow.definitions.cycles import Start
from chalicelib.flow.limits import pools
from chalicelib.flow.lookup import MAX_KNOWN
from chalicelib.ports import Kind, Ports


def check(
    ports: Ports, name: str, schedule: Schedule, starts: Sequence[Start] | None = None, with_disabled: bool = False
) -> None:
    """Raise SluiceError if a schedule refers to something unknown or unfit, or triggers itself, even indirectly. The
    error has every such problem.

    ``starts`` are the nodes of a DAG, if the schedule is its start: they run instead of the schedule itself (W4).
    ``with_disabled``: a disabled schedule of the same app may close a cycle, too.
    """
    if rounds.KEY in schedule.by and not ids.is_dag_node(name):
        hint = "remove it: Sluice sets it for the nodes of a DAG"
        raise errors.invalid("by", "names of partition keys, or of fields of a payload", rounds.KEY, hint)
    if any(leaf.trigger.internal for leaf in tree.leaves(schedule.trigger)) and not ids.is_dag_node(name):
        hint = "put a DAG, and give a node the rule by its field when"
        raise errors.invalid("trigger", "a trigger that a schedule can have", "one of the nodes of a DAG", hint)
    if schedule.each is not None and not ids.is_dag_node(name):
        hint = "put a DAG, and give a node the field each"
        raise errors.invalid("each", "no each: only a node of a DAG has a list before it", "one", hint)
    problems = Problems()
    with problems.caught():
        workflow = granted_workflow(ports, name, schedule)
        _check_with_workflow(ports, name, schedule, workflow, problems)
    for number, rule in enumerate(schedule.notify):
        with problems.caught():
            addresses.check_target(ports, _space(name), rule.to.model_dump(mode="json"), f"notify.{number}.to")
    with problems.caught():
        _check_policy(ports, name, schedule)
    if schedule.resources is not None:
        with problems.caught():
            addresses.check_resources(ports, _space(name), schedule.resources.model_dump(), "resources")
    for leaf in tree.leaves(schedule.trigger):
        with problems.caught():
            _check_leaf(ports, name, schedule, leaf.trigger)
    if not problems:  # a search for a cycle needs references that exist
        with problems.caught():
            begins = [(name, schedule.workflow)] if starts is None else starts
            cycles.check_schedule(ports, name, schedule, begins, with_disabled)
    problems.end()


def check_workflow(ports: Ports, name: str, workflow: Workflow, with_disabled: bool = False) -> None:
    """Raise SluiceError if a workflow reads or produces a dataset that is unknown or not granted, or if its own data
    leads to its next run (L22). The error has every such problem. ``with_disabled`` is as in `check`."""
    problems, own = Problems(), _space(name)
    for number, dataset in enumerate(workflow.datasets_read(own)):
        with problems.caught(f"reads.{number}"):
            grants.require(ports, _foreign("datasets", dataset, own), "")
            _existing_dataset(ports, name, dataset, "")
    for number, dataset in enumerate(workflow.datasets_produced(own)):
        with problems.caught(f"produces.{number}"):
            _check_produced(ports, name, dataset, workflow)
    if not problems:
        with problems.caught():
            cycles.check_workflow(ports, name, workflow, with_disabled)
    problems.end()


def check_starters(
    ports: Ports, name: str, workflow: Workflow, besides: str | None = None, seen: Ports | None = None
) -> None:
    """Raise ``invalid`` if a schedule of the namespace runs a workflow that is put, and its runs cannot name what
    the stored workflow does not register (L22). The schedules of the app ``besides`` are left out. ``seen`` has the
    datasets as they will be, if that is not as they are."""
    stored, own = lookup.workflow_of(ports, name), _space(name)
    known = stored.datasets_registered(own) if stored is not None else ()
    if set(workflow.datasets_registered(own)) <= set(known):
        return
    for app in (row.name for row in lookup.definitions_in(ports, "app", own)):
        for schedule_name, schedule in many.schedules_in(ports, app) if app != besides else ():
            start = _start_of(ports, schedule_name, schedule) if schedule.workflow == name else None
            if start is None:
                continue
            try:
                check_registered(seen or ports, start, name, workflow)
            except SluiceError as error:
                shown = ids.dag_of(schedule_name) if ids.is_of_dag(schedule_name) else schedule_name
                expected = plain("expected schedules whose runs name what they register, got ", mention("other", shown))
                said = expected.then(": ", error.said)
                raise SluiceError(error.code, said, "produces", error.hinted) from None


def _start_of(ports: Ports, name: str, schedule: Schedule) -> Schedule | None:
    """The schedule whose runs have the values of this one: itself, or of a node the start of its DAG. None for a node
    of a former graph."""
    if not ids.is_dag_node(name):
        return schedule
    start = lookup.definition_of(ports, ports.rows.get(ScheduleState, ids.dag_start(ids.dag_of(name))))
    return start if start is not None and name.startswith(f"{start.workflow}{ids.DAG}") else None


def _check_produced(ports: Ports, name: str, dataset: str, workflow: Workflow) -> None:
    """A run writes data where its own namespace may, so it produces partitions of datasets of that namespace alone."""
    registers = dataset in workflow.datasets_registered(_space(name))
    if _space(dataset) != _space(name):
        hint = "name it in reads, or put a dataset of the own namespace"
        raise errors.invalid("", f"a dataset of namespace {_space(name)}", dataset, hint)
    definition = _existing_dataset(ports, name, dataset, "")
    if registers:
        require_lifecycle(workflow.target, "register", "a target that reports how its runs end")
        if definition.document.get("format") == "iceberg":
            hint = "write its name alone: each commit is a partition"
            raise errors.invalid("register", "a dataset of format files", f"the table {dataset}", hint)


def granted_workflow(ports: Ports, name: str, schedule: Schedule) -> Workflow:
    own = _space(name)
    grants.require(ports, _foreign("run", schedule.workflow, own), "workflow")
    workflow = lookup.workflow_of(ports, schedule.workflow)
    if workflow is None:
        raise grants.unknown(
            ports, own, "workflow", "workflow", schedule.workflow, _names(ports, "workflow", name.rpartition(".")[0])
        )
    return workflow


def _foreign(kind: GrantKind, of: str, by: str) -> list[ForeignUse]:
    """The use of a name, if it belongs to another namespace than ``by``."""
    return [ForeignUse(kind, of, by)] if _space(of) != by else []


def _check_with_workflow(ports: Ports, name: str, schedule: Schedule, workflow: Workflow, problems: Problems) -> None:
    """The checks that need the workflow of the schedule."""
    for number, constraint in enumerate(schedule.constraints):
        with problems.caught():
            _check_constraint(ports, name, constraint, workflow, f"constraints.{number}")
    with problems.caught():
        pools.check(ports, workflow, schedule, _space(name))
    with problems.caught():
        _check_rates(ports, schedule)
    with problems.caught():
        _check_failures(schedule, workflow)
    with problems.caught():
        check_registered(ports, schedule, schedule.workflow, workflow)


def _check_leaf(ports: Ports, name: str, schedule: Schedule, leaf: Leaf) -> None:
    grants.require(ports, foreign.of_leaf(name, leaf), "trigger")
    for dataset in leaf.datasets():
        _check_dataset(ports, name, schedule, dataset, leaf)
    for periodic in leaf.periodic():
        _check_periodic(ports, schedule, leaf, periodic)
    for calendar in leaf.calendars():
        _check_calendar(ports, name, calendar)
    for upstream in leaf.upstreams():
        _check_upstream(ports, name, upstream.workflow, "trigger")
        _check_starter(ports, name, upstream)
    allowed.check(ports, _space(name), leaf.named(), "trigger")
    leaf.check()


def _check_starter(ports: Ports, name: str, upstream: Upstream) -> None:
    """Check that the schedule exists whose runs alone count. Schedules of DAGs are put together with their DAG."""
    if upstream.schedule is None or ids.is_of_dag(upstream.schedule):
        return
    schedule_state = ports.rows.get(ScheduleState, upstream.schedule)
    if schedule_state is None or not schedule_state.exists:
        app = upstream.schedule.rpartition(".")[0]
        known = ports.catalog.schedules(app, MAX_KNOWN, None).items
        raise grants.unknown(ports, _space(name), "trigger", "schedule", upstream.schedule, known)


def _check_constraint(ports: Ports, name: str, constraint: Constraint, workflow: Workflow, field: str) -> None:
    if constraint.needs_lifecycle:
        hint = "remove the constraint, or give the workflow a target whose runs can be followed"
        expected = f"a {constraint.type} constraint only for a target with a lifecycle"
        require_lifecycle(workflow.target, field, expected, hint=hint)
    for use in constraint.references():
        _check_use(ports, name, use, f"{field}.{use.field}" if use.field else field)
    for dataset in constraint.datasets_with_fresh():
        if "fresh" not in _existing_dataset(ports, name, dataset, field).document:
            hint = "write within: 26h, or give the dataset the field fresh"
            raise errors.invalid(f"{field}.within", f"a span, because {dataset} has no fresh", "nothing", hint)


def _check_use(ports: Ports, name: str, use: Use, field: str) -> None:
    match use.kind:
        case "pool":
            pools.existing(ports, use.of, field, _space(name))
        case "application":
            addresses.check_application(ports, _space(name), use.of, field)
        case "target":
            addresses.check_target(ports, _space(name), use.of, field)
        case "metric":
            allowed.check(ports, _space(name), [Named("metrics", use.of, field)])
        case "dataset":
            grants.require(ports, _foreign("datasets", use.of, _space(name)), field)
            _existing_dataset(ports, name, use.of, field)
        case "workflow":
            grants.require(ports, _foreign("follow", use.of, _space(name)), field)
            _check_upstream(ports, name, use.of, field)


def _space(name: str) -> str:
    """The namespace of a full name."""
    return name.partition(".")[0]


def _names(ports: Ports, kind: Kind, parent: str) -> list[str]:
    """Definitions among which one may have been meant that does not exist."""
    return [row.name for row in ports.catalog.definitions(kind, parent, MAX_KNOWN, None).items]


def _check_rates(ports: Ports, schedule: Schedule) -> None:
    """Check the number of rates of a workflow: one transaction counts each start in all of them."""
    own = rates_of(schedule)
    if not own:
        return
    known = ports.jobs.limit_state(names.workflow_limit(schedule.workflow)).rates
    rules = {*known, *own}
    if len(rules) > MAX_RATES and not rules <= set(known):
        hint = "use a rate that another schedule of this workflow has: every start is counted in each different rate"
        raise errors.invalid("constraints", f"at most {MAX_RATES} different rates of one workflow", len(rules), hint)


def _check_policy(ports: Ports, name: str, schedule: Schedule) -> None:
    own = _space(name)
    grants.require(ports, _foreign("policies", schedule.policy, own) if schedule.policy is not None else [], "policy")
    if schedule.policy is not None and ports.rows.get(Definition, "policy", schedule.policy) is None:
        known = _names(ports, "policy", _space(schedule.policy))
        raise grants.unknown(ports, own, "policy", "policy", schedule.policy, known)


def _check_failures(schedule: Schedule, workflow: Workflow) -> None:
    if schedule.pause_after_failures is not None:
        got = f"a {workflow.target.type} target, which does not report that"
        require_lifecycle(workflow.target, "pause_after_failures", "a target that reports how its runs end", got)


def check_registered(ports: Ports, schedule: Schedule, name: str, workflow: Workflow) -> None:
    """Check that the runs of a schedule can name the partitions that its workflow ``name`` registers (L22). If it
    starts a DAG, the workflow may be that of a node."""
    registered = workflow.datasets_registered(_space(name))
    counted = _datasets(ports, tree.datasets(schedule.trigger)) if registered else {}
    for dataset_name, dataset in _datasets(ports, registered).items():
        missing = products.missing_keys(schedule, dataset, counted)
        if missing:
            expected = f"the keys {', '.join(dataset.keys)} of {dataset_name}, of which {name} registers partitions"
            hint = f"add by: [{', '.join(dataset.keys)}], or remove register from the workflow"
            raise errors.invalid("by", expected, list(schedule.by), hint)


def _datasets(ports: Ports, names: Iterable[str]) -> dict[str, Dataset]:
    """The datasets of these names that exist."""
    found = ((name, ports.rows.get(Definition, "dataset", name)) for name in names)
    return {name: Dataset.model_validate(row.document) for name, row in found if row is not None}


def _existing_dataset(ports: Ports, name: str, dataset: str, field: str) -> Definition:
    definition = ports.rows.get(Definition, "dataset", dataset)
    if definition is None:
        known = _names(ports, "dataset", _space(dataset))
        raise grants.unknown(ports, _space(name), field, "dataset", dataset, known)
    return definition


def _check_dataset(ports: Ports, name: str, schedule: Schedule, dataset: DatasetReference, leaf: Leaf) -> None:
    definition = _existing_dataset(ports, name, dataset.name, "trigger")
    if dataset.iceberg and definition.document.get("format") != "iceberg":
        hint = "wait for partitions of it, or name a dataset of format iceberg"
        raise errors.invalid("trigger.dataset", "a dataset of format iceberg", dataset.name, hint)
    keys = definition.document["keys"]
    if dataset.by_period and schedule.per is not None:
        roll_up.check(dataset.name, Dataset.model_validate(definition.document), schedule, leaf)
    elif schedule.values:
        roll_up.check_jobs(dataset.name, Dataset.model_validate(definition.document), schedule)
    for key in schedule.by:
        if key not in keys and key not in schedule.values:
            hint = f"correct the key, remove it, or list its values: values: {{{key}: [..]}}"
            raise errors.invalid("by", f"partition keys that dataset {dataset.name} has ({', '.join(keys)})", key, hint)


def _check_periodic(ports: Ports, schedule: Schedule, leaf: Leaf, name: str) -> None:
    """Check that a dataset says which partitions each of its periods has, and tell the leaf its periods."""
    row = ports.rows.get(Definition, "dataset", name)
    dataset = Dataset.model_validate(row.document) if row is not None else None
    if dataset is None:
        return  # an error of its own
    if dataset.period is None:
        hint = "add period to the dataset, or write within: 26h, which any partition meets"
        raise errors.invalid("trigger.of.dataset", "a dataset with a period", f"{name}, which has none", hint)
    names = periods.names_of(dataset)
    if names is None:
        named = {*period_names.keys_of(dataset.period.format), *dataset.listed}
        keys = ", ".join(key for key in dataset.keys if key not in named)
        expected = "a dataset whose keys name the period, or have listed values"
        hint = f"list them in the dataset: values: {{{keys}: [..]}}; or write within: 26h, which any partition meets"
        raise errors.invalid("trigger.of.dataset", expected, f"also {keys}" if keys else "too many values", hint)
    others = [key for key in schedule.by if key not in names.keys]
    if others:
        hint = "remove it: absent is about all partitions of a period, and its event names those that are missing"
        raise errors.invalid("by", f"keys that name the period of {name}", others[0], hint)
    leaf.learn_periods(name, names)


def _check_calendar(ports: Ports, name: str, calendar: str) -> None:
    own = _space(name)
    if _space(calendar) != own:
        hint = "put a calendar of the same days into the own namespace"
        raise errors.invalid("trigger.calendar", f"a calendar of namespace {own}", calendar, hint)
    if ports.rows.get(Definition, "calendar", calendar) is None:
        known = _names(ports, "calendar", own)
        raise grants.unknown(ports, own, "trigger.calendar", "calendar", calendar, known)


def _check_upstream(ports: Ports, name: str, upstream: str, field: str) -> None:
    workflow = lookup.workflow_of(ports, upstream)
    if workflow is None:
        raise grants.unknown(
            ports, _space(name), field, "workflow", upstream, _names(ports, "workflow", name.rpartition(".")[0])
        )
    if ids.is_dag_node(name) and field == "trigger":
        return  # the DAG has checked its own nodes
    got = f"{upstream}, whose {workflow.target.type} target reports none"
    require_lifecycle(workflow.target, field, "a workflow whose target reports the status of its runs", got)
