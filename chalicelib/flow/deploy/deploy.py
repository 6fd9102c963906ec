"""Deploy an app in one request: its workflows, schedules and DAGs, and definitions of its namespace (L8).

Plan, check, carry out. A dry run stops before the last step and returns the same report, that of the plan. Each part is
changed atomically, but not the whole. The order is definitions, schedules, absent schedules, DAGs, absent workflows,
then the record of the deployment. So the same request finishes a deployment that was interrupted at any point.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import groupby

from chalicelib.core import errors, ids
from chalicelib.core.definitions.app import App
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import iso
from chalicelib.core.rows.definition import Definition
from chalicelib.core.writes import PutDefinition
from chalicelib.flow import lookup
from chalicelib.flow.dags import actions
from chalicelib.flow.definitions import store
from chalicelib.flow.deploy import changes, validate
from chalicelib.flow.deploy.plan import Part, Plan, Report, make_plan, shell_of
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
    plan = checked(ports, namespace, app, document, update_schedules, new_namespace=dry_run)
    if not dry_run:
        carry_out(ports, plan, by)
    return plan.report()


def dry_run(
    ports: Ports, namespace: str, app: str, document: App, update_schedules: bool | None = None
) -> tuple[Report, dict[str, list[str]]]:
    """The report that ``deploy`` would return now, and the changes of each part that it would replace."""
    plan = checked(ports, namespace, app, document, update_schedules, new_namespace=True)
    return plan.report(), changes.of_plan(ports, plan)


def checked(
    ports: Ports, namespace: str, app: str, document: App, update_schedules: bool | None, new_namespace: bool = False
) -> Plan:
    """The plan of a deployment, once every part is known to be valid. With ``new_namespace`` the namespace need not
    exist: a dry run may come before it is created."""
    _check_names(namespace, app, document)
    if not new_namespace:
        lookup.require(ports, "namespace", namespace)
    update = ports.settings.update_schedules if update_schedules is None else update_schedules
    plan = make_plan(ports, f"{namespace}.{app}", document, update)
    validate.check(ports, plan)
    return plan


def delete_app(ports: Ports, name: str, by: str, if_match: int | None = None) -> None:
    """Delete an app's messages, schedules and workflows, then the app; a repeat finishes it. Its runs continue."""
    found = store.get(ports, "app", name)
    if if_match is not None and if_match != found.version:
        raise errors.changed_meanwhile(f"app {name}")
    plan = make_plan(ports, name, App(), update_schedules=True)
    validate.check_removals(ports, plan, "delete or change these first", messages_too=True)
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


def carry_out(ports: Ports, plan: Plan, by: str, has_time: Callable[[], bool] = lambda: True) -> bool:
    """Carry out a checked plan, as long as there is time. Returns whether all is done; a repeat goes on with the rest.
    Some parts are carried out in any case, so repeats come to an end."""
    for kind, parts in groupby(plan.parts, key=lambda part: (part.kind, part.action == "deleted")):
        if kind == ("schedule", False):
            changed = [part for part in parts if part.action in ("created", "replaced")]
            documents = {part.name: part.schedule for part in changed if part.schedule is not None}
            if not together.put_all(ports, documents, by, plan.document.data_bucket, has_time):
                return False
            continue
        for number, part in enumerate(part for part in parts if part.action in ("created", "replaced", "deleted")):
            if number % SLICE == SLICE - 1 and not has_time():
                return False
            if part.action == "deleted":
                _remove(ports, part, by)
            else:
                _put(ports, plan, part, by)
    _record_deployment(ports, plan, by)
    return True


def carry_out_definitions(ports: Ports, plan: Plan, by: str) -> None:
    """Carry out the parts of a checked plan that precede its schedules: the app, datasets, policies, pools, calendars
    and workflows."""
    for part in plan.parts:
        if part.kind not in ("schedule", "dag") and part.action in ("created", "replaced"):
            _put(ports, plan, part, by)


def _put(ports: Ports, plan: Plan, part: Part, by: str) -> None:
    if part.dag is not None:
        actions.put(ports, part.name, part.dag, by, checked=True)
    elif part.kind == "calendar" and part.document is not None:
        calendars.put(ports, part.name, part.document, by)
    elif part.kind in ("dataset", "policy", "pool", "workflow") and part.document is not None:
        store.put(ports, part.kind, part.name, part.document, by)
    elif part.action == "created" and part.document is not None:
        # The app must exist before its parts. A null in ``deployed`` means that no deployment has finished yet.
        shell = {**part.document, "deployed": None}
        ports.ledger.commit([PutDefinition(Definition("app", part.name, shell, 1, ports.clock.now(), by), None)])


def _remove(ports: Ports, part: Part, by: str) -> None:
    if part.row is not None:
        store.remove(ports, part.row)
        return
    try:
        if part.kind == "dag":
            actions.delete(ports, part.name, by)
        else:
            schedule_actions.delete(ports, part.name, by)
    except SluiceError as error:
        if error.code != "not_found":  # another request has deleted it
            raise


def _record_deployment(ports: Ports, plan: Plan, by: str) -> None:
    """Record the deployment: the document in the control bucket, and a summary in the app's row.

    Another deployment of the same document changes nothing: ``at`` and ``by`` are those of its first one in a row.
    """
    sent = plan.document.model_dump(mode="json", exclude_unset=True)
    digest = ids.digest(json.dumps(sent, sort_keys=True), length=40)
    newer = [group for group in ("policies", "pools", "calendars", "dags") if getattr(plan.document, group)]
    groups = ("datasets", "workflows", "schedules", *newer)
    # Newer groups are counted only if they are used, so that the summary of an unchanged older document stays the same.
    counts = {group: len(getattr(plan.document, group)) for group in groups}
    uri = ports.payloads.deployment_uri(plan.app, digest)
    summary = {"uri": uri, "counts": counts, "update_schedules": plan.update_schedules}
    for _ in range(MAX_CONFLICTS):
        row = ports.catalog.definition("app", plan.app)
        if row is None:
            raise errors.changed_meanwhile(f"app {plan.app}")
        now, before = ports.clock.now(), row.document.get("deployed") or {}
        same = {key: value for key, value in before.items() if key not in ("at", "by")} == summary
        deployed = before if same else {"at": iso(now), "by": by, **summary}
        document = {**shell_of(plan.document), "deployed": deployed}
        if document == row.document:
            return
        ports.payloads.put_deployment(plan.app, digest, sent)
        new = Definition("app", plan.app, document, row.version + 1, now, by, unknown=row.unknown)
        if ports.ledger.commit([PutDefinition(new, row.version, before=row)]) is None:
            return
    raise errors.changed_meanwhile(f"app {plan.app}")
