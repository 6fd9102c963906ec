"""Routes of namespaces, apps, workflows, datasets, partitions, policies and calendars."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from chalice.app import Blueprint, Response

from chalicelib.core.definition_kinds import PARENTS, DefinitionKind
from chalicelib.core.errors import invalid
from chalicelib.web import unseen
from chalicelib.web.access import SIGNED, sees, visibility
from chalicelib.web.http import (
    answer,
    body,
    caller,
    document,
    flag,
    gone,
    if_match,
    json_object,
    parse,
    query,
    validated,
)
from chalicelib.web.paging import PAGING, listing
from chalicelib.web.quotas import check_app, check_document
from chalicelib.web.routing import IF_MATCH, check_upload, own_shape, route
from chalicelib.wiring import ports

routes = Blueprint(__name__)
routes.middleware("http")(own_shape)

NS = "/v1/namespaces/{ns}"
APP = NS + "/apps/{app}"
UPLOAD_SECONDS = 900  # how long the URL of an upload holds


@route(routes, "GET", "/v1/namespaces", needs=SIGNED, query=PAGING)
def list_namespaces() -> dict[str, Any]:
    """List the namespaces in which the signer has a role."""
    visible = visibility(routes.current_request)
    if visible is None:
        return _list("namespace", "")
    from chalicelib.flow.definitions.access import namespaces
    from chalicelib.flow.views.views import definition_view

    return listing(routes.current_request, partial(namespaces, ports(), visible), definition_view)


@route(
    routes,
    "PUT",
    NS,
    needs="administer",
    query=("dry_run",),
    body="Namespace",
    headers=(IF_MATCH,),
    status=(200, 201),
)
def put_namespace(ns: str) -> Response:
    """Create or replace a namespace. The second one of an installation is refused while the first uses what it could
    not use beside another without an allow-list. A dry run answers as the request would."""
    from chalicelib.core.definitions.workflow import Namespace
    from chalicelib.flow.definitions.namespaces import put

    dry_run = flag(routes.current_request, "dry_run")
    response = _put("namespace", ns, Namespace, partial(put, dry_run=dry_run))
    if dry_run:
        response.status_code = 200
    return response


@route(routes, "GET", NS, needs="read")
def get_namespace(ns: str) -> Response:
    """Read a namespace."""
    return _get("namespace", ns)


@route(routes, "DELETE", NS, needs="administer", headers=(IF_MATCH,), status=(204,))
def delete_namespace(ns: str) -> Response:
    """Delete an empty namespace."""
    return _delete("namespace", ns)


@route(routes, "GET", NS + "/apps", needs="read", query=PAGING)
def list_apps(ns: str) -> dict[str, Any]:
    """List the apps of a namespace."""
    return _list("app", ns)


@route(
    routes, "PUT", APP, needs="define", query=("dry_run", "update_schedules", "upload"), body="App", status=(200, 202)
)
def deploy_app(ns: str, app: str) -> Response:
    """Deploy an app. Its workflows and schedules become those of the body, in one request; datasets are only created or
    replaced, never deleted. With ``upload``, the id of an upload, the document is the uploaded one, and the body empty.
    Sluice checks it as a whole, answers 202, and puts the schedules then."""
    from chalicelib.core.definitions.app import App
    from chalicelib.core.time import expressions
    from chalicelib.flow.deploy.deploy import deploy_and_say, dry_run

    request, full = routes.current_request, f"{ns}.{app}"
    upload = query(request, "upload")
    if upload is not None:
        return _deploy_upload(ns, app, check_upload(upload))
    update = None if query(request, "update_schedules") is None else flag(request, "update_schedules")
    given = body(request)
    sent, notes = validated(App, given), expressions.notes(given)
    noted = {"notes": notes} if notes else {}
    if flag(request, "dry_run"):
        report, changes, effects = dry_run(ports(), ns, app, sent, update)
        return document({"name": full, **report, "changes": changes, "effects": effects, **noted})
    check_app(ns, app, sent)
    report, effects = deploy_and_say(ports(), ns, app, sent, caller(request), update_schedules=update)
    return document({"name": full, **report, "effects": effects, **noted})


def _deploy_upload(ns: str, app: str, upload: str) -> Response:
    """Check an uploaded document, and begin its deployment. A dry run answers as that of a document in the body."""
    from chalicelib.core.definitions.app import App
    from chalicelib.flow.deploy import deploy, uploaded

    request = routes.current_request
    if body(request):
        raise invalid("body", "an empty body beside an upload", "fields", "send the document in one of the two ways")
    update = None if query(request, "update_schedules") is None else flag(request, "update_schedules")
    sent = uploaded.content(ports(), f"{ns}.{app}", upload)
    content = validated(App, json_object(sent))
    if flag(request, "dry_run"):
        report, changes, effects = deploy.dry_run(ports(), ns, app, content, update)
        return document({"name": f"{ns}.{app}", **report, "changes": changes, "effects": effects})
    if ports().jobs.deployment(f"{ns}.{app}", upload) is None:
        check_app(ns, app, content)
    plan = deploy.checked(ports(), ns, app, content, update)
    return document(uploaded.view(uploaded.begin(ports(), plan, upload, sent, caller(request))), 202)


@route(routes, "POST", APP + "/uploads", needs="define", status=(201,))
def begin_upload(ns: str, app: str) -> Response:
    """Begin the upload of the document of an app that is too large for a body. The answer has the id of the upload, and
    a URL that takes the document as JSON by an unsigned PUT, for 15 minutes."""
    from uuid import uuid4

    from chalicelib.core.instants import SECOND, iso
    from chalicelib.flow.deploy.uploaded import MAX_UPLOAD
    from chalicelib.flow.lookup import require

    require(ports(), "namespace", ns)
    upload = uuid4().hex
    url = ports().payloads.upload_url(f"{ns}.{app}", upload, UPLOAD_SECONDS)
    ends = iso(ports().clock.now() + UPLOAD_SECONDS * SECOND)
    return answer({"upload": upload, "url": url, "max_bytes": MAX_UPLOAD, "expires_at": ends}, 201)


@route(routes, "GET", APP + "/deployments/{upload}", needs="read")
def show_deployment(ns: str, app: str, upload: str) -> dict[str, Any]:
    """Read how far the deployment of an uploaded document is. Finished ones are kept for 30 days."""
    from chalicelib.flow.deploy import uploaded

    return uploaded.view(uploaded.existing(ports(), f"{ns}.{app}", check_upload(upload)))


@route(routes, "GET", APP, needs="read")
def get_app(ns: str, app: str) -> Response:
    """Read an app and the document of its last deployment."""
    return _get("app", f"{ns}.{app}")


@route(routes, "DELETE", APP, needs="define", headers=(IF_MATCH,), status=(204,))
def delete_app(ns: str, app: str) -> Response:
    """Delete an app with its schedules and workflows. The request is refused if another app refers to one of these.
    Active runs continue."""
    from chalicelib.flow.deploy.deploy import delete_app as delete

    request = routes.current_request
    delete(ports(), f"{ns}.{app}", caller(request), if_match(request))
    return gone()


@route(routes, "POST", APP + "/bulk", needs="operate", body="Bulk")
def change_schedules(ns: str, app: str) -> dict[str, Any]:
    """Enable, disable, pause or resume several schedules. They are those of the names, at most 100, or those that match
    a filter. One failure does not stop the others. A dry run changes nothing and answers what would change."""
    from chalicelib.core.names import full_name
    from chalicelib.flow.lookup import require
    from chalicelib.flow.schedules.bulk import Filters, act, actions_of, parse_tag
    from chalicelib.web.bodies import Bulk

    request = routes.current_request
    require(ports(), "app", f"{ns}.{app}")
    request_data = parse(Bulk, request)
    workflow = full_name(request_data.workflow, ns, app) if request_data.workflow else None
    filters = Filters(
        parse_tag(request_data.tag) if request_data.tag is not None else None, workflow, request_data.state
    )
    actions = actions_of(request_data.mode or "hold", request_data.timeouts == "stop")
    names = [_of_app(name, ns, app, number) for number, name in enumerate(request_data.names or ())]
    by, dry_run = caller(request), request_data.dry_run
    outcome = act(ports(), f"{ns}.{app}", request_data.action, filters, by, actions, names, dry_run, sees(request))
    return {**outcome, "dry_run": dry_run}


def _of_app(name: str, ns: str, app: str, number: int) -> str:
    """The full name of a schedule of this app."""
    from chalicelib.core.errors import invalid
    from chalicelib.core.names import full_name

    full = full_name(name, ns, app)
    if full.rpartition(".")[0] != f"{ns}.{app}":
        hint = "send one request for each app"
        raise invalid(f"names.{number}", f"a schedule of the app {ns}.{app}", name, hint)
    return full


@route(routes, "GET", APP + "/workflows", needs="read", query=PAGING)
def list_workflows(ns: str, app: str) -> dict[str, Any]:
    """List the workflows of an app."""
    return _list("workflow", f"{ns}.{app}")


@route(
    routes, "PUT", APP + "/workflows/{name}", needs="define", body="Workflow", headers=(IF_MATCH,), status=(200, 201)
)
def put_workflow(ns: str, app: str, name: str) -> Response:
    """Create or replace a workflow."""
    from chalicelib.core.definitions.workflow import Workflow

    return _put("workflow", f"{ns}.{app}.{name}", Workflow)


@route(routes, "GET", APP + "/workflows/{name}", needs="read")
def get_workflow(ns: str, app: str, name: str) -> Response:
    """Read a workflow."""
    return _get("workflow", f"{ns}.{app}.{name}")


@route(routes, "DELETE", APP + "/workflows/{name}", needs="define", headers=(IF_MATCH,), status=(204,))
def delete_workflow(ns: str, app: str, name: str) -> Response:
    """Delete a workflow that no schedule refers to."""
    return _delete("workflow", f"{ns}.{app}.{name}")


@route(routes, "GET", NS + "/datasets", needs="read", query=PAGING)
def list_datasets(ns: str) -> dict[str, Any]:
    """List the datasets of a namespace."""
    return _list("dataset", ns)


@route(routes, "PUT", NS + "/datasets/{name}", needs="define", body="Dataset", headers=(IF_MATCH,), status=(200, 201))
def put_dataset(ns: str, name: str) -> Response:
    """Create or replace a dataset."""
    from chalicelib.core.definitions.dataset import Dataset

    return _put("dataset", f"{ns}.{name}", Dataset)


@route(routes, "GET", NS + "/datasets/{name}", needs="read")
def get_dataset(ns: str, name: str) -> Response:
    """Read a dataset, with the last objects in its prefix that belong to no partition."""
    from chalicelib.flow.definitions.store import get
    from chalicelib.flow.views.layouts import ignored_view
    from chalicelib.flow.views.views import definition_view

    row = get(ports(), "dataset", f"{ns}.{name}")
    return document({**definition_view(row), "ignored": ignored_view(ports().catalog.ignored(row.name))})


@route(routes, "DELETE", NS + "/datasets/{name}", needs="define", headers=(IF_MATCH,), status=(204,))
def delete_dataset(ns: str, name: str) -> Response:
    """Delete a dataset that no schedule refers to."""
    return _delete("dataset", f"{ns}.{name}")


@route(routes, "POST", NS + "/datasets/{name}/partitions", needs="produce", body="NewPartition", status=(201,))
def register_partition(ns: str, name: str) -> Response:
    """Register a partition as ready. Registering it again has no effect."""
    from chalicelib.core.definitions.dataset import Dataset
    from chalicelib.flow.definitions.store import get
    from chalicelib.flow.ingest.partitions import register_values
    from chalicelib.flow.views.views import partition_view
    from chalicelib.web.bodies import NewPartition

    full = f"{ns}.{name}"
    dataset = Dataset.model_validate(get(ports(), "dataset", full).document)
    content = parse(NewPartition, routes.current_request).model_dump()
    return document(partition_view(register_values(ports(), full, dataset, content)), 201)


@route(routes, "GET", NS + "/policies", needs="read", query=PAGING)
def list_policies(ns: str) -> dict[str, Any]:
    """List the throttling policies of a namespace."""
    return _list("policy", ns)


@route(routes, "PUT", NS + "/policies/{name}", needs="define", body="Policy", headers=(IF_MATCH,), status=(200, 201))
def put_policy(ns: str, name: str) -> Response:
    """Create or replace a throttling policy. It takes effect with the next start."""
    from chalicelib.core.limits.policies import Policy

    return _put("policy", f"{ns}.{name}", Policy)


@route(routes, "GET", NS + "/policies/{name}", needs="read")
def get_policy(ns: str, name: str) -> Response:
    """Read a throttling policy, with the jobs that wait for its starts in order."""
    from chalicelib.flow.definitions.store import get
    from chalicelib.flow.views.queues import of_policy
    from chalicelib.flow.views.views import definition_view

    row = get(ports(), "policy", f"{ns}.{name}")
    use = unseen.parts(of_policy(ports(), row), sees(routes.current_request))
    return document({**definition_view(row), **use})


@route(routes, "DELETE", NS + "/policies/{name}", needs="define", headers=(IF_MATCH,), status=(204,))
def delete_policy(ns: str, name: str) -> Response:
    """Delete a throttling policy that no schedule refers to."""
    return _delete("policy", f"{ns}.{name}")


@route(routes, "GET", NS + "/calendars", needs="read", query=PAGING)
def list_calendars(ns: str) -> dict[str, Any]:
    """List the holiday calendars of a namespace."""
    return _list("calendar", ns)


@route(
    routes,
    "PUT",
    NS + "/calendars/{name}",
    needs="define",
    body="HolidayCalendar",
    headers=(IF_MATCH,),
    status=(200, 201),
)
def put_calendar(ns: str, name: str) -> Response:
    """Create or replace a holiday calendar. The schedules that name it follow it, except for fires that are prepared
    already, about two minutes ahead."""
    from chalicelib.core.definitions.calendar import HolidayCalendar
    from chalicelib.flow.fires.calendars import put

    return _put("calendar", f"{ns}.{name}", HolidayCalendar, put)


@route(routes, "GET", NS + "/calendars/{name}", needs="read")
def get_calendar(ns: str, name: str) -> Response:
    """Read a holiday calendar."""
    return _get("calendar", f"{ns}.{name}")


@route(routes, "DELETE", NS + "/calendars/{name}", needs="define", headers=(IF_MATCH,), status=(204,))
def delete_calendar(ns: str, name: str) -> Response:
    """Delete a holiday calendar that no schedule names."""
    return _delete("calendar", f"{ns}.{name}")


def _put(kind: Any, full: str, model: Any, write: Callable[..., Any] | None = None) -> Response:
    from chalicelib.flow.definitions.store import put

    request = routes.current_request
    _require_parent(kind, full.rpartition(".")[0])
    content = parse(model, request).model_dump(mode="json")
    if PARENTS[kind]:
        check_document(full.partition(".")[0], kind, full)
    write = write or partial(put, kind=kind)
    change = write(ports(), name=full, document=content, by=caller(request), if_match=if_match(request))
    view = {"name": full, "kind": kind, "did": change.did, "version": change.version}
    return document(view, 201 if change.did == "created" else 200)


def _get(kind: Any, full: str) -> Response:
    from chalicelib.flow.definitions.store import get
    from chalicelib.flow.views.views import definition_view

    return document(definition_view(get(ports(), kind, full)))


def _delete(kind: Any, full: str) -> Response:
    from chalicelib.flow.definitions.store import delete

    delete(ports(), kind, full, if_match(routes.current_request))
    return gone()


def _list(kind: Any, parent: str) -> dict[str, Any]:
    from chalicelib.flow.views.views import definition_view

    _require_parent(kind, parent)
    return listing(routes.current_request, partial(ports().catalog.definitions, kind, parent), definition_view)


def _require_parent(kind: DefinitionKind, parent: str) -> None:
    """Raise ``not_found`` if the namespace or app of a definition does not exist."""
    from chalicelib.flow.lookup import require

    if over := PARENTS[kind]:
        require(ports(), over, parent)
