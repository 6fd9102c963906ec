"""What a schedule refers to is there and fits; and no schedule triggers itself, however far around (T10, L17, C1)."""

from __future__ import annotations

from chalicelib.core import errors, leaves, lines, triggers
from chalicelib.core.constraints import AnyConstraint, Concurrency, Load, Probe, SinceLastRun
from chalicelib.core.errors import SluiceError
from chalicelib.core.facts import rates_of
from chalicelib.core.leaves import AbsentTrigger, LeafTrigger, PartitionTrigger, ProgramStatusTrigger, SizeTrigger
from chalicelib.core.model import Schedule, Workflow
from chalicelib.core.rows import WAKE
from chalicelib.flow import addresses, facts, pools
from chalicelib.ports import Ports

MOST_RATES = 20
MOST_DOWNSTREAM = 1_000  # workflows followed when a cycle is looked for


def check(ports: Ports, name: str, schedule: Schedule) -> None:
    """Refuse what names an unknown workflow or dataset, or what would trigger itself, however far around."""
    workflow = facts.workflow_of(ports, schedule.workflow)
    if workflow is None:
        raise errors.unknown_reference("workflow", "workflow", schedule.workflow, _workflows(ports, name))
    for number, constraint in enumerate(schedule.constraints):
        _check_constraint(ports, name, constraint, workflow, f"constraints.{number}")
    _check_policy(ports, schedule)
    pools.check(ports, workflow, schedule)
    _check_rates(ports, schedule)
    _check_failures(schedule, workflow)
    for leaf in triggers.leaves(schedule.trigger):
        _check_leaf(ports, name, schedule, leaf.trigger)
    _check_cycle(ports, name, schedule)


def _check_leaf(ports: Ports, name: str, schedule: Schedule, leaf: LeafTrigger) -> None:
    source = leaves.source_of(leaf)
    if isinstance(source, PartitionTrigger | SizeTrigger):
        _check_dataset(ports, schedule, source)
    elif isinstance(source, ProgramStatusTrigger):
        _check_upstream(ports, name, source.workflow, "trigger")
    if isinstance(leaf, AbsentTrigger) and (isinstance(source, SizeTrigger) or leaves.needed(source) > 1):
        raise errors.invalid("trigger", "an absent leaf of single events", triggers.describe(source))


def _check_constraint(ports: Ports, name: str, constraint: AnyConstraint, workflow: Workflow, field: str) -> None:
    if isinstance(constraint, Concurrency | SinceLastRun) and not workflow.target.has_lifecycle:
        hint = "remove the constraint, or give the workflow a target whose runs can be followed"
        got = f"one for a {workflow.target.type} target, whose runs have no end that could be seen"
        expected = f"a {constraint.type} constraint only for a target with a lifecycle"
        raise errors.invalid(field, expected, got, hint)
    if isinstance(constraint, Load) and constraint.of.pool is not None:
        pools.existing(ports, constraint.of.pool, f"{field}.of.pool")
    if isinstance(constraint, Probe):
        addresses.check_target(ports, constraint.target.model_dump(), f"{field}.target")
    for upstream in getattr(constraint, "workflows", ()):
        _check_upstream(ports, name, upstream, field)


def _check_rates(ports: Ports, schedule: Schedule) -> None:
    """Every start of a workflow is counted in each of its rates, in one transaction."""
    known = ports.jobs.line(lines.workflow_line(schedule.workflow)).rates
    rules = {*known, *rates_of(schedule)}
    if len(rules) > MOST_RATES and not rules <= set(known):
        hint = "use a rate that another schedule of this workflow has: each different one is counted at every start"
        raise errors.invalid("constraints", f"at most {MOST_RATES} different rates of one workflow", len(rules), hint)


def _check_policy(ports: Ports, schedule: Schedule) -> None:
    if schedule.policy is not None and ports.catalog.definition("policy", schedule.policy) is None:
        namespace = schedule.policy.partition(".")[0]
        known = [row.name for row in ports.catalog.definitions("policy", namespace, 1000, None).items]
        raise errors.unknown_reference("policy", "policy", schedule.policy, known)


def _check_failures(schedule: Schedule, workflow: Workflow) -> None:
    if schedule.pause_after_failures is not None and not workflow.target.has_lifecycle:
        got = f"it for a {workflow.target.type} target, which reports none"
        raise errors.invalid("pause_after_failures", "a target that reports how its runs end", got)


def _check_dataset(ports: Ports, schedule: Schedule, leaf: PartitionTrigger | SizeTrigger) -> None:
    definition = ports.catalog.definition("dataset", leaf.dataset)
    if definition is None:
        namespace = leaf.dataset.partition(".")[0]
        known = [row.name for row in ports.catalog.definitions("dataset", namespace, 1000, None).items]
        raise errors.unknown_reference("trigger", "dataset", leaf.dataset, known)
    keys = definition.document["keys"]
    for key in schedule.by:
        if key not in keys:
            raise errors.invalid("by", f"partition keys that dataset {leaf.dataset} has ({', '.join(keys)})", key)


def _check_upstream(ports: Ports, name: str, upstream: str, field: str) -> None:
    workflow = facts.workflow_of(ports, upstream)
    if workflow is None:
        raise errors.unknown_reference(field, "workflow", upstream, _workflows(ports, name))
    if not workflow.target.has_lifecycle:
        got = f"{upstream}, whose {workflow.target.type} target reports none"
        raise errors.invalid(field, "a workflow whose target reports the status of its runs", got)


def _check_cycle(ports: Ports, name: str, schedule: Schedule) -> None:
    """Follow what the workflow of this schedule starts, through the index of enabled schedules. Checked at every put
    and enable, so a cycle is found by whoever closes it."""
    upstream = {
        source.workflow
        for leaf in triggers.leaves(schedule.trigger)
        if isinstance(source := leaves.source_of(leaf.trigger), ProgramStatusTrigger)
    }
    if not upstream:
        return
    trail: dict[str, tuple[str, ...]] = {schedule.workflow: (schedule.workflow,)}
    queue = [schedule.workflow]
    while queue and len(trail) < MOST_DOWNSTREAM:
        workflow = queue.pop(0)
        if workflow in upstream:
            way = " -> ".join([*trail[workflow], schedule.workflow])
            hint = "break the circle: trigger one of them by time or by its data"
            raise SluiceError("cycle", f"expected triggers without a cycle, got {way}", "trigger", hint)
        for downstream in _started_by(ports, name, workflow):
            if downstream not in trail:
                trail[downstream] = (*trail[workflow], downstream)
                queue.append(downstream)


def _started_by(ports: Ports, name: str, workflow: str) -> list[str]:
    """The workflows that enabled schedules, other than this one, start when ``workflow`` reaches some status."""
    found: list[str] = []
    for status in ("STARTED", "COMPLETED", "FAILED", "KILLED"):
        rows = ports.catalog.subscriptions(leaves.status_key(workflow, status), 1000, None).items
        for row in rows:
            starts = row.schedule != name and row.leaf != WAKE  # what meets a constraint starts nothing by itself
            version = ports.catalog.version(row.schedule, row.version) if starts else None
            if version is not None:
                found.append(str(version.definition["workflow"]))
    return found


def _workflows(ports: Ports, schedule: str) -> list[str]:
    app = schedule.rpartition(".")[0]
    return [row.name for row in ports.catalog.definitions("workflow", app, 1000, None).items]
