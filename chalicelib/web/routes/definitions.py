"""Routes of documents that are stored as they were sent: of namespaces, workflows, datasets, policies, calendars and
pools. `table.DOCUMENTS` names the kind of each route. `apps.py` has the deployment of an app."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from chalice.app import Request, Response

from chalicelib.core.definition_kinds import PARENTS, DefinitionKind
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.ignored import IgnoredObjects
from chalicelib.flow.definitions import access, namespaces, store, workflows
from chalicelib.flow.definitions.store import Change
from chalicelib.flow.fires import calendars
from chalicelib.flow.lookup import require
from chalicelib.flow.views import dag_list, freshness
from chalicelib.flow.views.queues import of_policy, of_pool
from chalicelib.flow.views.views import definition_view, ignored_view
from chalicelib.ports import Page, Ports
from chalicelib.web import unseen
from chalicelib.web.access import sees, visibility
from chalicelib.web.bodies import BODIES
from chalicelib.web.http import Json, caller, changed, document, flag, gone, if_match, parse
from chalicelib.web.paging import listing
from chalicelib.web.quotas import check_document
from chalicelib.wiring import ports

# How documents are put, and what they are read with besides their fields, if a kind has more than others.
PUTS: dict[str, Callable[..., Change]] = {
    "calendar": calendars.put,
    "dataset": calendars.put_dataset,
    "workflow": workflows.put,
}
PRESENT: dict[str, Callable[[Ports, Definition], dict[str, Any]]] = {
    "dataset": lambda ports, row: {
        "newest": freshness.newest_of(ports, row),
        "freshness": freshness.of_dataset(ports, row),
        "ignored": ignored_view(ports.rows.get(IgnoredObjects, row.name)),
    },
    "policy": of_policy,
    "pool": of_pool,
}

# How a page of a list is read, if its items have more than their fields.
LISTED: dict[str, Callable[[Ports, str, int, str | None], Page[dict[str, Any]]]] = {
    "dag": dag_list.listed,
    "dataset": freshness.listed,
}


def list_namespaces(request: Request) -> Json:
    """List the namespaces in which the signer has a role."""
    visible = visibility(request)
    if visible is None:
        return list_documents(request, "", kind="namespace")
    return listing(request, partial(access.namespaces, ports(), visible), definition_view)


def put_namespace(request: Request, name: str) -> Response:
    """Create or replace a namespace. The second one of an installation is refused while the first uses what it could
    not use beside another without an allow-list. A dry run answers as the request would."""
    sent, dry_run = parse(BODIES["Namespace"], request).model_dump(mode="json"), flag(request, "dry_run")
    change = namespaces.put(ports(), name, sent, caller(request), if_match(request), dry_run=dry_run)
    response = changed("namespace", name, change)
    if dry_run:
        response.status_code = 200
    return response


def list_documents(request: Request, parent: str, kind: DefinitionKind) -> Json:
    _require_parent(kind, parent)
    if kind in LISTED:
        return listing(request, partial(LISTED[kind], ports(), parent))
    return listing(request, partial(ports().catalog.definitions, kind, parent), definition_view)


def put_document(request: Request, name: str, kind: DefinitionKind, body: str) -> Response:
    _require_parent(kind, name.rpartition(".")[0])
    content = parse(BODIES[body], request).model_dump(mode="json")
    check_document(kind, name)
    put = PUTS.get(kind, partial(store.put, kind=kind))
    change = put(ports(), name=name, document=content, by=caller(request), if_match=if_match(request))
    return changed(kind, name, change)


def get_document(request: Request, name: str, kind: DefinitionKind) -> Response:
    row = store.get(ports(), kind, name)
    present = PRESENT[kind](ports(), row) if kind in PRESENT else {}
    seen = unseen.parts(present, sees(request)) if "parts" in present else present
    return document({**definition_view(row), **seen})


def delete_document(request: Request, name: str, kind: DefinitionKind) -> Response:
    store.delete(ports(), kind, name, if_match(request))
    return gone()


def _require_parent(kind: DefinitionKind, parent: str) -> None:
    """Raise ``not_found`` if the namespace or app of a definition does not exist."""
    if over := PARENTS[kind]:
        require(ports(), over, parent)
