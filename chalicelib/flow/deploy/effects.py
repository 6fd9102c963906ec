"""What a deployment would change in the parts that it replaces, and what it would do to the triggers and the waiting
jobs of its schedules (L6, L8)."""

from __future__ import annotations

from chalicelib.core import ids
from chalicelib.core.definitions import diff
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.schedules import relative
from chalicelib.core.schedules.effect import Effect
from chalicelib.flow import lookup, many
from chalicelib.flow.dags import actions
from chalicelib.flow.deploy.plan import Part, Plan, stored
from chalicelib.flow.schedules import over
from chalicelib.ports import Ports

Effects = dict[str, dict[str, str]]


def changes_of(ports: Ports, plan: Plan) -> dict[str, list[str]]:
    """The changes of each part to replace, by ``kind full.name``: ``constraints.0.max: 1 -> 2``. A schedule of which
    only the mode changes has the change ``enabled``."""
    replaced = [part for part in plan.parts if part.action == "replaced" and not ids.is_of_message(part.name)]
    return {f"{part.kind} {part.name}": _changes_of(ports, plan, part) for part in replaced}


def _changes_of(ports: Ports, plan: Plan, part: Part) -> list[str]:
    if part.kind == "schedule":
        return _changes_of_schedule(ports, plan, part)
    row = ports.rows.get(Definition, part.kind, part.name)
    if row is None:  # deleted since the plan was made
        return []
    before = {field: value for field, value in row.document.items() if (part.kind, field) != ("app", "deployed")}
    return diff.changes(before, part.document or {} if part.dag is None else actions.body_of(part.dag.definition()))


def _changes_of_schedule(ports: Ports, plan: Plan, part: Part) -> list[str]:
    schedule_state = ports.rows.get(ScheduleState, part.name)
    old = lookup.stored(ports, schedule_state)
    if schedule_state is None or old is None or part.schedule is None:
        return []
    sent = stored(ports, part.name, part.schedule, plan.document)
    new = relative.counted(sent, part.name, old, ports.clock.now()).definition
    found = diff.changes(old.definition.model_dump(mode="json"), new.model_dump(mode="json"))
    was = schedule_state.mode != "disabled"
    if part.schedule.enabled is not None and part.schedule.enabled != was:
        found.append(diff.changes({"enabled": was}, {"enabled": part.schedule.enabled})[0])
    return found


def of_plan(ports: Ports, plan: Plan) -> Effects:
    """The effect on each schedule that a plan replaces, and on those that have ended, by ``schedule full.name``."""
    changed = [part for part in plan.of("schedule", "replaced") if part.schedule is not None]
    graphs = [part for part in plan.of("dag", "replaced") if "replaced" in part.becomes.values()]
    names = [*(part.name for part in changed), *(ids.dag_start(part.name) for part in graphs)]
    seen = many.rows_of(ports, names, timers=True)
    found = {part.name: _of_schedule(seen, plan, part) for part in changed}
    found |= {ids.dag_start(part.name): _of_dag(seen, part) for part in graphs}
    found |= {part.name: Effect("ended", "deleted") for part in plan.of("schedule", "kept") if part.has_ended}
    return {f"schedule {name}": {"code": effect.code, "text": effect.text} for name, effect in found.items()}


def _of_schedule(ports: Ports, plan: Plan, part: Part) -> Effect:
    sent = part.sent
    found = over.read(ports, part.name, stored(ports, part.name, sent, plan.document), sent.enabled)
    return found.effect(sent.enabled, sent.on_update == "carry")


def _of_dag(ports: Ports, part: Part) -> Effect:
    enabled = part.dag.enabled if part.dag is not None else None
    return over.read(ports, ids.dag_start(part.name), part.compiled.start, enabled).effect(enabled, carry=True)
