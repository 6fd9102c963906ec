"""Plan a deployment: the parts of an app, and the action for each part, as values (L8)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from chalicelib.core import ids
from chalicelib.core.dags import compile
from chalicelib.core.dags.compile import Compiled
from chalicelib.core.definition_kinds import plural
from chalicelib.core.definitions.app import App
from chalicelib.core.definitions.dag import NewDag
from chalicelib.core.definitions.schedule import NewSchedule, Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.instants import Instant
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.schedules import effect, relative
from chalicelib.core.schedules.relative import Counted
from chalicelib.flow import lookup, many
from chalicelib.flow.dags import actions
from chalicelib.flow.definitions import data, of_kind
from chalicelib.flow.deploy import ended
from chalicelib.ports import Kind, Ports

Report = dict[str, list[str]]
PartAction = Literal["created", "replaced", "kept", "deleted", "untouched"]
OPTIONAL = ("default_target", "data_bucket")  # fields of an app
OF_NAMESPACE: tuple[Kind, ...] = ("dataset", "policy", "pool", "calendar")  # in the order of their puts
AS_SENT: tuple[PartAction, ...] = ("created", "replaced", "kept")  # after these a part is as in the document


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an app and its action. ``untouched`` means that the deployment does not update schedules.

    ``document`` is a definition as it will be stored, ``schedule`` a schedule as it was sent, ``row`` the stored
    definition of a part to delete. ``dag`` is a DAG as it was sent, ``becomes`` the action for each of its schedules.
    ``old`` is the stored schedule whose spans go on counting; None if the deployment creates or enables it.
    ``has_ended``: the schedule has ended and deleted itself, and is not created again.
    """

    kind: Kind | Literal["schedule"]
    name: str
    action: PartAction
    document: Mapping[str, Any] | None = None
    schedule: NewSchedule | None = None
    old: Counted | None = None
    has_ended: bool = False
    row: Definition | None = None
    dag: NewDag | None = None
    becomes: Mapping[str, PartAction] = field(default_factory=dict)

    @property
    def sent(self) -> NewSchedule:
        """A schedule that was sent. Raises ValueError for any other part."""
        if self.schedule is None:
            raise ValueError(f"expected a schedule that was sent, got {self.name}")
        return self.schedule

    @property
    def compiled(self) -> Compiled:
        """The compiled schedules of a DAG that was sent. Raises ValueError for any other part."""
        if self.dag is None:
            raise ValueError(f"expected a DAG that was sent, got {self.name}")
        return compile.compiled(self.name, self.dag.definition())


@dataclass(frozen=True, slots=True)
class Plan:
    """The parts of a deployment, in the order in which they are carried out. ``row`` is that of the app, as it was read
    before everything else. With ``restart``, each schedule that is replaced drops what has gathered and what waits."""

    app: str
    document: App
    update_schedules: bool
    parts: tuple[Part, ...]
    made_at: Instant = 0
    restart: bool = False
    row: Definition | None = None
    _resolved: dict[str, Schedule] = field(default_factory=dict, compare=False, repr=False)

    def report(self) -> Report:
        """The parts by action, each as ``kind full.name``. Without the default target, which is a field of the app."""
        rows = [(part.action, part.kind, part.name) for part in self.parts if not ids.is_of_message(part.name)]
        rows += [(action, "schedule", name) for part in self.parts for name, action in part.becomes.items()]
        return {
            action: [f"{kind} {name}" for each, kind, name in rows if each == action] for action in get_args(PartAction)
        }

    def resolved(self, ports: Ports, part: Part) -> Schedule:
        """The schedule of a part as it will be stored: with full names, and with instants in place of spans."""
        if part.name not in self._resolved:
            sent = stored(ports, part.name, part.sent, self.document)
            self._resolved[part.name] = relative.counted(sent, part.name, part.old, self.made_at).definition
        return self._resolved[part.name]

    def of(self, kind: str, *actions: PartAction) -> list[Part]:
        return [part for part in self.parts if part.kind == kind and part.action in actions]


def make_plan(ports: Ports, name: str, document: App, update_schedules: bool, restart: bool = False) -> Plan:
    """The plan to deploy a document, from the definitions that are stored now."""
    namespace = name.partition(".")[0]
    app = ports.rows.get(Definition, "app", name)
    stored = {row.name: row for row in lookup.definitions_in(ports, "workflow", name)}
    default = ports.rows.get(Definition, "workflow", ids.default_workflow(name))
    stored |= {default.name: default} if default else {}
    workflows = _workflows(name, document)
    absent = sorted(stored.keys() - workflows.keys())
    parts = [_definition_part("app", name, app, shell_of(document))]
    for kind in OF_NAMESPACE:
        for short, sent in getattr(document, plural(kind)).items():
            full, body = f"{namespace}.{short}", of_kind.KINDS[kind].resolved(ports, sent.model_dump(mode="json"))
            parts.append(_definition_part(kind, full, ports.rows.get(Definition, kind, full), body))
    parts += [_definition_part("workflow", full, stored.get(full), body) for full, body in workflows.items()]
    parts += _schedule_parts(ports, name, document, absent, update_schedules, app)
    parts += _dag_parts(ports, name, document, absent, update_schedules or _is_first(app))
    parts += [Part("workflow", full, "deleted", row=stored[full]) for full in absent]
    if restart:
        parts = [_restarting(part) for part in parts]
    return Plan(name, document, update_schedules, tuple(parts), ports.clock.now(), restart, app)


def _restarting(part: Part) -> Part:
    return replace(part, schedule=part.sent.model_copy(update={"on_update": "drop"})) if part.schedule else part


def _workflows(name: str, document: App) -> dict[str, Mapping[str, Any]]:
    """The workflows of a document, with the one of its default target (L16), by their full names."""
    workflows = {f"{name}.{short}": workflow for short, workflow in document.workflows.items()}
    if document.default_target is not None:
        workflows[ids.default_workflow(name)] = Workflow(target=document.default_target)
    return {full: workflow.model_dump(mode="json") for full, workflow in workflows.items()}


def _schedule_parts(
    ports: Ports, name: str, document: App, removed: Collection[str], update: bool, app: Definition | None
) -> Iterator[Part]:
    """The schedules of the document, then the stored ones that it does not name.

    A first deployment creates schedules even if ``update`` is false: there are none to protect yet. One that has ended
    and deleted itself is kept so, unless the document of the schedule differs. ``app`` is the stored app.
    """
    living = dict(_living(ports, name))
    named = {f"{name}.{short}": sent for short, sent in document.schedules.items()}
    sent_as = {full: stored(ports, full, sent, document) for full, sent in named.items()}
    gone = ended.of_app(ports, app, {full: sent_as[full] for full in sent_as.keys() - living.keys()})
    for full, sent in named.items():
        if full in gone:
            yield Part("schedule", full, "kept", schedule=sent, old=gone[full], has_ended=True)
        elif full not in living:
            yield Part("schedule", full, "created" if update or _is_first(app) else "untouched", schedule=sent)
        else:
            yield _changed(full, sent, sent_as[full], *living.pop(full), removed, update)
    for full, (_, old) in sorted(living.items()):
        yield Part("schedule", full, "deleted" if update or old.definition.workflow in removed else "untouched")


def _changed(
    name: str,
    sent: NewSchedule,
    sent_as: Schedule,
    schedule_state: ScheduleState,
    old: Counted,
    removed: Collection[str],
    update: bool,
) -> Part:
    """The part of a schedule that exists, and that the document names."""
    action: PartAction = "replaced" if update else "untouched"
    if not update and old.definition.workflow in removed:
        action = "deleted"
    elif relative.is_same(sent_as, name, old) and _has_wanted_mode(schedule_state, sent):
        action = "kept"
    begins = effect.begins(schedule_state, sent.enabled)
    return Part("schedule", name, action, schedule=sent, old=None if begins else old)


def _dag_parts(ports: Ports, name: str, document: App, removed: Collection[str], update: bool) -> Iterator[Part]:
    """The DAGs of the document, then the stored ones that it does not name. ``update`` holds for DAGs as for schedules,
    because DAGs are compiled to schedules."""
    stored = {row.name: row for row in lookup.definitions_in(ports, "dag", name)}
    for short, sent in document.dags.items():
        full = f"{name}.{short}"
        old, made = stored.pop(full, None), Part("dag", full, "created", dag=sent).compiled
        action: PartAction = "untouched" if not update else "created" if old is None else "replaced"
        if old is not None and actions.is_same(ports, old, actions.body_of(sent.definition()), made, sent.enabled):
            action = "kept"
        yield Part("dag", full, action, dag=sent, becomes=_becomes(ports, made, action))
    for full, row in sorted(stored.items()):
        uses_removed = any(node["workflow"] in removed for node in actions.graph_body(row)["nodes"].values())
        is_deleted = update or uses_removed
        becomes: dict[str, PartAction] = dict.fromkeys(actions.owned(ports, full) if is_deleted else (), "deleted")
        yield Part("dag", full, "deleted" if is_deleted else "untouched", becomes=becomes)


def _becomes(ports: Ports, made: Compiled, action: PartAction) -> dict[str, PartAction]:
    """The action for each schedule of a DAG. A node is never replaced: a changed node has another name."""
    if action == "untouched":
        return {}
    existing = {
        name: schedule_state
        for name in made.schedules
        if (schedule_state := ports.rows.get(ScheduleState, name)) and schedule_state.exists
    }
    found: dict[str, PartAction] = {name: "kept" if name in existing else "created" for name in made.schedules}
    start = ids.dag_start(made.dag)
    return {**found, start: action if start in existing and action == "replaced" else found[start]}


def _living(ports: Ports, app: str) -> Iterator[tuple[str, tuple[ScheduleState, Counted]]]:
    names = [name for name in lookup.schedules_of(ports, app) if not ids.is_of_dag(name)]
    read = many.rows_of(ports, names)
    for name in names:
        schedule_state = read.rows.get(ScheduleState, name)
        stored = lookup.stored(read, schedule_state)
        if schedule_state is not None and stored is not None and schedule_state.exists:
            yield name, (schedule_state, stored)


def _has_wanted_mode(schedule_state: ScheduleState, sent: NewSchedule) -> bool:
    """Whether the mode of a schedule fits the ``enabled`` of the document. A paused schedule counts as enabled and
    stays paused. A completed one fits too: a repeated deployment must not start it again."""
    return (
        sent.enabled is None
        or schedule_state.mode == "completed"
        or sent.enabled == (schedule_state.mode != "disabled")
    )


def _definition_part(kind: Kind, name: str, row: Definition | None, body: Mapping[str, Any]) -> Part:
    if row is None:
        return Part(kind, name, "created", body)
    # The app's row also has the summary of its last deployment, which is no part of the document.
    current = {field: value for field, value in row.document.items() if (kind, field) != ("app", "deployed")}
    return Part(kind, name, "kept" if current == dict(body) else "replaced", body)


def _is_first(app: Definition | None) -> bool:
    """Whether no deployment of this app has ever finished."""
    return app is None or app.document.get("deployed") is None


def shell_of(document: App) -> Mapping[str, Any]:
    """An app's own fields as they are stored. Newer fields are left out if they are not used."""
    shell = document.model_dump(mode="json", include={"description", "tags", "owner", *OPTIONAL})
    return {field: value for field, value in shell.items() if value is not None or field not in OPTIONAL}


def stored(ports: Ports, name: str, sent: NewSchedule, document: App) -> Schedule:
    """A schedule as it was sent, but with large data by reference (L13)."""
    return data.stored(ports, name, sent.definition(), document.data_bucket)
