"""What a deployment would change in the parts that it replaces, field by field (L8)."""

from __future__ import annotations

from chalicelib.core import ids
from chalicelib.core.definitions import diff
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.schedules import relative
from chalicelib.flow import lookup
from chalicelib.flow.dags import actions
from chalicelib.flow.deploy.plan import Part, Plan, stored
from chalicelib.ports import Ports


def of_plan(ports: Ports, plan: Plan) -> dict[str, list[str]]:
    """The changes of each part to replace, by ``kind full.name``: ``constraints.0.max: 1 -> 2``. A schedule of which
    only the mode changes has the change ``enabled``."""
    replaced = [part for part in plan.parts if part.action == "replaced" and not ids.is_of_message(part.name)]
    return {f"{part.kind} {part.name}": _of_part(ports, plan, part) for part in replaced}


def _of_part(ports: Ports, plan: Plan, part: Part) -> list[str]:
    if part.kind == "schedule":
        return _of_schedule(ports, plan, part)
    row = ports.rows.get(Definition, part.kind, part.name)
    if row is None:  # deleted since the plan was made
        return []
    before = {field: value for field, value in row.document.items() if (part.kind, field) != ("app", "deployed")}
    return diff.changes(before, part.document or {} if part.dag is None else actions.body_of(part.dag.definition()))


def _of_schedule(ports: Ports, plan: Plan, part: Part) -> list[str]:
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
