"""What a list shows beside each schedule on screen: why it does not run, its next fire, what waits, its last states."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from chalicelib.core.instants import iso
from chalicelib.core.rows import kinds
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import Timer, Version
from chalicelib.core.states import Mode, RunState
from chalicelib.core.views import At, Sentence, View, shown
from chalicelib.flow.facts import Parsed
from chalicelib.flow.views import explain
from chalicelib.flow.views.schedule_list import states_of
from chalicelib.ports import Page, Ports

MAX_COUNTED = 100  # jobs of each schedule
LAST = 10  # runs of each schedule
# The history of a schedule and its waiting jobs are queries of their own, which DynamoDB takes one by one.
AT_ONCE = 8


class LastRunView(View):
    """An attempt of a run; ``at`` is when it was claimed."""

    run_id: str
    attempt: int
    state: RunState
    at: At


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
    known, states = states_of(ports, names, strong=False)
    known = known.prefetch.read(
        known,
        [each for state in states
         for each in (kinds.key(Version, state.schedule, state.version), kinds.key(Timer, state.schedule))],
    )  # fmt: skip
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
    last = ports.runs.runs("schedule", name, LAST, None)
    seen: Any = _Newest(ports.runs, name, last)
    seeing = replace(ports, runs=seen)
    view, waiting, more = explain.why_and_count(seeing, name, MAX_COUNTED, searches=False, parsed=parsed)
    return {
        "schedule": name,
        "state": view["state"],
        "why": view["why"],
        "next_fire": view["next_fire"],
        "waiting": waiting,
        "at_least": more,
        "last": [shown(LastRunView, run, at=iso(run.claimed_at)) for run in last.items],
    }


class _Newest:
    """The runs of a schedule, of which the newest were read before."""

    def __init__(self, runs: Any, schedule: str, newest: Page[Run]) -> None:
        self._runs, self._schedule, self._newest = runs, schedule, newest

    def runs(self, scope: str, name: str, limit: int, cursor: str | None) -> Page[Run]:
        if (scope, name, cursor) == ("schedule", self._schedule, None) and limit <= LAST:
            return Page(self._newest.items[:limit])
        found: Page[Run] = self._runs.runs(scope, name, limit, cursor)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runs, name)
