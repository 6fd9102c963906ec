"""Deploy an app: in the body of the request, or by an upload if its document is too large for a body."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from sluice.client import Client, Document, Query
from sluice.errors import NotReachable
from sluice.refusals import refusal

MAX_BODY = 1_000_000  # bytes; docs/api.md, Conventions
FIRST_PAUSE, MAX_PAUSE = 0.5, 5.0  # seconds between two questions how far the deployment is
TIMEOUT = 300  # seconds of the upload


def deploy(
    client: Client,
    path: str,
    document: Document,
    query: Query,
    pause: Callable[[float], None] = time.sleep,
    if_match: str | None = None,
) -> Document:
    """Deploy a document to the app at ``path``, and return the report: the names of all parts by action. ``left_alone``
    are those that were changed after the deployment was accepted. ``if_match`` is the ETag that the app must have.

    Raises `ApiRefused` for a wrong document, also if a deployment fails that has begun, and `NotReachable`."""
    content = json.dumps(document, ensure_ascii=False).encode()
    if len(content) <= MAX_BODY:
        return client.put(path, document, query, if_match)
    begun = client.post(f"{path}/uploads", repeatable=True)
    send(str(begun["url"]), content)
    uploaded = {**query, "upload": str(begun["upload"])}
    # The answer to the deployment has counts alone; that to a dry run has the names.
    report = client.request("PUT", path, query={**uploaded, "dry_run": True}).body
    if query.get("dry_run"):
        return report
    client.request("PUT", path, query=uploaded, if_match=if_match)
    left = _follow(client, f"{path}/deployments/{begun['upload']}", pause).get("left_alone")
    made = {name: part for name, part in report.items() if name != "changes"}
    return {**made, "left_alone": left} if left else made


def send(url: str, content: bytes) -> None:
    """Put a document to the URL of an upload. Raises `NotReachable` if it is not taken."""
    # Imported here because most deployments need no upload.
    import urllib.error
    import urllib.request

    request = urllib.request.Request(url, content, {"Content-Type": "application/json"}, method="PUT")
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT):
            return
    except urllib.error.HTTPError as error:
        got = f"{error.code} {error.reason}"
    except (urllib.error.URLError, OSError) as error:
        got = str(error)
    hint = "check that S3 can be reached from here; the URL holds for 15 minutes"
    raise NotReachable(f"expected S3 to take the upload, got {got}", hint=hint)


def _follow(client: Client, path: str, pause: Callable[[float], None]) -> Document:
    """Wait until a deployment has ended, and return it. Raises the error of one that failed or was superseded."""
    span = FIRST_PAUSE
    while (view := client.get(path))["state"] == "RUNNING":
        pause(span)
        span = min(MAX_PAUSE, 1.5 * span)
    if view["state"] == "FAILED":
        error: Document = view.get("error") or {}
        message = str(error.get("message") or "the deployment failed")
        raise refusal(409, str(error.get("code") or "unknown"), message, error.get("field"), error.get("hint"))
    if view["state"] == "SUPERSEDED":
        message = f"expected to deploy the whole document, got superseded by {view.get('superseded_by')}"
        raise refusal(
            409, "changed_meanwhile", message, None, "look at what the app is now, and deploy again if needed"
        )
    return view
