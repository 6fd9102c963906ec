"""Routes of documents that are stored as they were sent: of namespaces, workflows, datasets, policies, calendars and
pools. `table.DOCUMENTS` names the kind of each route. `apps.py` has the deployment of an app."""

from __future__ import annotations

from functools import partial

from chalice.app import Request, Response

from chalicelib.core.definition_kinds import PARENTS, DefinitionKind
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.ignored import IgnoredObjects
from chalicelib.flow.definitions import access, namespaces, store
from chalicelib.flow.fires import calendars
from chalicelib.flow.lookup import require
from chalicelib.flow.views.queues import of_policy, of_pool
from chalicelib.flow.views.views import definition_view, ignored_view
from chalicelib.web import unseen
from chalicelib.web.access import sees, visibility
from chalicelib.web.bodies import BODIES
from chalicelib.web.http import Json, caller, changed, document, flag, gone, if_match, parse
from chalicelib.web.paging import listing
from chalicelib.web.quotas import check_document
from chalicelib.wiring import ports


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
    return listing(request, partial(ports().catalog.definitions, kind, parent), definition_view)


def put_document(request: Request, name: str, kind: DefinitionKind, body: str) -> Response:
    _require_parent(kind, name.rpartition(".")[0])
    content = parse(BODIES[body], request).model_dump(mode="json")
    check_document(kind, name)
    put = calendars.put if kind == "calendar" else partial(store.put, kind=kind)
    change = put(ports(), name=name, document=content, by=caller(request), if_match=if_match(request))
    return changed(kind, name, change)


def get_document(request: Request, name: str, kind: DefinitionKind) -> Response:
    row = store.get(ports(), kind, name)
    return document({**definition_view(row), **_present(request, row)})


def delete_document(request: Request, name: str, kind: DefinitionKind) -> Response:
    store.delete(ports(), kind, name, if_match(request))
    return gone()


def _present(request: Request, row: Definition) -> Json:
    """What a document is read with: the last objects of a dataset in no partition, the use and queues of a limit."""
    match row.kind:
        case "dataset":
            return {"ignored": ignored_view(ports().rows.get(IgnoredObjects, row.name))}
        case "policy":
            return unseen.parts(of_policy(ports(), row), sees(request))
        case "pool":
            return unseen.parts(of_pool(ports(), row), sees(request))
        case _:
            return {}


def _require_parent(kind: DefinitionKind, parent: str) -> None:
    """Raise ``not_found`` if the namespace or app of a definition does not exist."""
    if over := PARENTS[kind]:
        require(ports(), over, parent)
