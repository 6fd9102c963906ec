"""Deploy an app in one request: its workflows, schedules and DAGs, and definitions of its namespace (L8).

Plan, check, carry out. A dry run stops before the last step and returns the same report, that of the plan. Each part is
changed atomically, but not the whole. The order is definitions, schedules, absent schedules, DAGs, absent workflows,
then the record of the deployment. So the same request finishes a deployment that was interrupted at any point. Of two
deployments of an app, the later one ends the other (`turns.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby

from chalicelib.core import errors, ids
from chalicelib.core.definitions.app import App
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import iso
from chalicelib.core.rows.definition import Definition
from chalicelib.core.writes import PutDefinition
from chalicelib.flow import lookup
from chalicelib.flow.dags import actions
from chalicelib.flow.definitions import store, uses
from chalicelib.flow.deploy import effects, seen, turns, validate
from chalicelib.flow.deploy.effects import Effects
from chalicelib.flow.deploy.plan import Part, Plan, Report, make_plan, shell_of
from chalicelib.flow.deploy.seen import EVERYTHING, Seen
from chalicelib.flow.fires import calendars
from chalicelib.flow.schedules import actions as schedule_actions
from chalicelib.flow.schedules import messages, together
from chalicelib.ports import MAX_CONFLICTS, Ports

SLICE = 20  # parts that are carried out before the time is asked for again


def deploy(
    ports: Ports,
    namespace: str,
    app: str,
    document: App,
    by: str,
    dry_run: bool = False,
    update_schedules: bool | None = None,
) -> Report:
    """Deploy the document of an app. Datasets that it does not name stay. Returns the names of all parts by action.

    With ``update_schedules`` false no schedule changes, except that schedules of removed workflows are deleted; None is
    the setting of the installation. Raises SluiceError before anything is stored if any part is invalid.
    """
    if dry_run:
        return checked(ports, namespace, app, document, update_schedules, new_namespace=True).report()
    return _deploy(ports, namespace, app, document, by, update_schedules, lambda plan: {})[0]


def _deploy(
    ports: Ports,
    namespace: str,
    app: str,
    document: App,
    by: str,
    update_schedules: bool | None,
    say: Callable[[Plan], Effects],
    restart: bool = False,
    if_match: int | None = None,
) -> tuple[Report, Effects]:
    """Deploy the document. Returns also what ``say`` finds about the plan before it is carried out."""
    for _ in range(MAX_CONFLICTS):
        plan = checked(ports, namespace, app, document, update_schedules, restart=restart)
        require_version(plan, if_match)
        said, row = say(plan), _turn(ports, plan, by)
        if row is not None:
            carry_out(ports, plan, by, row)
            return plan.report(), said
    raise turns.overtaken(f"{namespace}.{app}")


def _turn(ports: Ports, plan: Plan, by: str) -> Definition | None:
    """The row of the app, with the turn of this deployment. It needs none if nothing changes and no other one runs.
    None if another one has run since the plan was made."""
    idle = plan.row is not None and plan.row.edition == turns.NONE
    if idle and not any(part.action in seen.CHANGING for part in plan.parts):
        return plan.row
    return turns.take(ports, plan, by, shell=shell_of(plan.document))


def deploy_and_say(
    ports: Ports,
    namespace: str,
    app: str,
    document: App,
    by: str,
    update_schedules: bool | None = None,
    restart: bool = False,
    if_match: int | None = None,
) -> tuple[Report, Effects]:
    """The same, and what the deployment did to the triggers and the work in flight of schedules that it has replaced or
    deleted. With ``restart``, those that it replaces drop what has gathered and what waits (L25). With ``if_match``, it
    is refused with ``changed_meanwhile`` unless that is the version of the app."""
    say = partial(effects.of_plan, ports)
    return _deploy(ports, namespace, app, document, by, update_schedules, say, restart, if_match)


def require_version(plan: Plan, if_match: int | None) -> None:
    """Raise ``changed_meanwhile`` unless the plan begins at this version of the app. The turn of the deployment expects
    the row that the plan began at, so no other version comes between."""
    if if_match is not None and (plan.row is None or plan.row.version != if_match):
        raise errors.changed_meanwhile(f"app {plan.app}")


def dry_run(
    ports: Ports,
    namespace: str,
    app: str,
    document: App,
    update_schedules: bool | None = None,
    restart: bool = False,
) -> tuple[Report, dict[str, list[str]], Effects]:
    """What ``deploy_and_say`` would return now, and between them the changes of each part that it would replace."""
    plan = checked(ports, namespace, app, document, update_schedules, new_namespace=True, restart=restart)
    return plan.report(), effects.changes_of(ports, plan), effects.of_plan(ports, plan)


def checked(
    ports: Ports,
    namespace: str,
    app: str,
    document: App,
    update_schedules: bool | None,
    new_namespace: bool = False,
    accepted: Seen | None = None,
    restart: bool = False,
) -> Plan:
    """The plan of a deployment, once every part is known to be valid. With ``new_namespace`` the namespace need not
    exist: a dry run may come before it is created. ``accepted`` is what a deployment saw that was accepted before."""
    _check_names(namespace, app, document)
    if not new_namespace:
        lookup.require(ports, "namespace", namespace)
    elif ports.rows.get(Definition, "namespace", namespace) is None:
        uses.require_room(ports, namespace)
    update = ports.settings.update_schedules if update_schedules is None else update_schedules
    plan = make_plan(ports, f"{namespace}.{app}", document, update, restart)
    plan = plan if accepted is None else accepted.only_seen(ports, plan)
    validate.check(ports, plan)
    return plan


def delete_app(ports: Ports, name: str, by: str, if_match: int | None = None) -> None:
    """Delete an app's messages, schedules and workflows, then the app; a repeat finishes it. Its runs continue."""
    found = store.get(ports, "app", name)
    if if_match is not None and if_match != found.version:
        raise errors.changed_meanwhile(f"app {name}")
    plan = make_plan(ports, name, App(), update_schedules=True)
    validate.check_removals(ports, plan, "delete or change these first", messages_too=True)
    row = turns.take(ports, plan, by)
    if row is None:
        raise turns.overtaken(name)
    ports = turns.in_turn(ports, row)
    messages.delete_all(ports, name, by)
    for part in plan.parts:
        if part.action == "deleted":
            _remove(ports, part, by)
    store.delete(ports, "app", name, found.version)


def _check_names(namespace: str, app: str, document: App) -> None:
    """Raise ``invalid`` if the namespace or app in the document is not that of the path."""
    for field, named, expected in (("namespace", document.namespace, namespace), ("app", document.app, app)):
        if named is not None and named != expected:
            raise errors.invalid(field, f"{expected!r}, as the path says", named, "correct the document or the path")


def carry_out(
    ports: Ports,
    plan: Plan,
    by: str,
    row: Definition,
    has_time: Callable[[], bool] = lambda: True,
    accepted: Seen = EVERYTHING,
    keeps_turn: bool = False,
) -> bool:
    """Carry out a checked plan, as long as there is time. Returns whether all is done; a repeat goes on with the rest.
    Some parts are carried out in any case, so repeats come to an end. ``row`` is that of the app, with the turn, which
    ends with the last write unless the deployment ``keeps_turn``.

    Raises ``changed_meanwhile`` if a later deployment has the turn."""
    ports = turns.in_turn(ports, row)
    changing = [part for part in plan.parts if part.action in seen.CHANGING]
    for (kind, is_removal), group in groupby(changing, key=lambda part: (part.kind, part.action == "deleted")):
        parts = list(group)
        if kind == "schedule" and not is_removal:
            documents = {part.name: part.schedule for part in parts if part.schedule is not None}
            bucket = plan.document.data_bucket
            done = together.put_all(ports, documents, by, bucket, has_time, accepted.may_put)
        else:
            done = _change_all(ports, parts, by, has_time, accepted)
        if not done:
            return False
    _record_deployment(ports, plan, by, row.edition, keeps_turn)
    return True


def _change_all(ports: Ports, parts: Sequence[Part], by: str, has_time: Callable[[], bool], accepted: Seen) -> bool:
    for number, part in enumerate(parts):
        if number % SLICE == SLICE - 1 and not has_time():
            return False
        if not accepted.may_change(ports, part):
            continue
        if part.action == "deleted":
            _remove(ports, part, by, accepted)
        else:
            _put(ports, part, by, accepted)
    return True


def carry_out_definitions(ports: Ports, plan: Plan, by: str, row: Definition) -> None:
    """Carry out the parts of a checked plan that precede its schedules: datasets, policies, pools, calendars and
    workflows."""
    ports = turns.in_turn(ports, row)
    for part in plan.parts:
        if part.kind not in ("schedule", "dag") and part.action in ("created", "replaced"):
            _put(ports, part, by, EVERYTHING)


def _put(ports: Ports, part: Part, by: str, accepted: Seen) -> None:
    if part.dag is not None:
        actions.put(ports, part.name, part.dag, by, checked=True, may_put=accepted.may_put)
    elif part.kind == "calendar" and part.document is not None:
        calendars.put(ports, part.name, part.document, by)
    elif part.kind == "dataset" and part.document is not None:
        calendars.put_dataset(ports, part.name, part.document, by)
    elif part.kind != "app" and part.kind != "schedule" and part.document is not None:
        store.put(ports, part.kind, part.name, part.document, by)


def _remove(ports: Ports, part: Part, by: str, accepted: Seen = EVERYTHING) -> None:
    if part.row is not None:
        store.remove(ports, part.row)
        return
    try:
        if part.kind == "dag":
            actions.delete(ports, part.name, by, may_delete=accepted.may_put)
        else:
            schedule_actions.delete(ports, part.name, by, may_delete=accepted.may_put)
    except SluiceError as error:
        if error.code != "not_found":  # another request has deleted it
            raise


def _record_deployment(ports: Ports, plan: Plan, by: str, edition: int, keeps_turn: bool) -> None:
    """Record the deployment: the document in the control bucket, and a summary in the app's row.

    Another deployment of the same document changes nothing: ``at`` and ``by`` are those of its first one in a row.
    """
    sent = plan.document.model_dump(mode="json", exclude_unset=True)
    digest = ids.digest(json.dumps(sent, sort_keys=True), length=40)
    uri = ports.payloads.deployment_uri(plan.app, digest)
    summary = {"uri": uri, "counts": _counts(plan.document), "update_schedules": plan.update_schedules}
    for _ in range(MAX_CONFLICTS):
        row = ports.rows.get(Definition, "app", plan.app)
        if row is None or row.edition != edition:
            raise turns.overtaken(plan.app)
        now, before = ports.clock.now(), row.document.get("deployed") or {}
        deployed = {"at": iso(now), "by": by, **summary}
        same = {**before, "at": "", "by": ""} == {**deployed, "at": "", "by": ""}
        document = {**shell_of(plan.document), "deployed": before if same else deployed}
        new = replace(row, edition=edition if keeps_turn else turns.NONE)
        if (new.edition, document) == (row.edition, row.document):
            return
        if edition == turns.NONE and row != plan.row:
            raise turns.overtaken(plan.app)
        if document != row.document:
            ports.payloads.put_deployment(plan.app, digest, sent)
            new = replace(new, document=document, version=row.version + 1, updated_at=now, by=by)
        if ports.ledger.commit([PutDefinition(new, row.version, edition, before=row)]) is None:
            return
    raise errors.changed_meanwhile(f"app {plan.app}")


def _counts(document: App) -> dict[str, int]:
    """How many parts of each kind a document has. Newer groups are counted only if they are used, so that the summary
    of an unchanged older document stays the same."""
    counts = {group: len(getattr(document, group)) for group in ("datasets", "workflows", "schedules")}
    newer = {group: len(getattr(document, group)) for group in ("policies", "pools", "calendars", "dags")}
    return counts | {group: count for group, count in newer.items() if count}
