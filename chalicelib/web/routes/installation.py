"""Routes of the installation itself: its health, and who signs a request."""

from __future__ import annotations

from typing import NotRequired

from chalice.app import Request

from chalicelib.core.views import View
from chalicelib.web.http import caller
from chalicelib.wiring import VERSION, place, ports


class HealthView(View):
    """The state of the API, and the buckets of the installation."""

    status: str
    lake: NotRequired[str | None]
    control: NotRequired[str | None]


class WhoAmIView(View):
    """Who signs the requests, as ``updated_by`` and ``by`` name them, and which installation answers."""

    arn: str
    account: str | None
    region: str | None
    stage: str | None
    version: str


def health(request: Request) -> HealthView:
    """Check that the API can read its tables. ``lake`` is the bucket that datasets can name ``lake``."""
    ports().catalog.definitions("namespace", "", 1, None)
    settings = ports().settings
    return {"status": "ok", "lake": settings.lake_bucket, "control": settings.control_bucket}


def whoami(request: Request) -> WhoAmIView:
    """Show who signs the requests, and which installation answers."""
    identity = (request.context or {}).get("identity") or {}
    arn = caller(request)
    region, stage = place()
    return {
        "arn": arn,
        "account": identity.get("accountId") or _account_of(arn),
        "region": region,
        "stage": stage,
        "version": VERSION,
    }


def _account_of(arn: str) -> str | None:
    parts = arn.split(":")
    return parts[4] if len(parts) > 5 and parts[4] else None
