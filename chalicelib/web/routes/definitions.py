"""Routes of documents that are stored as they were sent: of namespaces, workflows, datasets, policies, calendars and
pools. `apps.py` has the deployment of an app."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from chalice.app import Request, Response

from chalicelib.core.definition_kinds import PARENTS, DefinitionKind
from chalicelib.core.definitions.calendar import HolidayCalendar
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.workflow import Namespace, Workflow
from chalicelib.core.limits.policies import Policy
from chalicelib.core.limits.pools import Pool
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.ignored import IgnoredObjects
from chalicelib.flow.definitions import access, namespaces, store
from chalicelib.flow.fires import calendars
from chalicelib.flow.lookup import require
from chalicelib.flow.views.queues import of_policy, of_pool
from chalicelib.flow.views.views import definition_view, ignored_view
from chalicelib.ports import Ports
from chalicelib.web import unseen
from chalicelib.web.access import sees, visibility
from chalicelib.web.http import (
    Json,
    caller,
    changed,
    document,
    flag,
    gone,
    if_match,
    parse,
)
from chalicelib.web.paging import listing
from chalicelib.web.quotas import check_document
from chalicelib.wiring import ports


def list_namespaces(request: Request) -> Json:
    """List the namespaces in which the signer has a role."""
    visible = visibility(request)
    if visible is None:
        return _list(request, "namespace", "")

    return listing(request, partial(access.namespaces, ports(), visible), definition_view)


def put_namespace(request: Request, ns: str) -> Response:
    """Create or replace a namespace. The second one of an installation is refused while the first uses what it could
    not use beside another without an allow-list. A dry run answers as the request would."""
    dry_run = flag(request, "dry_run")
    response = _put(request, "namespace", ns, Namespace, partial(namespaces.put, dry_run=dry_run))
    if dry_run:
        response.status_code = 200
    return response


def get_namespace(request: Request, ns: str) -> Response:
    """Read a namespace."""
    return _get("namespace", ns)


def delete_namespace(request: Request, ns: str) -> Response:
    """Delete an empty namespace."""
    return _delete(request, "namespace", ns)


def list_apps(request: Request, ns: str) -> Json:
    """List the apps of a namespace."""
    return _list(request, "app", ns)


def get_app(request: Request, ns: str, app: str) -> Response:
    """Read an app and the document of its last deployment."""
    return _get("app", f"{ns}.{app}")


def list_workflows(request: Request, ns: str, app: str) -> Json:
    """List the workflows of an app."""
    return _list(request, "workflow", f"{ns}.{app}")


def put_workflow(request: Request, ns: str, app: str, name: str) -> Response:
    """Create or replace a workflow."""
    return _put(request, "workflow", f"{ns}.{app}.{name}", Workflow)


def get_workflow(request: Request, ns: str, app: str, name: str) -> Response:
    """Read a workflow."""
    return _get("workflow", f"{ns}.{app}.{name}")


def delete_workflow(request: Request, ns: str, app: str, name: str) -> Response:
    """Delete a workflow that no schedule refers to."""
    return _delete(request, "workflow", f"{ns}.{app}.{name}")


def list_datasets(request: Request, ns: str) -> Json:
    """List the datasets of a namespace."""
    return _list(request, "dataset", ns)


def put_dataset(request: Request, ns: str, name: str) -> Response:
    """Create or replace a dataset."""
    return _put(request, "dataset", f"{ns}.{name}", Dataset)


def get_dataset(request: Request, ns: str, name: str) -> Response:
    """Read a dataset, with the last objects in its prefix that belong to no partition."""
    row = store.get(ports(), "dataset", f"{ns}.{name}")
    return document({**definition_view(row), "ignored": ignored_view(ports().rows.get(IgnoredObjects, row.name))})


def delete_dataset(request: Request, ns: str, name: str) -> Response:
    """Delete a dataset that no schedule refers to."""
    return _delete(request, "dataset", f"{ns}.{name}")


def list_policies(request: Request, ns: str) -> Json:
    """List the throttling policies of a namespace."""
    return _list(request, "policy", ns)


def put_policy(request: Request, ns: str, name: str) -> Response:
    """Create or replace a throttling policy. It takes effect with the next start."""
    return _put(request, "policy", f"{ns}.{name}", Policy)


def get_policy(request: Request, ns: str, name: str) -> Response:
    """Read a throttling policy, with the jobs that wait for its starts in order."""
    return _get_limit(request, "policy", f"{ns}.{name}", of_policy)


def delete_policy(request: Request, ns: str, name: str) -> Response:
    """Delete a throttling policy that no schedule refers to."""
    return _delete(request, "policy", f"{ns}.{name}")


def list_calendars(request: Request, ns: str) -> Json:
    """List the holiday calendars of a namespace."""
    return _list(request, "calendar", ns)


def put_calendar(request: Request, ns: str, name: str) -> Response:
    """Create or replace a holiday calendar. The schedules that name it follow it, except for fires that are prepared
    already, about two minutes ahead."""
    return _put(request, "calendar", f"{ns}.{name}", HolidayCalendar, calendars.put)


def get_calendar(request: Request, ns: str, name: str) -> Response:
    """Read a holiday calendar."""
    return _get("calendar", f"{ns}.{name}")


def delete_calendar(request: Request, ns: str, name: str) -> Response:
    """Delete a holiday calendar that no schedule names."""
    return _delete(request, "calendar", f"{ns}.{name}")


def list_pools(request: Request, ns: str) -> Json:
    """List the pools of a namespace."""
    return _list(request, "pool", ns)


def put_pool(request: Request, ns: str, name: str) -> Response:
    """Create or replace a pool. A larger pool starts waiting jobs at once; a smaller one lets active runs end first."""
    return _put(request, "pool", f"{ns}.{name}", Pool)


def get_pool(request: Request, ns: str, name: str) -> Response:
    """Read a pool, with its units in use, and the jobs that wait for them in order."""
    return _get_limit(request, "pool", f"{ns}.{name}", of_pool)


def delete_pool(request: Request, ns: str, name: str) -> Response:
    """Delete a pool that no schedule and no workflow names."""
    return _delete(request, "pool", f"{ns}.{name}")


def _put(request: Request, kind: Any, full: str, model: Any, write: Callable[..., Any] | None = None) -> Response:
    _require_parent(kind, full.rpartition(".")[0])
    content = parse(model, request).model_dump(mode="json")
    if PARENTS[kind]:
        check_document(full.partition(".")[0], kind, full)
    write = write or partial(store.put, kind=kind)
    change = write(ports(), name=full, document=content, by=caller(request), if_match=if_match(request))
    return changed(kind, full, change)


def _get(kind: Any, full: str) -> Response:
    return document(definition_view(store.get(ports(), kind, full)))


def _get_limit(
    request: Request, kind: Any, full: str, use_of: Callable[[Ports, Definition], dict[str, Any]]
) -> Response:
    row = store.get(ports(), kind, full)
    use = unseen.parts(use_of(ports(), row), sees(request))
    return document({**definition_view(row), **use})


def _delete(request: Request, kind: Any, full: str) -> Response:
    store.delete(ports(), kind, full, if_match(request))
    return gone()


def _list(request: Request, kind: Any, parent: str) -> Json:
    _require_parent(kind, parent)
    return listing(request, partial(ports().catalog.definitions, kind, parent), definition_view)


def _require_parent(kind: DefinitionKind, parent: str) -> None:
    """Raise ``not_found`` if the namespace or app of a definition does not exist."""
    if over := PARENTS[kind]:
        require(ports(), over, parent)
