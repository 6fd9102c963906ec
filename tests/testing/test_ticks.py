"""An app whose clock moves from one due instant to the next plays like one with a tick every minute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chalicelib.core.instants import Instant
from sluice.errors import Failure
from sluice.testing import App
from tests.testing.test_apps import AT, EMR, MESSAGES

FLIGHTS, WEATHER = ({"type": "partition", "dataset": name} for name in ("flights", "weather"))
TRIGGERS: list[dict[str, Any]] = [
    {"trigger": {"type": "time", "expression": "*/7 * * * *"}},
    {"trigger": {"type": "time", "expression": "30 5,17 * * *", "zone": "Europe/Paris"}},
    {"trigger": {"type": "time", "expression": "@every 25m"}, "spread": {"count": 3, "over": "2m"}},
    {"trigger": {"type": "time", "expression": "0 * * * *"}, "coalesce": False},
    {"trigger": {"type": "event", "event": "go"}},
    {"trigger": FLIGHTS, "by": ["day"]},
    {"trigger": {"type": "all", "triggers": [FLIGHTS, WEATHER]}, "by": ["day"], "timeout": {"after": "3h"}},
    {"trigger": {"type": "quiet", "after": "20m", "of": FLIGHTS}},
    {"trigger": {"type": "any", "triggers": [FLIGHTS, {"type": "elapsed", "after": "4h"}]}},
    {"trigger": {"type": "absent", "of": FLIGHTS, "within": "90m"}},
    {"trigger": {"type": "program_status", "workflow": "node", "statuses": ["COMPLETED", "FAILED"]}},
]
CONSTRAINTS: list[dict[str, Any]] = [
    {"type": "concurrency", "max": 1, "on_unmet": "wait"},
    {"type": "delay", "after": "12m"},
    {"type": "time_window", "start": "13:00", "end": "15:30"},
    {"type": "rate", "max": 2, "per": "1h"},
    {"type": "since_last_run", "at_least": "40m", "on_unmet": "wait"},
    {"type": "load", "of": {"cloudwatch": {"namespace": "n", "metric": "m"}}, "below": 80, "recheck": "5m"},
    {"type": "approval", "role": "lead"},
]
OF_ALL = ("delay", "time_window", "load", "approval", "rate")  # those that messages may have, too
WORKFLOWS: list[dict[str, Any]] = [
    {"target": EMR, "retries": {"attempts": 3, "delay": "7m"}},
    {"target": EMR, "timeout": "35m", "deadline": {"end_within": "20m"}},
    {"target": EMR | {"poll_every": "3m"}},
    {"target": MESSAGES},
    {"target": {"type": "worker", "pool": "laptops"}, "retries": {"attempts": 2}},
]
POLICIES = {"slow": {"max_events": 2, "interval": "5m"}}
Act = Callable[[App], object]


@st.composite
def apps(draw: st.DrawFn) -> dict[str, Any]:
    workflows = draw(st.lists(st.sampled_from(WORKFLOWS), min_size=2, max_size=3))
    schedules = {}
    for number in range(draw(st.integers(1, 4))):
        workflow = draw(st.integers(0, len(workflows) - 1))
        fitting = [one for one in CONSTRAINTS if workflows[workflow]["target"] != MESSAGES or one["type"] in OF_ALL]
        constraints = draw(st.lists(st.sampled_from(fitting), max_size=2, unique_by=lambda one: one["type"]))
        schedule = draw(st.sampled_from(TRIGGERS)) | {"enabled": True, "constraints": constraints}
        policy = {"policy": "slow"} if draw(st.booleans()) else {}
        schedules[f"s{number}"] = schedule | {"workflow": f"w{workflow}"} | policy
    nodes = {name: {"workflow": "node"} for name in ("load", "check", "report")}
    edges = [{"from": "load", "to": "check"}, {"from": "check", "to": "report", "on": ["COMPLETED", "FAILED"]}]
    return {
        "namespace": "demo",
        "app": "flights",
        "datasets": {
            name: {"bucket": "lake", "prefix": f"raw/{name}/", "keys": ["day"]} for name in ("flights", "weather")
        },
        "policies": POLICIES,
        "workflows": {f"w{number}": one for number, one in enumerate(workflows)} | {"node": {"target": EMR}},
        "schedules": schedules,
        "dags": {"nightly": {"enabled": True, "trigger": FLIGHTS, "by": ["day"], "nodes": nodes, "edges": edges}},
    }


def _end(number: int, end: Callable[[Any], object]) -> Act:
    """End one of the runs that are active."""

    def act(app: App) -> None:
        active = [run for run in app.runs() if run.state == "RUNNING"]
        if active:
            end(active[number % len(active)])

    return act


acts = st.one_of(
    st.sampled_from(["1m", "7m", "29m30s", "1h", "3h", "9h"]).map(lambda span: lambda app: app.advance(span)),
    st.tuples(st.sampled_from(["flights", "weather"]), st.integers(1, 3)).map(
        lambda one: lambda app: app.partition(one[0], day=one[1])
    ),
    st.just(lambda app: app.event("go")),
    st.integers(0, 5).map(lambda number: _end(number, lambda run: run.succeed())),
    st.integers(0, 5).map(lambda number: _end(number, lambda run: run.fail("broken"))),
    st.integers(0, 5).map(lambda number: _end(number, lambda run: run.cancel())),
    st.sampled_from([10, 95]).map(lambda value: lambda app: app.measure(value)),
    st.sampled_from(["s0", "nightly"]).map(lambda name: lambda app: app.pause(name)),
    st.sampled_from(["s0", "nightly"]).map(lambda name: lambda app: app.resume(name)),
    st.sampled_from(["4m30s", "50m"]).map(lambda span: lambda app: app.runs_take(span)),
    st.sampled_from(["throttled", "lost", "unreachable"]).map(lambda one: lambda app: app.answer_calls("s0", one)),
)


PLAYS = st.lists(acts, min_size=2, max_size=7)


class EveryMinute(App):
    """Its clock stops at every minute for a tick."""

    def _pass_until(self, end: Instant) -> None:
        self.pass_until(end)


@settings(max_examples=6)
@given(document=apps(), acts=PLAYS)
def test_time_by_events_plays_like_a_tick_every_minute(document: dict[str, Any], acts: list[Act]) -> None:
    play(document, acts)


@pytest.mark.long
@settings(max_examples=100)
@given(document=apps(), acts=PLAYS)
def test_time_by_events_plays_many_apps_like_ticks(document: dict[str, Any], acts: list[Act]) -> None:
    play(document, acts)


def play(document: dict[str, Any], acts: list[Act]) -> None:
    with App.quiet():
        by_events, by_minutes = App(document, at=AT), EveryMinute(document, at=AT)
        for act in acts:
            assert _refusal(act, by_events) == _refusal(act, by_minutes)
            assert by_events.explain() == by_minutes.explain()
            assert dict(_rows(by_events)) == dict(_rows(by_minutes))


def _refusal(act: Act, app: App) -> str:
    try:
        act(app)
    except Failure as refused:  # such as to resume a schedule that is not paused
        return str(refused)
    return ""


def _rows(app: App) -> Any:
    """All rows by their keys, without the holder of a lease of deliveries, which is random."""
    for table, row in app._tables.rows():
        lease = row["sk"]["S"].startswith("LEASE#")
        yield (table, row["pk"]["S"], row["sk"]["S"]), {**row, "holder": {}} if lease else row
