"""What people do to schedules: put, enable, disable, delete, run now. Acknowledged is final (C13)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chalicelib.core import errors, ids, lifecycle, triggers
from chalicelib.core.errors import SluiceError
from chalicelib.core.model import NewSchedule, Schedule
from chalicelib.core.rows import Event, Gate, Job
from chalicelib.core.triggers import PartitionTrigger, ProgramStatusTrigger
from chalicelib.core.writes import Create, GateIs
from chalicelib.flow import emit, facts
from chalicelib.flow.apply import MOST_RACES, ref_of
from chalicelib.flow.definitions import check_size
from chalicelib.flow.drain import drain
from chalicelib.ports import Ports

MOST_DOWNSTREAM = 1_000  # workflows followed when a cycle is looked for


def put(
    ports: Ports, name: str, document: NewSchedule, by: str, if_match: int | None = None, checked: bool = False
) -> tuple[Gate, bool]:
    """Create or replace a schedule. Returns its gate and whether it is new. Putting what is there changes nothing.

    ``checked``: its references were checked by the caller, together with what is stored along with it.
    """
    namespace, app, _ = name.split(".")
    new = document.definition().resolved(namespace, app)
    check_size(new.model_dump(mode="json"))
    if not checked:
        check_references(ports, name, new)
    for _ in range(MOST_RACES):
        gate = ports.catalog.gate(name)
        alive = gate if gate is not None and gate.mode != "deleted" else None
        _expect(if_match, alive, name)
        old = facts.definition_of(ports, alive)
        wants = document.enabled
        if alive and old == new and (wants is None or wants == (alive.mode == "enabled")):
            return alive, False
        after, plan = lifecycle.put(name, new, old, gate, wants, ports.clock.now(), by)
        if ports.ledger.commit(plan) is None:
            _settle(ports, alive, after)
            return after, alive is None
    raise errors.changed_meanwhile(f"schedule {name}")


def enable(ports: Ports, name: str, by: str) -> Gate:
    """Only events accepted from now on count. Enabling what is enabled changes nothing."""
    for _ in range(MOST_RACES):
        gate, schedule = existing(ports, name)
        if gate.mode == "enabled":
            return gate
        check_references(ports, name, schedule)
        after, plan = lifecycle.enable(gate, schedule, ports.clock.now(), by)
        if ports.ledger.commit(plan) is None:
            _settle(ports, gate, after)
            return after
    raise errors.changed_meanwhile(f"schedule {name}")


def disable(ports: Ports, name: str, by: str) -> Gate:
    """Once this returns, nothing that waits is started any more; running runs go on (L3)."""
    for _ in range(MOST_RACES):
        gate, schedule = existing(ports, name)
        if gate.mode == "disabled":
            return gate
        after, plan = lifecycle.disable(gate, schedule, ports.clock.now(), by)
        if ports.ledger.commit(plan) is None:
            drain(ports, name, gate.generation)
            return after
    raise errors.changed_meanwhile(f"schedule {name}")


def delete(ports: Ports, name: str, by: str, if_match: int | None = None) -> None:
    for _ in range(MOST_RACES):
        gate, schedule = existing(ports, name)
        _expect(if_match, gate, name)
        _, plan = lifecycle.delete(gate, schedule, ports.clock.now(), by)
        if ports.ledger.commit(plan) is None:
            drain(ports, name, gate.generation)
            return
    raise errors.changed_meanwhile(f"schedule {name}")


def run_now(ports: Ports, name: str, properties: Mapping[str, Any], request_id: str) -> str:
    """A job of its own, past the trigger but not past the constraints (L11). Returns its id; once per request id."""
    for _ in range(MOST_RACES):
        gate, _ = existing(ports, name)
        now = ports.clock.now()
        event = Event(ids.event_id("run_now", name, request_id), "run_now", f"run_now:{name}", now, now)
        job = Job(
            schedule=name,
            generation=gate.generation,
            place=f"RUNNOW#{ids.digest(request_id)}",
            job_id=ids.job_id(name, gate.generation, event.id),
            kind="run_now",
            state="PENDING_CONSTRAINTS",
            created_at=now,
            accepted_at=now,
            event=event,
            properties=dict(properties),
            reason="run now",
            wake_at=now,
        )
        if ports.runs.attempts(job.job_id) or ports.runs.record(job.job_id):
            return job.job_id  # the same request came before, and its job is history
        create = Create(job)
        refused = ports.ledger.commit([create, GateIs(gate, ("enabled", "disabled"))])
        if refused is None or create in refused.writes:
            ports.hints.send([ref_of(job)], now, now)
            return job.job_id
    raise errors.changed_meanwhile(f"schedule {name}")


def existing(ports: Ports, name: str) -> tuple[Gate, Schedule]:
    gate = ports.catalog.gate(name)
    schedule = facts.definition_of(ports, gate)
    if gate is None or schedule is None or gate.mode == "deleted":
        raise errors.not_found("schedule", name)
    return gate, schedule


def check_references(ports: Ports, name: str, schedule: Schedule) -> None:
    """Refuse what names an unknown workflow or dataset, or what would trigger itself, however far around."""
    workflow = facts.workflow_of(ports, schedule.workflow)
    if workflow is None:
        raise errors.unknown_reference("workflow", "workflow", schedule.workflow, _workflows(ports, name))
    if schedule.constraints and not workflow.target.has_lifecycle:
        hint = "remove the constraint, or give the workflow a target whose runs can be followed"
        got = f"one for a {workflow.target.type} target, whose runs have no end that could be seen"
        raise errors.invalid("constraints.0", "a concurrency constraint only for a target with a lifecycle", got, hint)
    for leaf in triggers.leaves(schedule.trigger):
        if isinstance(leaf.trigger, PartitionTrigger):
            _check_dataset(ports, schedule, leaf.trigger)
        elif isinstance(leaf.trigger, ProgramStatusTrigger):
            _check_upstream(ports, name, leaf.trigger)
    _check_cycle(ports, name, schedule)


def _check_dataset(ports: Ports, schedule: Schedule, leaf: PartitionTrigger) -> None:
    definition = ports.catalog.definition("dataset", leaf.dataset)
    if definition is None:
        namespace = leaf.dataset.partition(".")[0]
        known = [row.name for row in ports.catalog.definitions("dataset", namespace, 1000, None).items]
        raise errors.unknown_reference("trigger", "dataset", leaf.dataset, known)
    keys = definition.document["keys"]
    for key in schedule.by:
        if key not in keys:
            raise errors.invalid("by", f"partition keys that dataset {leaf.dataset} has ({', '.join(keys)})", key)


def _check_upstream(ports: Ports, name: str, leaf: ProgramStatusTrigger) -> None:
    upstream = facts.workflow_of(ports, leaf.workflow)
    if upstream is None:
        raise errors.unknown_reference("trigger", "workflow", leaf.workflow, _workflows(ports, name))
    if not upstream.target.has_lifecycle:
        got = f"{leaf.workflow}, whose {upstream.target.type} target reports none"
        raise errors.invalid("trigger", "a workflow whose target reports the status of its runs", got)


def _check_cycle(ports: Ports, name: str, schedule: Schedule) -> None:
    """Follow what the workflow of this schedule starts, through the index of enabled schedules. Checked at every put
    and enable, so a cycle is found by whoever closes it."""
    upstream = {
        leaf.trigger.workflow
        for leaf in triggers.leaves(schedule.trigger)
        if isinstance(leaf.trigger, ProgramStatusTrigger)
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
        rows = ports.catalog.subscriptions(triggers.status_key(workflow, status), 1000, None).items
        for row in rows:
            version = ports.catalog.version(row.schedule, row.version) if row.schedule != name else None
            if version is not None:
                found.append(str(version.definition["workflow"]))
    return found


def _workflows(ports: Ports, schedule: str) -> list[str]:
    app = schedule.rpartition(".")[0]
    return [row.name for row in ports.catalog.definitions("workflow", app, 1000, None).items]


def _expect(if_match: int | None, gate: Gate | None, name: str) -> None:
    if if_match is not None and if_match != (gate.version if gate else None):
        raise errors.changed_meanwhile(f"schedule {name}")


def _settle(ports: Ports, before: Gate | None, after: Gate) -> None:
    """What follows an acknowledged change: the old generation's jobs go on record, the new one's fires are prepared."""
    if before is not None and before.generation != after.generation:
        drain(ports, before.schedule, before.generation)
    if after.mode == "enabled":
        emit.emit_soon(ports, after.schedule)
