"""Filters of schedules by tag, workflow and state (L18), the same for lists and for bulk actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from sluice import checks, names, states
from sluice.errors import WrongUsage
from sluice.names import WORKFLOW

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
            workflow = names.full_name(WORKFLOW, self.workflow, namespace, app, "--workflow")
        given = {"tag": self.tag, "workflow": workflow, "state": self.state}
        return {field: value for field, value in given.items() if value is not None}


def read(tags: Sequence[str] | None, workflows: Sequence[str] | None, state_options: Sequence[str] | None) -> Filters:
    """The filters in the options. Raises ``WrongUsage`` for what can be checked without the API."""
    tag = checks.only("--tag", tags)
    workflow = checks.only("--workflow", workflows)
    state = checks.only("--state", state_options)
    if tag is not None and not tag.partition("=")[0]:
        raise WrongUsage(f"expected a tag as key or key=value, got {tag!r}", "--tag", "such as --tag team=a")
    if workflow is not None and not (1 <= len(parts := workflow.split(".")) <= len(WORKFLOW.parts) and all(parts)):
        raise WrongUsage(f"expected a workflow as {WORKFLOW.pattern}, got {workflow!r}", "--workflow")
    return Filters(tag, workflow, None if state is None else checks.one_of(state, states.STATES, "--state"))
