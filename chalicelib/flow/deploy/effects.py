"""What a deployment would do to the triggers and the waiting jobs of the schedules that it replaces (L6, L8)."""

from __future__ import annotations

from chalicelib.core import ids
from chalicelib.core.schedules.effect import Effect
from chalicelib.flow import many
from chalicelib.flow.deploy.plan import Part, Plan, stored
from chalicelib.flow.schedules import over
from chalicelib.ports import Ports

Effects = dict[str, dict[str, str]]


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
    if part.schedule is None:
        raise ValueError(f"expected a schedule that was sent, got {part.name}")
    enabled, carry = part.schedule.enabled, part.schedule.on_update == "carry"
    return over.read(ports, part.name, stored(ports, part.name, part.schedule, plan.document), enabled).effect(
        enabled, carry
    )


def _of_dag(ports: Ports, part: Part) -> Effect:
    enabled = part.dag.enabled if part.dag is not None else None
    return over.read(ports, ids.dag_start(part.name), part.compiled.start, enabled).effect(enabled, carry=True)
