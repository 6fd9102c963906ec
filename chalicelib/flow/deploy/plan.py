"""What a deployment would do to an app, as values: each part and what becomes of it (L8)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from chalicelib.core import ids
from chalicelib.core.dags import compile
from chalicelib.core.dags.compile import Compiled
from chalicelib.core.definitions.app import App
from chalicelib.core.definitions.dag import NewDag
from chalicelib.core.definitions.schedule import NewSchedule, Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.flow import lookup
from chalicelib.flow.dags import actions
from chalicelib.flow.definitions import data, store
from chalicelib.flow.lookup import Stored
from chalicelib.ports import Kind, Ports

Report = dict[str, list[str]]
PartAction = Literal["created", "replaced", "kept", "deleted", "untouched"]
OPTIONAL = ("default_target", "data_bucket")  # fields of an app
AS_SENT: tuple[PartAction, ...] = ("created", "replaced", "kept")  # what is as the document says when all is done


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an app and what becomes of it; ``untouched``: left alone, for schedules are not to be updated.

    ``document`` is a definition as it is to be stored, ``schedule`` a schedule as it was sent, ``row`` a definition
    that goes, as it was read; ``dag`` a DAG as it was sent, ``becomes`` its schedules and what becomes of each.
    """

    kind: Kind | Literal["schedule"]
    name: str
    action: PartAction
    document: Mapping[str, Any] | None = None
    schedule: NewSchedule | None = None
    row: Definition | None = None
    dag: NewDag | None = None
    becomes: Mapping[str, PartAction] = field(default_factory=dict)

    @property
    def compiled(self) -> Compiled:
        """The schedules of a DAG that was sent."""
        if self.dag is None:
            raise ValueError(f"expected a DAG that was sent, got {self.name}")
        return compile.compiled(self.name, self.dag.definition())


@dataclass(frozen=True, slots=True)
class Plan:
    """What a deployment will do, part by part, in the order in which it is done."""

    app: str
    document: App
    update_schedules: bool
    parts: tuple[Part, ...]

    def report(self) -> Report:
        """The parts by what becomes of them, each as ``kind full.name``. The default target is the app's own field."""
        told = [(part.action, part.kind, part.name) for part in self.parts if not ids.is_of_message(part.name)]
        told += [(action, "schedule", name) for part in self.parts for name, action in part.becomes.items()]
        return {
            action: [f"{kind} {name}" for each, kind, name in told if each == action] for action in get_args(PartAction)
        }

    def resolved(self, ports: Ports, part: Part) -> Schedule:
        """The schedule of a part as it is stored: full names throughout, relative instants counted from now."""
        if part.schedule is None:
            raise ValueError(f"expected a schedule that was sent, got {part.name}")
        namespace, app, _ = part.name.split(".")
        sent = stored(ports, part.name, part.schedule, self.document)
        return sent.resolved(namespace, app, ports.clock.now())

    def of(self, kind: str, *actions: PartAction) -> list[Part]:
        return [part for part in self.parts if part.kind == kind and part.action in actions]


def make_plan(ports: Ports, name: str, document: App, update_schedules: bool) -> Plan:
    """What deploying a document would do to an app, by what is stored at this moment."""
    namespace = name.partition(".")[0]
    stored = {row.name: row for row in lookup.members(ports, "workflow", name)}
    default = ports.catalog.definition("workflow", ids.default_workflow(name))
    stored |= {default.name: default} if default else {}
    workflows = _workflows(name, document)
    absent = sorted(stored.keys() - workflows.keys())
    app = ports.catalog.definition("app", name)
    parts = [_definition_part("app", name, app, shell_of(document))]
    for short, dataset in document.datasets.items():
        full, body = f"{namespace}.{short}", store.resolve_bucket(ports, dataset.model_dump(mode="json"))
        parts.append(_definition_part("dataset", full, ports.catalog.definition("dataset", full), body))
    for short, policy in document.policies.items():
        full = f"{namespace}.{short}"
        stands = ports.catalog.definition("policy", full)
        parts.append(_definition_part("policy", full, stands, policy.model_dump(mode="json")))
    for short, pool in document.pools.items():
        full = f"{namespace}.{short}"
        stands = ports.catalog.definition("pool", full)
        parts.append(_definition_part("pool", full, stands, pool.model_dump(mode="json")))
    parts += [_definition_part("workflow", full, stored.get(full), body) for full, body in workflows.items()]
    parts += _schedule_parts(ports, name, document, absent, update_schedules, _is_first(app))
    parts += _dag_parts(ports, name, document, absent, update_schedules or _is_first(app))
    parts += [Part("workflow", full, "deleted", row=stored[full]) for full in absent]
    return Plan(name, document, update_schedules, tuple(parts))


def _workflows(name: str, document: App) -> dict[str, Mapping[str, Any]]:
    """The workflows of a document, and the one that holds its default target (L16), by their full names."""
    told = {f"{name}.{short}": each for short, each in document.workflows.items()}
    if document.default_target is not None:
        told[ids.default_workflow(name)] = Workflow(target=document.default_target)
    return {full: each.model_dump(mode="json") for full, each in told.items()}


def _schedule_parts(
    ports: Ports, name: str, document: App, removed: Collection[str], update: bool, first: bool
) -> Iterator[Part]:
    """Those of the document, then those that only live. A first deployment has no schedules to protect."""
    living = dict(_living(ports, name))
    for short, sent in document.schedules.items():
        schedule_state, old = living.pop(f"{name}.{short}", (None, None))
        action: PartAction
        if schedule_state is None or old is None:
            action = "created" if update or first else "untouched"
        elif not update and old.definition.workflow in removed:
            action = "deleted"
        elif lookup.is_same(old, f"{name}.{short}", stored(ports, f"{name}.{short}", sent, document)) and _is_as_wished(
            schedule_state, sent
        ):
            action = "kept"
        else:
            action = "replaced" if update else "untouched"
        yield Part("schedule", f"{name}.{short}", action, schedule=sent)
    for full, (_, old) in sorted(living.items()):
        yield Part("schedule", full, "deleted" if update or old.definition.workflow in removed else "untouched")


def _dag_parts(ports: Ports, name: str, document: App, removed: Collection[str], update: bool) -> Iterator[Part]:
    """The DAGs of the document, then those that only live. They are updated as schedules are, for that is what they
    become."""
    stored = {row.name: row for row in lookup.members(ports, "dag", name)}
    for short, sent in document.dags.items():
        full = f"{name}.{short}"
        part = Part("dag", full, "created", dag=sent)
        old = stored.pop(full, None)
        action: PartAction = "created" if old is None else "replaced"
        if old is not None and actions.is_same(
            ports, old, actions.body_of(sent.definition()), part.compiled, sent.enabled
        ):
            action = "kept"
        if action != "kept" and not update:
            action = "untouched"
        yield Part("dag", full, action, dag=sent, becomes=_becomes(ports, part.compiled, action))
    for full, row in sorted(stored.items()):
        misses = any(node["workflow"] in removed for node in actions.graph_body(row)["nodes"].values())
        gone = update or misses
        becomes: dict[str, PartAction] = dict.fromkeys(actions.owned(ports, full) if gone else (), "deleted")
        yield Part("dag", full, "deleted" if gone else "untouched", becomes=becomes)


def _becomes(ports: Ports, made: Compiled, action: PartAction) -> dict[str, PartAction]:
    """What becomes of the schedules of a DAG. A node is what it is: another one has another name."""
    if action == "untouched":
        return {}
    stands = {
        name: schedule_state
        for name in made.schedules
        if (schedule_state := ports.catalog.schedule_state(name)) and schedule_state.exists
    }
    found: dict[str, PartAction] = {name: "kept" if name in stands else "created" for name in made.schedules}
    start = ids.dag_start(made.dag)
    return {**found, start: action if start in stands and action == "replaced" else found[start]}


def _living(ports: Ports, app: str) -> Iterator[tuple[str, tuple[ScheduleState, Stored]]]:
    for name in lookup.schedules_of(ports, app):
        if ids.is_of_dag(name):
            continue
        schedule_state = ports.catalog.schedule_state(name)
        stored = lookup.stored(ports, schedule_state)
        if schedule_state is not None and stored is not None and schedule_state.exists:
            yield name, (schedule_state, stored)


def _is_as_wished(schedule_state: ScheduleState, sent: NewSchedule) -> bool:
    """``enabled`` switches a schedule on or off. One that is paused is on, and stays paused; one that is completed is
    done with what the document asked for, and must not begin again with every deployment of it."""
    return (
        sent.enabled is None
        or schedule_state.mode == "completed"
        or sent.enabled == (schedule_state.mode != "disabled")
    )


def _definition_part(kind: Kind, name: str, row: Definition | None, body: Mapping[str, Any]) -> Part:
    if row is None:
        return Part(kind, name, "created", body)
    # What was deployed is noted with the app, and is no part of it.
    stands = {field: value for field, value in row.document.items() if (kind, field) != ("app", "deployed")}
    return Part(kind, name, "kept" if stands == dict(body) else "replaced", body)


def _is_first(app: Definition | None) -> bool:
    """Whether no deployment of this app has ever come to its end. (Apps older than the note of it have none.)"""
    return app is None or ("deployed" in app.document and app.document["deployed"] is None)


def shell_of(document: App) -> Mapping[str, Any]:
    """An app's own fields, as they are stored. The newer ones are left out where they are not used."""
    shell = document.model_dump(mode="json", include={"description", "tags", "owner", *OPTIONAL})
    return {field: value for field, value in shell.items() if value is not None or field not in OPTIONAL}


def stored(ports: Ports, name: str, sent: NewSchedule, document: App) -> Schedule:
    """What a schedule says, with large data by reference (L13)."""
    return data.stored(ports, name, sent.definition(), document.data_bucket)
