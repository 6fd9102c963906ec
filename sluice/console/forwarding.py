"""Which requests of the page go to the API, and in which form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from sluice.client import segment
from sluice.console.access import Refused

# Headers that the API reads. All others stay with the proxy: cookies above all.
TO_API = ("accept", "content-type", "idempotency-key", "if-match")
TO_PAGE = ("content-type", "etag", "retry-after")
# Workers and their leases belong to programs, which report results in the name of a run.
NOT_FOR_PAGES = ("workers", "leases")
# Requests with a body that read: the last part of their path.
READING = ("dry-run", "glance")
# Requests that change nothing if their body says ``"dry_run": true``.
WITH_DRY_RUN = ("backfills", "reprocess", "bulk", "stop", "start")


@dataclass(frozen=True, slots=True)
class Forward:
    """A request for the API: the path with its query as they are signed, and the body as it is sent."""

    method: str
    target: str
    headers: Mapping[str, str]
    content: bytes | None


def forward(
    method: str, target: str, headers: Mapping[str, str], content: bytes | None, read_only: bool
) -> Forward | Refused:
    """The request that goes to the API for one of the page, or the refusal. The names in ``headers`` are in lower case.

    Path and query are decoded and encoded again, so that what is checked is exactly what is signed and sent.
    """
    parts = urlsplit(target)
    segments = [unquote(part) for part in parts.path.split("/")]
    is_path = target.startswith("/v1/")  # not an address of another host
    if (
        not is_path
        or segments[:2] != ["", "v1"]
        or len(segments) < 3
        or any(part in ("", ".", "..") for part in segments[2:])
    ):
        message = f"expected a path such as /v1/namespaces/demo, got {parts.path[:200]!r}"
        return Refused(400, "bad_path", message, "use only paths of docs/api.md")
    if segments[2] in NOT_FOR_PAGES:
        message = f"the console does not forward /v1/{segments[2]}: it belongs to workers"
        return Refused(403, "not_for_pages", message, "use sluice worker")
    query = parse_qsl(parts.query, keep_blank_values=True)
    if read_only:
        document = _document(content)
        if not _changes_nothing(method, segments, query, document):
            message = f"expected a read or a dry run, got {method} {parts.path[:200]}"
            return Refused(403, "read_only", message, "start sluice console without --read-only")
        content = None if content is None else json.dumps(document).encode()
    path = "/".join(["", "v1", *(segment(part) for part in segments[2:])])
    encoded = f"?{urlencode(query, quote_via=quote)}" if query else ""
    sent = {name: headers[name] for name in TO_API if name in headers}
    return Forward(method, path + encoded, sent, content)


def _changes_nothing(method: str, segments: list[str], query: list[tuple[str, str]], document: Any) -> bool:
    if method == "GET":
        return True
    last = segments[-1]
    if method == "POST" and last in READING:
        return True
    if method == "POST" and last in WITH_DRY_RUN:
        return isinstance(document, dict) and document.get("dry_run") is True
    is_app = len(segments) == 6 and segments[2] == "namespaces" and segments[4] == "apps"
    return method == "PUT" and is_app and [value for name, value in query if name == "dry_run"] == ["true"]


def _document(content: bytes | None) -> Any:
    """The body as the API reads it; None for one that is no JSON. A name that occurs twice counts once, so that the API
    and this check cannot read two different values."""
    try:
        return json.loads(content or b"{}")
    except ValueError:
        return None
