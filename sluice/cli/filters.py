"""The filters of lists and of bulk actions. Each has one name, one letter and one meaning in all lists (L18).

A command has the options that it can apply. Of the others, `usage` says which list has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import typer

from sluice import checks, names, states
from sluice.cli import frame
from sluice.client import Document, segment
from sluice.errors import WrongUsage
from sluice.names import SCHEDULE, WORKFLOW

TARGETS = (
    *("emr_serverless", "worker", "sqs", "sns", "http", "lambda", "event_bus", "step_functions"),
    *("ecs", "batch", "glue", "athena", "emr_eks", "aws_api"),
)
OF_ROUNDS = ("RUNNING", "DONE", "FAILED", "ENDED", "CANCELLED")  # states of backfills and re-processings
Tags = Annotated[
    list[str] | None, typer.Option("--tag", metavar="KEY[=VALUE]", help="Only schedules with this tag, such as team=a.")
]
Workflows = Annotated[
    list[str] | None, typer.Option("--workflow", metavar="NAME", help="Only schedules that run this workflow.")
]
States = Annotated[
    list[str] | None,
    typer.Option("--state", metavar="STATE", help=f"Only schedules in this state: {', '.join(states.STATES)}."),
]
OfApp = Annotated[
    str | None, typer.Option("--app", "-a", metavar="[NS.]APP", help="Only this app; also the app of short names.")
]
OfWorkflow = Annotated[
    str | None, typer.Option("--workflow", metavar="NAME", help="Only of this workflow; a short name needs -a.")
]
OfTarget = Annotated[
    str | None, typer.Option("--target", metavar="TYPE", help=f"Only of this type of target: {', '.join(TARGETS)}.")
]
OfTag = Annotated[
    str | None, typer.Option("--tag", metavar="KEY[=VALUE]", help="Only what has this tag, or whose app has it.")
]
OwnTag = Annotated[str | None, typer.Option("--tag", metavar="KEY[=VALUE]", help="Only with this tag, such as team=a.")]
Text = Annotated[str | None, typer.Option("--text", metavar="TEXT", help="Only whose id, cause or reason contains it.")]
TextOfName = Annotated[str | None, typer.Option("--text", metavar="TEXT", help="Only whose name contains it.")]
Late = Annotated[
    bool, typer.Option("--late", metavar="", help="Only what missed a deadline, or began after its window.")
]
Since = Annotated[
    str | None, typer.Option("--since", metavar="WHEN", help="Since a day, an instant, or this long: 2h, 7d.")
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="WHEN", help="Until before a day, an instant, or this long ago: 2h.")
]
OfState = Annotated[
    str | None, typer.Option("--state", metavar="STATE", help=f"Only those in this state: {', '.join(OF_ROUNDS)}.")
]


def begun(state: str | None, within: Mapping[str, str | None]) -> Callable[[Document], bool] | None:
    """Whether a backfill or a re-processing is in a state and was begun within a `span`; None if all are wanted."""
    wanted = None if state is None else checks.one_of(state, OF_ROUNDS, "--state")
    if wanted is None and not any(within.values()):
        return None
    return lambda view: wanted in (None, view["state"]) and is_within(view["created_at"], within)


def span(since: str | None, until: str | None, now: datetime) -> dict[str, str | None]:
    """The query parameters ``from`` and ``to``. Raises ``WrongUsage`` for an empty span."""
    begin = checks.since(since, "--since", now) if since is not None else None
    end = checks.since(until, "--until", now) if until is not None else None
    if begin is not None and end is not None and datetime.fromisoformat(begin) >= datetime.fromisoformat(end):
        raise WrongUsage(f"expected an instant after {since}, got {until}", "--until", "the span ends before it")
    return {"from": begin, "to": end}


Given = dict[str, str | bool | None]  # options by name


@dataclass(frozen=True, slots=True)
class Place:
    """What a list is of: a schedule, or a namespace with an ``app`` of it. ``path`` is the path of it in the API."""

    path: str
    app: str | None = None
    namespace: str | None = None
    of_schedule: bool = False

    def workflow(self, name: str | None) -> str | None:
        """The workflow as the API takes it."""
        return None if name is None else workflow_name(name, self.namespace, self.app)


def place_of(namespace: str | None, app: str | None, schedule: str | None) -> Place:
    """What ``-n``, ``-a`` and ``-s`` name. Raises ``WrongUsage`` without a namespace."""
    if schedule is not None:
        full = names.full_name(SCHEDULE, schedule, namespace, app)
        of_schedule = full.split(".")
        return Place(names.path_of(SCHEDULE, full), of_schedule[1], of_schedule[0], of_schedule=True)
    space, short = names.place(namespace, app)
    in_space = frame.needed_namespace(space)
    return Place(f"/v1/namespaces/{segment(in_space)}", short, in_space)


def workflow_name(name: str, namespace: str | None, app: str | None) -> str:
    """The full name of a workflow. A short one is of the app; a full one may be of another app than what runs it."""
    is_short = name.count(".") < len(WORKFLOW.parts) - 1
    return names.full_name(WORKFLOW, name, namespace, app if is_short else None, "--workflow")


def rows_of(place: Place, now: datetime, **given: str | bool | None) -> dict[str, str | None]:
    """The query parameters of a list of runs, jobs, records or dead letters. ``given`` are the options by name, without
    those that name the place. Raises ``WrongUsage`` for those that do not go together."""
    day, since, until, target, tag, workflow = (
        _text(given.get(name)) for name in ("day", "since", "until", "target", "tag", "workflow")
    )
    checks.day(day)
    if day is not None and (since is not None or until is not None):
        raise WrongUsage("expected --day, or --since and --until, got both", "--day", "leave one of them out")
    if place.of_schedule and tag is not None:
        raise WrongUsage(
            "expected --tag without --schedule, got both", "--tag", "a schedule has its tags: leave it out"
        )
    query = {
        "day": day,
        **span(since, until, now),
        "app": None if place.of_schedule else place.app,
        "workflow": place.workflow(workflow),
        "target": target_of(target),
        "tag": tag_of(tag),
        "q": given.get("text"),
        "late": "true" if given.get("late") else None,
    }
    return {name: value for name, value in query.items() if isinstance(value, str)}


def target_of(target: str | None) -> str | None:
    return None if target is None else checks.one_of(target, TARGETS, "--target")


def tag_of(tag: str | None) -> str | None:
    if tag is not None and not tag.partition("=")[0]:
        raise WrongUsage(f"expected a tag as key or key=value, got {tag!r}", "--tag", "such as --tag team=a")
    return tag


def has_tag(view: Mapping[str, object], tag: str | None) -> bool:
    """Whether a definition has a tag, given as ``team=a``, or as ``team`` for any value."""
    if tag is None:
        return True
    key, equals, value = tag.partition("=")
    tags = view.get("tags")
    return isinstance(tags, Mapping) and key in tags and (not equals or tags[key] == value)


def has_text(view: Document, text: str | None) -> bool:
    """Whether the name of a definition contains a text."""
    return text is None or text.lower() in str(view.get("name", "")).lower()


def is_within(at: str | None, within: Mapping[str, str | None]) -> bool:
    """Whether an instant is in a `span`; an unknown one is in none but the whole."""
    if at is None:
        return not any(within.values())
    moment, begin, end = (datetime.fromisoformat(each) if each else None for each in (at, within["from"], within["to"]))
    assert moment is not None
    return (begin is None or moment >= begin) and (end is None or moment < end)


def _text(value: str | bool | None) -> str | None:
    return value if isinstance(value, str) else None


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions that a schedule must meet, all of them. Without a condition, every schedule matches."""

    tag: str | None = None
    workflow: str | None = None
    state: str | None = None

    def __bool__(self) -> bool:
        return (self.tag, self.workflow, self.state) != (None, None, None)

    def within(self, namespace: str, app: str) -> dict[str, str]:
        """The query parameters for an app. A short name of a workflow is one of the app."""
        workflow = None
        if self.workflow is not None:
            workflow = workflow_name(self.workflow, namespace, app)
        given = {"tag": self.tag, "workflow": workflow, "state": self.state}
        return {field: value for field, value in given.items() if value is not None}


def read(tags: Sequence[str] | None, workflows: Sequence[str] | None, state_options: Sequence[str] | None) -> Filters:
    """The filters in the options. Raises ``WrongUsage`` for what can be checked without the API."""
    tag = tag_of(checks.only("--tag", tags))
    workflow = checks.only("--workflow", workflows)
    state = checks.only("--state", state_options)
    if workflow is not None and not (1 <= len(parts := workflow.split(".")) <= len(WORKFLOW.parts) and all(parts)):
        raise WrongUsage(f"expected a workflow as {WORKFLOW.pattern}, got {workflow!r}", "--workflow")
    return Filters(tag, workflow, None if state is None else checks.one_of(state, states.STATES, "--state"))
