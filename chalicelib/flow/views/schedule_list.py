"""The schedules of a namespace as short rows, and a glance at some of them: why each does not run, its last runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from chalicelib.core import ids
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.instants import iso
from chalicelib.core.rows import kinds
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import ScheduleState, Version
from chalicelib.core.rows.stops import marks_of
from chalicelib.core.runs import fires
from chalicelib.core.states import Mode, RunState
from chalicelib.core.triggers import tree
from chalicelib.core.views import At, Sentence, View, shown
from chalicelib.flow import many
from chalicelib.flow.facts import Parsed
from chalicelib.flow.lookup import definitions_in, require
from chalicelib.flow.schedules.bulk import Filters
from chalicelib.flow.schedules.stops import StopView, tags_of, view_of
from chalicelib.flow.views import explain
from chalicelib.ports import Page, Ports

MAX_LIMIT = 2_000  # rows of a page: one MB or less, where API Gateway passes on six
MAX_READ = 2_000  # schedules that one request reads: 40 calls of a hundred rows
MAX_PASSED = 20_000  # names that one request passes with a search: 20 calls
BATCH = 100  # schedules that are read together, at least
MAX_KNOWN = 20_000  # summaries in memory, about half a KB each

# Version -> what a row shows of it. A version never changes; to parse 2,000 of them takes a Lambda a second.
_known: dict[tuple[str, int, int], dict[str, Any]] = {}


class ScheduleInShortView(View):
    """A schedule in a list of its namespace, without its definition. ``dag`` is the DAG that owns it."""

    name: str
    app: str
    state: Mode
    enabled: bool
    pause_reason: str | None
    stops: list[StopView]
    triggered_by: str
    workflow: str
    tags: dict[str, str]
    priority: int | None
    policy: str | None
    version: int
    generation: int
    skips: list[At]
    dag: str | None
    updated_at: At
    updated_by: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which schedules to list: of an app (its short name), those that the filters fit, those whose full name contains
    ``part``."""

    app: str | None = None
    filters: Filters = Filters()  # noqa: RUF009 - frozen
    part: str = ""


def rows_of(ports: Ports, namespace: str, wanted: Wanted, limit: int, cursor: str | None) -> Page[ScheduleInShortView]:
    """One page of schedules, ordered by full name. The cursor is the full name of the last schedule that was passed. A
    page may hold fewer than ``limit``, even none, and still have a next one, because a request reads a bounded number.

    Raises ``not_found`` (404) for an unknown namespace or app."""
    require(ports, "namespace", namespace)
    if wanted.app is not None:
        require(ports, "app", f"{namespace}.{wanted.app}")
    tagged = definitions_in(ports, "app", namespace) if wanted.filters.tag is not None else ()
    inherited = {row.name: tags_of(row) for row in tagged}
    found: list[ScheduleInShortView] = []
    names: list[str] = []
    passed = read = 0
    part, last = wanted.part.lower(), ""
    size = max(BATCH, limit)
    for name in _names(ports, namespace, wanted.app, cursor or "", size if not part else 1_000):
        last, passed = name, passed + 1
        if part in name:
            names.append(name)
        if len(names) == max(BATCH, limit - len(found)) or passed == MAX_PASSED:
            found += _rows(ports, names, wanted.filters, inherited)
            read, names = read + len(names), []
            if len(found) >= limit:
                return Page(tuple(found[:limit]), str(found[limit - 1]["name"]))
            if read >= MAX_READ or passed >= MAX_PASSED:
                return Page(tuple(found), last)
    found += _rows(ports, names, wanted.filters, inherited)
    return Page(tuple(found[:limit]), str(found[limit - 1]["name"]) if len(found) > limit else None)


def _names(ports: Ports, namespace: str, app: str | None, after: str, size: int) -> Iterator[str]:
    """The full names of schedules behind ``after``."""
    begin, _, short = after.rpartition(".")
    apps = (
        [f"{namespace}.{app}"]
        if app is not None
        else sorted(row.name for row in definitions_in(ports, "app", namespace))
    )
    for each in apps:
        if each < begin:
            continue
        following: str | None = short if each == begin else ""
        while following is not None:
            page = ports.catalog.schedules_after(each, following, size)
            yield from page.items
            following = page.cursor


def _rows(
    ports: Ports, names: Sequence[str], filters: Filters, inherited: Mapping[str, Mapping[str, str]]
) -> list[ScheduleInShortView]:
    """The rows of these schedules that exist and that the filters fit. ``inherited`` are the tags of apps."""
    known, states = many.states(ports, names)
    living = [state for state in states if state.exists and filters.state in (None, state.mode)]
    known = many.versions(known, [state for state in living if _key(state) not in _known])
    rows = [row for state in living if (row := _row(known, state)) is not None]
    return [row for row in rows if _fits(row, filters, inherited.get(row["name"].rpartition(".")[0], {}))]


def _row(ports: Ports, state: ScheduleState) -> ScheduleInShortView | None:
    summary = _known.get(_key(state))
    if summary is None:
        version = ports.rows.get(Version, state.schedule, state.version)
        if version is None:
            return None
        if len(_known) >= MAX_KNOWN:
            _known.clear()
        summary = _known[_key(state)] = _summary(version)
    return shown(
        ScheduleInShortView,
        state,
        name=state.schedule,
        app=state.schedule.split(".")[1],
        state=state.mode,
        enabled=state.mode == "enabled",
        pause_reason=state.reason or None,
        stops=[view_of(stop) for stop in marks_of(state)],
        skips=[iso(at) for at in state.skips],
        dag=ids.dag_of(state.schedule) if ids.is_of_dag(state.schedule) else None,
        updated_by=state.by,
        **summary,
    )


def _key(state: ScheduleState) -> tuple[str, int, int]:
    """A schedule that was deleted and put again begins with version 1 again, but has another generation."""
    return state.schedule, state.version, state.generation


def _summary(version: Version) -> dict[str, Any]:
    schedule = Schedule.model_validate(version.definition)
    return {
        "triggered_by": ids.plain_in(tree.describe(schedule.trigger)),
        "workflow": schedule.workflow,
        "tags": dict(schedule.tags),
        "priority": schedule.priority,
        "policy": schedule.policy,
    }


def _fits(row: ScheduleInShortView, filters: Filters, inherited: Mapping[str, str]) -> bool:
    if filters.tag is not None:
        key, value = filters.tag
        tags = {**inherited, **row["tags"]}
        if key not in tags or value not in (None, tags[key]):
            return False
    return filters.workflow in (None, row["workflow"])


MAX_COUNTED = 100  # jobs of each schedule
LAST = 10  # runs of each schedule
MORE = 90  # rows of runs that are read if those of a large fire are among them
# The history of a schedule and its waiting jobs are queries of their own, which DynamoDB takes one by one.
AT_ONCE = 8


class LastRunView(View):
    """An attempt of a run; ``at`` is when it was claimed, ``count`` how many sent events of a large fire it stands
    for."""

    run_id: str
    attempt: int
    state: RunState
    at: At
    count: int


class GlanceAtScheduleView(View):
    """Why a schedule does not run, and its newest runs first. ``at_least``: more jobs than ``waiting`` wait."""

    schedule: str
    state: Mode
    why: Sentence
    next_fire: At | None
    waiting: int
    at_least: bool
    last: list[LastRunView]


class GlancesView(View):
    """The schedules in the order of the request. ``gone`` are those that do not exist."""

    items: list[GlanceAtScheduleView]
    gone: list[str]


def glance(ports: Ports, names: Sequence[str]) -> GlancesView:
    """One item for each schedule that exists, in the given order, and in ``gone`` the names of the others."""
    known, found = many.states(ports, names, strong=False)
    states = [state for state in found if state.exists]
    known = many.versions(known, states, timers=True)
    parsed = Parsed()
    schedules = [schedule for state in states if (schedule := parsed.schedule(known, state)) is not None]
    named = {kinds.key(Definition, "workflow", schedule.workflow) for schedule in schedules}
    named |= {
        kinds.key(Definition, "dataset", name) for schedule in schedules for name in explain.datasets_of(schedule)
    }
    known = known.prefetch.read(known, sorted(named))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        items = list(pool.map(lambda state: _glance(known, parsed, state.schedule), states))
    there = {item["schedule"] for item in items}
    return {"items": items, "gone": [name for name in names if name not in there]}


def _glance(ports: Ports, parsed: Parsed, name: str) -> GlanceAtScheduleView:
    last = _last_runs(ports, name)
    view, waiting, more = explain.why_and_count(ports, name, MAX_COUNTED, searches=False, parsed=parsed, newest=last)
    return {
        "schedule": name,
        "state": view["state"],
        "why": view["why"],
        "next_fire": view["next_fire"],
        "waiting": waiting,
        "at_least": more,
        "last": [shown(LastRunView, run, at=iso(run.claimed_at), count=run.events) for run in last],
    }


def _last_runs(ports: Ports, name: str) -> list[Run]:
    """The newest runs of a schedule. The sent events of a large fire are one: with such a fire, more rows are read."""
    page = ports.runs.runs("schedule", name, LAST, None)
    found = fires.folded(page.items)
    if len(found) < len(page.items) and page.cursor is not None:
        found = fires.folded([*page.items, *ports.runs.runs("schedule", name, MORE, page.cursor).items])
    return found[:LAST]
