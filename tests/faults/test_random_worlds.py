"""Whole systems with all faults at once: random schedules, events, users, kills, stale reads; the invariants are
checked after each step.

Hypothesis chooses the steps, and shrinks a failure to the few that matter.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chalicelib.log import logger
from tests.faults import invariants
from tests.faults.granted_world import GrantedWorld
from tests.faults.random_world import NAMES, RandomWorld
from tests.support.examples import constraints_drawn

names = st.sampled_from(NAMES)
PARTITION = {"type": "partition", "dataset": "flights"}
WEATHER = {"type": "partition", "dataset": "weather"}
ORDER = {"type": "event", "event": "order"}
# The Monday on which every world begins at noon: a day and a window of a calendar that opens and closes in it.
BY_DAY = {"from": "2026-03-02T12:05:00Z", "to": "2026-03-02T13:30:00Z"}
LUNCH = {"from": "2026-03-02T12:20:00Z", "to": "2026-03-02T12:35:00Z"}

leaves = st.sampled_from(
    [
        PARTITION,
        {**PARTITION, "count": 2},
        WEATHER,
        ORDER,
        {**ORDER, "count": 2},
        {"type": "size", "dataset": "flights", "bytes": 150},
        {"type": "time", "expression": "@every 7m"},
        {"type": "time", "expression": "R3/PT2M"},
        {"type": "quiet", "of": PARTITION, "after": "3m"},
        {"type": "absent", "of": WEATHER, "within": "25m"},
        {"type": "absent", "of": PARTITION, "deadline": "12:20"},
        {"type": "elapsed", "after": "31m"},
    ]
)


def _composite(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=2, max_size=3)
    return st.one_of(
        st.builds(lambda triggers: {"type": "any", "triggers": triggers}, several),
        st.builds(lambda triggers: {"type": "all", "triggers": triggers}, several),
        st.builds(lambda triggers: {"type": "all", "triggers": triggers, "within": "10m"}, several),
        st.builds(lambda triggers: {"type": "at_least", "count": 2, "triggers": triggers}, several),
    )


data_leaves = st.sampled_from(
    [PARTITION, {**PARTITION, "count": 2}, WEATHER, {"type": "quiet", "of": PARTITION, "after": "3m"}]
)
upstream = st.sampled_from(["COMPLETED", "FAILED", "STARTED"]).map(
    lambda status: {"type": "program_status", "workflow": "clean", "statuses": [status]}
)
simple = st.sampled_from([PARTITION, PARTITION, {**PARTITION, "count": 2}, WEATHER, ORDER])
triggers = st.one_of(simple, simple, leaves, _composite(leaves))
# Limits that the schedules of a workflow share, so that history can be checked against them.
limits = st.sampled_from(
    [
        [],
        [{"type": "concurrency", "max": 1, "on_unmet": "wait"}],
        [{"type": "concurrency", "max": 2, "on_unmet": "wait"}],
        [{"type": "concurrency", "max": 1, "on_unmet": "abort"}],
        [{"type": "concurrency", "max": 1, "on_unmet": "cancel_other"}],
        [{"type": "concurrency", "max": 1, "group": "cluster", "on_unmet": "wait"}],
        [{"type": "rate", "max": 2, "per": "9m"}],
        [{"type": "since_last_run", "at_least": "5m", "on_unmet": "wait"}],
        [{"type": "since_last_run", "at_least": "5m", "of": "any"}],
        [{"type": "concurrency", "max": 2, "on_unmet": "wait"}, {"type": "rate", "max": 1, "per": "4m"}],
    ]
)
others = st.sampled_from(
    [
        [],
        [],
        [{"type": "delay", "after": "2m", "since": "met"}],
        [{"type": "time_window", "start": "12:10", "end": "13:30"}],
        [{"type": "calendar", "only": ["tue", BY_DAY], "excluding": [LUNCH]}],
        *([each] for each in constraints_drawn()),
    ]
)
fresh = [{"type": "fresh", "workflows": ["clean"], "within": "40m", "on_unmet": "wait"}]
extras = st.fixed_dictionaries(
    {},
    optional={
        "coalesce": st.just(False),
        "pause_after_failures": st.just(2),
        "timeout": st.sampled_from(["never", {"after": "20m"}, {"after": "20m", "then": "run"}]),
        "priority": st.sampled_from([1, 9]),
    },
)


@st.composite
def schedules(draw: Any) -> dict[str, Any]:
    shared, found = draw(limits), {}
    policy = draw(st.sampled_from([{}, {"policy": "calm"}]))
    pools = st.sampled_from([{}, {"pool": "p"}, {"pool": "p", "slots": 2}, {"pool": "p", "slots": 3}])
    for name in ("a", "b"):
        by = draw(st.sampled_from([(), (), ("day",)]))
        trigger = draw(st.one_of(data_leaves, data_leaves, _composite(data_leaves)) if by else triggers)
        document = {"workflow": "clean", "trigger": trigger, "by": list(by), "constraints": shared + draw(others)}
        found[name] = {**document, **draw(extras), **policy, **draw(pools), "enabled": True}
    trigger = draw(st.one_of(upstream, triggers, _composite(st.one_of(upstream, leaves))))
    constraints = draw(st.sampled_from([[], fresh])) + draw(others)
    found["c"] = {"workflow": "join", "trigger": trigger, **draw(extras), **policy, "enabled": True}
    if (
        draw(st.integers(0, 1 if policy else 3)) == 0
    ):  # messages: their runs have no end that could be limited, or counted as failed
        mostly_none = draw(st.sampled_from([[], [], [], constraints])) if policy else constraints
        found["c"] |= {"workflow": "notify", "constraints": mostly_none}
        found["c"].pop("pause_after_failures", None)
    else:
        found["c"] |= {"constraints": constraints + draw(limits), **draw(pools)}
    return found


upload = st.tuples(
    st.just("upload_object"), st.sampled_from(["flights", "flights", "weather"]), st.integers(1, 6),
    st.sampled_from(["_SUCCESS", "_SUCCESS", "a.csv"]), st.sampled_from([0, 60, 100]),
)  # fmt: skip
ends = st.tuples(st.just("emr_ends"), st.sampled_from(["RUNNING", "SUCCESS", "FAILED", "FAILED"]), st.integers(0, 2))
changes = st.sampled_from(["", "", "priority", "timeout", "ttl"])
death = st.tuples(st.just("dies_after"), st.integers(1, 12))
time = st.tuples(st.just("pass_by"), st.sampled_from(["1s", "40s", "2m", "5m", "12m"]))
burst = st.tuples(
    st.just("burst"), st.sampled_from(["c", "c", "a"]), st.sampled_from([3, 6, 20]), st.integers(1, 3),
    st.sampled_from(["fast", "faster"]),
)  # fmt: skip
step = st.one_of(
    upload, upload, upload, ends, ends, death, death, death, time, time, burst, burst,
    st.tuples(st.just("post_event"), st.integers(1, 5)),
    st.tuples(st.sampled_from(["forget_hints", "old_hints", "slow_reader", "stalled_emitter"])),
    st.tuples(st.just("emr_answers"), st.sampled_from(["silence", "not now", "never"])),
    st.tuples(st.sampled_from(["pause", "resume", "disable", "enable"]), names),
    st.tuples(st.just("pause"), names, st.sampled_from(["hold", "backlog", "drain"]), st.booleans()),
    st.tuples(st.just("update"), names, st.sampled_from(["carry", "carry", "drop"]), changes),
    st.tuples(st.just("busy_tables"), st.integers(1, 40), st.sampled_from([1, 1, 3, 20])),
    st.tuples(st.just("lost_answers"), st.integers(1, 12), st.sampled_from([1, 1, 2])),
    st.tuples(st.just("slow_tables"), st.integers(1, 10), st.sampled_from([50, 1000])),
    st.tuples(st.just("clock_steps"), st.sampled_from([-1000, -150, 0, 150, 1000])),
    st.tuples(st.just("redeployed"), st.sampled_from([1, 3, 9]), st.sampled_from([75, 135, 300]), st.booleans()),
    st.tuples(st.sampled_from(["cancel_job", "cancel_run"]), st.integers(0, 5)),
    st.tuples(st.sampled_from(["redrive", "queue_refuses"])),
    st.tuples(st.just("run_it"), names, st.integers(1, 3)),
    st.tuples(st.just("skip_next"), names),
    st.tuples(st.just("resize"), st.integers(2, 6), st.integers(0, 2)),
    st.tuples(st.just("takes"), st.sampled_from(["clean", "join"]), st.integers(1, 3)),
    st.tuples(st.just("backfill_it"), names, st.integers(1, 2), st.integers(1, 2)),
    st.tuples(st.just("stop_backfill"), names, st.booleans()),
    st.tuples(st.just("repair"), st.sampled_from([0, 1, 10])),
    st.tuples(st.just("policy_becomes"), st.sampled_from(["slow", "slow", "calm", "fast", "faster", "faster"])),
    st.tuples(st.just("upload_app"), st.integers(1, 4), st.sampled_from(["carry", "drop"]),
              st.sampled_from(["", "", *NAMES])),
)  # fmt: skip
PEOPLE = ("pause", "resume", "disable", "enable")


def play(documents: dict[str, Any], steps: list[Any], seed: int, kind: type[RandomWorld] = RandomWorld) -> None:
    level = logger.log_level
    logger.setLevel("CRITICAL")  # the log of thousands of worlds is not read
    try:
        _play(kind(documents, seed), steps)
    finally:
        logger.setLevel(level)


def _play(world: RandomWorld, steps: list[Any]) -> None:
    for kind, *arguments in steps:
        act = getattr(world, kind)
        if kind in PEOPLE:
            world.people(lambda act=act, arguments=arguments: act(*arguments))
        else:
            act(*arguments)
        world.weather.undisturbed(lambda: _holds(world))
    world.rest()
    world.keeps_pace()
    world.keeps_pool()


def _holds(world: RandomWorld) -> None:
    stock = invariants.check(world)
    if not (world.has_stepped or world.was_slow):  # only instants of one clock can be compared
        invariants.check_limits(stock.runs, stock.versions)
    world.keeps_pace()
    world.keeps_pool()
    world.keeps_application(stock.runs)


everything = given(schedules(), st.lists(step, min_size=15, max_size=60), st.integers(0, 1000))
patient: Any = {"deadline": None, "suppress_health_check": list(HealthCheck)}


grant_steps = st.one_of(step, step, step, st.tuples(st.just("changes_grants"), st.integers(0, 3)))
granted = given(schedules(), st.lists(grant_steps, min_size=15, max_size=60), st.integers(0, 1000))


@settings(max_examples=100, derandomize=True, **patient)
@everything
def test_random_worlds_keep_every_invariant(documents: dict[str, Any], steps: list[Any], seed: int) -> None:
    play(documents, steps, seed)


@pytest.mark.long
@settings(max_examples=4000, **patient)
@everything
def test_random_worlds_at_length_keep_every_invariant(documents: dict[str, Any], steps: list[Any], seed: int) -> None:
    play(documents, steps, seed)


@settings(max_examples=12, derandomize=True, **patient)
@granted
def test_o9_random_worlds_with_grants_keep_every_invariant(
    documents: dict[str, Any], steps: list[Any], seed: int
) -> None:  # fmt: skip
    play(documents, steps, seed, GrantedWorld)


@pytest.mark.long
@settings(max_examples=1000, **patient)
@granted
def test_o9_random_worlds_with_grants_at_length(documents: dict[str, Any], steps: list[Any], seed: int) -> None:
    play(documents, steps, seed, GrantedWorld)
