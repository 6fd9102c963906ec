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
from chalicelib.core.views import At, View
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


class BegunUploadView(View):
    """An upload: its ``url`` takes the document by a PUT until ``expires_at``."""

    upload: str
    url: str
    max_bytes: int
    expires_at: At


def deploy_app(request: Request, app: str) -> Response:
    """Deploy an app. Its workflows and schedules become those of the body, in one request; datasets are only created or
    replaced, never deleted. With ``upload``, the id of an upload, the document is the uploaded one, and the body empty.
    Sluice checks it as a whole, answers 202, and puts the schedules then. With ``restart``, each schedule that is
    replaced drops what has gathered and what waits, on record. ``If-Match`` expects a version of the app."""
    (ns, short), upload = app.split("."), query(request, "upload")
    given, stored = body(request), b""
    if upload is not None:
        stored = _uploaded(app, check_upload(upload), given)
        given = json_object(stored)
    update = flag(request, "update_schedules") if query(request, "update_schedules") is not None else None
    restart = flag(request, "restart")
    sent, notes = validated(App, given), expressions.notes(given) if upload is None else ()
    noted = {"notes": notes} if notes else {}
    if flag(request, "dry_run"):
        report, changes, effects = deploy.dry_run(ports(), ns, short, sent, update, restart)
        return document({"name": app, **report, "changes": changes, "effects": effects, **noted})
    if upload is not None:
        is_new = ports().rows.get(Deployment, app, upload) is None
        if is_new:
            check_app(app, sent)
        plan = deploy.checked(ports(), ns, short, sent, update, restart=restart)
        if is_new:
            deploy.require_version(plan, if_match(request))
        return document(uploaded.view(uploaded.begin(ports(), plan, upload, stored, caller(request))), 202)
    check_app(app, sent)
    expected = if_match(request)
    report, effects = deploy.deploy_and_say(ports(), ns, short, sent, caller(request), update, restart, expected)
    return document({"name": app, **report, "effects": effects, **noted})


def delete_app(request: Request, app: str) -> Response:
    """Delete an app with its schedules and workflows. The request is refused if another app refers to one of these.
    Active runs continue."""
    deploy.delete_app(ports(), app, caller(request), if_match(request))
    return gone()


def begin_upload(request: Request, app: str) -> Response:
    """Begin the upload of the document of an app that is too large for a body. The answer has the id of the upload, and
    a URL that takes the document as JSON by an unsigned PUT, for 15 minutes. The namespace need not exist yet."""
    upload = uuid.uuid4().hex
    url = ports().payloads.upload_url(app, upload, UPLOAD_SECONDS)
    ends = iso(ports().clock.now() + UPLOAD_SECONDS * SECOND)
    return answer(BegunUploadView(upload=upload, url=url, max_bytes=uploaded.MAX_UPLOAD, expires_at=ends), 201)


def show_deployment(request: Request, app: str, upload: str) -> Json:
    """Read how far the deployment of an uploaded document is. Finished ones are kept for 30 days."""
    return uploaded.view(uploaded.existing(ports(), app, check_upload(upload)))


def change_schedules(request: Request, app: str) -> Json:
    """Enable, disable, pause or resume several schedules. They are those of the names, at most 100, or those that match
    a filter. One failure does not stop the others. A dry run changes nothing and answers what would change."""
    require(ports(), "app", app)
    request_data = parse(Bulk, request)
    workflow = full_name(request_data.workflow, *app.split(".")) if request_data.workflow else None
    tag = parse_tag(request_data.tag) if request_data.tag is not None else None
    filters = Filters(tag, workflow, request_data.state)
    actions = actions_of(request_data.mode or "hold", request_data.timeouts == "stop")
    names = [_of_app(name, app, number) for number, name in enumerate(request_data.names or ())]
    by, dry_run = caller(request), request_data.dry_run
    return act(ports(), app, request_data.action, filters, by, actions, names, dry_run, sees(request))


def _uploaded(app: str, upload: str, beside: Json) -> bytes:
    """The document of an upload. Raises ``invalid`` for a body beside it."""
    if beside:
        raise invalid("body", "an empty body beside an upload", "fields", "send the document in one of the two ways")
    return uploaded.content(ports(), app, upload)


def _of_app(name: str, app: str, number: int) -> str:
    """The full name of a schedule of this app."""
    full = full_name(name, *app.split("."))
    if full.rpartition(".")[0] != app:
        hint = "send one request for each app"
        raise invalid(f"names.{number}", f"a schedule of the app {app}", name, hint)
    return full
