"""What a deployment would change in the parts that it replaces, and what it would do to the triggers and the work in
flight of its schedules (L6, L8, L25)."""

from __future__ import annotations

from chalicelib.core import ids
from chalicelib.core.definitions import diff
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.schedules import relative
from chalicelib.core.schedules.effect import Effect
from chalicelib.flow import lookup, many
from chalicelib.flow.dags import actions, runs
from chalicelib.flow.deploy.plan import Part, Plan, stored
from chalicelib.flow.schedules import costs, over, stops
from chalicelib.flow.schedules.costs import Costs, EffectOfPutView
from chalicelib.ports import Ports

MAX_RUNS = 25  # the newest runs of a deleted DAG, among which the active ones are named

Effects = dict[str, EffectOfPutView]


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
    """The effect on each schedule that a plan replaces or deletes, and on those that have ended, by ``schedule
    full.name``; on a DAG that it deletes by ``dag full.name``."""
    changed = [part for part in plan.of("schedule", "replaced") if part.schedule is not None]
    graphs = [part for part in plan.of("dag", "replaced") if "replaced" in part.becomes.values()]
    deleted = [part for part in plan.of("schedule", "deleted") if not ids.is_of_message(part.name)]
    names = [*(part.name for part in (*changed, *deleted)), *(ids.dag_start(part.name) for part in graphs)]
    seen, counted = many.rows_of(ports, names, timers=True), Costs(ports)
    found = {f"schedule {part.name}": _of_schedule(counted, seen, plan, part) for part in changed}
    found |= {f"schedule {ids.dag_start(part.name)}": _of_dag(counted, seen, part) for part in graphs}
    found |= {f"schedule {part.name}": counted.of_deletion(seen, [part.name]) for part in deleted}
    found |= {f"dag {part.name}": _of_deleted_dag(counted, part) for part in plan.of("dag", "deleted")}
    found |= _stopped(ports, plan)
    over_already = [part.name for part in plan.of("schedule", "kept") if part.has_ended]
    return found | {f"schedule {name}": costs.view(Effect("ended", "deleted")) for name in over_already}


def _stopped(ports: Ports, plan: Plan) -> Effects:
    """The effect on each schedule and DAG that a plan creates where a stop covers it (L24). Its own tags count besides
    those of the app, which the nodes of a DAG inherit, too."""
    live = [stop for stop in stops.of_namespace(ports, plan.app.partition(".")[0]) if stop.is_live]
    made = [part for kind in ("schedule", "dag") for part in plan.of(kind, "created")]
    found: Effects = {}
    for part in made if live else ():
        sent = part.schedule or part.dag
        tags = {**plan.document.tags, **(sent.tags if sent is not None else {})}
        covering = [stop for stop in live if stop.of.covers(part.name, tags)]
        if covering:
            found[f"{part.kind} {part.name}"] = costs.view(Effect("begins", "enabled"), stops=covering)
    return found


def _of_schedule(counted: Costs, seen: Ports, plan: Plan, part: Part) -> EffectOfPutView:
    sent = part.sent
    found = over.read(seen, part.name, stored(seen, part.name, sent, plan.document), sent.enabled)
    return counted.of_put(found, sent.enabled, sent.on_update == "carry")


def _of_dag(counted: Costs, seen: Ports, part: Part) -> EffectOfPutView:
    enabled = part.dag.enabled if part.dag is not None else None
    found = over.read(seen, ids.dag_start(part.name), part.compiled.start, enabled)
    return counted.of_put(found, enabled, carry=True)


def _of_deleted_dag(counted: Costs, part: Part) -> EffectOfPutView:
    ports, names = counted.ports, list(part.becomes)
    newest = runs.page(ports, part.name, MAX_RUNS, None).items
    active = [run["run_id"] for run in newest if run["state"] == "RUNNING"]
    return counted.of_deletion(many.rows_of(ports, names, timers=True), names, active)
