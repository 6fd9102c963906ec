"""Filters of lists of schedules: by tag, workflow and state (L18)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, get_args

from chalice.app import Request

from chalicelib.core.documents import check_reference
from chalicelib.core.errors import invalid
from chalicelib.core.names import full_name
from chalicelib.core.states import JobKind, JobState, Mode
from chalicelib.flow.schedules.bulk import Filters, parse_tag
from chalicelib.web.http import query

if TYPE_CHECKING:
    from chalicelib.core.rows.job import Job

STATES = tuple(mode for mode in get_args(Mode) if mode != "deleted")  # lists hold no deleted schedule


def filters(request: Request, ns: str, app: str) -> Filters:
    """The filters of a request, such as ``?tag=team=a&workflow=clean&state=enabled``. A short name of a workflow is one
    of this app. Raises ``invalid`` for an unknown state."""
    tag, workflow, state = query(request, "tag"), query(request, "workflow"), query(request, "state")
    if state is not None and state not in STATES:
        raise invalid("state", f"one of {', '.join(STATES)}", state, "use one of these, or leave state out")
    named = full_name(check_reference(workflow, "workflow"), ns, app) if workflow is not None else None
    return Filters(parse_tag(tag) if tag is not None else None, named, state)


def filters_of_namespace(request: Request, ns: str, app: str | None) -> Filters:
    """The filters of a list over all apps of a namespace. A workflow is ``app.name``, or a short name if the list is of
    one app. Raises ``invalid`` for a short name without an app."""
    workflow = query(request, "workflow")
    if workflow is not None and app is None and "." not in workflow:
        raise invalid("workflow", "app.name", workflow, "name its app, or add app=...")
    return filters(request, ns, app or "")


def kept_jobs(request: Request) -> Callable[[Job], bool]:
    """Whether a job has the ``?state`` and ``?kind`` of a request. Raises ``invalid`` for an unknown one."""
    wanted = {}
    for name, known in (("state", get_args(JobState)), ("kind", get_args(JobKind))):
        text = query(request, name)
        if text is not None and text not in known:
            raise invalid(name, f"one of {', '.join(known)}", text, f"use one of these, or leave {name} out")
        wanted[name] = text
    return lambda job: wanted["state"] in (None, job.state) and wanted["kind"] in (None, job.kind)
