"""Routes of apps: deployment of a document, uploads, and actions on many schedules."""

from __future__ import annotations

import uuid

from chalice.app import Request, Response

from chalicelib.core.definitions.app import App
from chalicelib.core.errors import invalid
from chalicelib.core.instants import SECOND, iso
from chalicelib.core.names import full_name
from chalicelib.core.rows.deployment import Deployment
from chalicelib.core.time import expressions
from chalicelib.flow.deploy import deploy, uploaded
from chalicelib.flow.lookup import require
from chalicelib.flow.schedules.bulk import Filters, act, actions_of, parse_tag
from chalicelib.web.access import sees
from chalicelib.web.bodies import Bulk
from chalicelib.web.http import (
    Json,
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
from chalicelib.web.quotas import check_app
from chalicelib.web.routing import check_upload
from chalicelib.wiring import ports

UPLOAD_SECONDS = 900  # how long the URL of an upload holds


def deploy_app(request: Request, ns: str, app: str) -> Response:
    """Deploy an app. Its workflows and schedules become those of the body, in one request; datasets are only created or
    replaced, never deleted. With ``upload``, the id of an upload, the document is the uploaded one, and the body empty.
    Sluice checks it as a whole, answers 202, and puts the schedules then."""
    full = f"{ns}.{app}"
    upload = query(request, "upload")
    if upload is not None:
        return _deploy_upload(request, ns, app, check_upload(upload))
    update = None if query(request, "update_schedules") is None else flag(request, "update_schedules")
    given = body(request)
    sent, notes = validated(App, given), expressions.notes(given)
    noted = {"notes": notes} if notes else {}
    if flag(request, "dry_run"):
        report, changes, effects = deploy.dry_run(ports(), ns, app, sent, update)
        return document({"name": full, **report, "changes": changes, "effects": effects, **noted})
    check_app(ns, app, sent)
    report, effects = deploy.deploy_and_say(ports(), ns, app, sent, caller(request), update_schedules=update)
    return document({"name": full, **report, "effects": effects, **noted})


def delete_app(request: Request, ns: str, app: str) -> Response:
    """Delete an app with its schedules and workflows. The request is refused if another app refers to one of these.
    Active runs continue."""
    deploy.delete_app(ports(), f"{ns}.{app}", caller(request), if_match(request))
    return gone()


def begin_upload(request: Request, ns: str, app: str) -> Response:
    """Begin the upload of the document of an app that is too large for a body. The answer has the id of the upload, and
    a URL that takes the document as JSON by an unsigned PUT, for 15 minutes."""
    require(ports(), "namespace", ns)
    upload = uuid.uuid4().hex
    url = ports().payloads.upload_url(f"{ns}.{app}", upload, UPLOAD_SECONDS)
    ends = iso(ports().clock.now() + UPLOAD_SECONDS * SECOND)
    return answer({"upload": upload, "url": url, "max_bytes": uploaded.MAX_UPLOAD, "expires_at": ends}, 201)


def show_deployment(request: Request, ns: str, app: str, upload: str) -> Json:
    """Read how far the deployment of an uploaded document is. Finished ones are kept for 30 days."""
    return uploaded.view(uploaded.existing(ports(), f"{ns}.{app}", check_upload(upload)))


def change_schedules(request: Request, ns: str, app: str) -> Json:
    """Enable, disable, pause or resume several schedules. They are those of the names, at most 100, or those that match
    a filter. One failure does not stop the others. A dry run changes nothing and answers what would change."""
    require(ports(), "app", f"{ns}.{app}")
    request_data = parse(Bulk, request)
    workflow = full_name(request_data.workflow, ns, app) if request_data.workflow else None
    filters = Filters(
        parse_tag(request_data.tag) if request_data.tag is not None else None, workflow, request_data.state
    )
    actions = actions_of(request_data.mode or "hold", request_data.timeouts == "stop")
    names = [_of_app(name, ns, app, number) for number, name in enumerate(request_data.names or ())]
    by, dry_run = caller(request), request_data.dry_run
    return act(ports(), f"{ns}.{app}", request_data.action, filters, by, actions, names, dry_run, sees(request))


def _deploy_upload(request: Request, ns: str, app: str, upload: str) -> Response:
    """Check an uploaded document, and begin its deployment. A dry run answers as that of a document in the body."""
    if body(request):
        raise invalid("body", "an empty body beside an upload", "fields", "send the document in one of the two ways")
    update = None if query(request, "update_schedules") is None else flag(request, "update_schedules")
    sent = uploaded.content(ports(), f"{ns}.{app}", upload)
    content = validated(App, json_object(sent))
    if flag(request, "dry_run"):
        report, changes, effects = deploy.dry_run(ports(), ns, app, content, update)
        return document({"name": f"{ns}.{app}", **report, "changes": changes, "effects": effects})
    if ports().rows.get(Deployment, f"{ns}.{app}", upload) is None:
        check_app(ns, app, content)
    plan = deploy.checked(ports(), ns, app, content, update)
    return document(uploaded.view(uploaded.begin(ports(), plan, upload, sent, caller(request))), 202)


def _of_app(name: str, ns: str, app: str, number: int) -> str:
    """The full name of a schedule of this app."""
    full = full_name(name, ns, app)
    if full.rpartition(".")[0] != f"{ns}.{app}":
        hint = "send one request for each app"
        raise invalid(f"names.{number}", f"a schedule of the app {ns}.{app}", name, hint)
    return full
