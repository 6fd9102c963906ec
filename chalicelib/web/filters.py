"""Filters of lists of schedules: by tag, workflow and state (L18)."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from chalice.app import Request

from chalicelib.core.errors import invalid
from chalicelib.core.states import Mode
from chalicelib.web.http import query

if TYPE_CHECKING:
    from chalicelib.flow.schedules.bulk import Filters

STATES = tuple(mode for mode in get_args(Mode) if mode != "deleted")  # lists hold no deleted schedule


def filters(request: Request, ns: str, app: str) -> Filters:
    """The filters of a request, such as ``?tag=team=a&workflow=clean&state=enabled``. A short name of a workflow is one
    of this app. Raises ``invalid`` for an unknown state."""
    from chalicelib.core.documents import check_reference
    from chalicelib.core.names import full_name
    from chalicelib.flow.schedules.bulk import Filters, parse_tag

    tag, workflow, state = query(request, "tag"), query(request, "workflow"), query(request, "state")
    if state is not None and state not in STATES:
        raise invalid("state", f"one of {', '.join(STATES)}", state, "use one of these, or leave state out")
    named = full_name(check_reference(workflow, "workflow"), ns, app) if workflow is not None else None
    return Filters(parse_tag(tag) if tag is not None else None, named, state)
