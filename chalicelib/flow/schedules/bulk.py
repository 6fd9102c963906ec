"""Apply one action to many schedules of an app: by their names, or filtered by tag, workflow or state (L18).

A dry run calls the same actions over a ledger that refuses to write. So it finds the same reasons, in the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from chalicelib.core import errors, ids
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.schedules.lifecycle import PauseMode
from chalicelib.core.views import View
from chalicelib.flow import lookup, many
from chalicelib.flow.schedules import actions as schedule_actions
from chalicelib.flow.schedules import pauses, stops
from chalicelib.flow.schedules.stops import ErrorOfChangeView, FailedChangeView
from chalicelib.log import logger
from chalicelib.ports import Ports

Act = Callable[[Ports, str, str], ScheduleState]
"""Changes the schedule of a name on behalf of a user. Returns its state, an equal one if there was nothing to do."""


class BulkChangeView(View):
    """What was done with each schedule; of a dry run, what would be done."""

    changed: list[str]
    unchanged: list[str]
    failed: list[FailedChangeView]
    dry_run: bool


ACTIONS: Mapping[str, Act] = {
    "enable": schedule_actions.enable,
    "disable": schedule_actions.disable,
    "pause": lambda ports, name, by: _pause(ports, name, "hold", by),
    "resume": lambda ports, name, by: (pauses.resume_dag if ids.is_of_dag(name) else pauses.resume)(ports, name, by),
}


def _pause(ports: Ports, name: str, mode: PauseMode, by: str, stop_timeouts: bool = False) -> ScheduleState:
    act = pauses.pause_dag if ids.is_of_dag(name) else pauses.pause
    return act(ports, name, mode, by, stop_timeouts)


def actions_of(mode: PauseMode = "hold", stop_timeouts: bool = False) -> Mapping[str, Act]:
    """The actions, with this way to pause."""

    def pause(ports: Ports, name: str, by: str) -> ScheduleState:
        return _pause(ports, name, mode, by, stop_timeouts)

    return {**ACTIONS, "pause": pause}


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


def parse_tag(text: str, field: str = "tag") -> Tag:
    """A tag from ``team=a``, or just ``team``. Raises SluiceError if the key is empty."""
    key, equals, value = text.partition("=")
    if not key:
        raise errors.invalid(field, "a tag such as team=a, or just team", text, "write key=value, or the key alone")
    return Tag(key, value if equals else None)


def select(ports: Ports, app: str, wanted: Filters) -> list[tuple[ScheduleState, Schedule]]:
    """The existing schedules of an app, and the starts of its DAGs, that match every given filter, by name. They
    inherit the tags of the app."""
    names = [name for name in lookup.schedules_of(ports, app) if not ids.is_dag_node(name)]
    inherited = stops.of_app(ports, app) if wanted.tag is not None else {}
    return [found for found in many.schedules(ports, names).values() if fits(wanted, *found, inherited)]


def fits(
    wanted: Filters, schedule_state: ScheduleState, schedule: Schedule, inherited: Mapping[str, str] | None = None
) -> bool:
    """Whether a schedule matches every given filter; ``inherited`` are the tags of its app."""
    if wanted.tag is not None:
        key, value = wanted.tag
        tags = {**(inherited or {}), **schedule.tags}
        if key not in tags or value not in (None, tags[key]):
            return False
    return wanted.workflow in (None, schedule.workflow) and wanted.state in (None, schedule_state.mode)


def act(
    ports: Ports,
    app: str,
    action: str,
    filters: Filters,
    by: str,
    actions: Mapping[str, Act] = ACTIONS,
    names: Sequence[str] = (),
    dry_run: bool = False,
    sees: Callable[[str], bool] = lambda name: True,
) -> BulkChangeView:
    """Apply the action to each matching schedule, one after the other; with ``names`` (full names) to these. One
    failure does not stop the others. A dry run changes nothing: its ``changed`` are those that would change.

    The errors name nothing that ``sees`` refuses. A repeat finishes an interrupted request: schedules that were already
    changed are reported as unchanged.
    """
    if action not in actions:
        raise errors.invalid("action", f"one of {', '.join(actions)}", action, "use one of these")
    outcome = BulkChangeView(changed=[], unchanged=[], failed=[], dry_run=dry_run)
    if names:
        before = {name: found[0] for name, found in many.schedules(ports, names).items()}
    else:
        found = select(ports, app, filters)
        before = {schedule_state.schedule: schedule_state for schedule_state, _ in found}
    wanted = list(dict.fromkeys(names) if names else before)
    acting = replace(many.read_ahead(ports, wanted)[0], ledger=_ReadOnly()) if dry_run else ports
    for name in wanted:
        shown = name if names else name.removesuffix(ids.DAG)  # a filter selects the start of a DAG for it
        try:
            if names:
                _check_owner(name)
            after = actions[action](acting, name, by)
        except _WouldWrite:
            outcome["changed"].append(shown)
        except Exception as error:
            outcome["failed"].append({"name": shown, "error": _error_view(error, action, name, sees)})
        else:
            outcome["unchanged" if after == before.get(name) else "changed"].append(shown)
    return outcome


def _check_owner(name: str) -> None:
    """Raise ``conflict`` for a schedule that a DAG owns: only the DAG changes it (W4)."""
    if ids.is_of_dag(name):
        raise errors.owned_by_dag(ids.plain(name).rpartition(".")[2], ids.dag_of(name).rpartition(".")[2])


class _WouldWrite(Exception):
    """An action has reached its first write in a dry run."""


class _ReadOnly:
    """A ledger that refuses every write."""

    def __getattr__(self, name: str) -> Any:
        raise _WouldWrite


def _error_view(error: Exception, action: str, name: str, sees: Callable[[str], bool]) -> ErrorOfChangeView:
    """The error as the API returns it. The details of an internal error are logged, not returned."""
    if not isinstance(error, SluiceError):
        logger.exception("bulk change failed", extra={"action": action, "schedule": name})
        error = SluiceError("internal", "the change could not be carried out", None, "try again")
    view: ErrorOfChangeView = error.concealing(sees).to_dict()["error"]
    return view
