"""One-request deployment of an app: its workflows and schedules, and datasets of its namespace (L8).

Plan, check, carry out. A dry run ends before the last, with the same report, for it is the report of the plan. Carried
out, each part is changed atomically and the whole is not, in an order that leaves, wherever it is broken off, something
that the same request finishes: definitions, schedules, absent schedules, DAGs, absent workflows, then the note of what
was deployed.
"""

from __future__ import annotations

import json

from chalicelib.core import errors, ids
from chalicelib.core.definitions.app import App
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import iso
from chalicelib.core.rows.definition import Definition
from chalicelib.core.writes import PutDefinition
from chalicelib.flow import lookup
from chalicelib.flow.dags import actions
from chalicelib.flow.definitions import store
from chalicelib.flow.deploy import validate
from chalicelib.flow.deploy.plan import Part, Plan, Report, make_plan, shell_of
from chalicelib.flow.schedules import actions as schedule_actions
from chalicelib.flow.schedules import messages
from chalicelib.ports import MAX_RACES, Ports


def deploy(
    ports: Ports,
    namespace: str,
    app: str,
    document: App,
    by: str,
    dry_run: bool = False,
    update_schedules: bool | None = None,
) -> Report:
    """Make an app what the document says; datasets it does not name stay. Returns what became of each part, by name.

    ``update_schedules`` false touches no schedule, except that those of removed workflows are deleted; None leaves it
    to the installation. Everything is checked before anything is stored.
    """
    _check_names(namespace, app, document)
    lookup.require(ports, "namespace", namespace)
    update = ports.settings.update_schedules if update_schedules is None else update_schedules
    plan = make_plan(ports, f"{namespace}.{app}", document, update)
    validate.check(ports, plan)
    if not dry_run:
        _carry_out(ports, plan, by)
    return plan.report()


def delete_app(ports: Ports, name: str, by: str, if_match: int | None = None) -> None:
    """Delete an app's messages, schedules and workflows, then the app, so that repeating finishes it. Runs go on."""
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
    """A document that says where it belongs must be sent there."""
    for field, said, asked in (("namespace", document.namespace, namespace), ("app", document.app, app)):
        if said is not None and said != asked:
            raise errors.invalid(field, f"{asked!r}, as the path says", said, "correct the document or the path")


def _carry_out(ports: Ports, plan: Plan, by: str) -> None:
    for part in plan.parts:
        if part.action == "deleted":
            _remove(ports, part, by)
        elif part.action in ("created", "replaced"):
            _put(ports, plan, part, by)
    _record_deployment(ports, plan, by)


def _put(ports: Ports, plan: Plan, part: Part, by: str) -> None:
    if part.dag is not None:
        actions.put(ports, part.name, part.dag, by, checked=True)
    elif part.schedule is not None:
        schedule_actions.put(ports, part.name, part.schedule, by, checked=True, data_bucket=plan.document.data_bucket)
    elif part.kind in ("dataset", "policy", "pool", "workflow") and part.document is not None:
        store.put(ports, part.kind, part.name, part.document, by)
    elif part.action == "created" and part.document is not None:
        # What it holds must be found under it from the first. That nothing was deployed yet stands there as null.
        begun = {**part.document, "deployed": None}
        ports.ledger.commit([PutDefinition(Definition("app", part.name, begun, 1, ports.clock.now(), by), None)])


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
        if error.code != "not_found":  # somebody else deleted it meanwhile
            raise


def _record_deployment(ports: Ports, plan: Plan, by: str) -> None:
    """Keep what was deployed, apart from what lives: the document in the control bucket, a note of it with the app.

    The same document again changes nothing: ``at`` and ``by`` are those of its first deployment in a row.
    """
    sent = plan.document.model_dump(mode="json", exclude_unset=True)
    digest = ids.digest(json.dumps(sent, sort_keys=True), length=40)
    newer = [group for group in ("policies", "pools", "dags") if getattr(plan.document, group)]
    groups = ("datasets", "workflows", "schedules", *newer)
    # The newer ones are told where there are some: the note of a document that is as before stays as it was.
    counts = {group: len(getattr(plan.document, group)) for group in groups}
    uri = ports.payloads.deployment_uri(plan.app, digest)
    note = {"uri": uri, "counts": counts, "update_schedules": plan.update_schedules}
    for _ in range(MAX_RACES):
        row = ports.catalog.definition("app", plan.app)
        if row is None:
            raise errors.changed_meanwhile(f"app {plan.app}")
        now, before = ports.clock.now(), row.document.get("deployed") or {}
        same = {key: value for key, value in before.items() if key not in ("at", "by")} == note
        told = before if same else {"at": iso(now), "by": by, **note}
        document = {**shell_of(plan.document), "deployed": told}
        if document == row.document:
            return
        ports.payloads.put_deployment(plan.app, digest, sent)
        new = Definition("app", plan.app, document, row.version + 1, now, by, unknown=row.unknown)
        if ports.ledger.commit([PutDefinition(new, row.version)]) is None:
            return
    raise errors.changed_meanwhile(f"app {plan.app}")
