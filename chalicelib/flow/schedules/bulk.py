"""Apply one action to many schedules of an app, filtered by tag, workflow or state (L18)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict

from chalicelib.core import errors, ids
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.flow import lookup
from chalicelib.flow.schedules import actions as schedule_actions
from chalicelib.flow.schedules import pauses
from chalicelib.log import logger
from chalicelib.ports import Ports

Act = Callable[[Ports, str, str], ScheduleState]
"""Changes the schedule of a name on behalf of a user. Returns its state, an equal one if there was nothing to do."""


def _hold(ports: Ports, name: str, by: str) -> ScheduleState:
    return pauses.pause(ports, name, "hold", by)


ACTIONS: Mapping[str, Act] = {
    "enable": schedule_actions.enable,
    "disable": schedule_actions.disable,
    "pause": _hold,
    "resume": pauses.resume,
}


class Tag(NamedTuple):
    """A tag to filter by. A ``value`` of None matches any value."""

    key: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Filters:
    """Filters for the schedules of an app; a schedule must match all that are given. ``workflow`` is a full name."""

    tag: tuple[str, str | None] | None = None
    workflow: str | None = None
    state: str | None = None


class Failure(TypedDict):
    name: str
    error: Mapping[str, Any]


class Outcome(TypedDict):
    """The result for each schedule, by full name."""

    changed: list[str]
    unchanged: list[str]
    failed: list[Failure]


def parse_tag(text: str, field: str = "tag") -> Tag:
    """A tag from ``team=a``, or just ``team``. Raises SluiceError if the key is empty."""
    key, equals, value = text.partition("=")
    if not key:
        raise errors.invalid(field, "a tag such as team=a, or just team", text, "write key=value, or the key alone")
    return Tag(key, value if equals else None)


def select(
    ports: Ports, app: str, tag: tuple[str, str | None] | None, workflow: str | None, state: str | None
) -> list[tuple[ScheduleState, Schedule]]:
    """The existing schedules of an app that match every given filter, by name."""
    wanted = Filters(tag, workflow, state)
    found: list[tuple[ScheduleState, Schedule]] = []
    for name in lookup.schedules_of(ports, app):
        if ids.is_of_dag(name):
            continue  # the schedules of a DAG change with the DAG only
        schedule_state = ports.catalog.schedule_state(name)
        schedule = lookup.definition_of(ports, schedule_state)
        if (
            schedule_state is not None
            and schedule is not None
            and schedule_state.exists
            and fits(wanted, schedule_state, schedule)
        ):
            found.append((schedule_state, schedule))
    return found


def fits(wanted: Filters, schedule_state: ScheduleState, schedule: Schedule) -> bool:
    if wanted.tag is not None:
        key, value = wanted.tag
        if key not in schedule.tags or value not in (None, schedule.tags[key]):
            return False
    return wanted.workflow in (None, schedule.workflow) and wanted.state in (None, schedule_state.mode)


def act(
    ports: Ports, app: str, action: str, filters: Filters, by: str, actions: Mapping[str, Act] = ACTIONS
) -> Outcome:
    """Apply the action to each matching schedule, one after the other. One failure does not stop the others.

    A repeat finishes an interrupted request: schedules that were already changed are reported as unchanged.
    """
    if action not in actions:
        raise errors.invalid("action", f"one of {', '.join(actions)}", action, "use one of these")
    outcome = Outcome(changed=[], unchanged=[], failed=[])
    for schedule_state, _ in select(ports, app, filters.tag, filters.workflow, filters.state):
        try:
            after = actions[action](ports, schedule_state.schedule, by)
        except Exception as error:
            outcome["failed"].append(
                {"name": schedule_state.schedule, "error": _error_view(error, action, schedule_state.schedule)}
            )
        else:
            outcome["unchanged" if after == schedule_state else "changed"].append(schedule_state.schedule)
    return outcome


def _error_view(error: Exception, action: str, name: str) -> Mapping[str, Any]:
    """The error as the API returns it. The details of an internal error are logged, not returned."""
    if not isinstance(error, SluiceError):
        logger.exception("bulk change failed", extra={"action": action, "schedule": name})
        error = SluiceError("internal", "the change could not be carried out", None, "try again")
    view: Mapping[str, Any] = error.to_dict()["error"]
    return view
