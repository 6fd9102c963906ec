"""Routes of history by workflow: its runs, and the daily report."""

from __future__ import annotations

from functools import partial

from chalice.app import Request

from chalicelib.flow.history.reports import newest_day, report
from chalicelib.flow.lookup import require
from chalicelib.web.http import Json, day
from chalicelib.web.paging import listing
from chalicelib.wiring import ports


def read_report(request: Request, ns: str) -> Json:
    """Read the report of a day, workflow by workflow. Without a day, it is the newest report."""
    require(ports(), "namespace", ns)
    of = day(request) or newest_day(ports(), ns)
    return {"day": of, **listing(request, partial(report, ports(), ns, of), dict)}
